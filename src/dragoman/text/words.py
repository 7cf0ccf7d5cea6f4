"""Words of a text: what a word is, and where each stands."""

import re
import unicodedata
from typing import NamedTuple

UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Characters of scripts that put no spaces between words, for a class of a pattern: Thai, Lao, Burmese, Khmer, kana,
Chinese."""

_MARKS = "\u200c\u200d" + "".join(
    re.escape(chr(code)) for code in range(0x300, 0x2000) if unicodedata.category(chr(code)) in ("Mn", "Mc")
)
"""Vowel signs, accents and joiners: they belong to the letter before them, and `\\w` has no room for them."""

WORD = rf"[{UNSPACED}][{_MARKS}]*|[^\W{UNSPACED}]+(?:[{_MARKS}]+[^\W{UNSPACED}]*)*"
"""A pattern of a word. Each letter of a script without spaces is a word by itself."""
LETTERS = rf"(?:[^\W\d_][{_MARKS}]*)+"
"""A pattern of a row of letters with their marks."""
_WORD = re.compile(WORD)
_SPACED = re.compile(r"\S+")
_WORD_OR_MARK = re.compile(rf"{WORD}|[^\w\s]")


class Word(NamedTuple):
    """A word or a mark of punctuation: characters `start` to `end` of a text."""

    start: int
    end: int


def words(text: str) -> list[Word]:
    """The words and marks of a text.

    >>> [(word.start, word.end) for word in words("Ab, 我们")]
    [(0, 2), (2, 3), (4, 5), (5, 6)]
    """
    return [Word(*match.span()) for match in _WORD_OR_MARK.finditer(text)]


def spaced_words(text: str) -> list[Word]:
    """The parts of a text between spaces: the words of aligners and of Pharaoh's form.

    >>> [(word.start, word.end) for word in spaced_words(" Ab, c")]
    [(1, 4), (5, 6)]
    """
    return [Word(*match.span()) for match in _SPACED.finditer(text)]


def split_words(text: str) -> list[str]:
    """The words and marks of a text as texts.

    >>> split_words("It's नमस्ते!")
    ['It', "'", 's', 'नमस्ते', '!']
    """
    return _WORD_OR_MARK.findall(text)


def folded(text: str) -> list[str]:
    """The words of a text in lower case, without marks.

    >>> folded("A man, walking."), folded("你好！")
    (['a', 'man', 'walking'], ['你', '好'])
    """
    return _WORD.findall(text.lower())
