"""Facts of a language's writing from CLDR, by Babel: names of months, words that multiply numbers, units."""

import functools
import re
from collections.abc import Iterator

from babel import Locale
from babel.core import UnknownLocaleError

from dragoman.languages.codes import tag_of

FORMS = ("zero", "one", "two", "few", "many", "other")
"""All forms that a language may have for counts."""


@functools.cache
def babel_locale(code: str) -> Locale | None:
    """The locale of a language; None for one that CLDR does not know.

    >>> str(babel_locale("nb")), str(babel_locale("zh-TW")), babel_locale("xx")
    ('nb', 'zh_Hant_TW', None)
    """
    try:
        tag = tag_of(code)  # of nb as Babel has it: it knows no_NO by that name alone
        return Locale.parse({"no-NO": "nb-NO"}.get(tag, tag), sep="-") if tag else None
    except (ValueError, UnknownLocaleError):
        return None


@functools.cache
def months(code: str) -> dict[str, int]:
    """The number of each month by its names, whole ones and short ones, in lower case; those without digits.

    >>> months("de")["mär"], months("ru")["января"], months("th")["มีนาคม"]
    (3, 1, 3)
    """
    locale = babel_locale(code)
    names = [
        (str(name).lower().rstrip("."), number)
        for context in ("format", "stand-alone") if locale
        for width in ("wide", "abbreviated")
        for number, name in locale.months[context][width].items()
    ]  # fmt: skip
    return {name: number for name, number in names if name and not re.search(r"\d", name)}


@functools.cache
def multipliers(code: str) -> dict[str, int]:
    """The factor that each word behind a number stands for.

    >>> multipliers("en")["million"], multipliers("hi")["लाख"], multipliers("ko")["만"], multipliers("de")["Mio."]
    (1000000, 100000, 10000, 1000000)
    """
    locale = babel_locale(code)
    factors: dict[str, int] = {}
    if locale is None:
        return factors
    for kind in ("short", "long"):
        for patterns in locale.compact_decimal_formats[kind].values():
            for size, pattern in patterns.items():
                match = re.fullmatch(r"(0+)\s*([^\d\s]+)", pattern.pattern.replace("'", ""))
                if match:
                    factors[match[2]] = int(size) // 10 ** (len(match[1]) - 1)
    return factors


UNITS = {
    "€": "EUR", "$": "USD", "£": "GBP", "¥": "JPY CNY", "%": "concentr-percent", "°C": "temperature-celsius",
    "km": "length-kilometer", "cm": "length-centimeter", "mm": "length-millimeter", "kg": "mass-kilogram",
    "KB": "digital-kilobyte", "MB": "digital-megabyte", "GB": "digital-gigabyte", "TB": "digital-terabyte",
    "kW": "power-kilowatt", "MHz": "frequency-megahertz", "GHz": "frequency-gigahertz", "ml": "volume-milliliter",
}  # fmt: skip
"""Units that stand by numbers: their names in CLDR by their signs."""
_OTHERS = {
    "¥": "￥|円|元|块|yuan", "£": "￡|pound|pfund", "%": "٪|％|﹪|per cent", "°C": "℃", "kg": "kilo|quilo|chilo",
    "KB": "kib", "MB": "mib", "GB": "gib", "TB": "tib",
}  # fmt: skip
"""Other forms."""


@functools.cache
def unit_forms(unit: str, code: str) -> tuple[str, ...]:
    """The beginnings of what a unit is called in a language, in lower case: its sign among them.

    >>> "долл" in unit_forms("$", "ru"), "кг" in unit_forms("kg", "ru"), "ドル" in unit_forms("$", "ja")
    (True, True, True)
    """
    codes = [name for name in UNITS[unit].split() if name.isupper()]
    signs = [unit, *codes, *filter(None, _OTHERS.get(unit, "").split("|"))]
    forms = (form for name in unit_names(unit, code) for form in _beginnings(name.lower()))
    return tuple({*map(str.lower, signs), *forms})


def unit_names(unit: str, code: str) -> Iterator[str]:
    """The names and signs of a unit in a language."""
    locale = babel_locale(code)
    if locale is None:
        return
    for name in UNITS[unit].split():
        if name.isupper():
            yield locale.currency_symbols.get(name, name)
            yield locale.currencies.get(name, name)
            yield from locale._data["currency_names_plural"].get(name, {}).values()
        else:
            for width in locale._data["unit_patterns"].get(name, {}).values():
                forms = {str(pattern) for kind, pattern in dict(width).items() if kind in FORMS}
                yield from (pattern.replace("{0}", "").strip() for pattern in forms)


def _beginnings(name: str) -> Iterator[str]:
    """A sign, or the beginning of each word of a name, which may be inflected; of one without spaces its end, too."""
    if len(name) < 4:
        yield name
    for word in re.findall(r"[^\s\-.()\uac00-\ud7a3]{3,}|[\uac00-\ud7a3]{2,}", name):
        if len(name) > 3:
            yield word[: max(3, min(5, len(word) - 3))]
        if "\u3040" <= word[-1] <= "\u9fff":
            yield word[-2:]
