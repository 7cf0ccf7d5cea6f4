"""Paragraphs of light markup (reStructuredText, AsciiDoc): their lines, and the writing of a translation as such."""

import re
import textwrap
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dragoman.formats.base import Code, Item

NARROWEST = 40
"""Characters that a line has at least before it is broken."""


class Line(NamedTuple):
    """A line: its place in the file without its end, and what it says without the blanks around it."""

    number: int
    """From 1."""
    start: int
    end: int
    column: int
    said: str

    def after(self, length: int) -> "Line":
        """The line behind its first characters, which are a mark."""
        rest = self.said[length:]
        blanks = len(rest) - len(rest.lstrip())
        return self._replace(start=self.start + length + blanks, column=self.column + length + blanks,
                             said=rest.lstrip())  # fmt: skip


def lines_of(text: str) -> list[Line]:
    """The lines of a file. A blank one says nothing."""
    lines = []
    for number, match in enumerate(re.finditer(r"[^\n]*(?:\n|\Z)", text), start=1):
        if match.end() > match.start():
            said = match.group().strip()
            column = len(match.group()) - len(match.group().lstrip()) if said else 0
            start = match.start() + column if said else match.start()
            lines.append(Line(number, start, start + len(said), column, said))
    return lines


def written(items: Sequence[Item], escape: Callable[[str, str], str], apart: str, marked: re.Pattern[str]) -> str:
    """The text of items.

    `escape`: text as it is written, by what is written before it. `apart`: what stands between a mark and a letter,
    where markup is known by what stands around it, and does not nest. `marked`: codes of which this is true.
    A blank in a code, at which no line may be broken, is a NUL (`wrapped`).
    """
    out, held, is_open = "", "", False
    for item in items:
        if isinstance(item, Code):
            item = item._replace(raw=re.sub(r"\s+", "\0", item.raw))
        if isinstance(item, str):
            said = escape(item, out)
            is_joined = out and marked.search(out) and not out.endswith(apart) and said[:1].isalnum()
            out += (apart if is_joined and not is_open else "") + said
        elif apart and item.kind in ("alone", "protected") and is_open and marked.search(item.raw):
            held += item.raw  # markup does not nest: it follows
        else:
            is_joined = marked.match(item.raw) and item.kind != "close" and out[-1:].isalnum()
            out += (apart if is_joined else "") + item.raw
            is_open = item.kind == "open" or (is_open and item.kind != "close")
            if item.kind == "close" and held:
                out, held = f"{out} {held}", ""
    return out


def wrapped(text: str, width: int, between: str) -> str:
    """A text in lines of a width, in one line if there is none; codes are not broken."""
    lines = textwrap.wrap(text, max(width, NARROWEST), break_long_words=False, break_on_hyphens=False)
    return (between.join(lines) if width else text).replace("\0", " ")
