"""Pairs of translators' own files: translation memories (TMX), XLIFF and gettext catalogues (PO)."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from dragoman.config import settings
from dragoman.errors import show
from dragoman.formats.base import Entry
from dragoman.formats.bitext import po_entries, tmx_entries, xliff_entries
from dragoman.languages.codes import is_known, nearness
from dragoman.languages.invisible import in_one_line
from dragoman.languages.scripts import SAME_STANDARD, written_in
from dragoman.progress import say
from dragoman.text.lines import find, open_bytes
from dragoman.text.sources.base import Pair, SingleFileSource

Code = Annotated[str, Field(min_length=2)]
Codes = Literal["drop", "keep"]


@settings
class TmxSource(SingleFileSource):
    """A translation memory; of each unit the texts of two languages."""

    type: Literal["tmx"] = "tmx"
    path: str  #: The file, plain or compressed.
    src_lang: Code  #: Language code of the source, any region of it.
    tgt_lang: Code  #: Language code of the target; `pt-BR` leaves out what is `pt-PT`.
    codes: Codes = "drop"
    """Inline codes: left out, or numbered tags in the text (`<1>Open</1> it`), for `corpus.augment.tags`."""

    def read(self, path: Path) -> Iterator[Pair]:
        with open_bytes(path) as stream:
            for entry in tmx_entries(stream, show(path), (self.src_lang, self.tgt_lang)):
                yield _pair(entry, self.codes)


class EntriesSource(SingleFileSource):
    """The translated entries of a file that may say which languages it is in."""

    @abstractmethod
    def entries(self, path: Path) -> Iterator[Entry]:
        """The entries of the file, including entries without a translation."""

    def read(self, path: Path) -> Iterator[Pair]:
        yield from map(self.pair, self._translated(path))

    def pair(self, entry: Entry) -> Pair:
        """The pair that an entry is."""
        return _pair(entry)

    def between(self, languages: tuple[str, str]) -> Iterator[Pair]:
        others = Counter[str]()
        for entry in self._translated(path := find(self.path)):
            code = entry.languages[1] if entry.languages and is_known(languages[1]) else languages[1]
            if nearness(written_in(code, entry.tgt, languages[1]), languages[1]) >= SAME_STANDARD:
                yield self.pair(entry)
            else:
                others[code] += 1
        if others:
            message = f"{others.total():,} translations are in {', '.join(others)}, not in {languages[1]}: left out"
            say(f"{path}: {message}")

    def _translated(self, path: Path) -> Iterator[Entry]:
        return (entry for entry in self.entries(path) if entry.is_translated and entry.tgt)


@settings
class XliffSource(EntriesSource):
    """The translated units of an XLIFF, 1.2 or 2.x."""

    type: Literal["xliff"] = "xliff"
    path: str  #: The file, plain or compressed.
    codes: Codes = "drop"
    """Inline codes: left out, or numbered tags in the text (`<1>Open</1> it`), for `corpus.augment.tags`."""

    def entries(self, path: Path) -> Iterator[Entry]:
        with open_bytes(path) as stream:
            yield from xliff_entries(stream, show(path))

    def pair(self, entry: Entry) -> Pair:
        return _pair(entry, self.codes)


@settings
class PoSource(EntriesSource):
    """The entries of a gettext catalogue that are translated and not fuzzy."""

    type: Literal["po"] = "po"
    path: str  #: The file, plain or compressed.

    def entries(self, path: Path) -> Iterator[Entry]:
        with open_bytes(path) as stream:
            data = stream.read()
        yield from po_entries(data, show(path))


def _pair(entry: Entry, codes: Codes = "drop") -> Pair:
    texts = (codes == "keep" and entry.coded) or (entry.src, entry.tgt)
    src, tgt = map(in_one_line, texts)
    return Pair(entry.line, src, tgt, approved=entry.state == "approved", changed=entry.changed)
