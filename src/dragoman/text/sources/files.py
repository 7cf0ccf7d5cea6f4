"""Two text files, line by line, strict about everything that breaks their alignment.

An unequal number of lines stops the reading: `zip` would hide it.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from dragoman.config import settings
from dragoman.errors import Error, show
from dragoman.text.lines import find, is_same_file, lines_of_text
from dragoman.text.sources.base import Pair, PairSource
from dragoman.text.sources.weights import paired, repeated


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
        return pairs if self.weights is None else repeated(self, paired(pairs, find(self.weights)))

    def with_weights(self) -> Iterator[tuple[Pair, float]]:
        pairs = self.unweighted().pairs()
        return super().with_weights() if self.weights is None else paired(pairs, find(self.weights))

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
