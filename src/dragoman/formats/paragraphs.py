"""Paragraphs of light markup (reStructuredText, AsciiDoc): their lines, and the writing of a translation as such."""

import functools
import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from dragoman.formats.base import Code, Item, Unit, has_letters, plain
from dragoman.formats.inline import Token

_BEFORE_MARK = re.compile(r"[\s\0\-:/'\"<(\[{‘“’«¡¿–—‐\\]$")
_AFTER_MARK = re.compile(r"[\s\0\-.,:;!?/'\")\]}>\\’”»…–—]")
"""The characters beside markup that is recognised by its neighbours."""
_LOOKED_AT = 200
"""Characters of the mark that a text begins with, at most."""
MIN_WIDTH = 40
"""The least characters of a line that is broken."""


Render = Callable[[Sequence[Item]], str]


class Line(NamedTuple):
    """A line: its place in the file without its end, and what it says without the blanks around it."""

    number: int
    """From 1."""
    start: int
    end: int
    column: int
    text: str

    def after(self, length: int) -> "Line":
        """The line without the mark that it begins with."""
        rest = self.text[length:]
        blanks = len(rest) - len(rest.lstrip())
        return self._replace(start=self.start + length + blanks, column=self.column + length + blanks,
                             text=rest.lstrip())  # fmt: skip


@functools.lru_cache(maxsize=1)  # two passes look at a file, one after the other
def lines_of(text: str) -> Sequence[Line]:
    """The lines of a file. The text of a blank line is empty."""
    lines = []
    for number, match in enumerate(re.finditer(r"[^\n]*(?:\n|\Z)", text), start=1):
        if match[0] == "\n":
            lines.append(Line(number, match.start(), match.start(), 0, ""))
        elif match.end() > match.start():
            stripped = match.group().strip()
            column = len(match.group()) - len(match.group().lstrip()) if stripped else 0
            start = match.start() + column if stripped else match.start()
            lines.append(Line(number, start, start + len(stripped), column, stripped))
    return lines


def display_width(text: str) -> int:
    """Columns that a text takes on a screen."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def layout(text: str, members: Sequence[Line]) -> tuple[int, str]:
    """(the width at which the lines of a paragraph are broken, 0 for a single line; the text between two lines)."""
    last = members[-1]
    newline = "\r\n" if "\r\n" in text[members[0].start : last.end] else "\n"
    width = max(line.column + len(line.text) for line in members) - last.column if len(members) > 1 else 0
    return width, newline + re.sub(r"\S", " ", text[last.start - last.column : last.start])  # a tab stays one


def blank_after(lines: Sequence[Line], at: int) -> int:
    """The number of the next blank line from `at` on; of the one after the last, where there is none."""
    return next((end for end in range(at, len(lines)) if not lines[end].text), len(lines))


def kept_lines(text: str, members: Sequence[Line], reason: str) -> Iterator[Unit]:
    """The unit of lines that are left as they are; none where they have no letters."""
    start, end = members[0].start, members[-1].end
    if has_letters(text[start:end]):
        yield Unit((text[start:end],), start, end, plain, f"line {members[0].number}", kept=reason)


def marked_tokens(
    text: str, start: int, end: int, inline: re.Pattern[str], tokens: Callable[[re.Match[str]], Iterator[Token]]
) -> Iterator[Token]:
    """The tokens of a part of a file: those of each piece of markup, and the text between two pieces."""
    done = start
    for match in inline.finditer(text, start, end):
        if match.start() > done:
            yield Token("text", done, match.start(), text[done : match.start()])
        yield from tokens(match)
        done = match.end()
    if done < end:
        yield Token("text", done, end, text[done:end])


def written(items: Sequence[Item], escape: Callable[[str, str], str], apart: str, marked: re.Pattern[str]) -> str:
    """Items as text of the file.

    `escape`: text as it is written, by what is written before it. `apart`: what stands between a mark and a letter,
    where markup is known by what stands around it, and does not nest. `marked`: codes of which this is true.
    A blank in a code, at which no line may be broken, is a NUL (`wrapped`).
    """
    out, held, is_open = "", "", False
    for item in items:
        if isinstance(item, Code):
            item = item._replace(raw=re.sub(r"\s+", "\0", item.raw))
        if isinstance(item, str):
            text = escape(item, out)
            is_marked = marked.match(out, 0, _LOOKED_AT) or marked.search(out, max(0, len(out) - 2))
            is_joined = is_marked and not out.endswith(apart) and text and not _AFTER_MARK.match(text)
            out += (apart if is_joined and not is_open else "") + text
        elif apart and item.kind in ("alone", "protected") and is_open and marked.search(item.raw):
            held += item.raw  # markup does not nest: it follows
        else:
            is_joined = (
                marked.match(item.raw) and item.kind != "close" and out and not _BEFORE_MARK.match(out, len(out) - 1)
            )
            out += (apart if is_joined else "") + item.raw
            is_open = item.kind == "open" or (is_open and item.kind != "close")
            if item.kind == "close" and held:
                out, held = f"{out} {held}", ""
    return out


def wrapped(text: str, width: int, between: str) -> str:
    """A text in lines of a width, in one line if there is none; codes are not broken."""
    lines = textwrap.wrap(text, max(width, MIN_WIDTH), break_long_words=False, break_on_hyphens=False)
    return (between.join(lines) if width else text).replace("\0", " ")
