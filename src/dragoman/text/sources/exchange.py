"""Pairs of translators' own files: translation memories (TMX), XLIFF and gettext catalogues (PO)."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from dragoman.config import settings
from dragoman.errors import show
from dragoman.formats.base import Entry
from dragoman.formats.bitext import po_entries, tmx_entries, xliff_entries
from dragoman.languages.invisible import in_one_line
from dragoman.text.lines import open_bytes
from dragoman.text.sources.base import Pair, SingleFileSource

Code = Annotated[str, Field(min_length=2)]


@settings
class TmxSource(SingleFileSource):
    """A translation memory; of each unit the texts of two languages, without inline codes."""

    type: Literal["tmx"] = "tmx"
    path: str  #: The file, plain or compressed.
    src_lang: Code  #: Language code of the source, any region of it.
    tgt_lang: Code  #: Language code of the target; `pt-BR` leaves out what is `pt-PT`.

    def read(self, path: Path) -> Iterator[Pair]:
        with open_bytes(path) as stream:
            yield from map(_pair, tmx_entries(stream, show(path), (self.src_lang, self.tgt_lang)))


@settings
class XliffSource(SingleFileSource):
    """The translated units of an XLIFF, 1.2 or 2.x, without inline codes."""

    type: Literal["xliff"] = "xliff"
    path: str  #: The file, plain or compressed.

    def read(self, path: Path) -> Iterator[Pair]:
        with open_bytes(path) as stream:
            yield from _translated(xliff_entries(stream, show(path)))


@settings
class PoSource(SingleFileSource):
    """The entries of a gettext catalogue that are translated and not fuzzy."""

    type: Literal["po"] = "po"
    path: str  #: The file, plain or compressed.

    def read(self, path: Path) -> Iterator[Pair]:
        with open_bytes(path) as stream:
            data = stream.read()
        yield from _translated(po_entries(data, show(path)))


def _translated(entries: Iterable[Entry]) -> Iterator[Pair]:
    """The pairs of entries that are translated, each a line."""
    for entry in entries:
        if entry.is_translated and entry.tgt:
            yield _pair(entry)


def _pair(entry: Entry) -> Pair:
    src, tgt = in_one_line(entry.src), in_one_line(entry.tgt)
    return Pair(entry.line, src, tgt, approved=entry.state == "approved", changed=entry.changed)
