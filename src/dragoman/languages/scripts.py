"""Scripts told from text: Latin, Cyrillic, and the two that Chinese is written in."""

import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from dragoman.languages.codes import closest, facts, language_of, nearness, parsed, script_of

_SCRIPTS = {
    "Latin": "A-Za-z\xaa\xba\xc0-\u024f\u1e00-\u1eff",
    "Greek": "\u0370-\u03ff\u1f00-\u1fff",
    "Cyrillic": "\u0400-\u052f",
    "Armenian": "\u0530-\u058f",
    "Hebrew": "\u0590-\u05ff",
    "Arabic": "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufeff",
    "Devanagari": "\u0900-\u097f",
    "Bengali": "\u0980-\u09ff",
    "Tamil": "\u0b80-\u0bff",
    "Thai": "\u0e00-\u0e7f",
    "Lao": "\u0e80-\u0eff",
    "Georgian": "\u10a0-\u10ff",
    "Khmer": "\u1780-\u17ff",
    "Burmese": "\u1000-\u109f",
    "Gurmukhi": "\u0a00-\u0a7f",
    "Gujarati": "\u0a80-\u0aff",
    "Odia": "\u0b00-\u0b7f",
    "Telugu": "\u0c00-\u0c7f",
    "Kannada": "\u0c80-\u0cff",
    "Malayalam": "\u0d00-\u0d7f",
    "Sinhala": "\u0d80-\u0dff",
    "Tibetan": "\u0f00-\u0fff",
    "Ethiopic": "\u1200-\u139f",
    "Hangul": "\u1100-\u11ff\uac00-\ud7af",
    "Han": "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff",  # and the kana that stand among it
}
_LETTERS = {script: re.compile(f"[{letters}]") for script, letters in _SCRIPTS.items()}


LETTERS: dict[str, str] = tomllib.loads(Path(__file__).with_name("letters.toml").read_text(encoding="utf-8"))
"""Letters beyond ASCII by language, the most frequent first."""


def script_and_letters(text: str) -> tuple[str, int]:
    """(the script of most letters, the number of its letters); ("", 0) without letters of a known script.

    >>> script_and_letters("Привет, Tom"), script_and_letters("42!")
    (('Cyrillic', 6), ('', 0))
    """
    if text.isascii():
        count = sum(map(str.isalpha, text))
        return ("Latin", count) if count else ("", 0)
    latin = len(_LETTERS["Latin"].findall(text))
    if 2 * latin > len(text):
        return "Latin", latin
    counts = Counter({script: len(letters.findall(text)) for script, letters in _LETTERS.items()})
    script, count = counts.most_common(1)[0]
    return (script, count) if count else ("", 0)


def letters_in(text: str, script: str) -> int:
    """The number of letters of a script.

    >>> letters_in("Привет, Tom", "Latin")
    3
    """
    return len(_LETTERS[script].findall(text))


def script_of_language(code: str) -> str | None:
    """The script that a code names, or that its language is written in; None where that may be several ones.

    >>> [script_of_language(code) for code in ("ru", "uzb_Cyrl", "sr", "jpn_Jpan", "ml")]
    ['Cyrillic', 'Cyrillic', None, 'Han', 'Malayalam']
    """
    named = parsed(code).script
    if named or language_of(code) in facts("script"):
        return _NAMES.get(named) if named else str(facts("script")[language_of(code)])
    usual = _NAMES.get(script_of(code))
    return None if usual in ("Latin", "Cyrillic", "Arabic") else usual  # beside these many have another one


_NAMES = {
    "Latn": "Latin", "Cyrl": "Cyrillic", "Grek": "Greek", "Armn": "Armenian", "Hebr": "Hebrew", "Arab": "Arabic",
    "Deva": "Devanagari", "Beng": "Bengali", "Taml": "Tamil", "Thai": "Thai", "Laoo": "Lao", "Geor": "Georgian",
    "Khmr": "Khmer", "Mymr": "Burmese", "Hang": "Hangul", "Kore": "Hangul", "Guru": "Gurmukhi", "Gujr": "Gujarati",
    "Orya": "Odia", "Telu": "Telugu", "Knda": "Kannada", "Mlym": "Malayalam", "Sinh": "Sinhala", "Tibt": "Tibetan",
    "Ethi": "Ethiopic",
    **dict.fromkeys(("Hans", "Hant", "Hani", "Hanb", "Jpan", "Hira", "Kana", "Hrkt"), "Han"),
}  # fmt: skip
"""The scripts by their codes of four letters."""


