"""Where a line may end in scripts that put no spaces between words."""

import functools
import re
import unicodedata
from collections.abc import Iterator

import regex

from dragoman.languages.punctuation import CLUSTER, UNSPACED
from dragoman.languages.unspaced import cuts_a_word

_CLUSTERS = regex.compile(CLUSTER, regex.DOTALL)
_DENSE = rf"[{UNSPACED}\u3000-\u303f\uff00-\uffef]"
DENSE = re.compile(rf"{_DENSE}|\u200b")
"""A character beside which a line may end without a space."""
_BREAK = regex.compile(rf"(?<={_DENSE}|\u200b)(?=\S)|(?<=\S)(?={_DENSE})")
_NUMBER = r"[\p{N}〇一二三四五六七八九十百千万億兆]"
_NEVER = regex.compile(
    r"(?<=[\p{lb=OP}\p{lb=QU}\p{lb=PR}\p{lb=GL}\p{lb=WJ}\u0e40-\u0e44\u0ec0-\u0ec4])"
    r"|(?=[\p{lb=CL}\p{lb=CP}\p{lb=EX}\p{lb=NS}\p{lb=CJ}\p{lb=IS}\p{lb=SY}\p{lb=IN}\p{lb=QU}\p{lb=PO}\p{lb=BA}"
    r"\p{lb=GL}\p{lb=WJ}\p{lb=ZW}\u0e2f\u0e30\u0e32\u0e45\u0e46\u0eaf\u0eb0\u0eb2\u0ebd\u0ec6]|[\u1000-\u1021]\u103a)"
    rf"|(?<=[\p{{N}}\p{{Latin}}])(?=[\p{{N}}\p{{Latin}}])|(?<={_NUMBER})(?={_NUMBER})|(?<=\p{{N}}[.,．，])(?=\p{{N}})"
    r"|(?<=\p{lb=B2})(?=\p{lb=B2})|(?<=[อห])(?=[งญนมยรลว])|(?<=[\u0f00-\u0fff])(?<![\u0f0b\u0f0d-\u0f11])(?=[\u0f00-\u0fff])"
)
"""All that is never parted by UAX 14, a number, a Latin word; a vowel of Thai and Lao that stands apart from its
consonant, a final consonant of Burmese, a syllable of Tibetan."""
_CLAUSES = (
    "ซึ่ง|ที่|คือ|จะ|ไม่|ให้|ใน|อย่าง|และ|แต่|หรือ|ของ|เพื่อ|เพราะ|โดย|จาก|กับ|เมื่อ|ถ้า|ຊຶ່ງ|ທີ່|ແລະ|ແຕ່|ຫຼື|ຂອງ|ເພື່ອ|ເພາະ|ຈາກ|ກັບ"
    "|និង|ដែល|ប៉ុន្តែ|ដើម្បី|ក្នុង|但是|因为|因為|所以|如果|而且|或者|并且|並且|以及|虽然|雖然"
)
_COSTS = (
    (0.0, r"(?<=[\p{lb=CL}\p{lb=EX}\p{lb=BA}\u104a\u104b\u200b])"),
    (0.1, rf"(?={_CLAUSES})|(?<=[ๆໆ・])|(?<=\p{{Hiragana}})(?=[\p{{Han}}\p{{Katakana}}\p{{Latin}}\p{{N}}\p{{lb=OP}}])"),
    (0.25, r"(?<=\p{Latin})(?=\p{L})|(?<=\p{L})(?=[\p{Latin}\p{N}])"),
    (0.6, r"(?<=[\p{Han}\p{N}])(?=\p{Hiragana})|(?<=\p{N})|(?<=[\p{Katakana}ー])(?=\p{Katakana})"),
    (0.4, r"(?=[\u0e40-\u0e44\u0ec0-\u0ec4])|(?![\u0e00-\u0eff])"),
    (0.6, ""),
)
"""The price of a break, in parts of a line: nothing behind punctuation, little before a new phrase (a few frequent
words of Thai, Lao, Khmer, Chinese; in Japanese what follows hiragana), most inside of what is one word for certain."""
_PRICES = [(cost, regex.compile(pattern)) for cost, pattern in _COSTS]
_INSIDE = 0.8
"""The price of a break inside of a word."""


def line_breaks(text: str) -> Iterator[tuple[int, float]]:
    """(place, its price in parts of a line) of where a line may end among letters of scripts without spaces.

    It is never inside of a letter with its signs, a number or a Latin word, before a closing mark or behind an opening
    one; inside of a word only where no other place is near, or where the word is not known (`unspaced.py`).

    >>> [place for place, price in line_breaks("これはPDFの字。") if price < 0.2]
    [3, 7]
    """
    for match in _CLUSTERS.finditer(text):
        place = match.end()
        if place < len(text) and _BREAK.match(text, place) and not _NEVER.match(text, place):
            price = next(price for price, pattern in _PRICES if pattern.match(text, place))
            yield place, max(price, _INSIDE) if cuts_a_word(text, place, place) else price


@functools.cache
def columns(character: str) -> int:
    """The columns that a character takes in a line: two for a wide one, none for a sign of the letter before it.

    >>> [columns(character) for character in "aÄ字ั"]
    [1, 1, 2, 0]
    """
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
