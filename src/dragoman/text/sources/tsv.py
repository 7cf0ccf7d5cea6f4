"""Pairs in the columns of one file of tab-separated values. A ragged table stops the reading."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from dragoman.config import settings
from dragoman.errors import Error
from dragoman.text.lines import find, read_lines
from dragoman.text.sources.base import Pair, SingleFileSource, check_one_line, say_left_out
from dragoman.text.sources.weights import MAX_WEIGHT, repeated


@settings
class TsvSource(SingleFileSource):
    """One file of tab-separated columns (counted from 1), without quoting; every line has as many as the first."""

    type: Literal["tsv"] = "tsv"
    path: str  #: The file, plain or `.gz`.
    src_column: Annotated[int, Field(ge=1)] = 1  #: Column of the source.
    tgt_column: Annotated[int, Field(ge=1)] = 2  #: Column of the target.
    score_column: Annotated[int, Field(ge=1)] | None = None
    """Column of a score, as Bicleaner and OpusCleaner add it."""
    min_score: float | None = None  #: The least score of a pair that is read.
    document_column: Annotated[int, Field(ge=1)] | None = None
    """Column that names the document of a pair, for `corpus.context`; null: the file is one."""
    weighted: bool = False  #: The score is also the weight of the pair (`corpus.weights_in`).

    def __post_init__(self) -> None:
        if self.src_column == self.tgt_column:
            raise ValueError("src_column and tgt_column must differ")
        if self.score_column is None and (self.min_score is not None or self.weighted):
            raise ValueError("min_score and weighted: of which score? give score_column")

    def read(self, path: Path) -> Iterator[Pair]:
        kept = self._high(path)
        return repeated(self, kept) if self.weighted else (pair for pair, _ in kept)

    def with_weights(self) -> Iterator[tuple[Pair, float]]:
        return ((pair, score if self.weighted else 1.0) for pair, score in self._high(find(self.path)))

    def unweighted(self) -> "TsvSource":
        return replace(self, weighted=False)

    def _high(self, path: Path) -> Iterator[tuple[Pair, float]]:
        """The pairs whose score is high enough; in the end it is said how many were not."""
        read = below = 0
        for pair, score in self._scored(path):
            read += 1
            if self.min_score is None or score >= self.min_score:
                yield pair, score
            else:
                below += 1
        say_left_out(self, below, read, f"below min_score {self.min_score}")

    def _scored(self, path: Path) -> Iterator[tuple[Pair, float]]:
        needed = max(self.src_column, self.tgt_column, self.score_column or 0, self.document_column or 0)
        expected = 0
        for number, line in enumerate(read_lines(path), start=1):
            columns = line.split("\t")
            expected = expected or len(columns)
            if len(columns) < needed:
                raise Error.WRONG_SHAPE(
                    f"{_columns(len(columns))}, but column {needed} is asked for", file=path, line=number
                )
            if len(columns) != expected:
                raise Error.WRONG_SHAPE(
                    f"{_columns(len(columns))}, but line 1 has {expected}",
                    "is there a tab inside a text?",
                    file=path,
                    line=number,
                )
            src, tgt = columns[self.src_column - 1], columns[self.tgt_column - 1]
            check_one_line(src + tgt, path, number)
            score = 1.0
            if self.score_column is not None:
                score = _number(columns[self.score_column - 1], path, number, self.score_column)
            if self.weighted and not 0 <= score <= MAX_WEIGHT:
                raise Error.OUT_OF_RANGE(
                    f"a weight of {score:g}", f"give one from 0 to {MAX_WEIGHT:g}", file=path, line=number
                )
            document = "" if self.document_column is None else columns[self.document_column - 1]
            yield Pair(number, src, tgt, document=document), score


def _number(text: str, path: Path, line: int, column: int) -> float:
    """A score. Raises DragomanError, with the number of such lines, for text that is no finite number."""
    if math.isfinite(number := _float(text)):
        return number
    columns = (other.split("\t")[column - 1 : column] for other in read_lines(path))
    wrong = sum(1 for cells in columns if cells and not math.isfinite(_float(cells[0])))
    raise Error.WRONG_SHAPE(
        f"{text[:40]!r} is no score; {wrong:,} of the file's lines without one",
        "give these pairs a score, or leave them out",
        file=path,
        line=line,
    )


def _float(text: str) -> float:
    """The number that a text spells; NaN for another text."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _columns(count: int) -> str:
    return "1 tab-separated column" if count == 1 else f"{count} tab-separated columns"
