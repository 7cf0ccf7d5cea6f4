"""Word, PowerPoint and Excel (.docx, .pptx, .xlsx): the runs of paragraphs.

A run is text with one formatting. Neighbours of equal formatting are one run; the formatting of most letters is that of
the paragraph, and other runs are pairs of codes. Breaks, pictures and notes are codes that stand alone; fields such as
page numbers stay whole. Formulas are never touched.
"""

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from dragoman.formats.base import Item, Options, Pass, Unit, plain
from dragoman.formats.inline import Token, as_attribute, units_of
from dragoman.formats.xml import Event, after, attribute, events, local

CONTAINERS = ("hyperlink", "ins", "smartTag", "dir", "bdo", "moveTo", "customXml")
"""Elements around runs."""
IGNORED = ("proofErr", "lastRenderedPageBreak", "softHyphen", "noBreakHyphen")
REVISION = re.compile(r"\s(?:\w+:)?rsid\w*=\"[^\"]*\"")
FIELDS_OF_TEXT = ("HYPERLINK", "REF", "TOC", "STYLEREF")
"""Fields whose result is text of the document; that of others is a number or a date."""
PROOFING = re.compile(r"<(?:\w+:)?(?:lang|noProof)\b[^>]*/>|\s(?:lang|dirty|err|smtClean|noProof)=\"[^\"]*\"")
"""Differences of formatting that nobody sees: the language of spelling checkers."""


class Run(NamedTuple):
    """The text or the code inside of one run."""

    start: int
    end: int
    format: str
    """Its properties, as the file has them."""
    text: str | None
    """None: a code."""
    raw: str
    opening: str
    """The run's own tag, with its attributes."""
    shared: bool = False
    """True if there are others in its run."""


def paragraphs(nested: int) -> Pass:
    """The pass for paragraphs that stand inside of `nested` others (text boxes)."""

    def units(text: str, options: Options) -> Iterator[Unit]:
        if nested and not re.search(r"<(?:\w+:)?(?:txbxContent|txBody)\b", text):
            return
        stack: list[list[Event]] = []
        number = 0
        for event in events(text, options):
            if event.kind == "start" and local(event.name) == "p":
                stack.append([])
                number += 1
            if stack:
                for held in stack:
                    held.append(event)
                if event.kind == "end" and local(event.name) == "p":
                    inside = stack.pop()
                    if len(stack) == nested:
                        yield from _paragraph(text, inside, f"paragraph {number}")

    return units


def _paragraph(text: str, inside: Sequence[Event], where: str) -> Iterator[Unit]:
    """The units of a paragraph."""
    name = inside[0].name
    prefix = name[: -len(local(name))]
    yield from _unit_of_runs(list(_tokens(text, inside[1:-1], prefix)), prefix, where)


def _unit_of_runs(tokens: "Sequence[RunToken]", prefix: str, where: str) -> Iterator[Unit]:
    """The unit of runs: the formatting of most letters is the text's own, and other formatting is a pair of codes."""
    runs = [token.run for token in tokens if token.run is not None and token.run.text is not None]
    letters = Counter[str]()
    for run in runs:
        letters[_key(run.format)] += len(run.text or "")
    if not letters:
        return
    base = letters.most_common(1)[0][0]
    base_run = next(run for run in runs if _key(run.format) == base)
    yield from units_of(_with_formats(tokens, base), where, _Render(prefix, base_run), collapse=False)


class RunToken(NamedTuple):
    """A token of a paragraph, and the run that it is part of."""

    kind: str
    start: int
    end: int
    text: str
    name: str = ""
    run: Run | None = None


