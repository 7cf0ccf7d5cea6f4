"""Pairs in the columns of one file of tab-separated values. A ragged table stops the reading."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from dragoman.config import settings
from dragoman.errors import DragomanError
from dragoman.text.lines import find, read_lines, show
from dragoman.text.sources.base import Pair, PairSource, check_one_line


@settings
class TsvSource(PairSource):
    """One file of tab-separated columns (counted from 1), without quoting; every line has as many as the first."""

    type: Literal["tsv"] = "tsv"
    path: str  #: The file, plain or `.gz`.
    src_column: Annotated[int, Field(ge=1)] = 1  #: Column of the source.
    tgt_column: Annotated[int, Field(ge=1)] = 2  #: Column of the target.

    def __post_init__(self) -> None:
        if self.src_column == self.tgt_column:
            raise ValueError("src_column and tgt_column must differ")

    def paths(self) -> dict[str, list[Path]]:
        return {"path": [find(self.path)]}

    def pairs(self) -> Iterator[Pair]:
        return self._pairs(find(self.path))  # a missing file is told at once, not at the first pair

    def _pairs(self, path: Path) -> Iterator[Pair]:
        needed = max(self.src_column, self.tgt_column)
        expected = 0
        for number, line in enumerate(read_lines(path), start=1):
            columns = line.split("\t")
            expected = expected or len(columns)
            if len(columns) < needed:
                raise DragomanError(
                    f"{show(path)}:{number}: {_columns(len(columns))}, but column {needed} is asked for"
                )
            if len(columns) != expected:
                raise DragomanError(
                    f"{show(path)}:{number}: {_columns(len(columns))}, but line 1 has {expected}: "
                    "is there a tab inside a text?"
                )
            src, tgt = columns[self.src_column - 1], columns[self.tgt_column - 1]
            check_one_line(src + tgt, f"{show(path)}:{number}")
            yield Pair(number, src, tgt)


def _columns(count: int) -> str:
    return "1 tab-separated column" if count == 1 else f"{count} tab-separated columns"
