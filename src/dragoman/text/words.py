"""Words of a text: what a word is, where each stands, and where a text may be parted.

A letter is a grapheme cluster (UAX 29): a base with its vowel signs, accents, joiners and stacked consonants, an emoji
with all that is joined to it, a flag. No word begins or ends inside of one.
"""

import functools
import re
import unicodedata
from collections.abc import Container, Sequence
from typing import NamedTuple

import regex

from dragoman.languages.invisible import FORMATTING
from dragoman.languages.punctuation import CLUSTER, MARK
from dragoman.languages.punctuation import UNSPACED as UNSPACED
from dragoman.languages.unspaced import cuts_a_word, word_borders

_OF_SCRIPTS = "".join(
    map(chr, (*range(0x80, 0x3100), *range(0xA000, 0xAC00), *range(0xFB00, 0x12000), *range(0x16A00, 0x17000)))
)
MARKS = "\u200c\u200d" + "".join(regex.findall(r"\p{M}+", _OF_SCRIPTS))
"""Vowel signs, accents and joiners: they belong to the letter before them, and `\\w` has no room for them."""

LETTERS = rf"(?:[^\W\d_][{MARKS}]*)+"
"""A pattern of a row of letters with their marks."""
_OF_LETTERS = re.compile(LETTERS)
_SPACED, _UNSPACED = re.compile(r"\S+"), re.compile(f"[{UNSPACED}]")

# Of most text each character is a cluster by itself: that goes without `regex`, which takes twice as long.
_MAY_JOIN = re.compile(
    "[^\0-\u00ac\u00ae-\u00b6\u00b8-\u02ff\u0370-\u0482\u048a-\u055a\u0560-\u0590\u1e00-\u200a\u2010-\u2029\u202f-\u205f"
    "\u2070-\u20cf\u2100-\u22ff\u2460-\u25ff\u3000-\u3029\u3030-\u3098\u309b-\u9fff\uac00-\ud7a3\uff00-\uff9d\uffa0-\uffef]"
)
_SIMPLE_WORD = rf"[{UNSPACED}]|[^\W{UNSPACED}]+"
_SIMPLE = re.compile(_SIMPLE_WORD), re.compile(rf"{_SIMPLE_WORD}|[^\w\s]")
_ROW = rf"(?:(?=[\p{{L}}\p{{N}}_])(?![{UNSPACED}]){CLUSTER})++"
_INSIDE = "[\u00ad\u00b7\u055b-\u055e\u05f3\u05f4\u2060]"
"""Marks between the letters of a word: soft hyphens, Catalan's dot, Armenian and Hebrew marks."""
_JOINED_WORD = rf"(?=[{UNSPACED}]){CLUSTER}|{_ROW}(?:{_INSIDE}{_ROW})*+"
_NOTHING = rf"\s(?!{MARK})|[\u200b-\u200d{FORMATTING}]++(?!\p{{M}})"
_JOINED = regex.compile(_JOINED_WORD), regex.compile(rf"{_JOINED_WORD}|(?!{_NOTHING}){CLUSTER}")
_CLUSTERS = regex.compile(CLUSTER, regex.DOTALL)

_ENDS = "".join(regex.findall(r"[\p{Terminal_Punctuation}\p{Pe}]", _OF_SCRIPTS))
CLOSING, OPENING = f".,;:!?)]}}»”…{_ENDS}", "([{«“„¿¡「『（［｛《〈【"
"""Marks without a blank before them, in any script, and marks without a blank behind them."""


class Word(NamedTuple):
    """A word or a mark of punctuation: characters `start` to `end` of a text."""

    start: int
    end: int


def words(text: str) -> list[Word]:
    """The words and marks of a text that can be seen. In scripts without spaces, letters or words
    (`languages/unspaced.py`).

    >>> [(word.start, word.end) for word in words("Ab, cd")]
    [(0, 2), (2, 3), (4, 6)]
    """
    seen = [Word(*match.span()) for match in _pattern(text, marks=True).finditer(text)]
    cuts = word_borders(text) if _UNSPACED.search(text) else None
    return seen if cuts is None else _in_words(text, seen, cuts)


def _in_words(text: str, letters: Sequence[Word], cuts: Container[int]) -> list[Word]:
    """Words of the letters of scripts without spaces; what else is in a text as it is."""
    joined = list(letters[:1])
    for word in letters[1:]:
        last = joined[-1]
        if word.start == last.end and word.start not in cuts and _UNSPACED.match(text, word.start):
            joined[-1] = Word(last.start, word.end)
        else:
            joined.append(word)
    return joined


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
    if _UNSPACED.search(text):
        return [text[word.start : word.end] for word in words(text)]
    return _pattern(text, marks=True).findall(text)


