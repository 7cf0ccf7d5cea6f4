"""Two text files, line by line, strict about everything that breaks their alignment.

An unequal number of lines stops the reading: `zip` would hide it.
"""

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from dragoman.config import settings
from dragoman.errors import Error, show
from dragoman.text.lines import find, is_same_file, lines_of_text, read_lines
from dragoman.text.sources.base import Pair, PairSource, say_left_out

MAX_WEIGHT = 1000.0
"""A pair that comes more often than that in an epoch is a mistake."""


@settings
class FilesSource(PairSource):
    """Two text files; line n of one is the translation of line n of the other.

    They are plain or compressed (.gz, .xz, .bz2, .zst), or stand in a zip file (`corpus.zip/NAME`).
    """

    type: Literal["files"] = "files"
    src: str  #: File of source sentences, a line each.
    tgt: str  #: File of target sentences.
    weights: str | None = None
    """A third file, of one number a line: how often the pair comes in an epoch (2: twice; of pairs with 0.5, half), or
    what its loss counts (`corpus.weights_in`)."""

    def paths(self) -> dict[str, list[Path]]:
        weights = {"weights": [find(self.weights)]} if self.weights else {}
        return {"src": [find(self.src)], "tgt": [find(self.tgt)], **weights}

    def pairs(self) -> Iterator[Pair]:
        pairs = _pairs_of_files(find(self.src), find(self.tgt))
        return pairs if self.weights is None else repeated(self, _with_weights(pairs, find(self.weights)))

    def with_weights(self) -> Iterator[tuple[Pair, float]]:
        pairs = self.unweighted().pairs()
        return super().with_weights() if self.weights is None else _with_weights(pairs, find(self.weights))

    def unweighted(self) -> "FilesSource":
        return replace(self, weights=None)


def _pairs_of_files(src: Path, tgt: Path) -> Iterator[Pair]:
    if is_same_file(src, tgt):
        raise Error.SAME_FILE(" is given as both src and tgt", "name one file for each language", file=src)
    sides = (lines_of_text(src), lines_of_text(tgt))
    for line, texts in enumerate(itertools.zip_longest(*sides), start=1):
        if None in texts:
            counts = [line - (text is None) + sum(1 for _ in side) for text, side in zip(texts, sides, strict=True)]
            raise Error.UNEQUAL_COUNTS(
                f" has {counts[0]:,} lines but {show(tgt)} has {counts[1]:,}: line n of one must be the translation "
                "of line n of the other",
                "find the line that is missing or was cut in two",
                file=src,
            )
        yield Pair(line, *texts)


def _weights_of(path: Path) -> Iterator[float]:
    for number, line in enumerate(read_lines(path), start=1):
        try:
            weight = float(line)
        except ValueError as error:
            raise Error.WRONG_SHAPE(f"{line[:40]!r} is not a number", file=path, line=number) from error
        if not 0 <= weight <= MAX_WEIGHT:  # nor NaN, which is not between them either
            raise Error.OUT_OF_RANGE(
                f"a weight of {weight:g}", f"give one from 0 to {MAX_WEIGHT:g}", file=path, line=number
            )
        yield weight


def _with_weights(pairs: Iterator[Pair], weights: Path) -> Iterator[tuple[Pair, float]]:
    for pair, weight in itertools.zip_longest(pairs, _weights_of(weights)):
        if pair is None or weight is None:
            than = "more" if pair is None else "fewer"
            raise Error.UNEQUAL_COUNTS(
                f" has {than} lines than there are pairs", "give each pair one number", file=weights
            )
        yield pair, weight


def repeated(source: PairSource, weighted: Iterable[tuple[Pair, float]]) -> Iterator[Pair]:
    """Each pair as often as its weight says; a fraction is added to the next weight: with 0.5, every other pair."""
    read, total, given, left_out = 0, 0.0, 0, 0
    for pair, weight in weighted:
        read, total = read + 1, total + weight
        times = math.floor(total + 1e-9) - given
        given += times
        left_out += times == 0
        yield from itertools.repeat(pair, times)
    say_left_out(source, left_out, read, "by their weights")
