"""Numbers in a text by their values: whatever separates thousands and decimals, in digits or in words, and in dates."""

import functools
import re
import unicodedata
from typing import NamedTuple

from dragoman.languages.codes import facts, language_of

_SEPARATORS = ".,'’\u00a0\u202f "
_DATE = r"(?P<date>\d{4}-\d{1,2}-\d{1,2}|\d{1,2}([./-])\d{1,2}\2(?:\d{4}|\d{2}))(?!\.?\d)"
_THOUSANDS = rf"(?P<thousands>\d{{1,3}}(?:([{_SEPARATORS}])\d{{3}})(?:\4\d{{3}})*(?:[.,]\d+)?)(?!\.?\d)"
_VERSION = r"(?P<version>v\d+(?:\.\d+)*(?:[-+][\w.]*\w)?|\d+(?:\.\d+){2,}(?:[-+][\w.]*\w)?)"
_TIME = r"(?P<time>\d{1,2}:\d{2}(?::\d{2})?)"
_NUMBER = r"(?P<number>\d+(?:[.,]\d+)?)"
_TOKEN = re.compile(rf"(?<![\w.])(?:{_DATE}|{_THOUSANDS}|{_VERSION})|{_TIME}|{_NUMBER}", re.IGNORECASE)


class Number(NamedTuple):
    """A number as it is written, its kind, and what it may mean: `1.000` is a thousand, or one."""

    text: str
    kind: str
    values: frozenset[str]


def numbers_in(text: str) -> list[Number]:
    """The numbers of a text that are written in digits, of any script, in order.

    >>> [(number.text, number.kind, sorted(number.values)) for number in numbers_in("1.000 €, v2.3.1-beta, 3,5")]
    [('1.000', 'number', ['1', '1000']), ('v2.3.1-beta', 'version', ['v2.3.1-beta']), ('3,5', 'number', ['3.5'])]
    """
    found = []
    for match in _TOKEN.finditer(_in_ascii_digits(text)):
        kind = match.lastgroup if match.lastgroup in ("date", "version", "time") else "number"
        assert kind is not None
        found.append(Number(match[0], kind, _values(match[0], kind)))
    return found


def parts_of(number: Number) -> list[frozenset[str]]:
    """The values to look for elsewhere: of a date its day, its month and its year, each by itself."""
    if number.kind != "date":
        return [number.values]
    fields = re.split(r"[./-]", number.text)
    return [frozenset({_plain(field), _plain(field[-2:])} if len(field) == 4 else {_plain(field)}) for field in fields]


def values_in(text: str, language: str = "") -> list[str]:
    """The values that each of a text's numbers may have, those of number words of the language among them."""
    values = []
    for number in numbers_in(text):
        fields = map(_plain, number.text.split(":")) if number.kind == "time" else ()
        values += sorted({*number.values, *fields, *(value for part in parts_of(number) for value in part)})
    return values + words_in(text, language)


def words_in(text: str, language: str) -> list[str]:
    """Values of the number words of a text; empty for a language whose words are not known here.

    >>> words_in("The third of twelve", "en")
    ['3', '12']
    """
    code = language_of(language) if language else ""
    if code in ("zh", "ja"):
        return [str(_han_value(run)) for run in re.findall(f"[{''.join(_HAN)}]+", text)]
    known = _number_words(code) | _months(code)
    values = []
    for word in re.findall(r"[^\W\d_]+", text.lower()):
        values += [value for stem, value in known.items() if word == stem or (len(stem) > 3 and word.startswith(stem))]
        values += [value for stem, value in _months(code).items() if word != stem and word.startswith(stem)]
    return values


def _han_value(numerals: str) -> int:
    """The value of Chinese numerals.

    >>> _han_value("二十六"), _han_value("十"), _han_value("一千零一")
    (26, 10, 1001)
    """
    total, last = 0, 0
    for letter in numerals:
        value = _HAN[letter]
        if value < 10:
            last = value
        elif value == 10000:
            total, last = (total + last or 1) * value, 0
        else:
            total, last = total + (last or 1) * value, 0
    return total + last


def has_words(language: str) -> bool:
    """True if the number words of a language are known here."""
    return language_of(language) in facts("numbers") or language_of(language) in ("zh", "ja")


def _values(text: str, kind: str) -> frozenset[str]:
    if kind != "number":
        return frozenset({text.lower()} if kind == "version" else {re.sub(r"^0(?=\d:)", "", text)})
    values = set()
    groups = re.split(rf"[{_SEPARATORS}]", text)
    if len(groups) > 1 and all(len(group) == 3 for group in groups[1:]):
        values.add(_plain("".join(groups)))
    if len(groups) > 2:  # the last may be a fraction
        values.add(_plain("".join(groups[:-1]) + "." + groups[-1]))
    if len(groups) == 2 and re.search(r"[.,]", text):
        values.add(_plain(".".join(groups)))
    return frozenset(values or {_plain(text)})


def _plain(digits: str) -> str:
    """A number without the zeros that mean nothing.

    >>> _plain("007"), _plain("2.50"), _plain("1.000")
    ('7', '2.5', '1')
    """
    whole, point, fraction = digits.partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (point + fraction if fraction else "")


def _in_ascii_digits(text: str) -> str:
    return "".join(
        str(unicodedata.digit(letter)) if letter.isdecimal() and not letter.isascii() else letter for letter in text
    )


_HAN = {letter: value for value, letter in enumerate("零一二三四五六七八九")} | {
    "〇": 0, "两": 2, "十": 10, "百": 100, "千": 1000, "万": 10000,
}  # fmt: skip


@functools.cache
def _number_words(code: str) -> dict[str, str]:
    """The value of each number word's stem."""
    if code not in facts("numbers"):
        return {}
    small, tens, large = (part.split() for part in facts("numbers")[code].split("|"))
    rows = [(str(value), words) for value, words in enumerate(small)]
    rows += [(str(20 + 10 * place), words) for place, words in enumerate(tens)]
    rows += list(zip(("100", "1000", "1000000"), large, strict=True))
    return {stem: value for value, words in rows for stem in words.split("/")}


@functools.cache
def _months(code: str) -> dict[str, str]:
    """The number of each month by the beginning of its name."""
    months = enumerate(facts("months").get(code, "").split(), start=1)
    return {stem: str(place) for place, stems in months for stem in stems.split("/")}
