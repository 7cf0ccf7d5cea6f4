"""Word, PowerPoint and Excel (.docx, .pptx, .xlsx): the runs of paragraphs, and the parts that all three have.

A run is text with one formatting. Neighbours of equal formatting are one run; the formatting of most letters is that of
the paragraph, and other runs are pairs of codes. Breaks, pictures and notes are codes that stand alone; fields such as
page numbers stay whole. Line breaks and tabs part texts. Formulas are never touched.
"""

import bisect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import compress
from typing import NamedTuple

from dragoman.formats import html, opc
from dragoman.formats.base import NOTE_MARK, Edit, Item, Options, Part, Pass, Unit, aside, left_aside
from dragoman.formats.inline import Kind, Token, escaped, units_of, without_reading
from dragoman.formats.language import in_element, of_office
from dragoman.formats.package import Package
from dragoman.formats.xml import Event, after, attribute, children, depth_of, elements, events, local
from dragoman.formats.xml_texts import contents_of, values_of

CONTAINERS = ("hyperlink", "ins", "smartTag", "dir", "bdo", "moveTo", "customXml")
"""Elements around runs."""
BREAKS = ("br", "cr", "tab", "ptab")
IGNORED = ("proofErr", "lastRenderedPageBreak", "softHyphen", "noBreakHyphen")
NESTED = range(8, -1, -1)
"""Paragraphs inside of others (boxes, notes), the inner ones first: their text stands in a code of the outer one's."""
REVISION = re.compile(r"\s(?:\w+:)?rsid\w*=\"[^\"]*\"")
FIELDS_OF_TEXT = (
    "HYPERLINK", "REF", "TOC", "STYLEREF", "INDEX", "TITLE", "SUBJECT", "KEYWORDS", "COMMENTS", "DOCPROPERTY", "QUOTE",
    "FORMTEXT", "FORMDROPDOWN", "FILLIN", "ASK", "IF", "AUTOTEXT", "AUTOTEXTLIST", "INCLUDETEXT", "MACROBUTTON",
)  # fmt: skip
"""Fields whose result is text of the document; the results of other fields are numbers, dates or names."""
PROOFING = re.compile(
    r"<(?:\w+:)?(?:lang|noProof|rPrChange)\b[^>]*+(?<=/)>|<(?:\w+:)?rFonts\s+(?:\w+:)?hint=\"\w*\"\s*/>"
    r"|<((?:\w+:)?)rPrChange\b[^<>]*+>(?:(?!<\1rPrChange\b).)*?</\1rPrChange>"
    r"|\s(?:(?:alt)?[lL]ang|dirty|err|smtClean|noProof|kumimoji|(?:\w+:)?hint)=\"[^\"]*\"",
    re.DOTALL,
)
"""Differences of formatting that nobody sees: the language of spelling checkers, which font a mark is from that both of
two scripts have, what the formatting was before somebody changed it."""

_HIDDEN = re.compile(r"<(?:\w+:)?vanish(?:\s*/|\s+(?:\w+:)?val=[\"'](?:1|true|on)[\"']\s*/)?>")
_RAISED = re.compile(r"\bvertAlign\s+(?:\w+:)?val=[\"']superscript|\sbaseline=[\"'][1-9]")
_MARK = re.compile(rf"\s*{NOTE_MARK}\s*")
_WORD = re.compile(r"(?:[^\W\d_]{3}|[.,;:!?)\]\"”»])$")
"""The end of a word of three letters or more, which is no unit (`m²`), or of its punctuation."""


class Run(NamedTuple):
    """A run: text in the same formatting, and codes."""

    formatting: str
    """Its properties, as the file has them, but for what nobody sees."""
    beginning: str
    """Its own tag, without marks of revision, and all of its properties."""

    @property
    def is_hidden(self) -> bool:
        return _HIDDEN.search(self.formatting) is not None


RunToken = tuple[Token, Run | None]
"""A token of a paragraph, and the run that it is part of."""


Beside = Callable[[str, Sequence[Event], Options, Unit, Sequence[Item]], Iterable[Edit]]


