"""Numbers in a text by their values: whatever separates thousands and decimals, in digits or in words, and in dates.

Digits of every script are read; `3万`, `12 million` and `1.5 लाख` by the words of CLDR that multiply; years by the
calendars of a language.
"""

import functools
import re
import unicodedata
from decimal import Decimal
from typing import NamedTuple

from dragoman.languages.cldr import months, multipliers
from dragoman.languages.codes import facts, language_of, written_without_spaces
from dragoman.text.words import LETTERS, MARKS

_SEPARATORS = ".,'’\u00a0\u202f "
_DATE = r"(?P<date>\d{4}-\d{1,2}-\d{1,2}|\d{1,2}([./-])\d{1,2}\2(?:\d{4}|\d{2}))(?!\.?\d)"
_INDIAN = r"\d{1,2}(?:,\d{2})+,\d{3}"  # 1,23,456
_THOUSANDS = rf"(?P<thousands>(?:{_INDIAN}|\d{{1,3}}(?:([{_SEPARATORS}])\d{{3}})(?:\4\d{{3}})*)(?:[.,]\d+)?)(?!\.?\d)"
_VERSION = r"(?P<version>v\d+(?:\.\d+)*(?:[-+][\w.]*\w)?|\d+(?:\.\d+){2,}(?:[-+][\w.]*\w)?)"
_TIME = r"(?P<time>\d{1,2}:\d{2}(?::\d{2})?)"
_NUMBER = r"(?P<number>\d+(?:[.,]\d+)?)"
_TOKEN = re.compile(rf"(?<![\w.])(?:{_DATE}|{_THOUSANDS}|{_VERSION})|{_TIME}|{_NUMBER}", re.IGNORECASE)


class Number(NamedTuple):
    """A number as it is written, its kind, and what it may mean: `1.000` is a thousand, or one."""

    text: str
    kind: str
    values: frozenset[str]


def numbers_in(text: str, language: str = "") -> list[Number]:
    """The numbers of a text that are written in digits, of any script, in order.

    `language`: its code; then numbers with a word that multiplies, and years of its calendar, have that value, too.

    >>> [(number.text, number.kind, sorted(number.values)) for number in numbers_in("1.000 €, v2.3.1-beta, 3,5")]
    [('1.000', 'number', ['1', '1000']), ('v2.3.1-beta', 'version', ['v2.3.1-beta']), ('3,5', 'number', ['3.5'])]
    >>> [sorted(numbers_in(text, code)[0].values) for text, code in (("3万円", "ja"), ("ปี 2567", "th"))]
    [['3', '30000'], ['2024', '2567']]
    """
    numbers, end, plain = [], 0, _in_ascii_digits(text)
    for match in _TOKEN.finditer(plain):
        if match.start() < end:
            continue  # 2千万 of 1億2千万
        kind = match.lastgroup if match.lastgroup in ("date", "version", "time") else "number"
        assert kind is not None
        values, end = set(_values(match[0], kind)), match.end()
        if kind == "number" and language:
            values |= _years(plain[: match.start()], match[0], language)
            if times := _multiplier(language).match(plain, end):
                values |= {
                    _plain(f"{Decimal(value) * multipliers(language)[times[times.lastindex or 0]]:f}")
                    for value in values
                }
        if kind == "number" and (chain := _CHAIN.match(plain, end)):
            values.add(_numerals_value(match[0].replace(",", "") + chain[0]))
            end = chain.end()
        numbers.append(Number(match[0], kind, frozenset(values)))
    return numbers


def parts_of(number: Number) -> list[frozenset[str]]:
    """The values to look for elsewhere: of a date its day, its month and its year, each by itself."""
    if number.kind != "date":
        return [number.values]
    fields = re.split(r"[./-]", number.text)
    return [frozenset({_plain(field), _plain(field[-2:])} if len(field) == 4 else {_plain(field)}) for field in fields]


def values_in(text: str, language: str = "") -> list[str]:
    """For each number of a text, the values that it may have; number words of the language count as numbers."""
    values = []
    for number in numbers_in(text, language):
        if number.kind == "date":  # the day may be the month
            values += sorted(number.values) + [value for part in parts_of(number) for value in sorted(part)]
        else:
            fields = map(_plain, number.text.split(":")) if number.kind == "time" else ()
            values += sorted({*number.values, *fields})
    for fraction in _FRACTION.findall(text):
        over, under = unicodedata.normalize("NFKC", fraction).split("⁄")
        values += [over, under, _plain(f"{unicodedata.numeric(fraction):.3f}")]
    return values + words_in(text, language)


_FRACTION = re.compile("[¼-¾⅐-⅞]")


def words_in(text: str, language: str) -> list[str]:
    """Values of the number words of a text; empty for a language whose words are not known here.

    >>> words_in("The third of twelve", "en")
    ['3', '12']
    """
    code, lower = language_of(language) if language else "", text.lower()
    values = [_numerals_value(run) for run in _NUMERALS[code].findall(text)] if code in _NUMERALS else []
    if written_without_spaces(language):
        return values + [str(value) for name, value in months(code).items() if name in lower]
    known, names = _by_first_letter(code)
    for word in _WORD.findall(lower):
        values += [
            value for stem, value in known.get(word[0], ()) if word == stem or (len(stem) > 3 and word.startswith(stem))
        ]
        values += list({value for name, value in names.get(word[0], ()) if word == name or _is_form_of(word, name)})
    return values