def _tokens(text: str, inside: Sequence[Event], prefix: str) -> Iterator[RunToken]:
    """The contents of a paragraph: texts of runs, codes of runs, and elements around runs."""
    at = 0
    fields: list[bool] = []  # of each field that is open: is its result text?
    while at < len(inside):
        event = inside[at]
        tag = local(event.name)
        if event.kind != "start":
            if event.kind == "end":
                yield RunToken("close", event.start, event.end, text[event.start : event.end], event.name)
            at += 1
            continue
        stop = after(inside, at)
        end = inside[stop - 1].end
        if tag in ("r", "fld"):
            state = _field_state(inside[at:stop]) if tag == "r" else ""
            if state == "begin":
                fields.append(_is_field_of_text(inside[at:]))
                if all(fields):
                    stop = _separator(inside, at) or stop
                    end = inside[stop - 1].end
            if not all(fields):
                yield RunToken("alone", event.start, end, text[event.start : end])
            elif state in ("begin", "end"):
                kind = "open" if state == "begin" else "close"
                yield RunToken(kind, event.start, end, text[event.start : end], "field")
            elif not state:
                yield from _run(text, inside[at:stop], tag == "fld")
            else:
                yield RunToken("alone", event.start, end, text[event.start : end])
            if state == "end" and fields:
                fields.pop()
            at = stop
        elif tag == "sdt":
            yield from _content_control(text, inside[at:stop], prefix)
            at = stop
        elif tag in CONTAINERS:
            yield RunToken("open", event.start, event.end, text[event.start : event.end], event.name)
            at += 1
        else:
            if tag not in ("pPr", *IGNORED):
                yield RunToken("alone", event.start, end, text[event.start : end])
            at = stop


def _content_control(text: str, inside: Sequence[Event], prefix: str) -> Iterator[RunToken]:
    """A content control: a pair of codes around what is in it."""
    places = [place for place, event in enumerate(inside) if local(event.name) == "sdtContent"]
    start, end = inside[0].start, inside[-1].end
    if len(places) < 2:
        yield RunToken("alone", start, end, text[start:end])
        return
    opening, closing = inside[places[0]], inside[places[-1]]
    yield RunToken("open", start, opening.end, text[start : opening.end], "sdt")
    yield from _tokens(text, inside[places[0] + 1 : places[-1]], prefix)
    yield RunToken("close", closing.start, end, text[closing.start : end], "sdt")


def _field_state(run: Sequence[Event]) -> str:
    """`begin`, `separate`, `end` or `code` for a run that is a part of a field."""
    for event in run:
        if event.kind == "start" and local(event.name) == "fldChar":
            return attribute(event, "fldCharType")
        if event.kind == "start" and local(event.name) == "instrText":
            return "code"
    return ""


def _is_field_of_text(inside: Sequence[Event]) -> bool:
    """True for a field whose result is text, told by its first word of instructions."""
    for place, event in enumerate(inside):
        if event.kind == "start" and local(event.name) == "instrText":
            words = "".join(item.text for item in inside[place : after(inside, place)]).split()
            return bool(words) and words[0].upper() in FIELDS_OF_TEXT
    return False


def _separator(inside: Sequence[Event], at: int) -> int | None:
    """The place after the run that parts the instructions of the field that begins at `at` from its result."""
    depth = 0
    run = at
    for place in range(at, len(inside)):
        event = inside[place]
        if event.kind == "start" and local(event.name) == "r":
            run = place
        if event.kind == "start" and local(event.name) == "fldChar":
            kind = attribute(event, "fldCharType")
            depth += {"begin": 1, "end": -1}.get(kind, 0)
            if kind == "separate" and depth == 1:
                return after(inside, run)
            if depth == 0:
                return None
    return None


def _run(text: str, run: Sequence[Event], whole: bool) -> Iterator[RunToken]:
    """The texts and codes of a run. `whole`: a field of a presentation, which is not text."""
    opening = text[run[0].start : run[0].end]
    start, end = run[0].start, run[-1].end
    if whole:
        yield RunToken("alone", start, end, text[start:end])
        return
    properties = ""
    parts: list[tuple[str, str | None, str]] = []  # (kind, text, raw)
    at = 1
    while at < len(run) - 1:
        event = run[at]
        if event.kind != "start":
            at += 1
            continue
        stop = after(run, at)
        raw = text[event.start : run[stop - 1].end]
        tag = local(event.name)
        if tag == "rPr":
            properties = raw
        elif tag == "t":
            parts.append(("text", "".join(item.text for item in run[at:stop] if item.kind == "text"), raw))
        elif tag == "noBreakHyphen":
            parts.append(("text", "\u2011", raw))
        elif tag not in IGNORED:
            parts.append(("alone", None, raw))
        at = stop
    for number, (kind, said, raw) in enumerate(parts):
        # All of a run's parts begin and end with it: it is written anew as a whole.
        begin = start if number == 0 else end
        made = Run(begin, end, properties, said, raw, opening, len(parts) > 1)
        yield RunToken(kind, begin, end, raw if said is None else said, run=made)


