"""Simplified and traditional Chinese made of each other, for what a model reads and writes, by OpenCC (Apache-2.0).

Words differ with the letters: for Taiwan OpenCC changes both (软件 is 軟體 there), for Hong Kong and for traditional
Chinese without a region the letters alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from dragoman.errors import Error, not_installed
from dragoman.inference.translation import NBest, Translation
from dragoman.languages.codes import fits, is_chinese, language_of, parsed, script_of


class Conversion(NamedTuple):
    """The languages that are asked for, and the changes that a model of other scripts needs."""

    languages: tuple[str, str]
    read: Callable[[str], str] = str
    write: Callable[[str], str] = str

    def converted(self, n_best: NBest, sentences: Sequence[str]) -> list[list[Translation]]:
        """The translations of sentences of the one script in the other; where their length changes, the places of
        their words are not known."""
        translations = n_best([self.read(text) for text in sentences])
        return [[self._written(item) for item in items] for items in translations]

    def _written(self, item: Translation) -> Translation:
        text = self.write(item.text)
        return replace(item, text=text, words=item.words if len(text) == len(item.text) else ())


def conversion(langs: tuple[str, str], own: tuple[str, str]) -> Conversion:
    """The conversion for a model of languages `own` where others are asked for. Raises DragomanError where OpenCC is
    missing, and for languages that are no two scripts of Chinese."""
    reads, writes = (langs[0], own[0]), (own[1], langs[1])
    changed = [(one, other) for one, other in (reads, writes) if not (fits(one, other) or fits(other, one))]
    if not changed or not all(language_of(code) == "zh" and is_chinese(code) for pair in changed for code in pair):
        raise Error.CONFLICT(
            f"`convert_han`: from {langs[0]} to {langs[1]} nothing is to be converted for a model from {own[0]} to "
            f"{own[1]}", "name the other Chinese: `tgt_lang` zh-TW"
        )  # fmt: skip
    read, write = (_converter(*pair) if pair in changed else str for pair in (reads, writes))
    return Conversion(langs, read, write)


def _converter(code: str, other: str) -> Callable[[str], str]:
    try:
        from opencc import OpenCC
    except ImportError as error:
        raise not_installed("`convert_han` needs OpenCC", "opencc") from error
    convert: Callable[[str], str] = OpenCC(_configuration(code, other)).convert
    return convert


def _configuration(code: str, other: str) -> str:
    """The name of OpenCC's rules from one kind of Chinese to another.

    >>> _configuration("zh", "zh-TW"), _configuration("zh-MO", "zh_CN"), _configuration("zh-Hans", "zh-Hant")
    ('s2twp', 'hk2s', 's2t')
    """
    one, another = (
        "s" if script_of(tag) == "Hans" else {"TW": "tw", "HK": "hk", "MO": "hk"}.get(parsed(tag).region, "t")
        for tag in (code, other)
    )
    return f"{one}2{another}{'p' if 'tw' in (one, another) else ''}"
