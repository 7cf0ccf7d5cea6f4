"""The language of `dragoman learn`: English, or Chinese where zh.yaml has the sentence."""

import functools
import inspect
import re
import textwrap
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
        text = "the book is written in {languages}, not in {language}"
        languages = translated(" and ").join(LANGUAGES)
        raise Error.UNKNOWN_NAME(message(text, languages=languages, language=repr(language)))
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


def translated_sentence(text: str) -> str:
    """A sentence that is filled in already, in the current language: by the template of zh.yaml that fits it and has
    most of its letters."""
    if _language == "en" or text in chinese():
        return translated(text)
    for pattern, template in _templates():
        if values := pattern.fullmatch(text):
            return template.format(**values.groupdict())
    return text


@functools.cache
def _templates() -> list[tuple[re.Pattern[str], str]]:
    """Patterns of the English templates, and the Chinese ones; those with most letters of their own come first."""
    split = [(re.split(r"\{(\w+)\}", english), template) for english, template in chinese().items()]
    fields = [
        (parts, template) for parts, template in split if len(parts) > 1 and len(set(parts[1::2])) == len(parts) // 2
    ]
    fields.sort(key=lambda pair: -len("".join(pair[0][::2])))
    return [
        (
            re.compile(
                "".join(f"(?P<{one}>.+?)" if number % 2 else re.escape(one) for number, one in enumerate(parts)),
                re.DOTALL,
            ),
            template,
        )
        for parts, template in fields
    ]


def translated_task(text: str, width: int = 100) -> str:
    """A docstring in the current language. Its paragraphs are texts of zh.yaml, each in one line; code is no text."""
    if _language == "en":
        return text
    paragraphs = text.split("\n\n")
    return "\n\n".join(
        one if one.startswith("    ") else _wrapped(translated(" ".join(one.split())), width) for one in paragraphs
    )


def translated_code(source: str) -> str:
    """A piece of Python with its docstrings and comments in the current language."""
    if _language == "en":
        return source

    def docstring(match: re.Match[str]) -> str:
        text = textwrap.indent(translated_task(inspect.cleandoc(match[2])), match[1]).lstrip()
        end = f"\n{match[1]}" if "\n" in text else ""
        return f'{match[1]}"""{text}{end}"""'

    source = re.sub(r'^( *)"""(.+?)"""', docstring, source, flags=re.DOTALL | re.MULTILINE)
    return re.sub(
        r"(?<=# )( *)(\S.*)$", lambda comment: comment[1] + translated(comment[2]), source, flags=re.MULTILINE
    )


def _wrapped(text: str, width: int) -> str:
    """Chinese in lines: it may be broken between any two characters, but not within Latin words or formulas."""
    lines = [""]
    for part in re.findall(r"[!-~]+|.", text):
        if display_width(lines[-1] + part) > width and part not in NOT_AT_THE_START:
            lines.append("")
        lines[-1] += part if lines[-1] else part.lstrip()
    return "\n".join(line.rstrip() for line in lines)