def _key(properties: str) -> str:
    """Formatting without what nobody sees."""
    left = PROOFING.sub("", properties)
    return "" if re.fullmatch(r"(?:<(?:\w+:)?rPr\s*/>|<(?:\w+:)?rPr\s*>\s*</(?:\w+:)?rPr>)?", left) else left


def _with_formats(tokens: Sequence[RunToken], base: str) -> list[Token]:
    """Tokens for `units_of`: runs of another formatting than the paragraph's in pairs of codes."""
    out: list[Token] = []
    current: str | None = None

    def close(at: int) -> None:
        nonlocal current
        if current is not None:
            out.append(Token("close", at, at, "", "format", True))
            current = None

    for token in tokens:
        run = token.run
        if run is None:
            close(token.start)
            out.append(Token(token.kind, token.start, token.end, token.text, token.name))  # type: ignore[arg-type]
            continue
        wanted = None if _key(run.format) == base else _key(run.format)
        if wanted != current:
            close(token.start)
            if wanted is not None:
                out.append(Token("open", token.start, token.start, _format_raw(run), "format", True))
                current = wanted
        if run.text is None:
            raw = f"{_IN_RUN}{_format_raw(run)}{_IN_RUN}{run.raw}"
            out.append(Token("alone", token.start, token.end, raw, fixed=run.shared))
        else:
            out.append(Token("text", token.start, token.end, run.text, fixed=run.shared))
    close(tokens[-1].end if tokens else 0)
    return out


_IN_RUN = "\0"
"""Parts a code of a run into the run's beginning and the code: it has to be written in a run again."""


def _format_raw(run: Run) -> str:
    """The beginning of a run: its tag, without marks of revision, and its formatting."""
    return REVISION.sub("", run.opening) + run.format


class _Render:
    """Writes items as runs."""

    def __init__(self, prefix: str, base: Run) -> None:
        self.prefix, self.base = prefix, _format_raw(base)

    def __call__(self, items: Sequence[Item]) -> str:
        out: list[str] = []
        formats: list[tuple[int, str]] = []
        for item in items:
            begin = formats[-1][1] if formats else self.base
            if isinstance(item, str):
                if item:
                    out.append(self._run(begin, self._text(item)))
            elif item.kind == "open" and item.repeats:
                formats.append((item.pair, item.raw))
            elif item.kind == "close" and item.repeats:
                formats = [held for held in formats if held[0] != item.pair]
            elif item.raw.startswith(_IN_RUN):
                _, begin, raw = item.raw.split(_IN_RUN, 2)
                out.append(self._run(begin, raw))
            else:
                out.append(item.raw)
        return "".join(out)

    def _run(self, begin: str, content: str) -> str:
        return f"{begin}{content}</{self.prefix}r>"

    def _text(self, text: str) -> str:
        space = ' xml:space="preserve"' if text != text.strip() and self.prefix != "a:" else ""
        return f"<{self.prefix}t{space}>{html.escape(text, quote=False)}</{self.prefix}t>"


def described(text: str, options: Options) -> Iterator[Unit]:
    """The descriptions of pictures, which screen readers read."""
    pattern = r"<(?:wp:docPr|p:cNvPr|pic:cNvPr|xdr:cNvPr)\b[^<>]*?\s(?:descr|title)=\"([^\"<>]*)\""
    for match in re.finditer(pattern, text):
        if not re.search(r"\.\w{2,4}$", match.group(1)):
            token = Token("text", *match.span(1), html.unescape(match.group(1)))
            yield from units_of([token], "picture's description", as_attribute)


