"""Excel workbooks (.xlsx): the texts of cells, comments, drawings, headers, lists of choices.

A text that stands in a cell and in a formula is translated in both, and so are the copies that filters and pivot tables
keep. Names of sheets and headings of tables stay, as formulas name them.
"""

import html
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from dragoman.formats import formulas, opc
from dragoman.formats.base import Code, Edit, Item, Options, Part, Pass, Unit, aside, has_letters, left_aside, plain
from dragoman.formats.direction import of_cell_styles, of_sheet
from dragoman.formats.encoding import decoded
from dragoman.formats.inline import Token, as_markup, units_of
from dragoman.formats.office import RunToken, parts_by_kind, prefix_of, run_tokens, unit_of_runs
from dragoman.formats.package import Package
from dragoman.formats.xml import Event, attribute, children, elements, events, local
from dragoman.formats.xml_texts import as_value, contents_of, places_of, tag_with, value_token, values_of
from dragoman.progress import say

HEADING = "headings of tables, which formulas name"
LONGEST = {"promptTitle": 32, "prompt": 255, "errorTitle": 32, "error": 225}
"""Characters that Excel takes in the messages of a cell; it calls a file damaged that has more."""
LONGEST_LIST = 255
"""The same of a list of choices, or of a text in a formula."""
COPIES = {
    "customFilter": ("val",), "cfRule": ("text",), "s": ("v",), "cacheField": ("name",),
    "pivotField": ("name",), "item": ("n",), "dataField": ("name",), "tableColumn": ("totalsRowLabel",),
    "slicerCacheDefinition": ("sourceName",), "timelineCacheDefinition": ("sourceName",), "slicer": ("caption",),
    "timeline": ("caption",), "filter": ("val", "stringValue1", "stringValue2"),
}  # fmt: skip
_FORMULAS = ("f", "formula", "formula1", "formula2", "definedName", "calculatedColumnFormula", "totalsRowFormula")
_COLUMN = re.compile(r"<(?:\w+:)?tableColumn\b[^<>]*?\sname=([\"'])((?:(?!\1)[^<])*)\1")
_COPYING = (
    "table", "pivottable", "pivotcachedefinition", "pivotcacherecords", "slicercache", "slicer", "timelinecache",
    "timeline",
)  # fmt: skip
"""Kinds of parts that repeat what cells say."""
_FIELD = re.compile(r"<(?:\w+:)?cacheField\b[^<>]*?\sname=([\"'])((?:(?!\1)[^<])*)\1")
_STRINGS = ("sharedstrings", "worksheet")


def parts(package: Package) -> dict[str, Part]:
    """The parts of a workbook that hold text."""
    kinds = opc.kinds(package)

    def of_kind(*wanted: str) -> Iterator[str]:
        return (decoded(package.read(name), name, "xml")[0] for name, kind in kinds.items() if kind in wanted)

    named = [name for table in of_kind("table") for _, name in _COLUMN.findall(table)]
    for pivot in of_kind("pivotcachedefinition"):  # formulas of calculated fields name others
        named += (
            (name for _, name in _FIELD.findall(pivot))
            if re.search(r"<(?:\w+:)?cacheField\b[^<>]*\sformula=", pivot)
            else []
        )
    headings = frozenset(map(html.unescape, named))

    @cache
    def texts() -> dict[str, str]:
        units = (
            unit
            for part in of_kind(*_STRINGS)
            for one_pass in (cells(headings), strings)
            for unit in one_pass(part, Options())
            if not unit.kept
        )
        lists = (unit for part in of_kind("worksheet") for unit in choices_of(part, Options()))
        choices = (item.strip() for unit in lists for item in unit.items if isinstance(item, str))
        return formulas.by_lower_case([*choices, *(plain(unit.items) for unit in units)])

    hidden = _hidden_sheets(package, kinds)
    shown = [name for name, kind in kinds.items() if kind == "worksheet" and name not in hidden]
    visible = frozenset(_shared_strings(package, shown)) if hidden else None
    by_name = parts_by_kind(package, _kinds(headings, texts, visible))
    return by_name | {name: Part(aside("hidden", *by_name[name].passes), by_name[name].finish) for name in hidden}


def _shared_strings(package: Package, sheets: Sequence[str]) -> Iterator[int]:
    """The numbers, from 0, of the shared strings that stand in some sheets."""
    for name in sheets:
        yield from map(int, _SHARED.findall(decoded(package.read(name), name, "xml")[0]))


_IN_CELL = r"(?:(?!</?(?:\w+:)?c[\s>/]).)"
_SHARED = re.compile(rf"{tag_with('c', 't', 's')}{_IN_CELL}*?<(?:\w+:)?v\b[^<>]*>(\d+)<", re.DOTALL)


