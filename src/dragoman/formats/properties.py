"""Java properties: the values. What a file of ASCII cannot hold is written as `\\uXXXX`, as there."""

import re
from collections.abc import Iterator, Sequence

from dragoman.formats.base import Item, Options, Unit, has_letters, line_of, plain

_ENTRY = re.compile(
    r"^[ \t\f]*(?![#!])(?P<key>(?:[^\s=:\\]|\\.)+)[ \t\f]*[=: \t][ \t\f]*(?P<value>(?:[^\\\r\n]|\\\r?\n|\\.)*)",
    re.MULTILINE,
)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_ESCAPED = str.maketrans({char: f"\\{letter}" for letter, char in {**_SIMPLE, "\\": "\\"}.items()})


def units(text: str, options: Options) -> Iterator[Unit]:
    """Each value that has letters."""
    ascii_only = text.isascii()
    for match in _ENTRY.finditer(text):
        said = _read(match["value"]).rstrip()
        if not has_letters(said):
            continue
        quoted = "''" in said  # MessageFormat: an apostrophe is written twice

        def render(items: Sequence[Item], quoted: bool = quoted) -> str:
            return _written(plain(items), ascii_only, quoted)

        where = f"line {line_of(text, match.start())}, {match['key']}"
        start = match.start("value")
        end = start + len(match["value"].rstrip())
        yield Unit((said.replace("''", "'") if quoted else said,), start, end, render, where)


def _read(value: str) -> str:
    def char(match: re.Match[str]) -> str:
        code, line, simple = match.groups()
        return chr(int(code, 16)) if code else "" if line is not None else _SIMPLE.get(simple, simple)

    return re.sub(r"\\(?:u([0-9A-Fa-f]{4})|(\r?\n[ \t\f]*)|(.))", char, value)


def _written(text: str, ascii_only: bool, quoted: bool) -> str:
    text = (text.replace("'", "''") if quoted else text).translate(_ESCAPED)
    if text[:1] == " ":
        text = "\\" + text
    if not ascii_only:
        return text
    units = text.encode("utf-16-be")
    chars = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    return "".join(chr(code) if code < 128 else f"\\u{code:04X}" for code in chars)
