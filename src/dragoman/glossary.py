"""Terms with a fixed translation, from a file of two columns: `source term, tab, target term`.

A line of one column is a term that stays as it is. A term written in lower case is found in any case; one with capitals
only as it is written. Longer terms are found before shorter ones in them, none inside of a placeholder.
"""

import functools
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dragoman.errors import DragomanError
from dragoman.placeholders import span_ranges
from dragoman.text.lines import read_lines

UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Letters of scripts in which no space tells words apart: Thai, Lao, Burmese, Khmer, Japanese, Chinese."""

HELD = "\ue000"
"""Stands for a space inside of a term, so that a line that is too long is not cut there (`held_together`)."""


class Found(NamedTuple):
    """A term in a text: characters `start` to `end`."""

    start: int
    end: int
    target: str


@dataclass(frozen=True)
class Glossary:
    """Terms and their translations.

    >>> terms = Glossary({"hund": "hound", "roter Hund": "red hound"})
    >>> [term.target for term in terms.find("Ein Hund, ein roter Hund; Hunde.")]
    ['hound', 'red hound']
    """

    targets: dict[str, str]

    @classmethod
    def load(cls, path: Path) -> "Glossary":
        """Read a file of terms.

        Raises DragomanError, naming the line, for more than two columns, an empty term, or a term with two targets.
        """
        targets: dict[str, str] = {}
        for number, line in enumerate(read_lines(path), start=1):
            if not line.strip() or line.startswith("#"):
                continue
            term, *rest = (column.strip() for column in line.split("\t"))
            if len(rest) > 1:
                raise DragomanError(
                    f"{path}, line {number}: {1 + len(rest)} columns: give a term, a tab, its translation"
                )
            target = rest[0] if rest else term
            if not term or not target:
                raise DragomanError(f"{path}, line {number}: an empty term")
            if targets.setdefault(term, target) != target:
                raise DragomanError(
                    f"{path}, line {number}: {term!r} is {targets[term]!r} further up and {target!r} here: choose one"
                )
        if not targets:
            raise DragomanError(f"{path}: no terms in it: a line is a term, a tab, its translation")
        return cls(targets)

    def normalized(self, normalize: Callable[[str], str]) -> "Glossary":
        """The glossary of normalised texts.

        Raises DragomanError for terms that become one with two targets, and for targets that could not be said as they
        are written.
        """
        targets: dict[str, str] = {}
        for term, target in self.targets.items():
            said = normalize(target)
            if said != target and said != unicodedata.normalize("NFC", target):
                raise DragomanError(f"term {target!r}: the run's `normalize` makes {said!r} of it: write that instead")
            if targets.setdefault(normalize(term), said) != said:
                raise DragomanError(f"term {term!r}: the same as another one after the run's `normalize`: choose one")
        return Glossary(targets)

    def find(self, text: str) -> list[Found]:
        """The terms of a text, from left to right, none inside of another; where words have spaces, whole words."""
        if not self.targets:
            return []
        kept = span_ranges(text)
        return [
            Found(match.start(), match.end(), self.targets[self._terms[match.lastindex - 1]])
            for match in self._pattern.finditer(text)
            if match.lastindex and not any(start < match.end() and match.start() < end for start, end in kept)
        ]

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
    def _terms(self) -> list[str]:
        """Longest first."""
        return sorted(self.targets, key=len, reverse=True)

    @functools.cached_property
    def _pattern(self) -> re.Pattern[str]:
        """One group for each term: what was found in any case need not be looked up by its letters."""
        return re.compile("|".join(f"({_pattern_of(term)})" for term in self._terms))


def _pattern_of(term: str) -> str:
    """A term that begins or ends in a letter or digit does so at the edge of a word."""
    body = re.escape(term)
    if term == term.lower():
        body = f"(?i:{body})"
    # A lookaround takes one class: letters, digits and combining marks of the scripts that put spaces between words.
    before = f"(?<![{_of_words()}])" if _tells_words(term[0]) else ""
    after = f"(?![{_of_words()}])" if _tells_words(term[-1]) else f"(?![{_marks()}])"
    return f"{before}{body}{after}"


def _tells_words(letter: str) -> bool:
    is_of_words = unicodedata.category(letter)[0] in "LNM"
    return is_of_words and re.match(f"[{UNSPACED}]", letter) is None


@functools.cache
def _of_words() -> str:
    """A character class, in ranges: what continues a word of a script with spaces."""
    unspaced = re.compile(f"[{UNSPACED}]")
    return _ranges(
        lambda letter: letter == "_" or (unicodedata.category(letter)[0] in "LNM" and not unspaced.match(letter))
    )


@functools.cache
def _marks() -> str:
    return _ranges(lambda letter: unicodedata.category(letter)[0] == "M")


def _ranges(chosen: Callable[[str], bool]) -> str:
    found: list[str] = []
    start = None
    for code in range(0x20000):
        inside = code < 0xD800 or code > 0xDFFF
        if inside and chosen(chr(code)):
            start = code if start is None else start
        elif start is not None:
            found.append(f"\\U{start:08x}-\\U{code - 1:08x}")
            start = None
    return "".join(found)