def paragraphs(nested: int, beside: Beside | None = None) -> Pass:
    """The pass for paragraphs that stand inside of `nested` others (text boxes).

    `beside`: puts the translation of a paragraph below its source.
    """

    def units(text: str, options: Options) -> Iterator[Unit]:
        if nested and nested > depth_of(text, ("txbxContent", "txBody")):
            return
        for number, inside in elements(events(text, options), ("p",), nested):
            tokens, prefix, where = list(tokens_of(text, inside[1:-1])), prefix_of(inside), f"paragraph {number}"
            if "hidden" not in options.asides:
                hidden = [run is not None and run.is_hidden and token.kind == "text" for token, run in tokens]
                texts = [token._replace(fixed=False) for token, _ in compress(tokens, hidden)]
                for unit in units_of(texts, where):
                    yield replace(unit, kept=left_aside("hidden"))
                tokens = [
                    (_as_code(token, prefix), run) if is_hidden else (token, run)
                    for (token, run), is_hidden in zip(tokens, hidden, strict=True)
                ]
            below = partial(beside, text, inside, options) if beside and options.bilingual else None
            for unit in unit_of_runs(tokens, prefix, where):
                yield replace(unit, beside=below)

    return units


def prefix_of(element: Sequence[Event]) -> str:
    """The prefix of an element's name, with its colon."""
    return "".join(element[0].name.rpartition(":")[:2])


def _as_code(token: Token, prefix: str) -> Token:
    """A text of a run as a code, which is not read."""
    return token._replace(kind="alone", text=_text_element(f"{prefix}t", token.text))


def unit_of_runs(tokens: Sequence[RunToken], prefix: str, where: str, tag: str = "t") -> Iterator[Unit]:
    """The unit of runs: the formatting of most letters is the text's own, and other formatting is a pair of codes.

    `tag`: the element of a text in a run.
    """
    tokens = [*_without_marks(tokens, prefix)] if tag == "t" else tokens
    runs = [(token, run) for token, run in tokens if run is not None and token.kind == "text"]
    letters = Counter[str]()
    for token, run in runs:
        letters[run.formatting] += len(token.text)
    if not letters:
        return
    base = letters.most_common(1)[0][0]
    beginning = next(run.beginning for _, run in runs if run.formatting == base)
    render = partial(_written, prefix, tag, beginning)
    yield from units_of(_with_formats(tokens, base), where, render, collapse=False)


def _without_marks(tokens: Sequence[RunToken], prefix: str) -> Iterator[RunToken]:
    """Tokens with raised numbers and marks of notes (`word¹`) as codes: they are no part of the word before them."""
    before = ""
    for number, (token, run) in enumerate(tokens):
        is_raised = run is not None and token.kind == "text" and _RAISED.search(run.formatting)
        following = tokens[number + 1][0].text[:1] if number + 1 < len(tokens) else ""
        is_mark = is_raised and _MARK.fullmatch(token.text) and _WORD.search(before) and not following.isalnum()
        yield (_as_code(token, prefix) if is_mark else token), run
        before = token.text[-3:] if token.kind == "text" else before


def tokens_of(text: str, inside: Sequence[Event]) -> Iterator[RunToken]:
    """The contents of a paragraph: texts of runs, codes of runs, and elements around runs."""
    at = 0
    places = Fields(inside)
    fields: list[bool] = []  # of each field that is open: is its result text?
    left = 0  # open fields whose result is no text
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
        if tag == "r" and (ruby := _content(inside[at:stop], "rubyBase")):
            yield from _around_content(text, inside[at:stop], ruby, "ruby")
            at = stop
        elif tag in ("r", "fld"):
            state = _field_state(inside[at:stop]) if tag == "r" else "code"
            if state == "begin":
                fields.append(places.is_text(at))
                left += not fields[-1]
                if not left:
                    stop = places.after_separator(at) or stop
                    end = inside[stop - 1].end
                    whole = whole._replace(end=end, text=text[event.start : end])
            if not left and not state:
                yield from run_tokens(text, inside[at:stop])
            elif not left and state in ("begin", "end"):
                yield whole._replace(kind="open" if state == "begin" else "close", name="field"), None
            else:
                yield whole, None
            if state == "end" and fields:
                left -= not fields.pop()
            at = stop
        elif tag == "fldSimple" and is_field_of_text(attribute(event, "instr")):
            yield whole._replace(kind="open", end=event.end, text=text[event.start : event.end], name=tag), None
            yield from tokens_of(text, inside[at + 1 : stop - 1])
            closing = inside[stop - 1]
            yield Token("close", closing.start, closing.end, text[closing.start : closing.end], tag), None
            at = stop
        elif content := _content(inside[at:stop], {"sdt": "sdtContent", "AlternateContent": "Choice"}.get(tag, "")):
            yield from _around_content(text, inside[at:stop], content, tag)
            at = stop
        elif tag in CONTAINERS:
            yield Token("open", event.start, event.end, text[event.start : event.end], event.name), None
            at += 1
        else:
            if tag not in ("pPr", *IGNORED):
                kind, name = end_of_range(tag, attribute(event, "id"))
                yield whole._replace(kind="break" if tag in BREAKS else kind, name=name), None
            at = stop