def script_of_text(text: str, language: str = "") -> str:
    """The script of most letters of a text by its code of four letters, "" where it has none of a known script.

    Latin letters count for a third: names of products and codes stand among all others. Han letters are `Hans` or
    `Hant` by those that only one of the two has, `Hani` where that says nothing, `Jpan` beside kana and in Japanese.

    >>> [script_of_text(text) for text in ("请打开", "請開啟", "文件", "日本の駅", "Отвори", "Otvori", "?")]
    ['Hans', 'Hant', 'Hani', 'Jpan', 'Cyrl', 'Latn', '']
    """
    others = _LETTERS["Latin"].sub("", text)
    name, count = script_and_letters(others)
    latin = len(text) - len(others)
    if name != "Han" or latin > 3 * count:
        return "Latn" if latin > 3 * count else _CODES.get(name, "")
    if language_of(language) == "ja" or _KANA.search(text):
        return "Jpan"
    simplified, traditional = han_variants(text)
    return "Hani" if simplified == traditional else "Hans" if simplified > traditional else "Hant"


def written_in(code: str, text: str, target: str = "-") -> str:
    """The code of a text's language, with the script of the text where the code says neither script nor region and the
    language is written in several. Latin letters tell it by a word in small letters: names are in them everywhere.
    Where `target` names no script and no region, the code stays too.

    >>> [written_in(*pair) for pair in (("zh", "請開啟"), ("sr", "Otvori datoteku."), ("sr", "Acme"), ("zh-CN", "請"))]
    ['zh-Hant', 'sr-Latn', 'sr', 'zh-CN']
    """
    language, script, region, *_ = parsed(code)
    if script or region or not several(code) or not any((target == "-", *parsed(target)[1:3])):
        return code
    script = telling_script(text, code)
    return code if script in ("", script_of(code)) else f"{language}-{script}"


def telling_script(text: str, code: str) -> str:
    """The script of a text in a language that is written in several, "" where the text does not tell it: names and
    commands are in Latin letters everywhere, words in small Latin letters are not. Chinese is told by Han letters.

    >>> [telling_script(*pair) for pair in (("Acme", "sr"), ("vrata Acme", "sr"), ("Acme 設", "zh"), ("文", "zh"))]
    ['', 'Latn', 'Hant', '']
    """
    if parsed(code).language in ("zh", "yue"):
        simplified, traditional = han_variants(text)
        return "" if simplified == traditional else "Hans" if simplified > traditional else "Hant"
    script = script_of_text(text, code)
    return "" if script == "Latn" and not _SMALL.search(text) else script


def several(code: str) -> bool:
    """True for a language that is written in several scripts today.

    >>> several("sr"), several("zh-TW"), several("de")
    (True, True, False)
    """
    return parsed(code).language in _SEVERAL


_SEVERAL = frozenset({
    "az", "bs", "ha", "kk", "ku", "ky", "mn", "ms", "pa", "sd", "sr", "tg", "tk", "tt", "ug", "uz", "yue", "zh",
})  # fmt: skip
_SMALL = re.compile(r"(?<!\w)[a-z\u00df-\u024f]{3,}(?!\w)")


def best_variant(texts: Mapping[str, str], target: str, least: int = 1) -> str | None:
    """Of texts by the codes of their languages the code of the text nearest to the language `target`; None where
    none is as near as `least` (`codes.nearness`).

    >>> best_variant({"en": "screen", "pt-PT": "ecrã"}, "pt-BR"), best_variant({"pt-PT": "ecrã"}, "pt-BR", 2)
    ('pt-PT', None)
    """
    written = {written_in(code, text, target): code for code, text in texts.items()}
    best = closest(target, written)
    return written[best] if best is not None and nearness(best, target) >= least else None


SAME_STANDARD = 2
"""The nearness that a translation needs: no European Portuguese among Brazilian. A source may be of any region: what
counts is its text."""


def han_variants(text: str) -> tuple[int, int]:
    """Numbers of the letters of a text that only simplified and that only traditional Chinese has.

    The national standards tell them: GB 2312 has the simplified letters, Big5 the traditional ones, both have what is
    common to them. Of 23,893 lines of LibreOffice's help in simplified Chinese 2 are taken for traditional, 1,694 have
    no such letter; of 16,991 in traditional Chinese 16 (all in "国内"), and 1,001 (benchmarks/log/2026-11.md, "variants
    are languages").

    >>> han_variants("请打开這個文件")
    (2, 2)
    """
    if text.isascii():
        return 0, 0
    in_gb, in_big5 = (frozenset(text.encode(name, "ignore").decode(name)) for name in ("gb2312", "big5"))
    letters = _LETTERS["Han"].findall(text)
    return (
        sum(letter in in_gb and letter not in in_big5 for letter in letters),
        sum(letter in in_big5 and letter not in in_gb for letter in letters),
    )


_KANA = re.compile("[\u3040-\u30ff]")
_CODES = {name: code for code, name in reversed(_NAMES.items())}
