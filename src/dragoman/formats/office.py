"""Word, PowerPoint and Excel (.docx, .pptx, .xlsx): the runs of paragraphs.

A run is text with one formatting. Neighbours of equal formatting are one run; the formatting of most letters is that of
the paragraph, and other runs are pairs of codes. Breaks, pictures and notes are codes that stand alone; fields such as
page numbers stay whole. Line breaks and tabs part texts. Formulas are never touched.
"""

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from dragoman.formats.base import Item, Options, Pass, Unit, plain
from dragoman.formats.inline import Kind, Token, as_attribute, escaped, units_of
from dragoman.formats.xml import Event, after, attribute, children, elements, events, local

CONTAINERS = ("hyperlink", "ins", "smartTag", "dir", "bdo", "moveTo", "customXml")
"""Elements around runs."""
BREAKS = ("br", "cr", "tab", "ptab")
IGNORED = ("proofErr", "lastRenderedPageBreak", "softHyphen", "noBreakHyphen")
REVISION = re.compile(r"\s(?:\w+:)?rsid\w*=\"[^\"]*\"")
FIELDS_OF_TEXT = ("HYPERLINK", "REF", "TOC", "STYLEREF")
"""Fields whose result is text of the document; that of others is a number or a date."""
PROOFING = re.compile(r"<(?:\w+:)?(?:lang|noProof)\b[^>]*/>|\s(?:lang|dirty|err|smtClean|noProof)=\"[^\"]*\"")
"""Differences of formatting that nobody sees: the language of spelling checkers."""


class Run(NamedTuple):
    """A run: text of one formatting, and codes."""

    formatting: str
    """Its properties, as the file has them, but for what nobody sees."""
    beginning: str
    """Its own tag, without marks of revision, and all of its properties."""


RunToken = tuple[Token, Run | None]
"""A token of a paragraph, and the run that it is part of."""


def paragraphs(nested: int) -> Pass:
    """The pass for paragraphs that stand inside of `nested` others (text boxes)."""

    def units(text: str, options: Options) -> Iterator[Unit]:
        if nested and not re.search(r"<(?:\w+:)?(?:txbxContent|txBody)\b", text):
            return
        for number, inside in elements(events(text, options), ("p",), nested):
            yield from _unit_of_runs(list(_tokens(text, inside[1:-1])), _prefix(inside), f"paragraph {number}")

    return units


def _prefix(element: Sequence[Event]) -> str:
    """The prefix of an element's name, with its colon."""
    return "".join(element[0].name.rpartition(":")[:2])


def _unit_of_runs(tokens: Sequence[RunToken], prefix: str, where: str) -> Iterator[Unit]:
    """The unit of runs: the formatting of most letters is the text's own, and other formatting is a pair of codes."""
    runs = [(token, run) for token, run in tokens if run is not None and token.kind == "text"]
    letters = Counter[str]()
    for token, run in runs:
        letters[run.formatting] += len(token.text)
    if not letters:
        return
    base = letters.most_common(1)[0][0]
    beginning = next(run.beginning for _, run in runs if run.formatting == base)
    render = partial(_written, prefix, beginning)
    yield from units_of(_with_formats(tokens, base), where, render, collapse=False)


def _tokens(text: str, inside: Sequence[Event]) -> Iterator[RunToken]:
    """The contents of a paragraph: texts of runs, codes of runs, and elements around runs."""
    at = 0
    fields: list[bool] = []  # of each field that is open: is its result text?
    while at < len(inside):
        event = inside[at]
        tag = local(event.name)
        if event.kind != "start":
            if event.kind == "end":
                yield Token("close", event.start, event.end, text[event.start : event.end], event.name), None
            at += 1
            continue
        stop = after(inside, at)
        whole = Token("alone", event.start, inside[stop - 1].end, text[event.start : inside[stop - 1].end])
        if tag in ("r", "fld"):
            state = _field_state(inside[at:stop]) if tag == "r" else "code"
            if state == "begin":
                fields.append(_is_field_of_text(inside[at:]))
                if all(fields):
                    stop = _separator(inside, at) or stop
                    end = inside[stop - 1].end
                    whole = whole._replace(end=end, text=text[event.start : end])
            if all(fields) and not state:
                yield from _run(text, inside[at:stop])
            elif all(fields) and state in ("begin", "end"):
                yield whole._replace(kind="open" if state == "begin" else "close", name="field"), None
            else:
                yield whole, None
            if state == "end" and fields:
                fields.pop()
            at = stop
        elif tag == "sdt":
            yield from _content_control(text, inside[at:stop])
            at = stop
        elif tag in CONTAINERS:
            yield Token("open", event.start, event.end, text[event.start : event.end], event.name), None
            at += 1
        else:
            if tag not in ("pPr", *IGNORED):
                yield whole._replace(kind="break" if tag in BREAKS else "alone"), None
            at = stop