def word_part(name: str, names: Sequence[str], read: Callable[[str], bytes]) -> tuple[Pass, ...]:
    """The passes of a part of a Word document."""
    if re.fullmatch(r"word/(document|header\d*|footer\d*|footnotes|endnotes|comments)\d*\.xml", name):
        return (described, paragraphs(2), paragraphs(1), paragraphs(0))
    return _chart(name)


def slides_part(name: str, names: Sequence[str], read: Callable[[str], bytes]) -> tuple[Pass, ...]:
    """The passes of a part of a presentation."""
    if re.fullmatch(r"ppt/(slides/slide|notesSlides/notesSlide|diagrams/data|comments/comment)\d*\.xml", name):
        return (described, paragraphs(0))
    return _chart(name)


def workbook_part(name: str, names: Sequence[str], read: Callable[[str], bytes]) -> tuple[Pass, ...]:
    """The passes of a part of a workbook."""
    if re.fullmatch(r"xl/(sharedStrings|(?:comments/)?comments?\d+|worksheets/sheet\d+)\.xml", name):
        tables = [
            read(part).decode(errors="replace") for part in names if re.fullmatch(r"xl/tables/table\d+\.xml", part)
        ]
        columns = [html.unescape(found) for table in tables for found in _COLUMN.findall(table)]
        return (cells(frozenset(columns)),)
    if re.fullmatch(r"xl/drawings/drawing\d+\.xml", name):
        return (described, paragraphs(0))
    return _chart(name)


_COLUMN = re.compile(r"<(?:\w+:)?tableColumn\b[^<>]*?\sname=\"([^\"]*)\"")


def _chart(name: str) -> tuple[Pass, ...]:
    """The titles of a chart, whatever it stands in."""
    return (paragraphs(0),) if re.fullmatch(r"(?:word|ppt|xl)/charts/chart\w*\.xml", name) else ()


def cells(columns: frozenset[str]) -> Pass:
    """The pass for the texts of cells: shared strings, strings in a sheet, comments. Numbers and formulas are none.

    `columns`: headings of tables, which formulas name: they stay.
    """

    def units(text: str, options: Options) -> Iterator[Unit]:
        held: list[Event] | None = None
        number = 0
        for event in events(text, options):
            tag = local(event.name)
            if event.kind == "start" and tag in ("si", "is", "text"):
                held = []
                number += 1
            if held is not None:
                held.append(event)
                if event.kind == "end" and tag in ("si", "is", "text"):
                    for unit in _cell(text, held, f"string {number}"):
                        named = plain(unit.items) in columns
                        yield replace(unit, kept="a table's heading, which formulas may name") if named else unit
                    held = None

    return units


def _cell(text: str, inside: Sequence[Event], where: str) -> Iterator[Unit]:
    name = inside[0].name
    prefix = name[: -len(local(name))]
    at, tokens = 1, []
    whole: list[Token] = []
    while at < len(inside) - 1:
        event = inside[at]
        if event.kind != "start":
            at += 1
            continue
        stop = after(inside, at)
        start, end = event.start, inside[stop - 1].end
        tag = local(event.name)
        if tag == "r":
            tokens += list(_run(text, inside[at:stop], False))
        elif tag == "t":
            parts = [item for item in inside[at:stop] if item.kind == "text"]
            if parts:
                whole.append(Token("text", parts[0].start, parts[-1].end, "".join(item.text for item in parts)))
        elif tag != "rPh" and tag != "phoneticPr":
            tokens.append(RunToken("alone", start, end, text[start:end]))
        at = stop
    said = "".join(token.text for token in whole).strip()
    if whole and not tokens:
        for unit in units_of(whole, where, collapse=False, source=text):
            yield from _by_line(text, whole, where) if "\n" in said else [unit]
    elif tokens and not whole:
        yield from _unit_of_runs(tokens, prefix, where)


def _by_line(text: str, whole: Sequence[Token], where: str) -> Iterator[Unit]:
    """A unit for each line of a cell of plain text."""
    start, end = whole[0].start, whole[-1].end
    at = start
    for line in text[start:end].split("\n"):
        token = Token("text", at, at + len(line), html.unescape(line))
        yield from units_of([token], where, collapse=False, source=text)
        at += len(line) + 1
