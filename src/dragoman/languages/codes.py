"""Facts of writing that follow from a language code; `languages.toml` has them all."""

import functools
import re
import tomllib
from pathlib import Path
from typing import Any

from babel.core import Locale, get_global

TELLING = 20
"""Characters from which on the language of a text can be told."""


def language_of(code: str) -> str:
    """The language of a code, without region or script.

    >>> language_of("zh_CN"), language_of("zh-Hant"), language_of("DE")
    ('zh', 'zh', 'de')
    """
    return re.split("[-_]", code.lower())[0]


def tag_of(code: str, like: str = "") -> str:
    """The tag of a language as files have it (BCP 47); with its most usual region where the tag `like` has a region.

    >>> tag_of("pt_BR"), tag_of("eng_Latn"), tag_of("en", "de-DE"), tag_of("zh_Hant", "de-DE"), tag_of("sr@latin", "de")
    ('pt-BR', 'en', 'en-US', 'zh-TW', 'sr-Latn')
    """
    language, script, region = _subtags(code)
    if not region and re.search("[-_]([A-Za-z]{2}|[0-9]{3})(?![A-Za-z0-9])", like):
        region = _usual(language, script)[2]
    if script == _usual(language, region)[1]:
        script = ""
    return "-".join(filter(None, (language, script, region)))


def script_of(code: str) -> str:
    """The script of a language by its code of four letters; "" for a language that is not known.

    >>> script_of("de"), script_of("zh_TW"), script_of("sr_Latn")
    ('Latn', 'Hant', 'Latn')
    """
    language, script, region = _subtags(code)
    return script or _usual(language, region)[1]


def direction_of(code: str) -> str:
    """The direction in which a language is written, as HTML names it.

    >>> direction_of("de"), direction_of("ar"), direction_of("az_Arab")
    ('ltr', 'rtl', 'rtl')
    """
    return "rtl" if script_of(code) in _RIGHT_TO_LEFT else "ltr"


_RIGHT_TO_LEFT = frozenset({"Arab", "Hebr", "Thaa", "Syrc", "Nkoo", "Adlm", "Rohg"})


def _subtags(code: str) -> tuple[str, str, str]:
    """(language, script, region) of a code; "" for what it does not name."""
    base, _, variant = code.partition("@")
    first, *rest = re.split("[-_]", base)
    script = next((part.title() for part in rest if len(part) == 4), "Latn" if variant.lower() == "latin" else "")
    region = next((part.upper() for part in rest if re.fullmatch("[A-Za-z]{2}|[0-9]{3}", part)), "")
    return get_global("language_aliases").get(first.lower(), first.lower()), script, region


def _usual(language: str, subtag: str) -> list[str]:
    """Language, script and region that a language most probably has, in one script or region if that is named."""
    likely = get_global("likely_subtags")
    full = likely.get(f"{language}_{subtag}" if subtag else language) or likely.get(language) or f"{language}__"
    return str(full).split("_")


def fits(code: str, wanted: str) -> int:
    """The degree to which a file in language `code` is in the language that is wanted: 2 the same region or script,
    1 one of the two names none, 0 another one.

    >>> fits("pt-BR", "pt_BR"), fits("pt", "pt_BR"), fits("pt_PT", "pt_BR"), fits("sr@latin", "sr"), fits("eng", "en")
    (2, 1, 0, 0, 0)
    """
    one, other = (text.lower().replace("-", "_") for text in (code, wanted))
    if one == other:
        return 2
    bare = "@" not in one + other and ("_" not in one or "_" not in other)
    return int(bare and language_of(one) == language_of(other))


@functools.cache
def facts(kind: str) -> dict[str, Any]:
    """The facts of a kind by language, of those languages for which the table has one.

    >>> facts("script")["el"], facts("months")["de"].split()[2]
    ('Greek', 'mär')
    """
    return {code: entry[kind] for code, entry in _table().items() if kind in entry}


@functools.cache
def _table() -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("languages.toml").read_text(encoding="utf-8"))


def is_chinese(code: str) -> bool:
    return language_of(code) in {"zh", "cmn", "yue", "wuu", "lzh"}


def written_without_spaces(code: str) -> bool:
    """True if words, and so sentences too, follow each other without a space: Chinese, Japanese, Thai, Lao, Khmer,
    Burmese.

    >>> written_without_spaces("zh_CN"), written_without_spaces("ko")
    (True, False)
    """
    return language_of(code) in facts("spaces")


def articles(code: str) -> list[tuple[str, ...]]:
    """Forms of articles, one of which stands before a noun: which one depends on the noun.

    >>> articles("en")
    [('a', 'an')]
    """
    return [tuple(forms.split()) for forms in facts("articles").get(language_of(code), [])]


def name_of(code: str, reader: str = "en") -> str:
    """The name of a language in the language of its reader, or its code where it has none.

    >>> name_of("de"), name_of("pt_BR"), name_of("oc"), name_of("xyz"), name_of("de", "fr")
    ('German', 'Portuguese', 'Occitan', 'xyz', 'allemand')
    """
    language = language_of(code)
    name = facts("name").get(language) if reader == "en" else None
    return str(name or Locale(reader).languages.get(language, language))