_ByLetter = dict[str, list[tuple[str, str]]]


@functools.cache
def _by_first_letter(language: str) -> tuple[_ByLetter, _ByLetter]:
    """The number words of a language and the names of its months, each with its value, by their first letters: few
    have that of a word."""
    tables: tuple[_ByLetter, _ByLetter] = ({}, {})
    for table, words in zip(tables, (_number_words(language).items(), months(language).items()), strict=True):
        for word, value in words:
            table.setdefault(word[0], []).append((word, str(value)))
    return tables


_WORD = re.compile(LETTERS)


def _is_form_of(word: str, name: str) -> bool:
    """True for a longer or another form of a month's name."""
    return len(name) >= 3 and word.startswith(name if len(name) < 5 else name[:-1])


def _numerals_value(numerals: str) -> str:
    """The value of Chinese, Japanese or Korean numerals, digits among them.

    >>> [_numerals_value(text) for text in ("二十六", "十", "一千零一", "1.5億", "1億2千万", "二〇二四", "천만")]
    ['26', '10', '1001', '150000000', '120000000', '2024', '10000000']
    """
    total = section = last = Decimal(0)
    is_open = False  # digits stand before
    for piece in re.findall(r"\d+(?:\.\d+)?|.", numerals):
        value = Decimal(_HAN.get(piece, piece))
        if value < 10 or piece not in _HAN:
            last, is_open = (last * 10 + value if is_open and piece in _HAN else value), True
        elif value < 10000:
            section, last, is_open = section + (last or 1) * value, Decimal(0), False
        else:
            total, section, last, is_open = total + (section + last or 1) * value, Decimal(0), Decimal(0), False
    return _plain(f"{total + section + last:f}")


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
    """The text, of the same length, with digits and the marks between them as English has them."""
    if text.isascii():
        return text
    plain = "".join(
        str(unicodedata.digit(letter)) if letter.isdecimal() and not letter.isascii() else letter for letter in text
    )
    return _POINTS.sub(".", _COMMAS.sub(",", plain))


_POINTS, _COMMAS = re.compile(r"(?<=\d)[٫．](?=\d)"), re.compile(r"(?<=\d)[٬，،](?=\d{3}(?!\d))")
_HAN = {letter: value for value, letter in enumerate("零一二三四五六七八九")} | {
    "〇": 0, "两": 2, "兩": 2, "十": 10, "百": 100, "千": 1000, "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8,
    "兆": 10**12, **{letter: value for value, letter in enumerate("영일이삼사오육칠팔구")}, "십": 10, "백": 100,
    "천": 1000, "만": 10**4, "억": 10**8, "조": 10**12,
}  # fmt: skip
_TIMES = "십백천만억조"
_CHAIN = re.compile(rf"[千万萬亿億兆{_TIMES}](?:[\d{''.join(_HAN)}]*[十百千万萬亿億兆{_TIMES}])?(?![{MARKS}])")
"""Numerals behind the digits of a number: 万, 億2千万."""
_NUMERALS = {
    **dict.fromkeys(("zh", "ja", "yue"), re.compile(f"[{''.join(letter for letter in _HAN if letter < '가')}]+")),
    "ko": re.compile(f"[영일이삼사오육칠팔구{_TIMES}]+[{_TIMES}]"),  # one syllable may be any word
}


@functools.cache
def _multiplier(language: str) -> re.Pattern[str]:
    """Finds, at the end of a number, a word that multiplies it, in whatever form; a letter (K, M) close to it alone."""
    words = sorted(multipliers(language), key=len, reverse=True)
    stems = "|".join(re.escape(word) for word in words if len(word) > 1 or not word.isascii())
    letters = "".join(word for word in words if len(word) == 1 and word.isascii())
    return re.compile(rf"\s?({stems or '(?!)'})|([{letters or '0'}])(?!\w)")


_CALENDARS: dict[str, tuple[int, ...]] = {
    "th": (543,),
    "lo": (543,),
    "km": (543,),
    "fa": (-621, -622),
    "ne": (56, 57),
    "am": (-7, -8),
}
"""The years by which a language's own calendar is ahead of the common one: Buddhist, solar Hijri, Bikram Sambat,
Ethiopian."""
_ERAS = {"民國": 1911, "民国": 1911, "令和": 2018, "平成": 1988, "昭和": 1925, "大正": 1911, "明治": 1867}
"""The years before the first one of an era."""


def _years(before: str, text: str, language: str) -> set[str]:
    """The common years that a number may be, by the calendar of a language, or the era that stands before it."""
    era = next((years for name, years in _ERAS.items() if before.rstrip().endswith(name)), None)
    if era is not None and text.isdecimal():
        return {str(int(text) + era)}
    years = (int(text) - ahead for ahead in _CALENDARS.get(language_of(language), ()) if re.fullmatch(r"\d{4}", text))
    return {str(year) for year in years if 1850 <= year <= 2150}


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
