"""Visible faults of a translation, told from its text and its source alone.

Every check is a function from (source, translation) to a warning or None, and stands in the table at the foot of this
file. They are for lines that are whole sentences; where a check would cry wolf, it keeps silent.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable

from dragoman.inference.placeholders import without_spans

MAX_RATIO = 4.0
"""A translation this many times as long as its source, or as short, has been cut or has run on (in characters)."""

_NUMBER = re.compile(r"\d{1,3}(?:[.,'\u00a0\u202f ]\d{3})+(?!\d)|\d+")
_WORD = re.compile(r"\w+")


def warnings_of(src: str, translation: str) -> list[str]:
    """The faults of a translation, each in a few words; empty if there is none.

    >>> warnings_of("Seite 12 und 13", "page 12")
    ['numbers lost: 13']
    >>> warnings_of("Ein Hund läuft.", "A dog runs.")
    []
    """
    if not src.strip():
        return []
    return [found for check in CHECKS.values() if (found := check(src.strip(), translation.strip())) is not None]


def empty(src: str, translation: str) -> str | None:
    """Nothing was written."""
    return None if translation else "empty"


def repetition(src: str, translation: str) -> str | None:
    """The same one to four words three times in a row or more, which the source has not."""
    found = longest_loop(_WORD.findall(translation.lower()))
    if found is None or longest_loop(_WORD.findall(src.lower())) is not None:
        return None
    return f"repetition: {found!r} again and again"


def longest_loop(words: list[str]) -> str | None:
    """One to four words that stand three times in a row or more (a single one: four times), the shortest such.

    >>> longest_loop("a man in a hat in a hat in a hat".split())
    'in a hat'
    """
    for size in range(1, 5):
        times = 4 if size == 1 else 3
        for start in range(len(words) - times * size + 1):
            unit = words[start : start + size]
            if all(words[start + i * size : start + (i + 1) * size] == unit for i in range(1, times)):
                return " ".join(unit)
    return None


def echo(src: str, translation: str) -> str | None:
    """The source itself, of four words or more: a name, a number or an address may well stay as it is."""
    told = without_spans(src)[0]
    return "source echoed" if len(_WORD.findall(told)) >= 4 and src.lower() == translation.lower() else None


def length(src: str, translation: str) -> str | None:
    """Far longer or shorter than the source. Short sentences and scripts that need fewer letters are given room."""
    if not translation or written_densely(src) != written_densely(translation):
        return None
    sizes = len(src) + 10, len(translation) + 10
    if sizes[1] > MAX_RATIO * sizes[0]:
        return f"far too long: {len(translation)} characters for {len(src)}"
    if sizes[0] > MAX_RATIO * sizes[1]:
        return f"far too short: {len(translation)} characters for {len(src)}"
    return None


def numbers(src: str, translation: str) -> str | None:
    """A number of two digits or more is missing (a single digit is often written as a word)."""
    lost = Counter(n for n in _numbers(src) if len(n) > 1) - Counter(_numbers(translation))
    return f"numbers lost: {' '.join(lost)}" if lost else None


def _numbers(text: str) -> list[str]:
    """Numbers in the digits 0 to 9, whatever separates their thousands.

    >>> _numbers("1,000 and 1.000 and ١٢")
    ['1000', '1000', '12']
    """
    return ["".join(str(unicodedata.digit(d)) for d in found if d.isdigit()) for found in _NUMBER.findall(text)]


def written_densely(text: str) -> bool:
    """True if most of the letters are Chinese or Japanese characters, of which a sentence needs a third."""
    return 2 * sum("\u3040" <= letter <= "\u9fff" for letter in text) > len(text.replace(" ", ""))


CHECKS: dict[str, Callable[[str, str], str | None]] = {
    "empty": empty,
    "repetition": repetition,
    "echo": echo,
    "length": length,
    "numbers": numbers,
}
