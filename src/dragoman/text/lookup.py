"""The form in which a text is looked up: glossaries, memories and test sets take for one what readers take for one.

One letter may be one code point or several (NFC, NFD), of full or half width, an Arabic or a Hebrew word with or
without its vowel signs, a Greek one in capitals, which have no accents. What nobody sees counts for nothing.
"""

import functools
import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from dragoman.languages.invisible import as_seen, visible
from dragoman.text.words import Word, clusters, is_alone

_POINTS = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]"
)
"""Signs that Hebrew and Arabic are mostly written without; tatweel, which makes a word longer."""
_STRESS = re.compile("(?<=[\u0400-\u04ff])[\u0300\u0301]")
"""Stress marks of dictionaries on Cyrillic letters; marks that make another letter are already joined with the letter
by NFC."""
_GREEK = re.compile("[\u0370-\u03ff\u1f00-\u1fff]")
_GREEK_MARKS = re.compile("[\u0300\u0301\u0308\u0313\u0314\u0342]")
_PRESENTED = re.compile("[\ufb00-\ufb06\ufb1d-\ufdff\ufe70-\ufefc]")
"""Ligatures, and letters of Hebrew and Arabic in the form that they have at a place in a word."""
_PLAIN = re.compile(
    "[ -~\u00a1-\u00ac\u00ae-\u00de\u00e0-\u02ff\u0384-\u03c1\u03c3-\u03ce\u0410-\u0482\u048a-\u052f\u0e01-\u0eff"
    "\u1e00-\u1eff\u2010-\u2027\u3001-\u3029\u3041-\u3096\u309b-\u30ff\u3400-\u9fff\uac00-\ud7a3]*"
)
"""Text whose cased form is itself."""


def lookup_form(text: str, *, cased: bool = True) -> str:
    """The form of a text that is compared, with or without its case.

    >>> lookup_form("ＰＤＦ ﾌｧｲﾙ"), lookup_form("ΟΔΟΣ", cased=False) == lookup_form("οδός", cased=False)
    ('PDF ファイル', True)
    """
    if cased and _PLAIN.fullmatch(text):
        return text
    form = _POINTS.sub("", as_seen(text))
    form = _PRESENTED.sub(lambda letter: unicodedata.normalize("NFKC", letter[0]), form)
    form = _STRESS.sub("", re.sub("[\u00a0\u2007\u202f\u3000]", " ", form)).replace("ς", "σ")
    if cased:
        return form
    form = form.replace("ı", "i").replace("İ", "i").casefold()
    if _GREEK.search(form):
        form = unicodedata.normalize("NFC", _GREEK_MARKS.sub("", unicodedata.normalize("NFD", form)))
    return form


class _Placed(NamedTuple):
    """The form of a text, and the place in the text of each place in it, its end too; -1 inside of a letter."""

    form: str
    places: tuple[int, ...] | range


@functools.lru_cache(256)
def _placed(text: str, *, cased: bool) -> _Placed:
    form = lookup_form(text, cased=cased)
    if len(form) == len(text) and (text.isascii() or form == text):
        return _Placed(form, range(len(text) + 1))
    parts, places, at = [], [], 0
    for cluster in clusters(text):
        part = lookup_form(cluster, cased=cased)
        parts.append(part)
        places += [at, *[-1] * (len(part) - 1)] if part else []
        at += len(cluster)
    return _Placed("".join(parts), (*places, len(text)))


def occurrences(term: str, text: str, *, cased: bool = False) -> Iterator[Word]:
    """The places where a term stands in a text, from left to right; one may begin inside of another, or of a word.

    >>> [text[slice(*place)] for text in ("ＰＤＦを開く", "Ein PDF") for place in occurrences("PDF", text)]
    ['ＰＤＦ', 'PDF']
    """
    form, places = _placed(text, cased=cased)
    key = lookup_form(term, cased=cased)
    at = form.find(key) if key else -1
    while at >= 0:
        start, end = places[at], places[at + len(key)]
        if start >= 0 and end >= 0 and _same_accents(term, text[start:end]):
            yield Word(start, _seen_end(text, start, end))
        at = form.find(key, at + 1)


def words_like(term: str, text: str, *, cased: bool = False) -> list[Word]:
    """The occurrences of a term that are whole words, or stand between letters of a script without spaces."""
    return [place for place in occurrences(term, text, cased=cased) if is_alone(text, *place)]


def _same_accents(term: str, spelling: str) -> bool:
    """False for two Greek words with other accents (`ή`, or, and `η`, the); capitals have none."""
    if not _GREEK.search(spelling) or spelling.isupper() or term.isupper():
        return True
    return lookup_form(term).lower() == lookup_form(spelling).lower()


def _seen_end(text: str, start: int, end: int) -> int:
    """The end of what is seen: marks of direction behind a term are no part of it."""
    while end > start + 1 and not visible(text[end - 1]):
        end -= 1
    return end
