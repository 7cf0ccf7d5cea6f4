"""Plain text: each line is a text, but for paragraphs whose lines somebody has broken at a width: those are one text.

A paragraph is broken at a width if each of its lines, but for the last, is so long that the next word did not fit, and
a line ends in the middle of a sentence. Its translation is broken at that width again.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from dragoman.formats.base import Edit, Item, Options, Unit, has_letters, plain
from dragoman.languages.punctuation import CLOSING, ENDS

MIN_WIDTH, MAX_WIDTH = 30, 130
"""Characters of a line, between which texts are broken."""
_LINE = re.compile(r"(?:[^\S\n]*+\n)++|[^\n]++\n?")
"""A line, or blank lines one below the other."""
_MARK = re.compile(r"[ \t]*(?:(?:[-*+•–—·]|\(?\d{1,3}[.)]|\(?[a-z][.)])[ \t]+)?")
_QUOTED = re.compile(r"(?:[ \t]*[>|#])*[ \t]*")
_HYPHEN = re.compile(r"(?<=\w)- (?=[^\W\d_])(?!(?:and|or|und|oder|bzw|bis|et|ou|y|e|o)\b)")
"""A word that goes on in the next line: its hyphen may be its own. `on- and offline` is two words."""
_END = re.compile(rf"[{ENDS}:;][{CLOSING}]*$")


class Line(NamedTuple):
    """A line: where its text begins and ends in the file, and what stands before it."""

    number: int
    start: int
    end: int
    before: str
    """White space, marks of quotations, and a bullet or number."""
    text: str

    @property
    def column(self) -> int:
        return len(self.before)

    @property
    def is_item(self) -> bool:
        """True if a bullet or a number stands before the text."""
        return _MARK.fullmatch(self.before) is not None and bool(self.before.strip())


def units(text: str, options: Options) -> Iterator[Unit]:
    """Each line that has letters, or each paragraph of lines that are broken at a width."""
    lines = list(_lines(text))
    newline = "\r\n" if "\r\n" in text else "\n"
    for paragraph in _paragraphs(lines):
        width = _width(paragraph)
        groups = [paragraph] if width else [[line] for line in paragraph]
        for group in groups:
            first, last = group[0], group[-1]
            content = _HYPHEN.sub("-", " ".join(line.text for line in group)) if width else first.text
            if has_letters(content):
                render = partial(broken, width, first.column, newline + group[-1].before) if width else plain
                beside = partial(_beside, group, newline) if options.bilingual else None
                yield Unit((content,), first.start, last.end, render, f"line {first.number}", beside=beside)


def _lines(text: str) -> Iterator[Line]:
    number = 1
    for match in _LINE.finditer(text):
        line = match.group().rstrip()
        quoted = _QUOTED.match(line)
        assert quoted is not None  # it may be empty
        mark = _MARK.match(line, quoted.end())
        before = line[: mark.end() if mark else quoted.end()]
        yield Line(number, match.start() + len(before), match.start() + len(line), before, line[len(before) :])
        number += 1 if line else match[0].count("\n")


def _paragraphs(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Lines that may be one paragraph: no line is blank, and the second and later lines have the same indent."""
    paragraph: list[Line] = []
    for line in lines:
        follows = paragraph and line.text and not line.is_item and line.column == paragraph[-1].column
        if follows and len(paragraph) > 1:
            follows = line.before == paragraph[-1].before
        elif follows:
            follows = line.before == re.sub(r"[^\s>|#]", " ", paragraph[0].before)
        if not follows and paragraph:
            yield paragraph
            paragraph = []
        if line.text:
            paragraph.append(line)
    if paragraph:
        yield paragraph


def _width(paragraph: Sequence[Line]) -> int:
    """The width that the lines of a paragraph are broken at; 0 where they are not, or have no spaces to break at."""
    lengths = [line.column + len(line.text) for line in paragraph]
    width = max(lengths)
    if (
        len(paragraph) < 2
        or not MIN_WIDTH <= width <= MAX_WIDTH
        or not all(" " in line.text for line in paragraph[:-1])
    ):
        return 0
    pairs = list(zip(paragraph, lengths, paragraph[1:], strict=False))
    if not all(length + 1 + len(after.text.split(" ", 1)[0]) > width for _, length, after in pairs):
        return 0
    in_sentence = [after for line, _, after in pairs if not _END.search(line.text)]
    goes_on = any(after.text[0].islower() for after in in_sentence)
    return width if goes_on or len(in_sentence) > 2 else 0


def _beside(group: Sequence[Line], newline: str, unit: Unit, items: Sequence[Item]) -> list[Edit]:
    """A translation below its source: in the next line, or as a paragraph of its own below one that is broken."""
    before = re.sub(r"[^\s>|#]", " ", group[0].before)
    gap = newline + before.rstrip() if len(group) > 1 else ""
    return [Edit(unit.end, unit.end, gap + newline + before + unit.render(items))]


def broken(width: int, column: int, between: str, items: Sequence[Item]) -> str:
    """A translation in lines no wider than the lines of its source."""
    lines = textwrap.wrap(plain(items), max(width - column, 1), break_long_words=False, break_on_hyphens=False)
    return between.join(lines)
