"""More pairs out of the same corpus: what several models make of each side, beside what people wrote.

Data diversification (Nguyen et al. 2020, "Data Diversification: A Simple Strategy For Neural Machine Translation",
algorithm 1, one round): forward models translate the source side, backward models the target side, each translation is
put beside the text that it was made from, and a new model is trained on all of it together. No other text is needed.
"""

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dragoman.errors import DragomanError, writing
from dragoman.progress import Progress
from dragoman.text.corpus import FilesSource, read_pairs
from dragoman.translator import STREAM_LINES, Translator, in_chunks, languages_of

Side = Literal["src", "tgt"]
"""Of a pair: the one that a model reads here."""


@dataclass
class Diversified:
    """What came of a corpus."""

    src: Path
    tgt: Path
    pairs: int = 0
    """Of the corpus itself, all of which are kept."""
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
    `Translator.load`. A pair that is there already, or has a blank side, is not added.

    Raises DragomanError where `out` holds something, there are no runs, or one translates between other languages.
    """
    if not forward and not backward:
        raise DragomanError("no run to translate with: give --forward RUN, or --backward RUN, or several")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DragomanError(f"{out}: is there already; name a new folder")
    names = [Path(name).name.removesuffix(".gz") for name in (source.src, source.tgt)]
    if names[0] == names[1]:
        names = [f"src-{names[0]}", f"tgt-{names[1]}"]
    result = Diversified(out / names[0], out / names[1])
    result.pairs = sum(1 for _ in read_pairs(source))
    runs: list[tuple[Side, Path]] = [("src", Path(run)) for run in forward]
    runs += [("tgt", Path(run)) for run in backward]
    _require_same_languages(runs)
    # All of them now: after hours of translating it is too late to find that the last one cannot be loaded.
    translators = [Translator.load(run, **options) for _, run in runs]
    made = not out.exists()
    try:
        with writing(out), ExitStack() as stack:
            out.mkdir(parents=True, exist_ok=True)
            files = [
                stack.enter_context(path.open("w", encoding="utf-8", newline="\n")) for path in (result.src, result.tgt)
            ]
            seen: set[int] = set()
            for pair in read_pairs(source):
                seen.add(_hash(pair.src, pair.tgt))
                _write(files, pair.src, pair.tgt)
            for number, ((side, run), translator) in enumerate(zip(runs, translators, strict=True), start=1):
                added = 0
                with Progress(f"run {number} of {len(runs)}", result.pairs) as bar:
                    for src, tgt in _pairs_of(translator, source, side):
                        bar.advance()
                        if src.strip() and tgt.strip() and (key := _hash(src, tgt)) not in seen:
                            seen.add(key)
                            added += 1
                            _write(files, src, tgt)
                result.added[str(run)] = added
    except BaseException:
        for path in (result.src, result.tgt):
            path.unlink(missing_ok=True)
        if made:
            shutil.rmtree(out, ignore_errors=True)
        raise
    return result


def _require_same_languages(runs: Sequence[tuple[Side, Path]]) -> None:
    """Raises DragomanError unless all runs are between the same two languages, each from its own side."""
    first: tuple[str, str] | None = None
    for side, run in runs:
        reads, writes = languages_of(run)
        pair = (reads, writes) if side == "src" else (writes, reads)
        first = first or pair
        if pair != first:
            raise DragomanError(
                f"{run}: translates from {reads} to {writes}, but the pairs are {first[0]} and {first[1]}: --forward "
                "runs read the source side, --backward runs the target side"
            )


def _pairs_of(translator: Translator, source: FilesSource, side: Side) -> Iterator[tuple[str, str]]:
    """The pairs of a corpus, each with the other side than `side` as `translator` would write it."""
    for chunk in in_chunks((getattr(pair, side) for pair in read_pairs(source)), STREAM_LINES):
        for text, translation in zip(chunk, translator.translate(chunk), strict=True):
            yield (text, translation) if side == "src" else (translation, text)


def _write(files: Sequence[Any], *texts: str) -> None:
    for file, text in zip(files, texts, strict=True):
        file.write(text + "\n")


def _hash(src: str, tgt: str) -> int:
    """Eight bytes for a pair: of a million pairs two are taken for one with a probability of 3e-8."""
    return int.from_bytes(hashlib.blake2b(f"{src}\n{tgt}".encode(), digest_size=8).digest(), "little")
