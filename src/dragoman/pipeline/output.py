"""The form of translations of lines: `text`, `line ||| text ||| score`, or a JSON object a line."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.alignment.attention import align, pharaoh
from dragoman.inference.translation import Translation
from dragoman.pipeline.memory import Match
from dragoman.quality.faults import source_warnings, warnings_of


@dataclass(frozen=True)
class Form:
    """Choices of `dragoman translate` for what is written of each line."""

    as_json: bool = False
    alignments: bool = False

    def text(self, assembled: Any, line: int, src: str, found: Sequence[Translation]) -> str:
        """The output for line number `line`, from 1, with its line ends."""
        translator = assembled.translator
        links = [pharaoh(align(translator, src, item.text)) for item in found] if self.alignments else []
        if not self.as_json:
            return _as_lines(line, found, links, numbered=assembled.n_best > 1)
        matches = assembled.memory.like(src) if assembled.memory is not None and src.strip() else []
        return _as_json(line, src, found, links, translator.languages, matches)


def _as_json(
    line: int,
    src: str,
    found: Sequence[Translation],
    links: Sequence[str],
    languages: tuple[str, str] | None,
    matches: Sequence[Match],
) -> str:
    translations = []
    for place, item in enumerate(found):
        warnings = item.warnings or [*warnings_of(src, item.text, languages), *source_warnings(src, languages)]
        record: dict[str, Any] = {"text": item.text, "score": item.score, "log_prob": item.log_prob}
        record["warnings"] = [one.record() for one in warnings]
        if item.confidence is not None:
            record["confidence"] = round(item.confidence, 4)
            record["words"] = [[item.text[begin:end], round(value, 4)] for begin, end, value in item.words]
        translations.append({**record, "alignment": links[place]} if links else record)
    memory = [{"source": item.src, "target": item.tgt, "similarity": round(item.similarity, 4)} for item in matches]
    of_line = {"line": line, "source": src, "translations": translations, **({"memory": memory} if memory else {})}
    return json.dumps(of_line, ensure_ascii=False) + "\n"


def _as_lines(line: int, found: Sequence[Translation], links: Sequence[str], *, numbered: bool) -> str:
    """`text`, or `line ||| text ||| score`; links after the text."""
    rows = []
    for place, item in enumerate(found):
        columns = [item.text, *links[place : place + 1]]
        rows.append([str(line), *columns, f"{item.score:.4f}"] if numbered else columns)
    return "".join(" ||| ".join(columns) + "\n" for columns in rows)
