"""Tables of text: CSV with commas or semicolons, tab-separated values, and Excel workbooks.

They are read as pairs of a corpus or a glossary (`entries`), or as documents of which some columns are
translated (`units`).
"""

import csv
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.errors import DragomanError, Error, not_installed
from dragoman.formats.base import Entry, Item, Options, Unit, line_of, plain
from dragoman.formats.encoding import code_page, decoded
from dragoman.formats.package import Package
from dragoman.languages.codes import closest, language_of, name_of, nearness, parsed
from dragoman.languages.identification import common_language
from dragoman.languages.scripts import written_in
from dragoman.progress import say

SUFFIXES = (".csv", ".tsv", ".tab", ".xlsx")
SEPARATORS = "\t;,"
"""Marks that part columns. A decimal comma, or one in a sentence, is more usual than a semicolon or a tab."""
SAMPLE_ROWS = 500
"""The number of rows by which the separator and the languages of the columns are recognised."""

MAX_HEADING_ROW = 10
"""Rows among which the heading stands."""

MAX_CELL_LINES = 200
"""Lines of a cell; a longer one is a quotation mark that was forgotten, and the rest of the file."""

_HEADINGS = {"source", "src", "original", "term"}, {"target", "tgt", "translation"}
csv.field_size_limit(2**26)


class Row(NamedTuple):
    """The cells of a row and the line that it begins in, from 1."""

    line: int
    cells: list[str]


def tables(data: bytes, name: str, languages: tuple[str, str]) -> Iterator[Iterator[Row]]:
    """The tables of a file, each with its rows, blank ones left out: of a workbook its sheets, else one.

    A text that is not UTF-8 is in the encoding that Windows has for the `languages`, as spreadsheets write it. Raises
    DragomanError for a file that is no text, or no workbook.
    """
    if Path(name).suffix.lower() == ".xlsx":
        yield from _sheets(data, name)
        return
    if codec := code_page(data, languages):
        say(f"{name}: not UTF-8, read as {codec.replace('cp1', 'windows-1')}")
    yield rows_of_text(decoded(data, name, codec=codec)[0], name)


def rows_of_text(text: str, name: str, separator: str = "") -> Iterator[Row]:
    """The rows of a text, whose columns are parted by the `separator`, or by the mark that suits its lines best."""
    first = text[: text.find("\n") + 1].strip()
    line = 1
    if re.fullmatch("sep=.", first):  # Excel's way to say it
        separator, quoted, text, line = first[-1], True, text[text.index("\n") + 1 :], 2
    else:
        separator, quoted = (separator, separator != "\t") if separator else _form(text, name)
    lines = io.StringIO(text, newline="")
    reader = csv.reader(
        lines,
        delimiter=separator,
        quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
        skipinitialspace=True,
    )
    before = line - 1
    try:
        for cells in reader:
            if any("\n" in cell and cell.count("\n") > MAX_CELL_LINES for cell in cells):
                raise Error.WRONG_SHAPE("a quotation mark that is not closed", file=name, line=line)
            if any(cell.strip() for cell in cells):
                yield Row(line, [cell.strip() for cell in cells])
            line = before + reader.line_num + 1
    except csv.Error as error:
        raise Error.WRONG_SHAPE(f"no table of text: {error}", file=name, line=line) from error


def _form(text: str, name: str) -> tuple[str, bool]:
    """(the mark that parts columns, whether cells may be in quotes).

    In tab-separated values a quote is a quote, but where all cells are in quotes.
    """
    separator = "\t" if Path(name).suffix.lower() in (".tsv", ".tab") else separator_of(text)
    return separator, separator != "\t" or _is_quoted(text)


def units(text: str, options: Options) -> Iterator[Unit]:
    """The cells of the columns that `options` name. Where they are named by heading, the first row stays.

    Raises DragomanError where none is named, or there is none of that name.
    """
    separator, quoted = _form(text, options.name)
    heading = [unquoted(text[start:end]).strip() for start, end in next(places_of_cells(text, separator, quoted), [])]
    if not options.columns:
        raise Error.MISSING_OPTION(
            f"a table with the columns {', '.join(heading)}",
            "name those to translate with `columns`",
            file=options.name,
        )
    lowered = [cell.lower() for cell in heading]
    chosen = [_place(column, lowered, options.name) for column in options.columns]
    has_heading = not all(column.isdigit() for column in options.columns)

    def render(quotes: bool, items: Sequence[Item]) -> str:
        translation = plain(items)
        if quotes or (quoted and any(mark in translation for mark in (separator, '"', "\n", "\r"))):
            return '"' + translation.replace('"', '""') + '"'
        return translation

    for row in itertools.islice(places_of_cells(text, separator, quoted), int(has_heading), None):
        for place in sorted(set(chosen)):
            start, end = row[place] if place < len(row) else (0, 0)
            if content := unquoted(text[start:end]):
                where = f"line {line_of(text, start)}, {heading[place] if has_heading else f'column {place + 1}'}"
                yield Unit((content,), start, end, partial(render, text[start : start + 1] == '"' and quoted), where)


