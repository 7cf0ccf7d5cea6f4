"""The language of `dragoman learn`: English, or Chinese where zh.yaml has the sentence."""

import functools
import re
from pathlib import Path
from typing import Any

from dragoman.errors import Error
from dragoman.formats.paragraphs import display_width
from dragoman.runs.atomic_io import read_yaml

LANGUAGES = ("en", "zh")
NOT_AT_THE_START = "，。、；：？！）》”’,.;:?!)"
"""Punctuation that no line begins with."""

_language = "en"


def use_language(language: str) -> None:
    """Show texts in this language from now on. Raises DragomanError for one that there is not."""
    global _language
    if language not in LANGUAGES:
        raise Error.UNKNOWN_NAME(f"the book is written in {' and '.join(LANGUAGES)}, not in {language!r}")
    _language = language


def current_language() -> str:
    return _language


@functools.cache
def chinese() -> dict[str, str]:
    """English text to Chinese text. A text with values is a template: `{name}` stands for a value in both."""
    return read_yaml(Path(__file__).with_name("zh.yaml"))


def translated(text: str) -> str:
    """A text in the current language; the English one where Chinese lacks it."""
    return chinese().get(text, text) if _language == "zh" else text


def message(text: str, /, **values: Any) -> str:
    """A text in the current language, with its values."""
    return translated(text).format(**values) if values else translated(text)


def translated_task(text: str, width: int = 100) -> str:
    """A docstring in the current language. Its paragraphs are texts of zh.yaml, each in one line; code is no text."""
    if _language == "en":
        return text
    paragraphs = text.split("\n\n")
    return "\n\n".join(
        one if one.startswith("    ") else _wrapped(translated(" ".join(one.split())), width) for one in paragraphs
    )


def _wrapped(text: str, width: int) -> str:
    """Chinese in lines: it may be broken between any two characters, but not within Latin words or formulas."""
    lines = [""]
    for part in re.findall(r"[!-~]+|.", text):
        if display_width(lines[-1] + part) > width and part not in NOT_AT_THE_START:
            lines.append("")
        lines[-1] += part if lines[-1] else part.lstrip()
    return "\n".join(line.rstrip() for line in lines)
