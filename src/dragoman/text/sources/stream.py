"""Pairs that arrive through a pipe, such as OpusTrainer's output: without end, and readable once."""

import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from dragoman.config import settings
from dragoman.errors import Error, show, writing
from dragoman.runs import atomic_io
from dragoman.text.lines import raw_lines
from dragoman.text.sources.base import Pair, PairSource
from dragoman.text.sources.tsv import TsvSource


class StreamEnded(Exception):
    """Whoever writes into the pipe has closed it."""


@settings
class StreamSource(PairSource):
    """Tab-separated pairs from a pipe, in blocks: one is kept on the disk, trained on once, and makes way for the next.

    For one process. A run that was killed goes on with the blocks that it has on the disk, exactly; what it had read of
    the next one is lost, and comes again only if the writer sends it again. Training ends when the pipe does.
    """

    type: Literal["stream"] = "stream"
    path: str = "-"  #: A named pipe; `-`: standard input.
    block_pairs: Annotated[int, Field(ge=1)] = 500_000  #: Pairs of a block. [pairs]

    def pairs(self) -> Iterator[Pair]:
        raise Error.UNSUPPORTED(f"corpus: {self.path}: a stream can only be trained on")


class Stream:
    """The blocks of a stream as files of a folder, each read from the pipe when it is asked for."""

    def __init__(self, source: StreamSource, folder: Path) -> None:
        self.source, self.folder = source, folder
        self._lines: Iterator[bytes] | None = None

    def block(self, number: int) -> TsvSource:
        """Block `number`, from 0. Raises StreamEnded at the pipe's end, DragomanError where there is none."""
        path = self.path(number)
        if not path.exists():
            self._read(path)
        return TsvSource(path=str(path))

    def path(self, number: int) -> Path:
        return self.folder / f"block-{number:06d}.tsv"

    def numbers(self) -> list[int]:
        """The blocks on the disk."""
        return sorted(int(path.stem.split("-")[1]) for path in self.folder.glob("block-*.tsv"))

    def _read(self, path: Path) -> None:
        if self._lines is None:
            self._lines = self._opened()
        block = list(itertools.islice(self._lines, self.source.block_pairs))
        if not block:
            raise StreamEnded
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_io.replaced(path) as partial, partial.open("wb") as file:
                file.writelines(block)

    def _opened(self) -> Iterator[bytes]:
        name = self.source.path
        if name == "-":
            if sys.stdin is None:
                raise Error.CANNOT_READ("corpus.train: standard input is closed", "name a pipe as corpus.train.path")
            yield from raw_lines(sys.stdin.buffer, "standard input")
            return
        if not os.path.exists(name):
            raise Error.MISSING_FILE("no such pipe", "make it with mkfifo", file=name)
        with open(name, "rb") as pipe:
            yield from raw_lines(pipe, show(name))