def places_of_cells(text: str, separator: str, quoted: bool, escaped: bool = False) -> Iterator[list[tuple[int, int]]]:
    """(start, end) of each cell of each row that is not blank: of one in quotes without the blanks around these.

    `escaped`: a backslash makes a separator text.
    """
    bare = rf"(?:\\.|[^{separator}\r\n])*" if escaped else rf"[^{separator}\r\n]*"
    cell = re.compile(rf'[ \t]*"(?:[^"]|"")*"{bare}|{bare}' if quoted else bare)
    row: list[tuple[int, int]] = []
    at = 0
    while at < len(text):
        match = cell.match(text, at)
        assert match is not None
        inside = _IN_QUOTES.fullmatch(match[0]) if quoted else None
        row.append((at + inside.start(1), at + inside.end(1)) if inside else match.span())
        at = match.end() + 1
        if text[match.end() : at] != separator:
            if any(start < end for start, end in row):
                yield row
            row = []
    if row:
        yield row


_IN_QUOTES = re.compile(r'[ \t]*("(?:[^"]|"")*")[ \t]*')


def unquoted(cell: str) -> str:
    """The text of a cell, as the file has it, without its quotes."""
    if len(cell) > 1 and cell[0] == cell[-1] == '"':
        return cell[1:-1].replace('""', '"')
    return cell


def names_in(text: str) -> tuple[str, ...]:
    """The names in a list with commas.

    >>> names_in("text, note")
    ('text', 'note')
    """
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _is_quoted(text: str) -> bool:
    """True for tab-separated values whose cells stand in quotation marks, as spreadsheets write them."""
    cells = [cell for line in itertools.islice(io.StringIO(text), SAMPLE_ROWS) for cell in line.strip().split("\t")]
    filled = [cell for cell in cells if cell]
    return bool(filled) and sum(cell[0] == cell[-1] == '"' and len(cell) > 1 for cell in filled) > 0.9 * len(filled)


def separator_of(text: str) -> str:
    """The mark that parts the columns: the one that the most lines have equally often.

    >>> separator_of("open;ouvrir\\nclose, now;fermer\\n")
    ';'
    """
    lines = [line for line in itertools.islice(io.StringIO(text, newline=None), SAMPLE_ROWS) if line.strip()]

    def agreement(separator: str) -> tuple[int, int]:
        counts = [
            len(cells) for cells in csv.reader(lines, delimiter=separator, skipinitialspace=True) if len(cells) > 1
        ]
        usual = max(set(counts), key=counts.count, default=0)
        return counts.count(usual), -SEPARATORS.index(separator)

    return max(SEPARATORS, key=agreement)


def _sheets(data: bytes, name: str) -> Iterator[Iterator[Row]]:
    try:
        import openpyxl  # type: ignore[import-untyped]
    except ImportError as error:
        raise not_installed("a workbook needs a library", "xlsx") from error
    package = Package(data, name)
    for part in package.names():
        package.read(part)  # which holds it to its limits
    try:
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    except _DAMAGE as error:
        raise _damaged(name, error) from error
    yield from (_rows_of_sheet(sheet, name) for sheet in book.worksheets)


def _rows_of_sheet(sheet: Any, name: str) -> Iterator[Row]:
    try:
        for line, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
            if any(cell not in (None, "") for cell in cells):
                yield Row(line, ["" if cell is None else str(cell).strip() for cell in cells])
    except _DAMAGE as error:
        raise _damaged(name, error) from error


_DAMAGE = (KeyError, ValueError, OSError, TypeError, SyntaxError)


def _damaged(name: str, error: Exception) -> DragomanError:
    return Error.DAMAGED(f"is no workbook that can be read: {error}", "save it again as .xlsx", file=name)


class Columns(NamedTuple):
    """The columns of source and target, from 0, whether the first row names them, and the column of guesses."""

    src: int
    tgt: int
    heading: bool
    fuzzy: int | None = None

    def entry(self, row: Row) -> Entry:
        """The pair of a row."""
        src, tgt = (row.cells[place] if place < len(row.cells) else "" for place in (self.src, self.tgt))
        guess = self.fuzzy is not None and self.fuzzy < len(row.cells) and row.cells[self.fuzzy].lower() in _YES
        return Entry(row.line, src, tgt, "fuzzy" if guess else "" if tgt else "untranslated")


_YES = frozenset({"true", "1", "yes", "fuzzy", "x"})


def entries(data: bytes, name: str, languages: tuple[str, str], named: tuple[str, str] | None) -> Iterator[Entry]:
    """The pairs of a table, of each sheet of a workbook; sheets without them are left out, if others have some.

    Raises DragomanError for a file that is no table, or where nothing says which columns are meant.
    """
    refusal: DragomanError | None = None
    is_read = False
    for rows in tables(data, name, languages):
        first = list(itertools.islice(rows, SAMPLE_ROWS))
        if not first:
            continue
        del first[: _title(first, languages, named)]
        try:
            columns = columns_of(first, languages, named, name)
        except DragomanError as error:
            refusal = refusal or error
            continue
        is_read = True
        yield from map(columns.entry, itertools.islice(itertools.chain(first, rows), int(columns.heading), None))
    if refusal is not None and not is_read:
        raise refusal


