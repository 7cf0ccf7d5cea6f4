"""Terms with a fixed translation, from a table of two columns or more, from lines, or from a TBX.

A line of one column is a term that stays as it is. A term written in lower case is found in any case; one with capitals
only as it is written; both in each spelling that reads the same (`text/lookup.py`). Longer terms are found before
shorter ones in them, none inside of a placeholder.
"""

import functools
import io
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dragoman.cancellation import check
from dragoman.errors import DragomanError, Error, show
from dragoman.formats import table
from dragoman.formats.base import has_letters
from dragoman.formats.bitext import tbx_entries, tmx_entries
from dragoman.formats.encoding import decoded
from dragoman.progress import say
from dragoman.text.lines import COMPRESSIONS, kind_of, open_bytes, reporting_os_errors
from dragoman.text.lookup import lookup_form, occurrences, words_like
from dragoman.text.placeholders import span_ranges
from dragoman.text.words import Word, words

if TYPE_CHECKING:
    from dragoman.text.inflection import Inflection  # of learnt terms alone

PREFIX_LETTERS = 4
"""The number of first letters by which a term is looked for."""
TERM_SPACE = "\ue000"
"""Stands for a space inside of a term, so that a line that is too long is not cut there (`protect_terms`)."""


_EXCHANGED = {".tbx": tbx_entries, ".tmx": tmx_entries}
_PARTED = re.compile(r"\s*(?:[=-]>|→|=)\s*")
_NOT_PARTED = re.compile(r"\S(?: ?[:|]| [-–]) ?\S")
"""Marks that part a term from its translation, and marks that do not, but may be meant to."""


class TermMatch(NamedTuple):
    """A term in a text: characters `start` to `end`."""

    start: int
    end: int
    target: str
    is_inflected: bool = False


def _terms(data: bytes, name: str, languages: tuple[str, str], plain: bool) -> Iterator[tuple[int, str, str]]:
    """(line, term, target) of the content of a file, of the kind that its name says; a side may be empty."""
    if (entries := _EXCHANGED.get(kind_of(name))) is not None:
        yield from (entry[:3] for entry in entries(io.BytesIO(data), name, languages))
        return
    if kind_of(name) in (".json", ".jsonl", ".yaml", ".yml", ".xml"):
        hint = "give a table (.csv, .tsv, .xlsx), a .tbx or .tmx, or lines of term = translation"
        raise Error.WRONG_FILE_TYPE(" is no glossary", hint, file=name)
    is_table = kind_of(name) in table.SUFFIXES
    for rows in table.tables(data, name, languages) if is_table else [_lines(decoded(data, name)[0], name)]:
        terms = [row for row in rows if plain or not row.cells[0].startswith("#")]
        named = None if plain else table.named_columns(terms, languages, name)
        columns = named or table.Columns(*_columns(terms), heading=False)
        for line, cells in terms[int(columns.heading) :]:
            cells = [table.unquoted(cell) for cell in cells]  # spreadsheets quote tab-separated values, too
            if len(cells) == 1:
                yield line, cells[0], cells[0]
            else:
                term, target = (cells[place] if place < len(cells) else "" for place in columns[:2])
                yield line, term, target


