"""One text in several languages, a file each: pairs of every direction, for a model that knows several languages."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from dragoman.config import settings
from dragoman.text.lines import find
from dragoman.text.sources.base import Pair, PairSource
from dragoman.text.sources.files import FilesSource


@settings
class ParallelSource(PairSource):
    """Line n of each file says the same. The tokenizer's `languages` tell the model which language is asked for."""

    type: Literal["parallel"] = "parallel"
    files: Annotated[dict[str, str], Field(min_length=2)]  #: The file of each language, by its code.
    directions: Annotated[list[tuple[str, str]], Field(min_length=1)] | None = None
    """Pairs of codes, from and to; null: every language to every other one."""
    lines: Annotated[int, Field(ge=1)] | None = None  #: So many first lines of each direction; null: all. [lines]

    def __post_init__(self) -> None:
        for src, tgt in self.directions or []:
            for code in (src, tgt):
                if code not in self.files:
                    raise ValueError(
                        f"directions: {src} to {tgt}: no file of {code!r}; there are {', '.join(self.files)}"
                    )
            if src == tgt:
                raise ValueError(f"directions: {src} to {tgt}: one language")

    def paths(self) -> dict[str, list[Path]]:
        return {"files": [find(path) for path in self.files.values()]}

    def every_direction(self) -> list[tuple[str, str]]:
        return list(self.directions or itertools.permutations(self.files, 2))

    def of_direction(self, src: str, tgt: str) -> FilesSource:
        """The two files of a direction."""
        return FilesSource(src=self.files[src], tgt=self.files[tgt])

    def pairs(self) -> Iterator[Pair]:
        """Direction after direction; raises DragomanError where files do not have equally many lines."""
        number = itertools.count(1)
        for src, tgt in self.every_direction():
            for pair in itertools.islice(self.of_direction(src, tgt).pairs(), self.lines):
                yield Pair(next(number), pair.src, pair.tgt, (src, tgt))
