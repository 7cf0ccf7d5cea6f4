"""Language codes in all ways that people write them, and facts of writing that follow from a code.

`zh_CN`, `zho_Hans`, `cmn`, `chi`, `zh-Hans-CN`, `zh_CN.UTF-8`, `b+zh+Hans` and `Chinese` are one language. Aliases,
scripts and regions are those of CLDR, by Babel; `languages.toml` has what CLDR has not, and all facts.
"""

import functools
import re
import tomllib
from collections import ChainMap, Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from babel.core import Locale, get_global

from dragoman.languages.names import SCRIPTS, named

MIN_CHARS_FOR_LANGUAGE = 20
"""Characters from which on the language of a text can be told."""


class Code(NamedTuple):
    """The parts of a language code in CLDR's spelling, "" for what it does not name."""

    language: str
    script: str = ""
    region: str = ""
    variant: str = ""
    rest: str = ""
    """The letters that are no part of a language code."""


@functools.lru_cache(4096)
def parsed(code: str) -> Code:
    """The parts of a code, or of a language's name.

    >>> parsed("zho_Hans")[:3], parsed("pt-rBR")[:3], parsed("sr_RS.UTF-8@latin")[:3], parsed("German").language
    (('zh', 'Hans', ''), ('pt', '', 'BR'), ('sr', 'Latn', 'RS'), 'de')
    """
    code = re.sub(r"\.[\w-]+|@euro\b", "", code.removeprefix("b+"))
    parts = re.findall(r"[^\W_]+", code)
    if not parts:
        return Code("")
    first, whole = parts[0].lower(), "_".join(parts).lower()
    if len(first) > 3 and (name := named(code)):
        return parsed(name)
    others = _aliases()
    alias = others.get(whole) or others.get(first) or str(get_global("language_aliases").get(first, first))
    language, *own = alias.split("_")
    rest = [] if whole in others else parts[1:]
    tag = _with_subtags(language, rest)
    for subtag in own:  # what the alias says is so, where the code itself does not say otherwise
        tag = tag._replace(
            **({"script": tag.script or subtag} if len(subtag) == 4 else {"region": tag.region or subtag})
        )
    return tag


def _with_subtags(language: str, parts: list[str]) -> Code:
    """The parts of a code behind its language; an extension, and what is private, end it."""
    script = region = variant = unknown = ""
    territories, aliases = Locale("en").territories, get_global("territory_aliases")
    for place, part in enumerate(parts):
        upper = re.sub("^r(?=[A-Z]{2}$)", "", part).upper()
        if len(part) == 1:
            break
        if part.lower() in SCRIPTS or part.title() in Locale("en").scripts:
            script = SCRIPTS.get(part.lower(), part.title())
        elif upper in territories or upper in aliases:
            region = upper if upper in territories else aliases[upper][0]
        elif (
            place == 0
            and language in _WITH_EXTENDED
            and re.fullmatch("[A-Za-z]{3}", part)
            and parsed(part).language in _languages()
        ):
            return _with_subtags(parsed(part).language, parts[1:])  # zh-yue
        elif re.fullmatch("[A-Za-z]{5,8}|[0-9][A-Za-z0-9]{3}", part):
            variant = part.lower()
        elif upper != "XX":  # mBART's region of languages without one
            unknown = part
    return Code(language, script, region, variant, unknown)


_WITH_EXTENDED = frozenset({"ar", "kok", "lv", "ms", "sgn", "sw", "uz", "zh"})
"""Languages whose codes another language's code may follow (extended language subtags of BCP 47): `zh-yue`."""


@functools.cache
def _languages() -> frozenset[str]:
    """The codes of all languages that have a name."""
    return frozenset({*Locale("en").languages, *_merged(), *_merged().values(), "tw"} - {"und", "mul", "zxx"})


def is_known(code: str) -> bool:
    """True if a code is one of a language with a name, and nothing else is in it.

    >>> [is_known(code) for code in ("zho_Hans", "zh-yue", "fuv_Latn", "pt_BR", "src", "tgt", "txt", "de-en")]
    [True, True, True, True, False, False, False, False]
    """
    tag = parsed(code)
    if tag.rest:
        return False
    return tag.language in _languages() or bool(tag.script and len(tag.language) == 3)


