"""Terms with a fixed translation, from a file of two columns: `source term, tab, target term`.

A line of one column is a term that stays as it is. A term written in lower case is found in any case; one with capitals
only as it is written. Longer terms are found before shorter ones in them.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dragoman.errors import DragomanError
from dragoman.text.lines import read_lines


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

    def find(self, text: str) -> list[Found]:
        """The terms of a text, from left to right, none inside of another; where words have spaces, whole words."""
        return [
            Found(match.start(), match.end(), self._target(match.group())) for match in self._pattern().finditer(text)
        ]

    def _target(self, found: str) -> str:
        return self.targets[found] if found in self.targets else self.targets[found.lower()]

    def _pattern(self) -> re.Pattern[str]:
        """Longest first; a term that begins or ends in a letter or digit does so at the edge of a word."""
        ordered = sorted(self.targets, key=len, reverse=True)
        return re.compile("|".join(_pattern_of(term) for term in ordered))


def _pattern_of(term: str) -> str:
    body = re.escape(term)
    if term == term.lower():
        body = f"(?i:{body})"
    before = r"(?<!\w)" if _is_of_words(term[0]) else ""
    after = r"(?!\w)" if _is_of_words(term[-1]) else ""
    return f"{before}{body}{after}"


def _is_of_words(letter: str) -> bool:
    """Whether words are told by spaces beside this letter: not so in Chinese, Japanese and Thai."""
    return letter.isalnum() and not ("\u0e00" <= letter <= "\u0e7f" or "\u3040" <= letter <= "\u9fff")
