"""More pairs out of the same corpus: what several models make of each side, beside what people wrote.

Data diversification (Nguyen et al. 2020, "Data Diversification: A Simple Strategy For Neural Machine Translation",
algorithm 1, one round): forward models translate the source side, backward models the target side, each translation is
put beside the text that it was made from, and a new model is trained on all of it together. No other text is needed.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dragoman.config import to_dict
from dragoman.data.random import hash64
from dragoman.errors import Error, writing
from dragoman.inference.search_translator import SearchTranslator
from dragoman.languages.codes import fits, same_languages
from dragoman.progress import Progress, say
from dragoman.runs import atomic_io, checkpoint
from dragoman.runs.atomic_io import read_json
from dragoman.runs.directory import check_run_dir, languages_of
from dragoman.runs.lock import locked
from dragoman.text.corpus import FilesSource
from dragoman.text.lines import STREAM_LINES, in_chunks, language_of_file

Side = Literal["src", "tgt"]
"""The side of a pair that a model reads here."""

MADE_FROM = "made-from.json"
"""File of a folder whose translations are not all there yet: what they are made from."""


@dataclass
class Diversified:
    """The counts of a corpus made more."""

    src: Path
    tgt: Path
    pairs: int = 0
    """Pairs of the corpus itself; all are kept."""
    added: dict[str, int] = field(default_factory=dict)
    """New pairs by the run that they are of."""


def diversify(
    source: FilesSource,
    out: Path,
    *,
    forward: Sequence[str | Path] = (),
    backward: Sequence[str | Path] = (),
    **options: Any,
) -> Diversified:
    """Write the pairs of two files, and after them those that runs add, into the new folder `out`.

    `forward` runs translate the source side, `backward` runs the target side; `options` are those of
    `SearchTranslator.load`. A pair that is there already, or has a blank side, is not added. Whatever ends it before it
    is done: the same command goes on from the last translations that `out` has, and ends in the same bytes.

    Raises DragomanError where `out` holds something else, there are no runs, or one translates between other languages.
    """
    if not forward and not backward:
        raise Error.MISSING_OPTION("no run to translate with", "give `forward` RUN, or `backward` RUN, or several")
    runs: list[tuple[Side, Path]] = [("src", Path(run)) for run in forward]
    runs += [("tgt", Path(run)) for run in backward]
    goes_on = (out / MADE_FROM).is_file()
    if out.exists() and not goes_on and (not out.is_dir() or any(out.iterdir())):
        raise Error.ALREADY_THERE("is there already", "name a new folder", file=out)
    names = [Path(name).name.removesuffix(".gz") for name in (source.src, source.tgt)]
    if names[0] == names[1]:
        names = [f"src-{names[0]}", f"tgt-{names[1]}"]
    result = Diversified(out / names[0], out / names[1])
    result.pairs = sum(1 for _ in source.pairs())
    _require_same_languages(runs, source)
    # All of them now: after hours of translating it is too late to find that the last one cannot be loaded.
    translators = [SearchTranslator.load(run, **options) for _, run in runs]
    made_from = {
        "corpus": source.contents(),
        "precision": options.get("precision", "float32"),
        "runs": [[side, identity(run, of)] for (side, run), of in zip(runs, translators, strict=True)],
    }
    if goes_on and read_json(out / MADE_FROM, dict) != made_from:
        raise Error.OTHER_CONTENT(
            "holds what another corpus, other runs or other settings began", "name a new folder", file=out
        )
    parts = [out / f"{number}-{run.name}.part" for number, (_, run) in enumerate(runs, start=1)]
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        with locked(out):
            atomic_io.replace_text(out / MADE_FROM, atomic_io.to_json(made_from))
            for number, (part, (side, _), translator) in enumerate(zip(parts, runs, translators, strict=True), start=1):
                with Progress(f"run {number} of {len(runs)}", result.pairs, done=whole_lines(part)) as bar:
                    translate_into(part, (getattr(pair, side) for pair in source.pairs()), translator, bar)
            _put_together(result, source, runs, parts)
            for path in (out / MADE_FROM, *parts):
                atomic_io.remove(path)
    return result


def identity(run: Path, translator: SearchTranslator) -> list[Any]:
    """The weights and the search that a run's translations follow from, as JSON holds them."""
    weights = checkpoint.inference_digest(checkpoint.select(check_run_dir(run)))
    return [weights, to_dict(translator.decoding)]


def whole_lines(part: Path) -> int:
    """The number of whole lines of a file; what a kill has left of one more is cut off."""
    if not part.exists():
        return 0
    with part.open("r+b") as file:
        count, end = 0, 0
        for line in file:
            if line.endswith(b"\n"):
                count, end = count + 1, end + len(line)
        file.truncate(end)
    return count


def translate_into(part: Path, texts: Iterable[str], translator: SearchTranslator, bar: Progress) -> None:
    """Add to `part` the translations of the texts from number `bar.done` on, one a line."""
    if bar.done:
        say(f"{bar.title}: going on from line {bar.done:,}")
    with part.open("a", encoding="utf-8", newline="\n") as file:
        for chunk in in_chunks(itertools.islice(texts, bar.done, None), STREAM_LINES):
            file.writelines(f"{text}\n" for text in translator.translate(chunk))
            file.flush()
            bar.advance(len(chunk))


def _put_together(
    result: Diversified, source: FilesSource, runs: Sequence[tuple[Side, Path]], parts: Sequence[Path]
) -> None:
    """Write the corpus and what is new in the translations of each run, in the order of the runs."""
    seen: set[int] = set()
    with (
        result.src.open("w", encoding="utf-8", newline="\n") as src_file,
        result.tgt.open("w", encoding="utf-8", newline="\n") as tgt_file,
    ):

        def add(src: str, tgt: str) -> None:
            seen.add(hash64(f"{src}\n{tgt}"))
            src_file.write(src + "\n")
            tgt_file.write(tgt + "\n")

        for pair in source.pairs():
            add(pair.src, pair.tgt)
        for (side, run), part in zip(runs, parts, strict=True):
            before = len(seen)
            with part.open(encoding="utf-8", newline="\n") as translations:
                for pair, line in zip(source.pairs(), translations, strict=True):
                    translation = line.removesuffix("\n")
                    src, tgt = (pair.src, translation) if side == "src" else (translation, pair.tgt)
                    if src.strip() and tgt.strip() and hash64(f"{src}\n{tgt}") not in seen:
                        add(src, tgt)
            result.added[str(run)] = result.added.get(str(run), 0) + len(seen) - before  # a run may go both ways


def _require_same_languages(runs: Sequence[tuple[Side, Path]], source: FilesSource) -> None:
    """Raises DragomanError unless all runs are between the same two languages, each from its own side."""
    first: tuple[str, str] | None = None
    for side, run in runs:
        reads, writes = languages_of(run)
        pair = (reads, writes) if side == "src" else (writes, reads)
        first = first or pair
        if not same_languages(pair, first):
            raise Error.LANGUAGES_DIFFER(
                f"translates from {reads} to {writes}, but the pairs are {first[0]} and {first[1]}: `forward` runs "
                "read the source side, `backward` runs the target side",
                file=run,
            )
        if reads != writes and (
            fits(language_of_file(source.src), pair[1]) or fits(language_of_file(source.tgt), pair[0])
        ):
            raise Error.LANGUAGES_DIFFER(
                f"translates from {reads} to {writes}, but {source.src} is the source and {source.tgt} the target: "
                "`forward` runs read the source side, `backward` runs the target side",
                file=run,
            )