def language_of(code: str) -> str:
    """The language of a code, without region or script: its ISO 639-1 code, or that of 639-3.

    >>> language_of("zh_CN"), language_of("zho_Hant"), language_of("DE"), language_of("nb"), language_of("iw")
    ('zh', 'zh', 'de', 'no', 'he')
    """
    language = parsed(code).language
    return _merged().get(language, language)


def tag_of(code: str, like: str = "") -> str:
    """The tag of a language as files have it (BCP 47); with a region where the tag `like` has one: its own if it is of
    the same language, or else the most usual one.

    >>> tag_of("pt_BR"), tag_of("eng_Latn"), tag_of("en", "de-DE"), tag_of("zh_Hant", "de-DE"), tag_of("sr@latin", "de")
    ('pt-BR', 'en', 'en-US', 'zh-TW', 'sr-Latn')
    >>> tag_of("ar", "ar-SA")
    'ar-SA'
    """
    language, script, region, variant, _ = parsed(code)
    if not region and re.search("[-_]([A-Za-z]{2}|[0-9]{3})(?![A-Za-z0-9])", like):
        region = parsed(like).region if fits(like, code) else _likely(language, script)[2]
    if script == _likely(language, region)[1]:
        script = ""
    return "-".join(filter(None, (language, script, region, variant)))


def short_tag(code: str) -> str:
    """The tag of a language without the script and region that are its usual ones.

    >>> [short_tag(code) for code in ("en-US", "zh_CN", "zh_TW", "pt_BR", "pt_PT", "en-GB")]
    ['en', 'zh', 'zh-TW', 'pt', 'pt-PT', 'en-GB']
    """
    language, script, region, variant, _ = parsed(code)
    is_usual = [language, script_of(code), region or _likely(language, script)[2]] == _likely(language, "")
    return language if is_usual and not variant else tag_of(code)


def locale_of(code: str) -> str:
    """The name of a language's locale as gettext has it: scripts are regions or modifiers there.

    >>> locale_of("deu_Latn"), locale_of("zh-Hans"), locale_of("zho_Hant"), locale_of("pt-BR"), locale_of("sr-Latn")
    ('de', 'zh_CN', 'zh_TW', 'pt_BR', 'sr@latin')
    """
    language, script, region, variant, _ = parsed(code)
    if language == "zh" and script and not region:
        region = _likely(language, script)[2]
    if script == _likely(language, region)[1]:
        script = ""
    modifier = variant or next((word for word, name in SCRIPTS.items() if name == script), "")
    return language + (f"_{region}" if region else "") + (f"@{modifier}" if modifier else "")


def script_of(code: str) -> str:
    """The script of a language by its code of four letters; "" for a language that is not known.

    >>> script_of("de"), script_of("zh_TW"), script_of("sr_Latn")
    ('Latn', 'Hant', 'Latn')
    """
    language, script, region, *_ = parsed(code)
    return script or _likely(language, region)[1]


def direction_of(code: str) -> str:
    """The direction in which a language is written, as HTML names it.

    >>> direction_of("de"), direction_of("ar"), direction_of("az_Arab")
    ('ltr', 'rtl', 'rtl')
    """
    return "rtl" if script_of(code) in _RIGHT_TO_LEFT else "ltr"


_RIGHT_TO_LEFT = frozenset({
    "Adlm", "Arab", "Aran", "Armi", "Avst", "Chrs", "Cprt", "Elym", "Gara", "Hatr", "Hebr", "Hung", "Khar", "Lydi",
    "Mand", "Mani", "Mend", "Merc", "Mero", "Narb", "Nbat", "Nkoo", "Orkh", "Ougr", "Palm", "Phli", "Phlp", "Phnx",
    "Prti", "Rohg", "Samr", "Sarb", "Sogd", "Sogo", "Syrc", "Thaa", "Todr", "Yezi",
})  # fmt: skip
"""The scripts whose letters Unicode has as written from the right (Bidi_Class R and AL)."""


def _likely(language: str, subtag: str) -> list[str]:
    """The most probable language, script and region for a language code; a script or region that the code names
    stays."""
    likely = get_global("likely_subtags")
    language = _LIKELY.get(language, language)
    full = likely.get(f"{language}_{subtag}" if subtag else language) or likely.get(language) or f"{language}__"
    return str(full).split("_")


_LIKELY = {"tl": "fil", "tw": "ak"}
"""Languages that CLDR has under another code."""


