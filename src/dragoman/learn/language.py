"""The language of `dragoman learn`: English, or Chinese where zh.yaml has the sentence."""

import functools
from pathlib import Path

from dragoman.errors import Error
from dragoman.runs.atomic_io import read_yaml

LANGUAGES = ("en", "zh")

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