def _hidden_sheets(package: Package, kinds: Mapping[str, str]) -> list[str]:
    """The names of the parts of sheets that are hidden."""
    names = []
    for book in (name for name, kind in kinds.items() if kind in ("officedocument", "workbook")):
        targets = opc.targets(package, book)
        for event in events(decoded(package.read(book), book, "xml")[0], Options(book)):
            is_hidden = event.kind == "start" and attribute(event, "state") in ("hidden", "veryHidden")
            if is_hidden and local(event.name) == "sheet" and (name := targets.get(attribute(event, "id"))):
                names.append(name)
    return [name for name in names if kinds[name] == "worksheet"]


_LINKS = values_of({"hyperlink": ("tooltip", "display")}, "link")


def _kinds(headings: frozenset[str], texts: formulas.Texts, visible: frozenset[int] | None) -> dict[str, Part]:
    of_cells = cells(headings)
    copies, formula_texts = formulas.copies(COPIES, texts), in_formulas(texts)
    sheet = (of_cells, strings, results(texts), choices_of, formula_texts, copies, messages, _LINKS, headers)
    book = Part((formula_texts, values_of({"sheet": ("name",)}, "sheet", formulas.SHEETS)))
    return {
        "sharedstrings": Part((cells(headings, visible),)),
        **dict.fromkeys(("worksheet", "chartsheet", "dialogsheet"), Part(sheet, of_sheet)),
        "comments": Part(aside("comments", of_cells)),
        **dict.fromkeys(
            ("threadedcomment", "threadedcomments"), Part(aside("comments", contents_of(("text",), "comment")))
        ),
        **dict.fromkeys(("officedocument", "workbook", "sheet"), book),
        **dict.fromkeys(_COPYING, Part((formula_texts, copies))),
        "styles": Part((formats,), of_cell_styles),
        "ctrlprop": Part((values_of({"item": ("val",)}, "list entry"),)),
    }


def cells(columns: frozenset[str], visible: frozenset[int] | None = None) -> Pass:
    """The pass for the texts of cells: shared strings, strings in a sheet, comments. Numbers and formulas are none.

    `columns`: headings of tables, which formulas name: they stay. `visible`: the numbers, from 0, of the strings that
    stand in a sheet that is not hidden; None: all do.
    """

    def units(text: str, options: Options) -> Iterator[Unit]:
        for number, inside in elements(events(text, options), ("si", "is", "text")):
            for unit in _cell(text, inside, f"string {number}"):
                is_hidden = visible is not None and number - 1 not in visible and "hidden" not in options.asides
                kept = HEADING if plain(unit.items) in columns else left_aside("hidden") if is_hidden else ""
                yield replace(unit, kept=kept)

    return units


def _cell(text: str, inside: Sequence[Event], where: str) -> Iterator[Unit]:
    tokens: list[RunToken] = []
    whole: list[Token] = []
    readings: list[Edit] = []  # they count the characters of the source, and go with it
    for part in children(inside):
        start, end = part[0].start, part[-1].end
        tag = local(part[0].name)
        if tag == "r":
            tokens += (
                (token._replace(text=unescaped(token.text)) if token.kind == "text" else token, run)
                for token, run in run_tokens(text, part)
            )
        elif tag == "t":
            texts = [event for event in part if event.kind == "text"]
            if texts:
                content = unescaped("".join(event.text for event in texts))
                whole.append(Token("text", texts[0].start, texts[-1].end, content))
        elif tag == "rPh":
            readings.append(Edit(start, end, ""))
        elif tag != "phoneticPr":
            tokens.append((Token("alone", start, end, text[start:end]), None))
    for unit in units_of(whole, where, _as_string, collapse=False):
        yield replace(unit, also=tuple(readings))
    if tokens:
        for unit in unit_of_runs(tokens, prefix_of(inside), where):
            yield replace(unit, render=partial(_escaping, unit.render), also=tuple(readings))


def unescaped(text: str) -> str:
    """A string without Excel's own escapes.

    >>> unescaped("one_x000D_\\ntwo _x005F_x000D_")
    'one\\r\\ntwo _x000D_'
    """
    return re.sub("_x(00(?!00)[0-9A-Fa-f]{2})_", lambda code: chr(int(code[1], 16)), text)


def _escape(text: str) -> str:
    text = re.sub("_(?=x[0-9A-Fa-f]{4}_)", "_x005F_", text)
    return re.sub(r"[\0-\x08\x0b-\x1f]", lambda char: f"_x{ord(char.group()):04X}_", text)


def _escaping(render: Callable[[Sequence[Item]], str], items: Sequence[Item]) -> str:
    return render([_escape(item) if isinstance(item, str) else item for item in items])


_as_string = partial(_escaping, as_markup)


def results(texts: formulas.Texts) -> Pass:
    """The pass for saved results of formulas: a result is translated as the cell that it repeats."""

    def units(text: str, options: Options) -> Iterator[Unit]:
        for match in _RESULT.finditer(text):
            result = html.unescape(match["text"])
            cell = texts().get(result.casefold())
            if not match["formula"]:
                continue
            if cell is not None:
                yield Unit((cell,), *match.span("text"), as_markup, "result of a formula")
            elif has_letters(result):
                yield Unit((result,), *match.span("text"), as_markup, "result of a formula", kept=formulas.RESULTS)

    return units


