"""Lines in, lines out: the translations of each line, with the beginnings that a file gives, as text or as JSON."""

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from dragoman.alignment.attention import align, pharaoh
from dragoman.errors import DragomanError, Error
from dragoman.inference.translation import Translation
from dragoman.pipeline.bulk import Translate
from dragoman.pipeline.in_context import Before
from dragoman.pipeline.options import TranslateOptions, build_pipeline
from dragoman.pipeline.pipeline import Pipeline, Translated
from dragoman.runs import checkpoint
from dragoman.runs.directory import check_run_dir
from dragoman.text.lines import STREAM_LINES, in_chunks, read_lines


def translate_lines(
    pipeline: Pipeline, chunks: Iterable[list[str]], prefix: Path | None = None, *, in_order: bool = False
) -> Iterator[list[tuple[str, Translated]]]:
    """(line, its translations) for the lines of each chunk. `prefix`: a file of the translations' beginnings;
    `in_order`: the lines are one document.

    Raises DragomanError, naming file and line, for a beginning that cannot be written, and where the file has more or
    fewer lines than there are to translate.
    """
    beginnings = None if prefix is None else read_lines(prefix, may_be_empty=True)
    done, document = 0, Before()
    for lines in chunks:
        begin = None if beginnings is None else list(itertools.islice(beginnings, len(lines)))
        if begin is not None and len(begin) < len(lines):
            raise Error.UNEQUAL_COUNTS("fewer lines than there are to translate", "give one for each", file=prefix)
        for number, text in enumerate(begin or (), start=done + 1):
            try:
                pipeline.own.check_prefix(text)
            except DragomanError as error:
                raise error.code(str(error), file=prefix, line=number) from error
        done += len(lines)
        documents = [document] * len(lines) if in_order else None
        yield list(zip(lines, pipeline.texts(lines, begin, documents), strict=True))
    if beginnings is not None and next(beginnings, None) is not None:
        raise Error.UNEQUAL_COUNTS(
            f"more lines than the {done:,} that were translated", "give one for each", file=prefix
        )


@dataclass(frozen=True)
class OutputFormat:
    """Choices of `dragoman translate` for what is written of each line."""

    as_json: bool = False
    alignments: bool = False
    moses: bool = False  #: Of Moses and Marian: lines from 0, the score of the model before that of the list.

    def text(self, pipeline: Pipeline, line: int, src: str, translations: Sequence[Translation]) -> str:
        """The output for line number `line`, from 1, with its line ends."""
        links = [pharaoh(align(pipeline.own, src, item.text)) for item in translations] if self.alignments else []
        if self.as_json:
            return _as_json(pipeline, line, src, translations, links)
        rows = []
        for place, item in enumerate(translations):
            columns = [item.text, *links[place : place + 1]]
            if self.moses:
                rows.append([str(line - 1), item.text, f"F0= {item.log_prob:.4f}", f"{item.score:.4f}", *columns[1:]])
                continue
            rows.append([str(line), *columns, f"{item.score:.4f}"] if pipeline.n_best > 1 else columns)
        return "".join(" ||| ".join(columns) + "\n" for columns in rows)


def _as_json(pipeline: Pipeline, line: int, src: str, hypotheses: Sequence[Translation], links: Sequence[str]) -> str:
    translations = []
    for place, item in enumerate(hypotheses):
        record: dict[str, Any] = {"text": item.text, "score": item.score, "log_prob": item.log_prob}
        record["warnings"] = [one.record() for one in item.warnings]
        if item.confidence is not None:
            record["confidence"] = round(item.confidence, 4)
            record["words"] = [[item.text[begin:end], round(value, 4)] for begin, end, value in item.words]
        translations.append({**record, "alignment": links[place]} if links else record)
    matches = pipeline.memory.like(src) if pipeline.memory is not None and src.strip() else []
    memory = [{"source": item.src, "target": item.tgt, "similarity": round(item.similarity, 4)} for item in matches]
    of_line = {"line": line, "source": src, "translations": translations, **({"memory": memory} if memory else {})}
    return json.dumps(of_line, ensure_ascii=False) + "\n"


def identity(options: TranslateOptions, form: OutputFormat) -> str:
    """SHA-256 over weights and options: what two workers of a bulk translation must have in common."""
    weights = checkpoint.inference_digest(checkpoint.select(check_run_dir(options.run), options.which))
    return hashlib.sha256(f"{weights} {replace(options, run=Path(), device='')} {form}".encode()).hexdigest()


def translating(options: TranslateOptions, form: OutputFormat) -> Translate:
    """A function that translates the lines of a block of a bulk translation, whose model is loaded now."""
    pipeline = replace(build_pipeline(options), warn=form.as_json)

    def translate(first: int, lines: list[str]) -> list[str]:
        chunks = in_chunks(iter(lines), STREAM_LINES * torch.get_num_threads())  # enough for each thread's batches
        translations = itertools.chain.from_iterable(map(pipeline.texts, chunks))
        pairs = enumerate(zip(lines, translations, strict=True), start=first)
        return [form.text(pipeline, number, src, translated.items) for number, (src, translated) in pairs]

    return translate
