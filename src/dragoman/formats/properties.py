"""Java properties: the values. What a file of ASCII cannot hold is written as `\\uXXXX`, as there."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from dragoman.formats.base import Code, Item, Options, Unit, has_letters, line_of
from dragoman.formats.encoding import as_java_escape
from dragoman.formats.messages import items_of, label, whole_characters

_ENTRY = re.compile(
    r"^[ \t\f]*(?![#!])(?P<key>(?:[^\s=:\\]|\\.)+)[ \t\f]*[=: \t][ \t\f]*(?P<value>(?:[^\\\r\n]|\\\r?\n|\\.)*)",
    re.MULTILINE,
)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_ESCAPED = str.maketrans({char: f"\\{letter}" for letter, char in {**_SIMPLE, "\\": "\\"}.items()})
_ARGUMENT = re.compile(r"\{\d{1,3}[,}]")
_QUOTED = re.compile(r"'[{}][^'\n]{0,200}'")
"""Braces of a MessageFormat that stand for themselves."""


def units(text: str, options: Options) -> Iterator[Unit]:
    """Each value that has letters."""
    ascii_only = text.isascii()
    for match in _ENTRY.finditer(text):
        value = _read(match["value"]).rstrip()
        if not has_letters(value):
            continue
        where = f"line {line_of(text, match.start())}, {match['key']}"
        start = match.start("value")
        end = start + len(match["value"].rstrip())
        items, quoted = _items(value)
        bare, written = label(value)
        if bare != value and items == (value,):
            render = partial(_label_written, ascii_only, written)
            yield Unit((bare,), start, end, render, where)
        else:
            render = partial(_written, ascii_only, quoted)
            yield Unit(items, start, end, render, where)


def _label_written(ascii_only: bool, written: Callable[[Sequence[Item]], str], items: Sequence[Item]) -> str:
    return _written(ascii_only, False, (written(items),))


def _items(value: str) -> tuple[tuple[Item, ...], bool]:
    """The items of a value, and whether it is a MessageFormat, in which an apostrophe is written twice. A value with
    arguments is a MessageFormat, unless it has an apostrophe that is not doubled.
    """
    quoted = _QUOTED.findall(value)
    plain_text = _QUOTED.sub("", value)
    is_message = "''" in plain_text or bool(quoted) or (bool(_ARGUMENT.search(value)) and "'" not in plain_text)
    if not is_message:
        return items_of(value), False
    items: list[Item] = []
    done = 0
    for match in [*_QUOTED.finditer(value), None]:
        stop = match.start() if match else len(value)
        if done < stop:
            items.append(value[done:stop].replace("''", "'"))
        if match:
            items.append(Code(match.group(), "protected"))
            done = match.end()
    return tuple(items), True


def _read(value: str) -> str:
    def char(match: re.Match[str]) -> str:
        code, simple = match.groups()
        return chr(int(code, 16)) if code else _SIMPLE.get(simple, simple)

    # Lines are joined first: one may end within `\u00e4`.
    joined = re.sub(r"\\(?:\r?\n[ \t\f]*|(.))", lambda match: match[0] if match[1] else "", value)
    return whole_characters(re.sub(r"\\(?:u([0-9A-Fa-f]{4})|(.))", char, joined))


def _written(ascii_only: bool, quoted: bool, items: Sequence[Item]) -> str:
    text = "".join(
        item.raw if isinstance(item, Code) else item.replace("'", "''") if quoted else item for item in items
    ).translate(_ESCAPED)
    if text[:1] == " ":
        text = "\\" + text
    escaped = r"[^\x20-\x7e]" if ascii_only else r"[\x00-\x1f\x7f\ud800-\udfff]"
    return re.sub(escaped, lambda char: as_java_escape(char[0]), text)