_RESULT = re.compile(
    rf"{tag_with('c', 't', 'str')}(?P<formula>{_IN_CELL}*?)<(?:\w+:)?v\b[^<>]*>(?P<text>[^<]*)<",
    re.DOTALL,
)


def strings(text: str, options: Options) -> Iterator[Unit]:
    """The texts of cells that are written as the result of a formula without one, as SheetJS does."""
    for match in _RESULT.finditer(text):
        if not match["formula"]:
            token = Token("text", *match.span("text"), unescaped(html.unescape(match["text"])))
            yield from units_of([token], "string", _as_string, collapse=False)


def in_formulas(texts: formulas.Texts) -> Pass:
    """The pass for formulas, except formulas that are only a list of choices."""
    every = formulas.in_elements(_FORMULAS, texts)

    def units(text: str, options: Options) -> Iterator[Unit]:
        lists = {match.start(1) for match in _CHOICES.finditer(text)}
        return (unit for unit in every(text, options) if unit.start not in lists)

    return units


def choices_of(text: str, options: Options) -> Iterator[Unit]:
    """The lists of choices that cells offer: `"Yes,No"`. Each choice is translated as the cell is that says it."""
    for match in _CHOICES.finditer(text):
        tokens = [
            Token("break" if piece == "," else "text", *match.span(1), html.unescape(piece), fixed=True)
            for piece in re.split("(,)", match[1])
            if piece
        ]
        yield from units_of(tokens, "list of choices", partial(_as_choices, match[1]), collapse=False)


_CHOICES = re.compile(
    rf"{tag_with('dataValidation', 'type', 'list')}\s*<(?:\w+:)?formula1>\s*(?:<(?:\w+:)?f>\s*)?(?:\"|&quot;)"
    r"((?:(?!&quot;)[^<\"])*)"
)


def _as_choices(source: str, items: Sequence[Item]) -> str:
    """A list as Excel takes it. A comma would end a choice, so that a mark that looks like one takes its place."""
    choices = "".join("," if isinstance(item, Code) else item.replace(",", "‚").replace('"', "”") for item in items)
    if len(choices) > LONGEST_LIST:
        say(f"a list of choices stays as it is: its translation has more than {LONGEST_LIST} characters")
        return source
    return as_value([choices])


def messages(text: str, options: Options) -> Iterator[Unit]:
    """The messages that a cell shows while it is filled in, and where its content is wrong."""
    for name, longest in LONGEST.items():
        for start, end in places_of({"dataValidation": (name,)})(text):
            render = partial(_shortened, longest)
            yield from units_of([value_token(text, start, end)], "validation", render, collapse=False)


def _shortened(longest: int, items: Sequence[Item]) -> str:
    message = plain(items)
    if len(message) > longest:
        message = textwrap.shorten(message, longest, placeholder="…")
        say(f"a message of a cell is cut, as Excel takes {longest} characters: {message}")
    return as_value([message])


def headers(text: str, options: Options) -> Iterator[Unit]:
    """The headers and footers of printed pages: `&L` begins the text on the left, `&P` is the page's number."""
    for match in _HEADER.finditer(text):
        tokens = []
        for piece in _HEADER_CODE.finditer(match[1]):
            kind = "text" if not piece["code"] else "break" if piece["code"][-1] in "LCR" else "alone"
            start, end = (match.start(1) + place for place in piece.span())
            content = html.unescape(piece.group()).replace("&&", "&") if kind == "text" else piece.group()
            tokens.append(Token(kind, start, end, content))  # type: ignore[arg-type]
        yield from units_of(tokens, "header", _as_header, collapse=False)


_HEADER = re.compile(r"<(?:\w+:)?(?:odd|even|first)(?:Header|Footer)\b[^<>]*>([^<]*)<")
_HEADER_CODE = re.compile(
    r"(?P<code>&amp;(?:K[0-9A-F]{6}|K\d\d[+-]\d{3}|\d+|(?:\"|&quot;)(?:(?!&quot;)[^\"])*(?:\"|&quot;)|[A-Z]))"
    r"|(?:(?!&amp;).|&amp;&amp;)+|&amp;",
    re.DOTALL,
)


def _as_header(items: Sequence[Item]) -> str:
    return as_markup([item.replace("&", "&&") if isinstance(item, str) else item for item in items])


def formats(text: str, options: Options) -> Iterator[Unit]:
    """The words in formats of numbers, which stay: `0 "pieces"`."""
    for match in re.finditer(r"\sformatCode=(?:\"([^\"]*)\"|'([^']*)')", text):
        for start, end, words, _ in formulas.texts_of(text, *match.span(match.lastindex or 0)):
            if re.search(r"[^\W\d_]{2}", words):
                yield Unit((words,), start, end, as_value, "format", kept=formulas.FORMATS)