def _title(table: Sequence[Row], languages: tuple[str, str], named: tuple[str, str] | None) -> int:
    """The number of rows above the heading of a table: its title, who made it. They have no pair in its columns."""
    for number, row in enumerate(table[:MAX_HEADING_ROW]):
        heading = [cell.lower() for cell in row.cells]
        columns = None
        if named is None:
            columns = named_columns(table[number:], languages)
        elif all(column.lower() in heading for column in named):
            src, tgt = (heading.index(column.lower()) for column in named)
            columns = Columns(src, tgt, True)
        if columns is not None:
            pairs = (columns.entry(above) for above in table[:number])
            return 0 if any(pair.src and pair.tgt for pair in pairs) else number
    return 0


def columns_of(table: Sequence[Row], languages: tuple[str, str], named: tuple[str, str] | None, name: str) -> Columns:
    """The columns of two languages in the first rows of a table.

    They are `named` (by heading or by number from 1), or the first row names them (`English`, `fr`, `source`), or
    their texts are in those languages, or there are two. Raises DragomanError where none of this says it.
    """
    heading = [cell.lower() for cell in table[0].cells] if table else []
    by_heading = named_columns(table, languages, name)
    if named is not None:
        src, tgt = (_place(column, heading, name) for column in named)
        by_number = all(column.isdigit() and column not in heading for column in named)
        is_heading = not by_number or (by_heading is not None and by_heading[:2] == (src, tgt))
        return Columns(src, tgt, is_heading, _fuzzy(heading) if is_heading else None)
    if by_heading is not None:
        return by_heading
    width = max((len(row.cells) for row in table), default=0)
    codes = [_language(table, column) for column in range(width)]
    by_text = [closest(code, codes) for code in languages]
    if all(by_text) and by_text[0] != by_text[1]:
        src, tgt = (codes.index(str(code)) for code in by_text)
        return Columns(src, tgt, False)
    if width == 2:
        return Columns(0, 1, False)
    raise Error.MISSING_OPTION(
        f"{width} columns, and nothing says which are {name_of(languages[0])} and {name_of(languages[1])}",
        "name them with `columns`, by heading or by number",
        file=name,
    )


def named_columns(table: Sequence[Row], languages: tuple[str, str], name: str = "") -> Columns | None:
    """The columns of two languages by the first row; None where it names none. Raises DragomanError where it names the
    target's language, but another variety of it: `pt-PT` for `pt-BR`."""
    heading = [cell.lower() for cell in table[0].cells] if table else []
    one, other = (_by_heading(heading, code, kind) for code, kind in zip(languages, _HEADINGS, strict=True))
    if one is not None and other is not None and nearness(_code(heading[other]), languages[1]) == 1:
        raise Error.NO_SUCH_LANGUAGE(
            f"its column {heading[other]!r} is not in {languages[1]}", "rename the column if its texts are", file=name
        )
    if one is None or other is None or one == other:
        return None
    if min(one, other) > 1 and all(row.cells[one : one + 1] == table[0].cells[one : one + 1] for row in table):
        return None  # the codes of each row's languages: `Hund,hound,de,en`
    return Columns(one, other, True, _fuzzy(heading))


def _fuzzy(heading: Sequence[str]) -> int | None:
    return heading.index("fuzzy") if "fuzzy" in heading else None


def _place(column: str, heading: Sequence[str], name: str) -> int:
    if column.lower() in heading:
        return heading.index(column.lower())
    if column.isdigit() and int(column):
        return int(column) - 1
    raise Error.UNKNOWN_NAME(f"no column {column!r}", f"it has {', '.join(heading)}", file=name)


def _by_heading(heading: Sequence[str], code: str, kind: set[str]) -> int | None:
    """The column whose heading is a language's code or name, or a word for its side."""
    exact = code.lower().replace("_", "-")
    cells = ((place, [_code(cell)] if _code(cell) else _WORD.findall(cell)) for place, cell in enumerate(heading))
    shortest_first = sorted(cells, key=lambda cell: len(cell[1]))  # `source` rather than `source file`
    tests = (
        lambda word: word.replace("_", "-") == exact,
        lambda word: nearness(_code(word), code) == 3,
        lambda word: nearness(_code(word), code) == 2 or word == name_of(code).lower(),
        lambda word: nearness(_code(word), code) == 1,
        lambda word: word in kind or word.startswith(tuple(kind & {"source", "target"})),  # SourceTerm
    )
    return next((place for test in tests for place, words in shortest_first if any(map(test, words))), None)


_WORD = re.compile(r"[^\W_]+(?:[-_][^\W_]+)*")


def _code(heading: str) -> str:
    """A heading that is a language as a whole, by code or name; "" for another one."""
    return heading if 2 <= len(language_of(heading)) <= 3 and not parsed(heading).rest else ""


def _language(table: Sequence[Row], column: int) -> str:
    texts = [row.cells[column] for row in table if column < len(row.cells)]
    return written_in(common_language(texts), " ".join(texts))