@functools.lru_cache(4096)
def nearness(code: str, target: str) -> int:
    """The degree to which text in language `code` serves where `target` is wanted: 3 of the same region, 2 of the
    same standard, or a region is not named, 1 another standard of the language, 0 another language or script.

    A script that is wanted is had, as is one that `code` names; `zh` alone is simplified. Regions of one standard
    are those that CLDR lets inherit from one locale below the language: `es_419`, `pt_PT`, `en_001`, `zh_Hant_HK`.

    >>> [nearness(*pair.split()) for pair in ("pt-AO pt-PT", "pt-PT pt-BR", "zh-TW zh-HK", "zh-Hans zh-TW", "zh zh-TW")]
    [2, 1, 1, 0, 0]
    """
    there, want = parsed(code), parsed(target)
    if language_of(code) != language_of(target):
        return 0
    if not _in_one_script(code, target):
        return int(not ((want.script or want.region) and (there.script or there.region or is_chinese(code))))
    if there.variant != want.variant:
        return 1
    if there.region == want.region:
        return 3
    return 2 if not (there.region and want.region) or _standard(code) == _standard(target) else 1


def _in_one_script(code: str, other: str) -> bool:
    """True for codes of the same language in the same script. `Kore` and `Jpan` are several scripts that are written
    together."""
    scripts = {_TOGETHER.get(script, script) for script in (script_of(code), script_of(other))}
    return len(scripts) == 1 or ("Hani" in scripts and is_chinese(code))


_TOGETHER = {"Hang": "Kore", "Hira": "Jpan", "Kana": "Jpan", "Hrkt": "Jpan"}


def fits(code: str, target: str) -> int:
    """The degree to which a file in language `code` is in the language `target`: 2 the same region or script,
    1 one of the two names none, or both are of one standard, 0 another one.

    >>> fits("pt-BR", "pt_BR"), fits("pt", "pt_BR"), fits("pt_PT", "pt_BR"), fits("sr@latin", "sr"), fits("eng", "en")
    (2, 1, 0, 0, 2)
    """
    return max(0, nearness(code, target) - 1)


def _standard(code: str) -> str:
    """The locale of CLDR that the regions of one standard inherit from: `es_419` for `es_MX`, `es` for `es_ES`."""
    language, _, region, *_ = parsed(code)
    parents: Mapping[str, str] = get_global("parent_exceptions")
    script = "" if script_of(code) == _likely(language, "")[1] else script_of(code)
    locale = "_".join(filter(None, (language, script, region)))
    while (above := parents.get(locale, "")).count("_") > bool(script):
        locale = above
    return locale if locale in parents.values() else "_".join(filter(None, (language, script)))


def same_languages(codes: Sequence[str] | None, others: Sequence[str] | None) -> bool:
    """True if two pairs are of the same languages, whatever their codes are called.

    >>> same_languages(("deu_Latn", "zh"), ("de", "zho_Hans")), same_languages(("de", "pt_BR"), ("de", "pt_PT"))
    (True, False)
    """
    if codes is None or others is None:
        return codes == others
    return all(one == other or fits(one, other) for one, other in zip(codes, others, strict=True))


def closest(code: str, known: Iterable[str]) -> str | None:
    """The known code that stands for a language; None if there is none. The nearest code is taken (`nearness`), and the
    usual region of several.

    >>> closest("EN-us", ["de", "en"]), closest("zh-TW", ["zho_Hans", "zho_Hant"]), closest("zt", ["zh"])
    ('en', 'zho_Hant', None)
    """

    def order(one: str) -> tuple[int | bool, ...]:
        there = parsed(one)
        usual = _likely(there.language, there.script)[2]
        same_script, same_name = _in_one_script(one, code), there.language == parsed(code).language  # nb, no
        is_same = one.lower() == code.lower()
        return is_same, nearness(one, code), same_script, not there.region, there.region == usual, same_name

    return max((one for one in known if one.lower() == code.lower() or nearness(one, code)), key=order, default=None)


@functools.cache
def facts(kind: str) -> dict[str, Any]:
    """The facts of a kind, by language; only languages with such a fact in the table.

    >>> facts("script")["el"], facts("negation")["de"].split()[0]
    ('Greek', 'nicht')
    """
    return {code: entry[kind] for code, entry in _table().items() if kind in entry}


@functools.cache
def _table() -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("languages.toml").read_text(encoding="utf-8"))


def _aliases() -> dict[str, str]:
    """Codes that CLDR does not have, or uses for another language: `zt`."""
    return _table()["aliases"]


