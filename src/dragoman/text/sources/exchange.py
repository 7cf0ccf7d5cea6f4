"""Pairs of translators' own files: translation memories (TMX), XLIFF and gettext catalogues (PO)."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from dragoman.config import settings
from dragoman.errors import Error, show
from dragoman.formats.bitext import po_pairs, tmx_pairs, xliff_pairs
from dragoman.text.lines import open_bytes
from dragoman.text.sources.base import Pair, SingleFileSource

Code = Annotated[str, Field(min_length=2)]


@settings
class TmxSource(SingleFileSource):
    """A translation memory; of each unit the texts of two languages, without inline codes."""

    type: Literal["tmx"] = "tmx"
    path: str  #: The file, plain or compressed.
    src_lang: Code  #: Language code of the source, region left aside.
    tgt_lang: Code  #: Language code of the target.

    def read(self, path: Path) -> Iterator[Pair]:
        with open_bytes(path) as stream:
            found = False
            for line, src, tgt in tmx_pairs(stream, show(path), self.src_lang, self.tgt_lang):
                found = True
                yield Pair(line, src, tgt)
        if not found:
            raise Error.EMPTY(f"no unit with both {self.src_lang} and {self.tgt_lang}", file=path)


@settings
class XliffSource(SingleFileSource):
    """The translated units of an XLIFF, 1.2 or 2.x, without inline codes."""

    type: Literal["xliff"] = "xliff"
    path: str  #: The file, plain or compressed.

    def read(self, path: Path) -> Iterator[Pair]:
        with open_bytes(path) as stream:
            yield from itertools.starmap(Pair, xliff_pairs(stream, show(path)))


@settings
class PoSource(SingleFileSource):
    """The entries of a gettext catalogue that are translated and not fuzzy."""

    type: Literal["po"] = "po"
    path: str  #: The file, plain or compressed.

    def read(self, path: Path) -> Iterator[Pair]:
        with open_bytes(path) as stream:
            data = stream.read()
        yield from itertools.starmap(Pair, po_pairs(data, show(path)))
