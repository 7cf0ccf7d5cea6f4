"""Tables in light markup: those that are drawn with characters, and those of CSV in a document.

A drawn table is a picture of columns: each line is cut where a column ends, and grows there as far as a text needs it.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from dragoman.formats.base import Item, Unit, line_of, plain
from dragoman.formats.inline import Token, units_of
from dragoman.formats.paragraphs import Render, display_width
from dragoman.formats.table import places_of_cells

Tokens = Callable[[str, int, int], Iterable[Token]]
_MARKS = "-="
BLOCKS = "cells of CSV with several paragraphs or items"
_SECOND = "\0"
"""The second column that a wide character takes."""
GRID = re.compile(r"\+[-=+]{2,}\+")
SIMPLE = re.compile(r"={2,}(?: +={2,})+")


class Cell(NamedTuple):
    """A cell: its lines from `top` to `bottom`, its columns from `left` to `right`, both ends left out."""

    top: int
    bottom: int
    left: int
    right: int


class Table:
    """A table and the contents of its cells. A table without cells could not be read."""

    def __init__(self, lines: Sequence[str]) -> None:
        composed = [unicodedata.normalize("NFC", line) for line in lines]  # one character for a letter and its accent
        widest = max(map(display_width, composed))
        self.lines = ["".join(_in_columns(line)).ljust(widest) for line in composed]
        self.is_grid = GRID.fullmatch(lines[0]) is not None
        self.cells = _cells_of_grid(self.lines) if self.is_grid else _cells_of_simple(self.lines)

    def text(self, cell: Cell) -> list[str]:
        """The lines of a cell, without the blanks on their left that all of them have."""
        lines = self._inside(cell)
        indent = _indent(lines)
        return [line[indent:].replace(_SECOND, "").rstrip() for line in lines]

    def _inside(self, cell: Cell) -> list[str]:
        return [line[cell.left : cell.right] for line in self.lines[cell.top : cell.bottom]]

    def written(self, texts: dict[Cell, list[str]]) -> str | None:
        """The table with other lines in some cells, each as wide and as high as these need it; None if that is not
        possible."""
        new = {cell: _without_blank_end(texts.get(cell) or self.text(cell)) for cell in self.cells}
        indents = {cell: _indent(self._inside(cell)) for cell in self.cells}
        if not self.is_grid and any(cell.left == 0 and len(lines) > 1 for cell, lines in new.items()):
            return None  # a second line in the first column begins another row
        drawn = list(self.lines)
        for cell in self.cells:
            for at in range(cell.top, cell.bottom):
                drawn[at] = drawn[at][: cell.left] + " " * (cell.right - cell.left) + drawn[at][cell.right :]
        if (rows := self._grown(drawn, new)) is None:
            return None
        columns = self._widened(drawn, new, indents)
        for cell, lines in sorted(new.items(), key=lambda one: one[0].left, reverse=True):
            left = columns[cell.left] + indents[cell]
            for at, line in enumerate(lines, rows[cell.top]):
                content = "".join(_in_columns(line))
                drawn[at] = drawn[at][:left].ljust(left) + content + drawn[at][left + display_width(line) :]
        return "\n".join(line.replace(_SECOND, "").rstrip() for line in drawn)

    def _grown(self, drawn: list[str], new: dict[Cell, list[str]]) -> list[int] | None:
        """Put lines into an empty table where a cell needs them; the new number of each line."""
        rows = list(range(len(drawn) + 1))
        for cell, lines in new.items():
            missing = len(lines) - (rows[cell.bottom] - rows[cell.top])
            free = [at for at in range(cell.top, cell.bottom) if not re.search(r"\+|[-=]{2}", drawn[rows[at]])]
            if missing > 0 and not free:
                return None
            if missing > 0:
                at = rows[free[-1]]
                drawn[at:at] = [drawn[at]] * missing
                rows = [row + missing * (number > free[-1]) for number, row in enumerate(rows)]
        return rows

    def _widened(self, drawn: list[str], new: dict[Cell, list[str]], indents: dict[Cell, int]) -> list[int]:
        """Make the columns of an empty table as wide as the texts need it; the new place of each character."""
        places = list(range(len(drawn[0]) + 1))
        ends = {cell: self._end(cell) for cell in self.cells}
        for cell in sorted(self.cells, key=lambda cell: (cell.right - cell.left, cell.left)):
            needs = max(map(display_width, new[cell]), default=0) + indents[cell] + int(self.is_grid)
            grows = needs - (places[ends[cell]] - places[cell.left])
            if grows > 0:
                at = places[ends[cell]] - 1
                for number, line in enumerate(drawn):
                    filler = line[at] if line[at] in _MARKS else " "
                    drawn[number] = line[: at + 1] + filler * grows + line[at + 1 :]
                places = [place + grows * (number >= ends[cell]) for number, place in enumerate(places)]
        return places

    def _end(self, cell: Cell) -> int:
        """The place where a cell's last column ends: of simple tables, where its line of marks does."""
        return cell.right if self.is_grid else len(self.lines[0][: cell.right].rstrip())


def _in_columns(line: str) -> list[str]:
    """The characters of a line, one a column."""
    out: list[str] = []
    for char in line:
        if (width := display_width(char)) or not out:
            out.append(char + _SECOND * (width - 1))
        else:
            out[-1] += char
    return out


def _without_blank_end(lines: Sequence[str]) -> list[str]:
    last = max((at for at, line in enumerate(lines) if line.strip()), default=-1)
    return list(lines[: last + 1])


def _indent(lines: Sequence[str]) -> int:
    return min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)