def folded(text: str) -> list[str]:
    """The words of a text in lower case, without marks.

    >>> folded("A man, walking."), folded("你好！")
    (['a', 'man', 'walking'], ['你', '好'])
    """
    text = text.lower()
    return _pattern(text, marks=False).findall(text)


@functools.lru_cache(256)
def borders(text: str) -> Container[int]:
    """The places where a text may be parted: between its clusters, and at its ends.

    >>> [place for place in range(5) if place in borders("करें")]
    [0, 1, 4]
    """
    if not _MAY_JOIN.search(text):
        return range(len(text) + 1)
    return frozenset([0, *(match.end() for match in _CLUSTERS.finditer(text))])


def clusters(text: str) -> list[str]:
    """The letters and marks of a text.

    >>> clusters("करें")
    ['क', 'रें']
    """
    return list(_CLUSTERS.findall(text)) if _MAY_JOIN.search(text) else list(text)


@functools.cache
def is_letter(character: str) -> bool:
    """True for a letter, a digit, or a sign that belongs to the letter before it.

    >>> is_letter("a"), is_letter("ै"), is_letter("。"), is_letter("")
    (True, True, False, False)
    """
    return character != "" and (unicodedata.category(character)[0] in "LNM" or character in "\u200c\u200d")


def is_of_letters(text: str) -> bool:
    """True for letters with their signs, and nothing else: as `isalpha`, in every script.

    >>> is_of_letters("करें"), is_of_letters("a4")
    (True, False)
    """
    return _OF_LETTERS.fullmatch(text) is not None


@functools.cache
def tells_words(letter: str) -> bool:
    """True for a letter of a script that puts spaces between words: beside it, nothing begins or ends a word."""
    return is_letter(letter) and _UNSPACED.match(letter) is None


def is_alone(text: str, start: int, end: int) -> bool:
    """True if what begins or ends in a letter does so at the edge of a word, and no sign of a letter follows. A Korean
    noun has its particles behind it.

    >>> is_alone("करें", 0, 2), is_alone("我是Tom吗", 2, 5), is_alone("Anna", 1, 4), is_alone("서울에서", 0, 2)
    (False, True, False, True)
    """
    before, after = text[start - 1 : start] if start else "", text[end : end + 1]
    if end not in borders(text):
        return False
    if tells_words(text[start]) and (before == "_" or tells_words(before)):
        return False
    if cuts_a_word(text, start, end):
        return False
    if not tells_words(text[end - 1]):
        return True
    return not (after == "_" or tells_words(after)) or _has_particle(text[start:end], text[end : end + 30])


_AFTER_ALL = (
    "에서 에게서 에게 에 의 도 만 까지 부터 보다 처럼 마다 밖에 뿐 대로 만큼 마저 조차 "
    "한테서 한테 께서 하고 같이 입니다 입니까 이다 인"
)
_AFTER_CONSONANT = "은 이 을 과 으로 이나 이란 이랑 이며 이고 이라 이든"
_AFTER_VOWEL = "는 가 를 와 로 나 란 랑 며 고 라 든"
_AFTER_ONE = "에서 에게서 에게 까지 부터 보다 처럼 마다 으로 은 는 을 를 입니다"
"""Particles that may stand behind a noun of one syllable. Other particles are as often the end of another word."""
_PARTICLE = "|".join(sorted(f"{_AFTER_ALL} {_AFTER_CONSONANT} {_AFTER_VOWEL}".split(), key=len, reverse=True))
_PARTICLES = re.compile(rf"({_PARTICLE})(?:{_PARTICLE})*(?![\w])")


def _has_particle(noun: str, rest: str) -> bool:
    """True for a Korean noun, or one in Latin letters, with Korean particles behind it. Which particle stands there
    depends on the noun's last sound."""
    noun, rest = unicodedata.normalize("NFC", noun[-6:]), unicodedata.normalize("NFC", rest)
    if (match := _PARTICLES.match(rest)) is None:
        return False
    first = match[1]
    if not "가" <= noun[-1] <= "힣":
        return True
    last_sound = (ord(noun[-1]) - ord("가")) % 28
    if len(noun) == 1 and first not in _AFTER_ONE.split():
        return False
    if first in _AFTER_VOWEL.split() and last_sound:
        return first == "로" and last_sound == 8  # ㄹ
    return last_sound > 0 or first not in _AFTER_CONSONANT.split()


def places(word: str, text: str, flags: int = 0) -> list[Word]:
    """The places where a word stands by itself in a text, or between letters of a script without spaces."""
    matches = re.finditer(re.escape(word), text, flags)
    return [Word(*match.span()) for match in matches if is_alone(text, *match.span())]


def _pattern(text: str, *, marks: bool) -> "re.Pattern[str] | regex.Pattern[str]":
    """Finds the words of a text, and with `marks` what else can be seen."""
    return (_JOINED if _MAY_JOIN.search(text) else _SIMPLE)[marks]