def _merged() -> dict[str, str]:
    """Languages that count as another language here: `nb` as `no`."""
    return _table()["merged"]


def is_chinese(code: str) -> bool:
    """True for the languages of China that are written in Chinese characters.

    >>> is_chinese("zho_Hans"), is_chinese("yue"), is_chinese("nan_Hant"), is_chinese("ja"), is_chinese("zh_Latn")
    (True, True, True, False, False)
    """
    return script_of(code) in {"Hans", "Hant", "Hani", "Hanb"}


def written_without_spaces(code: str) -> bool:
    """True if words, and so sentences too, follow each other without a space: Chinese, Japanese, Thai, Lao, Khmer,
    Burmese, Tibetan and others that are written in their scripts.

    >>> [written_without_spaces(code) for code in ("zh_CN", "tha_Thai", "shn", "ko", "zh_Latn")]
    [True, True, True, False, False]
    """
    return is_chinese(code) or script_of(code) in _UNSPACED


_UNSPACED = frozenset({
    "Jpan", "Hira", "Kana", "Hrkt", "Thai", "Laoo", "Khmr", "Mymr", "Tibt", "Tale", "Talu", "Lana", "Tavt", "Ahom",
    "Java", "Bali", "Yiii",
})  # fmt: skip
"""Scripts without spaces between words (Unicode Standard Annex 14, classes SA and ID), but for Chinese."""


def articles(code: str) -> list[tuple[str, ...]]:
    """Groups of forms of an article; the noun decides which form of a group stands before it.

    >>> articles("en")
    [('a', 'an')]
    """
    return [tuple(forms.split()) for forms in facts("articles").get(language_of(code), [])]


def name_of(code: str, reader: str = "en") -> str:
    """The name of a language in the language of its reader, or its code where it has none; with what is private in it.

    >>> name_of("de"), name_of("pt_BR"), name_of("oc"), name_of("xyz"), name_of("de", "fr"), name_of("de-x-law")
    ('German', 'Portuguese', 'Occitan', 'xyz', 'allemand', 'German (law)')
    """
    return _name(language_of(code), [], code, reader)


def names_of(codes: Iterable[str], reader: str = "en") -> dict[str, str]:
    """The names of languages that stand beside each other, by their codes, each once.

    A script or a region is in a name where it is not the usual one of the language, or where another code of the
    language has another one.

    >>> names_of(["zh", "pt_BR"]), names_of(["zh", "zh_TW"])
    ({'zh': 'Chinese', 'pt_BR': 'Portuguese'}, {'zh': 'Simplified Chinese', 'zh_TW': 'Traditional Chinese'})
    >>> names_of(["pt_PT", "sr", "sr-Latn"])
    {'pt_PT': 'European Portuguese', 'sr': 'Serbian (Cyrillic)', 'sr-Latn': 'Serbian (Latin)'}
    """
    return dict(_names(tuple(codes), reader))


@functools.lru_cache(256)
def _names(codes: tuple[str, ...], reader: str) -> dict[str, str]:
    known = {code: parsed(code)._replace(script=script_of(code)) for code in codes}
    scripts, regions = defaultdict(set), defaultdict(set)
    for one in known.values():
        scripts[one.language].add(one.script)
        regions[one.language, one.script].add(one.region)
    names = {}
    for code, (language, script, region, variant, _) in known.items():
        has_script = script != _likely(language, "")[1] or len(scripts[language]) > 1
        has_region = region != _likely(language, script)[2] or len(regions[language, script]) > 1
        parts = [script if has_script else "", region if has_region else "", variant]
        names[code] = _name(language, [part for part in parts if part], code, reader)
    count = Counter(names.values())
    return {code: name if count[name] == 1 else f"{name} ({code})" for code, name in names.items()}


def _name(language: str, parts: Sequence[str], code: str, reader: str) -> str:
    """The name of a language by CLDR, with script, region and variant in it, and what is private in its code."""
    locale = Locale(reader)
    own = next((part for part in parts if f"{language}_{part}" in locale.languages), "")
    name = locale.languages.get(f"{language}_{own}" if own else language)
    words = ChainMap(locale.scripts, locale.territories, locale.variants)
    details = [words.get(part) or words.get(part.upper(), part) for part in parts if part != own]
    details += filter(None, [code.lower().partition("-x-")[2]])
    name = name or Locale("en").languages.get(language, language)
    return f"{name} ({', '.join(details)})" if details else str(name)
