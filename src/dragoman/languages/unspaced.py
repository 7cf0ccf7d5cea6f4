"""Words in scripts without spaces between them: by ICU's dictionaries, or by syllables.

ICU's dictionaries know Thai, Lao, Khmer, Burmese, Chinese and Japanese. The extra `words` installs them.
"""

import functools
import itertools
import re
from typing import Any

_LETTERS = "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u30a1-\u30fc]"
_SYLLABIC, _SYLLABIC_PAIR = re.compile(_LETTERS), re.compile(_LETTERS * 2)
_OPEN_SYLLABLE = re.compile(
    "[\u0e31\u0e32\u0e34-\u0e39\u0e47-\u0e4b\u0eb1\u0eb2\u0eb4-\u0ebb\u0ec8-\u0ecb][\u0e48-\u0e4b\u0ec8-\u0ecb]?$"
    "|[\u17b6-\u17c5\u17d0]$|[\u102b-\u1035\u1000-\u1021]$"
)
"""The end of a syllable that may have one more consonant."""
_END_OF_SYLLABLE = re.compile(
    "[\u0e30-\u0e3a\u0e45\u0e47-\u0e4e\u0eb0-\u0ebc\u0ec8-\u0ece]|[\u30fc\u30a1\u30a3\u30a5\u30a7\u30a9\u30e3\u30e5\u30e7]"
)
"""A vowel or a tone of the letter before; in Japanese a long vowel and small letters."""
_LAST_CONSONANT = re.compile(
    "(?![กขคตปผพ][รลว][ะ-ฺ็-๎])[ก-งจชซญ-นบปพฟภมยรลวศ-สฬ](?![ะ-ฺ็-๎])|[ກງຍດນບມວຣ](?![\u0eb0-\u0ebd\u0ec8-\u0ece])"
    "|[\u1780-\u17a2](?![\u17b4-\u17d3])|[\u1000-\u1021]\u103a(?!\u1039)"
)
"""A consonant without a vowel: of the syllable before it (two that begin one, `กร`, are left alone)."""


def word_borders(text: str) -> frozenset[int] | None:
    """The places where words begin and end; None where the dictionaries are not installed."""
    return None if _dictionaries() is None else _borders(text)


@functools.cache
def _dictionaries() -> Any:
    """The class of ICU that parts words; None where it is not installed."""
    try:
        from icu4py.breakers import WordBreaker
    except ImportError:
        return None
    return WordBreaker


@functools.lru_cache(256)
def _borders(text: str) -> frozenset[int]:
    words = _dictionaries()(text, "en")  # the script of a run of letters says which dictionary, not the language
    return frozenset(itertools.accumulate(map(len, words), initial=0))


def cuts_a_word(text: str, start: int, end: int) -> bool:
    """True where a word of Thai, Lao, Khmer or Burmese, or one of katakana, goes on beyond `start` or `end`.

    Chinese characters inside of a word are words as well, so a border between two of them cuts no word.

    >>> cuts_a_word("การทำงาน", 0, 2), cuts_a_word("การทำงาน", 3, 8), cuts_a_word("东京都", 0, 2)
    (True, False, False)
    """
    cuts = word_borders(text)
    if cuts is None:
        return _SYLLABIC.match(text, end - 1) is not None and _goes_on(text, start, end)
    return any(place not in cuts and _SYLLABIC_PAIR.match(text, place - 1) for place in (start, end) if place)


def _goes_on(text: str, start: int, end: int) -> bool:
    """True where a syllable of a script without spaces begins before `start`, or may end after `end`."""
    if text[start - 1 : start] and text[start - 1] in "เแโใไເແໂໃໄ":
        return True
    if _END_OF_SYLLABLE.match(text, end):
        return True
    return bool(_OPEN_SYLLABLE.search(text[max(start, end - 2) : end]) and _LAST_CONSONANT.match(text, end))
