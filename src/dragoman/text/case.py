"""Capitals and small letters by the rules of languages.

`str.upper` and `str.lower` know the rules that Unicode has for all languages. Those of single languages are here: of
Unicode's SpecialCasing.txt (Turkish, Azerbaijani, Lithuanian), of CLDR's transforms (`el-Upper`, `hy-Upper`), and of
Irish, whose words keep the small letter that grammar puts before them.
"""

import re
import unicodedata
from collections.abc import Callable

from dragoman.languages.codes import language_of, script_of
from dragoman.text.placeholders import without_spans

_DOTTED = frozenset({"tr", "az", "crh", "gag", "kk", "tt", "ba"})
"""Languages whose capital i has its dot, where they are written in Latin letters."""
CASED = frozenset({"Latn", "Cyrl", "Grek", "Armn", "Geor", "Copt", "Glag", "Cher", "Adlm", "Dsrt", "Osge"})
"""Scripts with capitals (Georgian: Mtavruli)."""
_CASELESS_SHARE = 0.2
"""Letters without case in a line in capitals, at most, by all letters: a name in its own script."""
_LONG_WORD = re.compile(r"[^\W\d_]{3,}")
_WITHOUT_CAPITAL = re.compile("[ßªºŉĸ]")
"""Small letters that stay in a line in capitals: GROßE STRAßE, SALIDA Nº 5."""


def upper(text: str, language: str = "") -> str:
    """A text in capitals.

    >>> upper("istanbul ışık", "tr"), upper("Ο κόσμος, το ρολόι", "el"), upper("na hÉireannaigh i nGaeilge", "ga")
    ('İSTANBUL IŞIK', 'Ο ΚΟΣΜΟΣ, ΤΟ ΡΟΛΟΪ', 'NA hÉIREANNAIGH I nGAEILGE')
    """
    return _rules(language)[0](text)


def lower(text: str, language: str = "") -> str:
    """A text in small letters.

    >>> lower("İSTANBUL'DA IŞIK", "tr"), lower("Ο ΚΟΣΜΟΣ", "el"), lower("AN tATHAIR", "ga")
    ("istanbul'da ışık", 'ο κοσμος', 'an t-athair')
    """
    return _rules(language)[1](text)


def capitalized(text: str, language: str = "") -> str:
    """A text whose first letter is the capital that begins a sentence.

    >>> [capitalized(*word) for word in (("ijs", "nl"), ("iyi", "tr"), ("ǆep", "hr"), ("დღე", "ka"), ("ßa", "de"))]
    ['IJs', 'İyi', 'ǅep', 'დღე', 'ßa']
    """
    size = 2 if text[:2].lower() == "ij" and language_of(language) == "nl" else 1
    first = text[:size]
    capital = upper(first, language) if size == 2 or _has_dotted_i(language) else first.title()
    return (capital if len(capital) == size else first) + text[size:]


def is_small(letter: str) -> bool:
    """True for a letter with which no sentence begins. Georgian ones are small to Unicode, but begin sentences.

    >>> is_small("a"), is_small("A"), is_small("ა"), is_small("我")
    (True, False, False, False)
    """
    return letter.islower() and not "ა" <= letter <= "ჿ"


def is_in_capitals(text: str, language: str = "") -> bool:
    """True for a text of several words that are all in capitals: one may be a name, two of three letters are a heading.

    A language without capitals has no such text, and an acronym beside letters without case makes none.

    >>> is_in_capitals("DAS IST WICHTIG!"), is_in_capitals("NASA"), is_in_capitals("Das IST es"), is_in_capitals("你好")
    (True, False, False, False)
    >>> is_in_capitals("NATO在布鲁塞尔举行会议，讨论安全问题。"), is_in_capitals("AN tATHAIR ANSEO", "ga")
    (False, True)
    """
    script = script_of(language) if language else ""
    if script and script not in CASED:
        return False
    bare = _WITHOUT_CAPITAL.sub("", without_spans(text)[0])
    if language_of(language) == "ga":
        bare = _IRISH_PREFIX.sub("", bare)
    if not bare.isupper() or len(_LONG_WORD.findall(bare)) < 2:
        return False
    letters = [letter for letter in bare if letter.isalpha()]
    return sum(not letter.isupper() for letter in letters) <= _CASELESS_SHARE * len(letters)


def _has_dotted_i(language: str) -> bool:
    return language_of(language) in _DOTTED and script_of(language) == "Latn"


def _rules(language: str) -> tuple[Callable[[str], str], Callable[[str], str]]:
    """The functions that put a text into capitals and into small letters."""
    rules = _RULES.get(language_of(language) if language else "")
    if rules is None or (rules == _DOTTED_RULES and not _has_dotted_i(language)):
        return str.upper, str.lower
    return rules


def _dotted_upper(text: str) -> str:
    return text.replace("i", "İ").upper()


def _dotted_lower(text: str) -> str:
    return text.replace("I\u0307", "i").replace("İ", "i").replace("I", "ı").lower()


_GREEK_WORD = re.compile("[\u0300-\u036f\u0370-\u03ff\u1f00-\u1fff]+")
_PARTED = re.compile("(?<=[αεουΑΕΟΥ]\u0301)([ιυΙΥ])(?![\u0301\u0308])")
_ACCENTS = re.compile("[\u0300\u0301\u0313\u0314\u0342]")


def _greek_upper(text: str) -> str:
    """Capitals without accents; where an accent parted two vowels, a dieresis does (άι, ΑΪ). ή, "or", keeps its own."""
    return _GREEK_WORD.sub(_greek_word_upper, text).upper()


def _greek_word_upper(match: re.Match[str]) -> str:
    parts = _PARTED.sub("\\1\u0308", unicodedata.normalize("NFD", match.group()))
    bare = parts if parts in ("η\u0301", "Η\u0301") else _ACCENTS.sub("", parts)
    return unicodedata.normalize("NFC", bare.upper())


_IRISH_PREFIX = re.compile(
    r"(?<![\w-])(bh(?=[fF])|b(?=[pP])|d(?=[tT])|g(?=[cC])|m(?=[bB])|n(?=[dDgG])|t(?=[sS])"
    r"|[nt](?=-[aeiouáéíóúAEIOUÁÉÍÓÚ])|[hnt](?=[AEIOUÁÉÍÓÚ]))(?:-(?=\w))?(?=-?\w)"
)
"""The letters that grammar puts before a word: nAthair, n-athair."""


def _irish_upper(text: str) -> str:
    return "".join(part if number % 2 else part.upper() for number, part in enumerate(_IRISH_PREFIX.split(text)))


def _irish_lower(text: str) -> str:
    return re.sub(r"(?<!\w)([nt])(?=[AEIOUÁÉÍÓÚ])", r"\1-", text).lower()


def _lithuanian_upper(text: str) -> str:
    return re.sub("(?<=[ijį])\u0307", "", text).upper()


def _lithuanian_lower(text: str) -> str:
    """The dot of i, j and į stays under an accent."""
    parts = unicodedata.normalize("NFD", text)
    return unicodedata.normalize("NFC", re.sub("([IJ]\u0328?)(?=[\u0300\u0301\u0303])", "\\1\u0307", parts).lower())


_DOTTED_RULES = (_dotted_upper, _dotted_lower)
_RULES = dict.fromkeys(_DOTTED, _DOTTED_RULES) | {
    "el": (_greek_upper, str.lower),
    "ga": (_irish_upper, _irish_lower),
    "hy": (lambda text: text.replace("և", "ԵՎ").upper(), str.lower),
    "lt": (_lithuanian_upper, _lithuanian_lower),
}