def end_of_range(tag: str, id: str) -> tuple[Kind, str]:
    """(kind, name) of an element without content that may be an end of a range: of a bookmark, of what a comment is on.

    >>> end_of_range("bookmarkStart", "1"), end_of_range("bookmark-end", "1"), end_of_range("drawing", "")
    (('open', 'bookmark 1'), ('close', 'bookmark 1'), ('alone', 'drawing'))
    """
    match = re.fullmatch(r"([\w-]+?)-?(start|end)", tag, re.IGNORECASE) if id else None
    if match is None:
        return "alone", tag
    return ("open" if match[2].lower() == "start" else "close"), f"{match[1]} {id}"


def _content(inside: Sequence[Event], name: str) -> Sequence[Event] | None:
    """The first element of a name in another one; None where there is none, or nothing in it."""
    first = next((content for _, content in elements(inside, (name,))), None) if name else None
    return first if first and len(first) > 2 else None


def _around_content(text: str, whole: Sequence[Event], content: Sequence[Event], name: str) -> Iterator[RunToken]:
    """A content control, words with their reading, or a choice of two: a pair of codes around what is read."""
    start, end = whole[0].start, whole[-1].end
    before, is_ruby = text[start : content[0].end], name == "ruby"
    yield Token("open", start, content[0].end, without_reading(before) if is_ruby else before, name), None
    yield from tokens_of(text, content[1:-1])
    yield Token("close", content[-1].start, end, text[content[-1].start : end], name, fixed=is_ruby), None


def _field_state(run: Sequence[Event]) -> str:
    """`begin`, `separate`, `end` or `code` for a run that is a part of a field."""
    for event in run:
        if event.kind == "start" and local(event.name) == "fldChar":
            return attribute(event, "fldCharType")
        if event.kind == "start" and local(event.name) == "instrText":
            return "code"
    return ""


class Fields:
    """The fields of a paragraph, by the place of the run that each begins in. They are looked for once."""

    def __init__(self, inside: Sequence[Event]) -> None:
        self.inside = inside

    def is_text(self, at: int) -> bool:
        """True for a field whose result is text, told by its first word of instructions."""
        codes, _ = self._places
        following = bisect.bisect_left(codes, (at, ""))
        return following < len(codes) and is_field_of_text(codes[following][1])

    def after_separator(self, at: int) -> int | None:
        """The place after the run that parts a field's instructions from its result; None where there is none."""
        _, separators = self._places
        return after(self.inside, separators[at]) if at in separators else None

    @cached_property
    def _places(self) -> tuple[list[tuple[int, str]], dict[int, int]]:
        """(place, text) of all instructions; and by the run that a field begins in the run of its separator."""
        codes: list[tuple[int, str]] = []
        separators: dict[int, int] = {}
        opened: list[int] = []  # the runs that the fields begin in that are open
        run = 0
        for place, event in enumerate(self.inside):
            tag = local(event.name)
            if event.kind == "start" and tag == "r":
                run = place
            elif event.kind == "start" and tag == "instrText":
                codes.append((place, "".join(one.text for one in self.inside[place : after(self.inside, place)])))
            elif event.kind == "start" and tag == "fldChar":
                kind = attribute(event, "fldCharType")
                if kind == "begin":
                    opened.append(run)
                elif kind == "separate" and opened:
                    separators.setdefault(opened[-1], run)
                elif kind == "end" and opened:
                    opened.pop()
        return codes, separators


def is_field_of_text(instructions: str) -> bool:
    """True for the instructions of a field whose result is text."""
    words = instructions.split()
    return bool(words) and words[0].upper() in FIELDS_OF_TEXT


