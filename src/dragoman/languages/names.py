"""Languages by their names, in English and in the language itself, as CLDR has them."""

import functools
import re
import unicodedata

from babel.core import Locale, UnknownLocaleError

SCRIPTS = {
    "latin": "Latn", "cyrillic": "Cyrl", "arabic": "Arab", "devanagari": "Deva", "shaw": "Shaw", "hebrew": "Hebr",
    "simplified": "Hans", "traditional": "Hant", "ijekavianlatin": "Latn", "iqtelif": "Latn", "jawi": "Arab",
    "lat": "Latn", "cyr": "Cyrl",
}  # fmt: skip
"""Scripts by their names in locales (`sr@latin`) and in the names of languages."""
_OTHERS = {
    "farsi": "fa", "dari": "fa_AF", "mandarin": "zh", "castilian": "es", "castellano": "es", "valencian": "ca",
    "flemish": "nl_BE", "myanmar": "my", "bokmal": "nb", "nynorsk": "nn", "kirghiz": "ky", "uighur": "ug",
    "pushto": "ps",
    "haitian": "ht", "panjabi": "pa", "sinhalese": "si", "tagalog": "tl", "moldovan": "ro_MD", "gaelic": "gd",
    "byelorussian": "be", "slovene": "sl", "oriya": "or", "cambodian": "km", "laotian": "lo", "bangla": "bn",
    "bengali": "bn", "odia": "or", "serbo croatian": "sr_Latn", "brazilian": "pt_BR", "kurmanji": "ku", "sorani": "ckb",
    "bahasa indonesia": "id", "bahasa melayu": "ms", "us english": "en_US", "american": "en_US", "繁体中文": "zh_Hant",
}  # fmt: skip
"""Names that CLDR has not, or others for."""


def named(text: str, own: bool = False) -> str:
    """The code of the language with an English name, "" if there is none; `own`: the name may also be the language's
    own.

    >>> named("French"), named("Portuguese (Brazil)"), named("simplified_chinese"), named("Français", own=True)
    ('fr', 'pt_BR', 'zh_Hans', 'fr')
    """
    words = re.findall(r"[^\W_]+", _folded(text))
    for end in range(len(words), 0, -1):
        name = " ".join(words[:end])
        if code := english_names().get(name) or (_with_own_name(name) if own else ""):
            subtags = _subtags(" ".join(words[end:]), code)
            if subtags is not None:
                return "_".join([code, *subtags])
    return ""


def _subtags(text: str, language: str) -> list[str] | None:
    """The script or region behind the name of a language; None for what is neither."""
    if not text or english_names().get(text) == language:
        return []
    if script := SCRIPTS.get(text):
        return [script]
    regions = [code for code, name in _territories("en").items() if text in (code.lower(), _folded(name))]
    regions += [code for code, name in _territories(language).items() if text == _folded(name)]
    return ["GB"] if text == "uk" else regions[:1] or None


def _territories(language: str) -> dict[str, str]:
    try:
        return dict(Locale.parse(language).territories)
    except (ValueError, UnknownLocaleError):
        return {}


@functools.cache
def english_names() -> dict[str, str]:
    """The code of each language by its English name, without accents and in lower case."""
    return {**{_folded(name): code for code, name in Locale("en").languages.items()}, **_OTHERS}


def _with_own_name(name: str) -> str:
    """The language that calls itself so; languages with a code of two letters first, as each is read from a file."""
    codes = sorted(Locale("en").languages, key=lambda code: (len(code), code))
    return next((code for code in codes if _own_name(code) == name), "")


@functools.cache
def _own_name(code: str) -> str:
    try:
        return _folded(str(Locale.parse(code).languages.get(code, "")))
    except (ValueError, UnknownLocaleError):
        return ""


def _folded(text: str) -> str:
    """A name in lower case, without accents and other marks."""
    letters = unicodedata.normalize("NFKD", text.lower())
    return " ".join("".join(letter for letter in letters if unicodedata.category(letter)[0] != "M").split())