def _lines(text: str, name: str) -> Iterator[table.Row]:
    """The rows of a text that is no file of tables: a tab, `=` or an arrow parts a term from its translation; else what
    parts the columns of a table, where all lines have it."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not any("\t" in line or _PARTED.search(line) for line in lines):
        separator = table.separator_of(text)
        separator = separator if all(separator in line for line in lines) else "\t"
        yield from table.rows_of_text(text, name, separator)
        return
    parted = (line if "\t" in line else _PARTED.sub("\t", line, count=1) for line in text.split("\n"))
    yield from table.rows_of_text("\n".join(parted), name, "\t")


def _columns(rows: list[table.Row]) -> tuple[int, int]:
    """The first two columns of words: neither numbers nor dates."""
    wide = [row.cells for row in rows if len(row.cells) > 2]
    wordy = [
        place
        for place in range(max(map(len, wide), default=0))
        if 2 * sum(place < len(cells) and has_letters(cells[place]) for cells in wide) > len(wide)
    ]
    return (wordy[0], wordy[1]) if len(wordy) > 1 else (0, 1)


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
    left_out: tuple[DragomanError, ...] = field(default=(), compare=False)
    """Rows that are no terms, and the reasons."""
    inflections: "tuple[Inflection, Inflection] | None" = None
    """Of the source and of the target, where terms are found, and their targets recognised, in any form."""

    @classmethod
    def load(cls, path: Path, languages: tuple[str, str] = ("", "")) -> "Glossary":
        """Read a file of terms: a table (`.csv`, `.tsv`, `.xlsx`), `.tbx`, `.tmx`, or lines; what is left out is told.

        Raises DragomanError, naming the line, for a term with two targets, and for a file without a term.
        """
        if path.suffix.lower() == ".xlsx":
            with reporting_os_errors(path):
                data = path.read_bytes()
        else:
            with open_bytes(path) as stream:
                data = stream.read()
        name = str(path.with_suffix("") if path.suffix in COMPRESSIONS else path)
        glossary = cls.read(data, name, languages)
        for complaint in glossary.left_out:
            say(f"{complaint}: left out")
        if all(term == target and _NOT_PARTED.search(term) for term, target in glossary.targets.items()):
            say(f"{show(path)}: no line has a translation, so each stays as it is: write term = translation")
        return glossary

    @classmethod
    def of_text(cls, text: str, name: str = "", *, plain: bool = False) -> "Glossary":
        """The terms of a text in a request. Raises DragomanError for whatever would be left out, too."""
        glossary = cls.read(text.encode(), name, plain=plain)
        if glossary.left_out:
            raise glossary.left_out[0]
        return glossary

    @classmethod
    def read(
        cls, data: bytes, name: str = "", languages: tuple[str, str] = ("", ""), *, strict: bool = True,
        plain: bool = False,
    ) -> "Glossary":  # fmt: skip
        """The terms of a file's content, of the kind that its name says. Raises DragomanError as `load` does.

        If not `strict`, a term with two targets keeps the first one, and there may be no term at all. `plain`: every
        line of a table is a term; there is neither a heading nor a comment.
        """
        targets: dict[str, str] = {}
        places: dict[str, str] = {}
        left_out = []
        for line, term, target in _terms(data, name, languages, plain):
            check()
            fault = _fault(term, target)
            if fault:
                left_out.append(_error(Error.WRONG_SHAPE, fault, name, line))
            elif targets.setdefault(" ".join(term.split()), target) == target:
                places.setdefault(target, f"{name}, line {line}")
            elif kind_of(name) not in _EXCHANGED:  # there, a term with synonyms: the first is the one to use
                fault = f"{term!r} is {targets[term]!r} further up and {target!r} here: choose one"
                left_out.append(_error(Error.CONFLICT, fault, name, line))
                if strict:
                    raise left_out[-1]
        if strict and not targets:
            if left_out:
                raise left_out[0]
            raise Error.EMPTY("no terms in it: a line is a term, a tab, its translation", file=name or None)
        return cls(targets, places if name else {}, tuple(left_out))

    def place(self, target: str) -> str:
        """The beginning of a complaint about it: `terms.tsv, line 3: `; empty if it was not read from a file."""
        return f"{self.places[target]}: " if target in self.places else ""

    def normalized(self, normalize: Callable[[str], str]) -> "Glossary":
        """The glossary of normalised texts.

        Raises DragomanError for terms that become one with two targets, and for targets that could not be written as
        they are here.
        """
        targets: dict[str, str] = {}
        places: dict[str, str] = {}
        for term, target in self.targets.items():
            spelling, named = normalize(target), f"{self.place(target)}term"
            if spelling != target and spelling != unicodedata.normalize("NFC", target):
                raise Error.CONFLICT(
                    f"{named} {target!r}: the run's `normalize` makes {spelling!r} of it", "write that instead"
                )
            if targets.setdefault(normalize(term), spelling) != spelling:
                raise Error.CONFLICT(
                    f"{named} {term!r}: the same as another one after the run's `normalize`", "choose one"
                )
            if target in self.places:
                places.setdefault(spelling, self.places[target])
        return Glossary(targets, places, inflections=self.inflections)

    def find(self, text: str) -> list[TermMatch]:
        """The terms of a text, from left to right, none inside of another; where words have spaces, whole words."""
        check()
        kept = span_ranges(text)
        matches: list[TermMatch] = []
        end = 0
        for start, _, stop, term, is_inflected in self._in_order(text):
            if start < end:
                continue
            end = stop
            while kept and kept[0][1] <= start:
                kept.pop(0)
            if not kept or kept[0][0] >= stop:
                matches.append(TermMatch(start, stop, self.targets[term], is_inflected))
        return matches

    def _in_order(self, text: str) -> list[tuple[int, int, int, str, bool]]:
        """The occurrences of terms in the order in which they count."""
        written = [(*one, False) for one in self._occurrences(text)]
        if self.inflections is None:
            return sorted(written)
        both = [*written, *((*one, True) for one in self._inflected_occurrences(text, self.inflections[0]))]
        return sorted(both, key=lambda one: (one[0], -one[2], one[4], one[1]))

    def _inflected_occurrences(self, text: str, inflection: "Inflection") -> Iterator[tuple[int, int, int, str]]:
        """As `_occurrences`, of terms whose words stand in the text in any form."""
        lemmas = inflection.lemmas(text)
        longest = max(map(len, self._by_lemmas), default=0)
        for first, last in (
            (n, m) for n in range(len(lemmas)) for m in range(n + 1, min(n + longest, len(lemmas)) + 1)
        ):
            check()
            start, end = lemmas[first][0].start, lemmas[last - 1][0].end
            for rank, term in self._by_lemmas.get(tuple(lemma for _, lemma in lemmas[first:last]), ()):
                if not _is_cased(term) or _capitals(term) == _capitals(text[start:end]):
                    yield start, rank, end, term

    def _occurrences(self, text: str) -> Iterator[tuple[int, int, int, str]]:
        """(start, rank, end, term) of all that is spelled like a term, be it inside of another; longer terms rank
        before shorter ones."""
        forms = {cased: lookup_form(text, cased=cased) for cased in (True, False)}
        starts = {
            one[at : at + size]
            for one in set(forms.values())
            for size in range(1, PREFIX_LETTERS + 1)
            for at in range(len(one))
        }
        for rank, term, key in (entry for start in starts & self._by_start.keys() for entry in self._by_start[start]):
            check()
            if key in forms[_is_cased(term)]:  # most are not
                for start, end in words_like(term, text, cased=_is_cased(term)):
                    yield start, rank, end, term

    def target_places(self, text: str, translation: str) -> list[tuple[int, int]]:
        """Characters of a translation, from and to, that spell a term of the text.

        >>> Glossary({"roter Hund": "red hound"}).target_places("Ein roter Hund.", "A red hound.")
        [(2, 11)]
        """
        targets = {term.target for term in self.find(text)}
        if self.inflections is not None:
            return sorted({place for target in targets for place in self.written(target, translation)})
        return sorted(
            (start, end) for term in targets for start, end in occurrences(term, translation, cased=_is_cased(term))
        )

    def written(self, target: str, translation: str) -> list[Word]:
        """The places where a target term stands in a translation, in any case, and in any form that is recognised."""
        inflected = [] if self.inflections is None else list(self.inflections[1].places(target, translation))
        others = (
            one
            for one in occurrences(target, translation)
            if not any(one.start < place.end and place.start < one.end for place in inflected)
        )
        return sorted([*inflected, *others])

    def protect_terms(self, text: str) -> str:
        """The text with TERM_SPACE for each space inside of a term."""
        for term in self.find(text):
            text = text[: term.start] + re.sub(r"\s", TERM_SPACE, text[term.start : term.end]) + text[term.end :]
        return text

    @functools.cached_property
    def _by_start(self) -> dict[str, list[tuple[int, str, str]]]:
        """(rank, term, what a text has to hold for it to be there) by the first letters of that, the longest first."""
        by_start: dict[str, list[tuple[int, str, str]]] = {}
        for rank, term in enumerate(sorted(self.targets, key=len, reverse=True)):
            check()
            key = lookup_form(term, cased=_is_cased(term))
            by_start.setdefault(key[:PREFIX_LETTERS], []).append((rank, term, key))
        return by_start

    @functools.cached_property
    def _by_lemmas(self) -> dict[tuple[str, ...], list[tuple[int, str]]]:
        """(rank, term) by the lemmas of its words."""
        by_lemmas: dict[tuple[str, ...], list[tuple[int, str]]] = {}
        for rank, term in enumerate(sorted(self.targets, key=len, reverse=True) if self.inflections else ()):
            lemmas = tuple(lemma for _, lemma in self.inflections[0].lemmas(term)) if self.inflections else ()
            by_lemmas.setdefault(lemmas, []).append((rank, term))
        return by_lemmas


def _error(code: Error, fault: str, name: str, line: int) -> DragomanError:
    return code(fault, file=name, line=line) if name else code(f"line {line}: {fault}")


def _fault(term: str, target: str) -> str:
    """The reason why a row is no term; "" for a good one."""
    if not term or not target:
        return f"{term!r} has no translation" if term else f"{target!r} is the translation of nothing"
    if "\n" in term + target:
        return "several lines in one cell (a quotation mark that is not closed?)"
    return ""


def _capitals(term: str) -> list[bool]:
    """Of each word whether it begins with a capital."""
    return [term[word.start].isupper() for word in words(term)]


def _is_cased(term: str) -> bool:
    """True for a term that matches only in this spelling."""
    return term != term.lower()