def run_tokens(text: str, run: Sequence[Event]) -> Iterator[RunToken]:
    """The texts and codes of a run."""
    properties = ""
    parts: list[tuple[Kind, str]] = []
    for part in children(run):
        raw = text[part[0].start : part[-1].end]
        tag = local(part[0].name)
        if tag == "rPr":
            properties = raw
        elif tag in ("t", "delText", "noBreakHyphen"):
            content = "\u2011" if tag == "noBreakHyphen" else "".join(event.text for event in part)
            parts.append(("text", content))
        elif tag not in IGNORED:
            parts.append(("break" if tag in BREAKS else "alone", raw))
    start, end = run[0].start, run[-1].end
    made = Run(_visible(properties), REVISION.sub("", text[start : run[0].end]) + properties)
    for number, (kind, content) in enumerate(parts):
        # All of a run's parts begin and end with it: it is written anew as a whole.
        yield Token(kind, end if number else start, end, content, fixed=len(parts) > 1), made


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


def _text_element(name: str, text: str) -> str:
    space = ' xml:space="preserve"' if text != text.strip() and not name.startswith("a:") else ""
    return f"<{name}{space}>{escaped(text)}</{name}>"


def _written(prefix: str, tag: str, base: str, items: Sequence[Item]) -> str:
    """Items as runs. `base`: the beginning of a run with the paragraph's own formatting."""
    out: list[str] = []
    formats: list[tuple[int, str]] = []
    for item in items:
        begin = formats[-1][1] if formats else base
        if isinstance(item, str):
            if item:
                out.append(f"{begin}{_text_element(prefix + tag, item)}</{prefix}r>")
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


def textboxes(text: str, options: Options) -> Iterator[Unit]:
    """The texts of boxes and buttons in old drawings (VML), which are HTML of a kind."""
    for box in re.finditer(
        r"<(?:\w+:)?textbox\b[^<>]*+(?<!/)>((?:(?!<(?:\w+:)?textbox\b).)*?)</(?:\w+:)?textbox>", text, re.DOTALL
    ):
        if "txbxContent" not in box[1]:
            for unit in html.text_units(box[1], options):
                yield replace(unit, start=unit.start + box.start(1), end=unit.end + box.start(1), where="text box")


FIELDS = "fields"
PROPERTIES = "properties that the file has of its own, which programs may read"
DESCRIBED = {
    "docPr": ("descr", "title"), "cNvPr": ("descr", "title"), "textpath": ("string",), "shape": ("alt",),
    "hlinkClick": ("tooltip",), "hlinkHover": ("tooltip",),
}  # fmt: skip
"""Attributes that people read in drawings: descriptions of pictures, words drawn as pictures, tips of links."""
described = values_of(DESCRIBED, "description")
_CHART = Part(
    (
        contents_of(("v",), "chart", within=("strCache", "strLit", "multiLvlStrCache", "txData", "tx"), collapse=False),
        contents_of(("name",), "trend line", within=("trendline",)),
        contents_of(("pt",), "chart", within=("strDim",), collapse=False),
        paragraphs(0),
    ),
    of_office,
)
_DRAWING = Part((described, paragraphs(0)), of_office)
COMMON = {
    "chart": _CHART, "chartex": _CHART, "drawing": _DRAWING, "chartusershapes": _DRAWING,
    "diagramdata": _DRAWING, "diagramdrawing": _DRAWING, "vmldrawing": Part((described, textboxes)),
    **dict.fromkeys(("package", "afchunk", "oleobject"), Part(is_file=True)),
    "core-properties": Part(
        aside("metadata", contents_of(("title", "subject", "description", "keywords", "category"), "metadata")),
        in_element("dc:language"),
    ),
    "custom-properties": Part((contents_of(("lpwstr", "lpstr", "bstr"), "property", kept=PROPERTIES),)),
}  # fmt: skip
"""The way in which parts are read that all of Office's files have, by their kind."""


def parts_by_kind(package: Package, kinds: Mapping[str, Part]) -> dict[str, Part]:
    """The parts of a package that hold text, by their kind."""
    known = COMMON | dict(kinds)
    return {name: known[kind] for name, kind in opc.kinds(package).items() if kind in known}
