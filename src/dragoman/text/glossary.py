"""Terms with a fixed translation, from a file of two columns, `source term, tab, target term`, a CSV or a TBX.

A line of one column is a term that stays as it is. A term written in lower case is found in any case; one with capitals
only as it is written. Longer terms are found before shorter ones in them, none inside of a placeholder.
"""

import csv
import functools
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from dragoman.errors import Error
from dragoman.formats.bitext import tbx_entries
from dragoman.text.lines import open_bytes, read_lines
from dragoman.text.placeholders import span_ranges
from dragoman.text.words import UNSPACED

HEADINGS = [["source", "target"], ["term", "translation"], ["src", "tgt"]]
"""First lines of a CSV that name its columns; so do the codes of the two languages."""

HELD = "\ue000"
"""Stands for a space inside of a term, so that a line that is too long is not cut there (`held_together`)."""


class Found(NamedTuple):
    """A term in a text: characters `start` to `end`."""

    start: int
    end: int
    target: str


def _read(path: Path, languages: tuple[str, str]) -> Iterator[tuple[int, str, str]]:
    """(line, term, target) of a file of terms."""
    if path.suffix == ".tbx":
        with open_bytes(path) as stream:
            yield from (entry[:3] for entry in tbx_entries(stream, str(path), *languages))
        return
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        columns = next(csv.reader([line])) if path.suffix == ".csv" else line.split("\t")
        term, *rest = (column.strip() for column in columns)
        if path.suffix == ".csv" and len(rest) == 3:  # a column for each language's code, too
            rest = rest[:1]
        if len(rest) > 1:
            mark = "comma" if path.suffix == ".csv" else "tab"
            raise Error.WRONG_SHAPE(
                f"{len(columns)} columns", f"give a term, a {mark}, its translation", file=path, line=number
            )
        names = [column.lower() for column in (term, *rest)]
        if path.suffix == ".csv" and number == 1 and names in [*HEADINGS, [code.lower() for code in languages]]:
            continue
        yield number, term, rest[0] if rest else term


@dataclass(frozen=True)
class Glossary:
    """Terms and their translations.

    >>> terms = Glossary({"hund": "hound", "roter Hund": "red hound"})
    >>> [term.target for term in terms.find("Ein Hund, ein roter Hund; Hunde.")]
    ['hound', 'red hound']
    """

    targets: dict[str, str]
    places: dict[str, str] = field(default_factory=dict, compare=False)
    """Where a target was read first (`terms.tsv, line 3`)."""

    @classmethod
    def load(cls, path: Path, languages: tuple[str, str] = ("", "")) -> "Glossary":
        """Read a file of terms: tab-separated columns, a `.csv`, or a `.tbx`, of which the terms of both languages.

        Raises DragomanError, naming the line, for more columns, an empty term, or a term with two targets.
        """
        targets: dict[str, str] = {}
        places: dict[str, str] = {}
        for number, term, target in _read(path, languages):
            if not term or not target:
                raise Error.WRONG_SHAPE("an empty term", file=path, line=number)
            if targets.setdefault(term, target) != target:
                if path.suffix == ".tbx":  # a term with synonyms: the first is the one to use
                    continue
                raise Error.CONFLICT(
                    f"{term!r} is {targets[term]!r} further up and {target!r} here",
                    "choose one",
                    file=path,
                    line=number,
                )
            places.setdefault(target, f"{path}, line {number}")
        if not targets:
            raise Error.EMPTY("no terms in it: a line is a term, a tab, its translation", file=path)
        return cls(targets, places)

    def place(self, target: str) -> str:
        """The beginning of a complaint about it: `terms.tsv, line 3: `; empty if it was not read from a file."""
        return f"{self.places[target]}: " if target in self.places else ""

    def normalized(self, normalize: Callable[[str], str]) -> "Glossary":
        """The glossary of normalised texts.

        Raises DragomanError for terms that become one with two targets, and for targets that could not be said as they
        are written.
        """
        targets: dict[str, str] = {}
        places: dict[str, str] = {}
        for term, target in self.targets.items():
            said, named = normalize(target), f"{self.place(target)}term"
            if said != target and said != unicodedata.normalize("NFC", target):
                raise Error.CONFLICT(
                    f"{named} {target!r}: the run's `normalize` makes {said!r} of it", "write that instead"
                )
            if targets.setdefault(normalize(term), said) != said:
                raise Error.CONFLICT(
                    f"{named} {term!r}: the same as another one after the run's `normalize`", "choose one"
                )
            if target in self.places:
                places.setdefault(said, self.places[target])
        return Glossary(targets, places)

    def find(self, text: str) -> list[Found]:
        """The terms of a text, from left to right, none inside of another; where words have spaces, whole words."""
        kept = span_ranges(text)
        found: list[Found] = []
        end = 0
        for start, _, stop, term in sorted(self._occurrences(text)):
            if start < end:
                continue
            end = stop
            if not any(low < stop and start < high for low, high in kept):
                found.append(Found(start, stop, self.targets[term]))
        return found

    def _occurrences(self, text: str) -> Iterator[tuple[int, int, int, str]]:
        """(start, rank, end, term) of all that is spelled like a term, be it inside of another; longer terms rank
        before shorter ones."""
        folded = _folded(text)
        for rank, (term, key) in enumerate(self._keys):
            if key in (folded if term == term.lower() else text):  # most are not: one look spares a pattern
                for match in _spelling(term).finditer(text):
                    start, end = match.span(1)
                    if _is_apart(text, start, end):
                        yield start, rank, end, term

    def said(self, text: str, translation: str) -> list[tuple[int, int]]:
        """Characters of a translation, from and to, that spell a term of the text.

        >>> Glossary({"roter Hund": "red hound"}).said("Ein roter Hund.", "A red hound.")
        [(2, 11)]
        """
        targets = {term.target for term in self.find(text)}
        return sorted(match.span() for target in targets for match in re.finditer(re.escape(target), translation))

    def held_together(self, text: str) -> str:
        """The text with HELD for each space inside of a term."""
        for term in self.find(text):
            text = text[: term.start] + re.sub(r"\s", HELD, text[term.start : term.end]) + text[term.end :]
        return text

    @functools.cached_property
    def _keys(self) -> list[tuple[str, str]]:
        """Each term with what a text has to hold for it to be there, the longest first."""
        terms = sorted(self.targets, key=len, reverse=True)
        return [(term, _folded(term) if term == term.lower() else term) for term in terms]


def _folded(text: str) -> str:
    """The common form of all spellings of a text that `re.IGNORECASE` takes for one."""
    return text.replace("ı", "i").replace("İ", "i").casefold()


@functools.lru_cache(20_000)  # a server sees glossaries without end
def _spelling(term: str) -> re.Pattern[str]:
    """Finds it, as group 1, wherever it begins."""
    return re.compile(f"(?=({re.escape(term)}))", re.IGNORECASE if term == term.lower() else 0)


def _is_apart(text: str, start: int, end: int) -> bool:
    """True if what begins or ends in a letter or digit does so at the edge of a word, and no mark follows."""
    before, after = text[start - 1 : start] if start else "", text[end : end + 1]
    if before and _tells_words(text[start]) and (before == "_" or _tells_words(before)):
        return False
    if not after:
        return True
    if _tells_words(text[end - 1]):
        return after != "_" and not _tells_words(after)
    return unicodedata.category(after)[0] != "M"


@functools.cache
def _tells_words(letter: str) -> bool:
    """True if it is a letter, digit or combining mark of a script that puts spaces between words."""
    return unicodedata.category(letter)[0] in "LNM" and re.match(f"[{UNSPACED}]", letter) is None