def _content_control(text: str, inside: Sequence[Event]) -> Iterator[RunToken]:
    """A content control: a pair of codes around what is in it."""
    start, end = inside[0].start, inside[-1].end
    content = next((found for _, found in elements(inside, ("sdtContent",))), None)
    if content is None:
        yield Token("alone", start, end, text[start:end]), None
        return
    yield Token("open", start, content[0].end, text[start : content[0].end], "sdt"), None
    yield from _tokens(text, content[1:-1])
    yield Token("close", content[-1].start, end, text[content[-1].start : end], "sdt"), None


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
    for _, code in elements(inside, ("instrText",)):
        words = "".join(event.text for event in code).split()
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


def _run(text: str, run: Sequence[Event]) -> Iterator[RunToken]:
    """The texts and codes of a run."""
    properties = ""
    parts: list[tuple[Kind, str]] = []
    for part in children(run):
        raw = text[part[0].start : part[-1].end]
        tag = local(part[0].name)
        if tag == "rPr":
            properties = raw
        elif tag in ("t", "noBreakHyphen"):
            parts.append(("text", "".join(event.text for event in part) if tag == "t" else "\u2011"))
        elif tag not in IGNORED:
            parts.append(("break" if tag in BREAKS else "alone", raw))
    start, end = run[0].start, run[-1].end
    made = Run(_visible(properties), REVISION.sub("", text[start : run[0].end]) + properties)
    for number, (kind, said) in enumerate(parts):
        # All of a run's parts begin and end with it: it is written anew as a whole.
        yield Token(kind, end if number else start, end, said, fixed=len(parts) > 1), made


def _visible(properties: str) -> str:
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

    for token, run in tokens:
        if run is None:
            close(token.start)
            out.append(token)
            continue
        formatting = None if run.formatting == base else run.formatting
        if formatting != current:
            close(token.start)
            if formatting is not None:
                out.append(Token("open", token.start, token.start, run.beginning, "format", True))
                current = formatting
        raw = f"{_IN_RUN}{run.beginning}{_IN_RUN}{token.text}"
        out.append(token if token.kind == "text" else token._replace(text=raw))
    close(tokens[-1][0].end if tokens else 0)
    return out


_IN_RUN = "\0"
"""Parts a code of a run into the run's beginning and the code: it has to be written in a run again."""


def _written(prefix: str, base: str, items: Sequence[Item]) -> str:
    """Items as runs. `base`: the beginning of a run with the paragraph's own formatting."""
    out: list[str] = []
    formats: list[tuple[int, str]] = []
    for item in items:
        begin = formats[-1][1] if formats else base
        if isinstance(item, str):
            space = ' xml:space="preserve"' if item != item.strip() and prefix != "a:" else ""
            if item:
                out.append(f"{begin}<{prefix}t{space}>{escaped(item)}</{prefix}t></{prefix}r>")
        elif item.kind == "open" and item.repeats:
            formats.append((item.pair, item.raw))
        elif item.kind == "close" and item.repeats:
            formats = [held for held in formats if held[0] != item.pair]
        elif item.raw.startswith(_IN_RUN):
            _, begin, raw = item.raw.split(_IN_RUN, 2)
            out.append(f"{begin}{raw}</{prefix}r>")
        else:
            out.append(item.raw)
    return "".join(out)


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
        for number, inside in elements(events(text, options), ("si", "is", "text")):
            for unit in _cell(text, inside, f"string {number}"):
                named = plain(unit.items) in columns
                yield replace(unit, kept="a table's heading, which formulas may name") if named else unit

    return units


def _cell(text: str, inside: Sequence[Event], where: str) -> Iterator[Unit]:
    tokens: list[RunToken] = []
    whole: list[Token] = []
    for part in children(inside):
        start, end = part[0].start, part[-1].end
        tag = local(part[0].name)
        if tag == "r":
            tokens += _run(text, part)
        elif tag == "t":
            texts = [event for event in part if event.kind == "text"]
            if texts:
                whole.append(Token("text", texts[0].start, texts[-1].end, "".join(event.text for event in texts)))
        elif tag not in ("rPh", "phoneticPr"):
            tokens.append((Token("alone", start, end, text[start:end]), None))
    if whole and not tokens:
        yield from units_of(whole, where, collapse=False)
    elif tokens and not whole:
        yield from _unit_of_runs(tokens, _prefix(inside), where)