def _cells_of_grid(lines: Sequence[str]) -> list[Cell]:
    """The cells of a grid table, as docutils finds them: from each corner to the right, down, left and up."""
    bottom, right = len(lines) - 1, len(lines[0].rstrip()) - 1
    done = [-1] * (right + 1)
    """Of each character of a line, the last line that is part of a cell."""
    columns = ["".join(column) for column in zip(*lines, strict=True)]
    corners, cells = {(0, 0)}, []
    while corners:
        top, left = min(corners)
        corners.remove((top, left))
        if top == bottom or left == right or top <= done[left]:
            continue
        cell = _cell_from(lines, columns, top, left)
        if cell is None or any(done[at] != top - 1 for at in range(left, cell.right)):
            return []
        cells.append(cell)
        done[left : cell.right] = [cell.bottom - 1] * (cell.right - left)
        corners |= {(top, cell.right), (cell.bottom, left)}
    return cells if set(done[:right]) == {bottom - 1} else []


def _cell_from(lines: Sequence[str], columns: Sequence[str], top: int, left: int) -> Cell | None:
    """The smallest cell whose upper left corner is at a place."""
    for right in _corners(lines[top], left, "-="):
        for bottom in _corners(columns[right], top, "|"):
            below, beside = lines[bottom][left : right + 1], columns[left][top : bottom + 1]
            if re.fullmatch(r"\+[-=+]*\+", below) and re.fullmatch(r"\+[|+]*\+", beside):
                return Cell(top + 1, bottom, left + 1, right)
    return None


def _corners(line: str, start: int, marks: str) -> Iterator[int]:
    """The corners to which an unbroken line goes from a corner."""
    for at in range(start + 1, len(line)):
        if line[at] == "+":
            yield at
        elif line[at] not in marks:
            return


def _cells_of_simple(lines: Sequence[str]) -> list[Cell]:
    """The cells of a simple table: a line with text in its first column begins a row, a line of marks ends one."""
    marks = [match.span() for match in re.finditer("=+", lines[0])]
    width = max(map(len, lines))
    cells: list[Cell] = []
    top = 0
    for at, line in enumerate(lines):
        spans = [match.span() for match in re.finditer(r"=+|-+", line)]
        is_border = re.fullmatch(r"=[ =]*|-[ -]*", line) is not None
        if is_border or (line[: marks[0][1]].strip() and top):
            columns = spans if is_border and line[0] == "-" else marks
            row = _row_of_simple(lines, top, at, columns, marks, width) if top else []
            if row is None:
                return []
            cells += row
            top = 0
        if is_border:
            continue
        top = top or (at if line.strip() else 0)
    return cells


def _row_of_simple(
    lines: Sequence[str], top: int, bottom: int, columns: Sequence[tuple[int, int]], marks: Sequence[tuple[int, int]],
    width: int,
) -> list[Cell] | None:  # fmt: skip
    """The cells of a row; None where a text goes over the end of its column."""
    while not lines[bottom - 1].strip():
        bottom -= 1
    starts = [start for start, _ in columns]
    row = [Cell(top, bottom, start, right) for start, right in zip(starts, [*starts[1:], width], strict=True)]
    ends = [end for _, end in marks]
    for cell, (_, end) in zip(row, columns, strict=True):
        if cell.left not in [start for start, _ in marks] or end not in ends:
            return None
        if cell.right < width and any(line[end : cell.right].strip() for line in lines[top:bottom]):
            return None
    return row


def units_of_rows(
    text: str, start: int, end: int, separator: str, tokens: Tokens, render: Render, escaped: bool = False
) -> Iterator[Unit]:  # fmt: skip
    """The cells of rows of CSV in a document, `tokens` and `render` of whose markup are given.

    `escaped`: a separator in a cell has a backslash before it, and there are no quotes.
    """
    for row in places_of_cells(text[start:end], separator, not escaped, escaped):
        for begin, stop in row:
            content = text[start + begin : start + stop].strip(" \t\n\r")
            begin = text.index(content, start + begin)
            is_quoted = not escaped and len(content) > 1 and content[0] == content[-1] == '"'
            place = (begin + is_quoted, begin + len(content) - is_quoted)
            yield from _units_of_cell(
                text, place, is_quoted, f"\\{separator}" if escaped else separator, tokens, render
            )


def _units_of_cell(
    text: str, place: tuple[int, int], is_quoted: bool, separator: str, tokens: Tokens, render: Render
) -> Iterator[Unit]:  # fmt: skip
    mark, written = ('"', '""') if is_quoted else (separator[-1], separator)
    cell = text[slice(*place)]
    if re.search(r"\n\s*(?:\n|[-*.|+]+\s)", cell):
        yield Unit((cell,), *place, plain, f"line {line_of(text, place[0])}", kept=BLOCKS)
        return
    inside = [
        token._replace(start=token.start + place[0], end=token.end + place[0], text=token.text.replace(written, mark))
        for token in tokens(cell, 0, len(cell))
    ]
    for unit in units_of(inside, f"line {line_of(text, place[0])}", source=text):
        before, behind = text[place[0] : unit.start], text[unit.end : place[1]]

        def whole(items: Sequence[Item], before: str = before, behind: str = behind) -> str:
            content = render(items)
            if mark != written:
                return before + content.replace(mark, written) + behind
            content = before + content + behind
            return (
                '"' + content.replace('"', '""') + '"'
                if re.search(rf'[{re.escape(separator)}"\n]', content)
                else content
            )

        yield Unit(unit.items, *place, whole, unit.where)
