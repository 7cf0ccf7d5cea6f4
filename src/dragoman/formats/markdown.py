"""Markdown by markdown-it-py and its plugins: blocks and inline markup are what they find, each with its place.

Tables, footnotes, definition lists, admonitions, formulas and strikethrough are known beside CommonMark. HTML is read
as such. Fences, code, formulas, link targets and definitions, shortcodes, marks of tasks and alerts stay as they are,
and so does front matter but for titles and descriptions.
"""

import bisect
import functools
import html
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference
from markdown_it.helpers import parseLinkDestination, parseLinkTitle
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token as Found
from mdit_py_plugins.admon import admon_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin

from dragoman.errors import DragomanError
from dragoman.formats import yaml_strings
from dragoman.formats.base import Code, Edit, Item, Options, Unit, has_letters, line_of, plain, spliced
from dragoman.formats.bilingual_html import copied
from dragoman.formats.emphasis import beside_letters
from dragoman.formats.html import attribute_units_within, statement, units_within
from dragoman.formats.html_pieces import VOID, Tag
from dragoman.formats.inline import Kind, Token, units_of

READ_IN_FRONT = frozenset({
    "title", "linkTitle", "subtitle", "description", "summary", "excerpt", "tagline", "caption", "abstract", "lead",
    "heading", "sidebar_label", "alt",
})  # fmt: skip
"""Names of the values of front matter that people read."""

_FRONT = re.compile(
    r"(?:(---|\+\+\+)[ \t]*\r?\n(?P<inner>.*?\n)?(?:\1|\.\.\.)[ \t]*(?:\r?\n|\Z)"
    r"|(?P<bare>(?i:title|subtitle|summary|authors?|template)[ \t]*:[ \t]*\S[^\n]*\n"
    r"(?:[A-Za-z][\w -]*:[^\n]*\n|[ \t]+\S[^\n]*\n)*)(?=\r?\n))",
    re.DOTALL,
)
"""YAML or TOML before the text, or the lines of MultiMarkdown (MkDocs)."""
_FIELD = re.compile(
    r"""^[ \t]*["']?(?P<name>[\w-]+)["']?[ \t]*[:=][ \t]*"""
    r"""(?P<value>"(?:[^"\\\n]|\\.)*"|'(?:[^'\n]|'')*'|[^\s"'\[{&*|>#!%@`-][^\n#]*?)"""
    r"[ \t]*(?:#[^\n]*)?\r?$",
    re.MULTILINE,
)
_LINES = re.compile(
    r"^(?P<name>[\w-]+):[^\n]*\n(?:[ \t]*\r?\n)*(?:[ \t]+(?!- |[\w-]+:\s)\S[^\n]*\n(?:[ \t]*\r?\n)*)+", re.MULTILINE
)
"""A value of several lines in YAML."""
_CODE = r"\{\{[^\n]{0,500}?\}\}|\{%.{0,500}?%\}"
_ATTRIBUTES = re.compile(r"\{[ \t]*(?:[#.:][^{}\n]{1,200}|[\w-]{1,50}=[^{}\n]{1,200}|-)\}")
_OF_CODE = r"(?:highlight|mermaid|codeblock|katex|math|plantuml|chart|comment)\b"
_BLOCK_OF_CODE = re.compile(
    rf"\{{\{{[<%][ \t]*(?P<word>{_OF_CODE})(?:(?!```).){{0,5000}}?\{{\{{[<%][ \t]*/[ \t]*(?P=word)[ \t]*[%>]\}}\}}"
    rf"|\{{%-?[ \t]*(?P<other>{_OF_CODE})(?:(?!```).){{0,5000}}?\{{%-?[ \t]*end(?P=other)[ \t]*-?%\}}",
    re.DOTALL,
)
_TEMPLATE = re.compile(
    rf"{_BLOCK_OF_CODE.pattern}|{_CODE}|{_ATTRIBUTES.pattern}|\{{\w+\}}`[^`\n]{{0,500}}`",
    re.DOTALL,
)
"""Shortcodes, code of templates and blocks of code between two, attributes and roles."""
_KEPT = re.compile(
    r"\\[A-Za-z]{2,}(?:\[[^\[\]\n]*\]|\{[^{}\n]*\})*"  # TeX
    r"|\[[^\[\]\n]*(?<![\w.])@[\w:-]+[^\[\]\n]*\](?![(\[])|@[a-z]+:[\w-]+"  # citations of Pandoc
    r"|\+\+[a-z0-9]+(?:[+-][a-z0-9]+)*\+\+"  # keys of PyMdown
    r"|!\[\[[^\[\]\n]+\]\]|\[\[[^\[\]|\n]+\]\]|(?<=\s)\^[A-Za-z\d-]+(?=[ \t]*(?:\n|\Z))"  # links of a wiki
)
_PAGE = re.compile(r"\[\[[^\[\]|\n]+\|(?P<text>[^\[\]\n]+)(?=\]\])")
_PROGRAM = re.compile(
    r"import\s+(?:[^\n;]{1,500}\sfrom\s+)?[\"'][^\"'\n]+[\"']|export\s+(?:const|let|default|function|class)\b"
    r"|;?--8<--|!include\b|\{!.*!\}"
)
"""A paragraph of MDX's program, or a paragraph that reads another file in."""
_DRAWN = re.compile(
    r"^[ \t]*\+(?:[-=:]++\+)++[ \t]*+\n(?:[ \t]*+[+|][^\n]*+(?:\n|\Z))++"
    r"|^(?![ \t]*+(?:```|~~~))(?=[^\S\n]*+\S)[^\n]*+\n[ \t]*+-{2,}+(?:[ \t]++-{2,}+)++[ \t]*+\n"
    r"(?:(?![ \t]*+(?:```|~~~))(?=[^\S\n]*+\S)[^\n]*+(?:\n|\Z))++",
    re.MULTILINE,
)
"""A table of Pandoc whose columns are where its lines say."""
_LINKED = re.compile(rf"(?:\]\(|^ {{0,3}}\[[^\]\n]+\]:[ \t]+)[^()\s{{]*(?:(?:{_CODE})[^()\s{{]*)+", re.MULTILINE)
"""The address of a link with code of a template in it."""
_TITLE = re.compile(r"""\s("(?:[^"\\]|\\.)+"|'(?:[^'\\]|\\.)+'|\((?:[^()\\]|\\.)+\))[ \t\r]*\)?[ \t\r]*\Z""", re.DOTALL)
_TO_HEADING = re.compile(
    r"\]\(<?#([^\s()<>]+)|\bhref=[\"']#([^\"']+)|^ {0,3}\[[^\]\n]+\]:[ \t]*<?#([^\s<>]+)", re.MULTILINE
)
"""A link to a place in the same file."""
_NAMED = re.compile(r"\b(?:id|name)=[\"']?([^\s\"'<>]+)|\{[^{}\n]*?#([\w.:-]+)")
_DEFINITION = re.compile(r"^ {0,3}\[([^\[\]\n]+)\]:[ \t]*(?:<[^<>\n]*>|\S+)[ \t]+[\"'(][^\n]*", re.MULTILINE)
_BEFORE = re.compile(
    r"(?:\[[ xX]\](?=\s)|\[![A-Za-z]{1,20}\][-+]?|:{3,}[ \t]*(?:\{[^{}\n]*\}|[\w-]*\[?)|\[TOC\]|\[\[toc\]\]"
    r"|%(?=[ \t])|\*\[[^\]\n]+\]:|\|(?=\s)|\(@[\w-]*\)(?=\s)|#\.(?=\s))[ \t]*"
)
"""The mark of a task, an alert, a container, a short form, a line of verse or an item before a line's text."""
_TAB = re.compile(r'^([ \t]*)={3}[!+]*[ \t]+(?=")', re.MULTILINE)
_ALONE = frozenset({"footnote_ref", "footnote_anchor", "note"})
_READING = frozenset({"<rt", "<rp"})
_WHOLE = frozenset({"code_inline", "math_inline", "math_inline_double", "autolink", "kept"})

_PICTURE = re.compile(r" *!\[(?:[^\[\]\\]|\\.)*\](?:\([^()\n]*\)|\[[^\]\n]*\])?")
"""A picture, which comes once."""
_TARGET = re.compile(r"\]\([^()\n]*\)|\]\[[^\]\n]*\]")

MAX_PICTURES = 20
"""Pictures in the descriptions of pictures."""
LABEL_STEPS = 8
"""Steps of the search for the ends of labels, for each character of a file: where brackets without an end would take
quadratic time, those that come later are text."""

Place = tuple[int, int]
"""Where a line begins and ends in the file."""


class _Place(NamedTuple):
    """A block of HTML, or a block of text and its tokens."""

    start: int
    end: int
    where: str
    block: "_Block | None" = None
    children: Sequence[Found] = ()
    is_apart: bool = False
    """True for a paragraph, or HTML, beside which another one may stand."""
    is_heading: bool = False
    lost: str = ""
    """A text that is left as it is."""
    reason: str = "text that is not in the file as it reads"
    marks: tuple[Place, ...] = ()
    """Marks of the quotation that a block of HTML is in: they stand between its lines and are no HTML."""


def inner_units(text: str, options: Options) -> Iterator[Unit]:
    """Notes that stand in a text (`^[...]`), and the attributes that people read in HTML."""
    places = list(_found(text))
    bare = _bare(text, places)
    for place in places:
        if place.block is None:
            of_html = attribute_units_within(bare, place.start, place.end)
            yield from map(_over_lines, of_html) if place.marks else of_html
            continue
        for one in place.children:
            if "span" in one.meta and one.type in ("link_close", "image"):
                start, end = map(place.block.place, one.meta["span"])
                yield from _title_of(text, start, end, place.where)
            elif "span" in one.meta and one.type == "html_inline":
                start, end = map(place.block.place, one.meta["span"])
                yield from attribute_units_within(text, start, end)
            elif one.type == "note":
                tokens = list(place.block.note_tokens(one))
                yield from units_of(tokens, place.where, place.block.render, source=text)


def units(text: str, options: Options) -> Iterator[Unit]:
    """The titles of the front matter, paragraphs, headings, items and cells of tables."""
    front = _FRONT.match(text)
    if front and (front["inner"] or front["bare"]):
        yield from _front_units(text, *front.span("inner" if front["inner"] else "bare"))
    anchors = _Anchors(text)
    places = list(_found(text))
    bare = _bare(text, places)
    for place in places:
        anchor = anchors.of(place.children) if place.is_heading else ()
        if place.lost:
            yield Unit((place.lost,), place.start, place.end, plain, place.where, kept=place.reason)
        elif place.block is None:
            of_html = units_within(bare, place.start, place.end, options)
            is_safe = place.is_apart or not options.bilingual
            yield from of_html if is_safe and not place.marks else map(_over_lines, of_html)
        else:
            tokens = list(place.block.tokens(place.children))
            for unit in units_of(tokens, place.where, place.block.render, source=text):
                beside = functools.partial(place.block.beside, place.is_apart) if options.bilingual else None
                also = tuple(Edit(unit.start, unit.start, one) for one in anchor)
                yield replace(unit, beside=beside, also=also)
                anchor = ()


class _Anchors:
    """Link targets of a file that are named after a heading. A translated heading would get another name. Names are
    made as GitHub, Docusaurus and MkDocs make them.
    """

    def __init__(self, text: str) -> None:
        self.linked = {unquote(match[match.lastindex or 0]) for match in _TO_HEADING.finditer(text)}
        self.linked -= {name for pair in _NAMED.findall(text) for name in pair}
        self.used: Counter[str] = Counter()

    def of(self, heading: Sequence[Found]) -> tuple[str, ...]:
        """The anchor that a heading needs if its text changes; none without a link to it."""
        text = "".join(one.content for one in heading if one.type in ("text", "code_inline"))
        name = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
        number = self.used[name]
        self.used[name] += 1
        name = f"{name}-{number}" if number else name
        return (f'<a id="{name}"></a>',) if name in self.linked else ()


def _found(text: str) -> Iterator[_Place]:
    """The blocks of text and of HTML, in order."""
    front = _FRONT.match(text)
    begin = front.end() if front else 0
    starts = [begin, *(match.end() for match in re.compile("\n").finditer(text, begin)), len(text) + 1]
    first_line = text.count("\n", 0, begin) + 1
    at = begin
    is_cell = is_apart = is_heading = False
    notes = 0
    read, drawn = _readable(text)
    for table in drawn:
        yield _Place(
            begin, begin, f"line {line_of(text, table.start())}", lost=table[0], reason="tables that are drawn"
        )
    for token in _parsed(read[begin:])[0]:
        notes += token.nesting * token.type.startswith(("footnote_", "dd_"))
        if token.type.endswith("_open"):
            is_cell = token.type in ("td_open", "th_open")
            is_heading = token.type == "heading_open"
            is_apart = token.type == "paragraph_open" and not token.hidden and not notes
        if token.map is None:
            continue
        where = f"line {first_line + token.map[0]}"
        if token.type == "html_block":
            end = min(starts[token.map[1]], len(text))
            lines = token.content.split("\n")
            places = _places(read, lines, max(at, starts[token.map[0]]), end)
            if places is None:
                yield _Place(at, at, where, lost=token.content)
                continue
            is_alone = not text[starts[token.map[0]] : places[0][0]].strip()
            yield _Place(places[0][0], end, where, is_apart=is_alone, marks=tuple(_marks(text, places)))
            at = max(at, end)
        if token.type != "inline" or not token.content.strip():
            continue
        at = max(at, starts[token.map[0]])
        limit = starts[min(max(token.map[1], token.map[0] + 1), len(starts) - 1)] - 1
        lines = token.content.split("\n")
        if _PROGRAM.match(token.content):
            yield _Place(at, at, where, lost=token.content, reason="code")
            continue
        places = _places(read, [line.replace("|", "\\|") if is_cell else line for line in lines], at, limit)
        if places is None:
            yield _Place(at, at, where, lost=token.content)
            continue
        at = places[-1][1]
        block = _Block(text, lines, places, is_cell)
        yield _Place(places[0][0], at, where, block, token.children or (), is_apart, is_heading)


def _readable(text: str) -> tuple[str, list[re.Match[str]]]:
    """(a text as long in which the parser finds every link, without the tables that are drawn; those tables)."""
    read = _LINKED.sub(lambda match: re.sub(_CODE, lambda code: "x" * len(code[0]), match[0]), text)
    read = _BLOCK_OF_CODE.sub(lambda match: _blank(match) if "\n" in match[0] else match[0], read)
    return _DRAWN.sub(_blank, read), list(_DRAWN.finditer(read))


@functools.lru_cache(maxsize=1)  # three passes look at a text, one after the other
def _parsed(text: str) -> tuple[list[Found], dict[str, Any]]:
    """The parser's tokens, and the definitions of links by name."""
    env: dict[str, Any] = {"label steps": 1000 + LABEL_STEPS * len(text), "pictures": 0}
    tokens = _parser().parse(_TAB.sub(r"\1!!! tab ", text), env)
    return tokens, env.get("references", {})


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _title_of(text: str, start: int, end: int, where: str) -> Iterator[Unit]:
    """The title of a link or a picture, from the end of its text on."""
    match = _TITLE.search(text[start:end])
    if match is None or not has_letters(match[1]):
        return
    begin, quotes = start + match.start(1) + 1, match[1][0] + match[1][-1]
    title = html.unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", match[1][1:-1]))
    render = functools.partial(_titled, quotes)
    yield Unit((" ".join(title.split()),), begin, begin + len(match[1]) - 2, render, f"{where}, title")


def _titled(quotes: str, items: Sequence[Item]) -> str:
    return re.sub(rf"[\\{re.escape(quotes)}]|&(?=#?\w{{1,31}};)", r"\\\g<0>", plain(items))


def title_units(text: str, options: Options) -> Iterator[Unit]:
    """The titles of links in definitions (`[name]: address "title"`)."""
    front = _FRONT.match(text)
    begin = front.end() if front else 0
    starts = [begin, *(match.end() for match in re.compile("\n").finditer(text, begin)), len(text) + 1]
    read, _ = _readable(text)
    tokens, references = _parsed(read[begin:])
    of_code = [token.map for token in tokens if token.map and token.type in ("fence", "code_block", "html_block")]
    lines = {line for first, last in of_code for line in range(first, last)}
    for match in _DEFINITION.finditer(read, begin):
        line = bisect.bisect_right(starts, match.start()) - 1
        if normalizeReference(match[1]) in references and line not in lines:
            yield from _title_of(
                text, match.start() + len(match[1]), match.end(), f"line {line_of(text, match.start())}"
            )


def _marks(text: str, places: Sequence[Place]) -> Iterator[Place]:
    """The marks of a quotation before each line of a block but the first."""
    for (_, end), (start, _) in itertools.pairwise(places):
        yield from (mark.span() for mark in re.compile(">").finditer(text, end, start))


def _bare(text: str, places: Iterable[_Place]) -> str:
    """A text of the same length with blanks in the place of the marks in blocks of HTML."""
    edits = [Edit(start, end, " " * (end - start)) for place in places for start, end in place.marks]
    return spliced(text, edits) if edits else text


def _over_lines(unit: Unit) -> Unit:
    """A text in a quotation, kept if it writes a line, which would have no mark."""
    raw = "".join(item if isinstance(item, str) else item.raw for item in unit.items)
    is_apart = "\n" in raw or unit.beside is not None
    return replace(unit, kept="HTML that would need new lines in a quotation or an item") if is_apart else unit


def _places(text: str, lines: Sequence[str], at: int, limit: int) -> list[Place] | None:
    """The places of a block's lines; None where the parser has changed one."""
    places: list[Place] = []
    for line in lines:
        bare = line.strip()
        place = text.find(bare, at, limit + 1)
        if place < 0:
            return None
        lead = len(line) - len(line.lstrip())
        at = place + len(bare)
        places.append((place - lead if text[place - lead : place] == line[:lead] else place, at))
    return places


class _Block:
    """A block of text: its lines as the parser reads them, and where these stand in the file."""

    def __init__(self, text: str, lines: Sequence[str], places: Sequence[Place], is_cell: bool) -> None:
        self.text, self.lines, self.places, self.is_cell = text, lines, places, is_cell
        self.ends = [end for _, end in places]
        self.begins = [0]
        """Of each line: its first character, counted in the block."""
        for line in lines:
            self.begins.append(self.begins[-1] + len(line) + 1)
        self.marks = [_BEFORE.match(text, *place) for place in places]
        self.leads = [
            0 if text.startswith(line[:1], start) else len(line) - len(line.lstrip())
            for line, (start, _) in zip(lines, places, strict=True)
        ]
        """Of each line: the blanks before it that are not in the file."""
        self.bars = [[match.start() for match in re.finditer(r"\|", line)] if is_cell else [] for line in lines]

    def place(self, at: int) -> int:
        """Where a character of the block stands in the file."""
        number = min(bisect.bisect_right(self.begins, at), len(self.lines)) - 1
        start, end = self.places[number]
        inside = min(at - self.begins[number], len(self.lines[number]))
        escapes = bisect.bisect_left(self.bars[number], inside)  # a bar is one of two characters in the file
        return min(start + inside - min(self.leads[number], inside) + escapes, end)

    def tokens(self, children: Sequence[Found]) -> Iterator[Token]:
        """The tokens of the block, in order."""
        codes = [*self._codes(children, 0), *self._breaks(children)]
        if self.is_cell:  # a bar in a cell parts texts
            codes += [
                Token("break", *match.span(), match.group())
                for match in re.compile(r"\\\|").finditer(self.text, *self.places[0])
            ]
        yield from self._with_texts(codes, self.places[0][0], self.places[-1][1])

    def note_tokens(self, note: Found) -> Iterator[Token]:
        """The tokens of a note that stands in the block."""
        begin, end = note.meta["label"]
        yield from self._with_texts(list(self._codes(note.children or [], begin)), self.place(begin), self.place(end))

    def _with_texts(self, codes: Sequence[Token], done: int, end: int) -> Iterator[Token]:
        """Codes in order, and the texts between them but for readings above words."""
        is_reading = False
        for code in sorted(codes, key=lambda code: (code.start, -code.end)):
            if code.start < done:
                continue
            if done < code.start and not is_reading:
                yield Token("text", done, code.start, self.text[done : code.start])
            is_of_reading = code.name in _READING
            is_reading = code.kind == "open" and is_of_reading
            yield code._replace(kind="alone", fixed=True) if is_of_reading else code
            done = code.end
        if done < end:
            yield Token("text", done, end, self.text[done:end])

    def render(self, items: Sequence[Item]) -> str:
        """Items as Markdown has them; brackets are escaped if those of the source are."""
        has_escapes = "\\[" in self.text[self.places[0][0] : self.places[-1][1]]
        out = ""
        items = beside_letters(items)
        for item, following in itertools.zip_longest(items, items[1:]):
            out += item.raw if isinstance(item, Code) else _escaped(item, out, has_escapes)
            if isinstance(following, Code) and following.raw == "[" and out.endswith("!"):  # that is no picture
                out = out[:-1] + "\\!"
        return re.sub(r"(?<!\\)\|", r"\\|", out) if self.is_cell else out

    def beside(self, is_apart: bool, unit: Unit, items: Sequence[Item]) -> Iterator[Edit]:
        """A translation in a paragraph below the one of its source (`is_apart`), quoted or part of an item as that is;
        or after its source, with a line break between, where a paragraph would be another block: in headings, cells,
        items of lists without blank lines, notes."""
        begin, end = (self._line_at(at) for at in (unit.start, unit.end))
        mark, place = self.marks[begin], self.places[end][1]
        start = max(self.places[begin][0], mark.end() if mark else 0)
        written = unit.render(items)
        whole = _PICTURE.sub("", f"{self.text[start : unit.start]}{written}{self.text[unit.end : place]}").strip()
        if not has_letters(_TARGET.sub("", whole)):  # a picture's description alone
            yield Edit(unit.start, unit.end, written)
        elif not is_apart:
            yield Edit(unit.end, unit.end, f"<br>{copied(_PICTURE.sub('', written).strip())}")
        else:
            first = self.places[0][0]
            before = re.sub(r"[^\s>]", " ", self.text[self.text.rfind("\n", 0, first) + 1 : first])
            newline = "\r\n" if "\r\n" in self.text else "\n"
            yield Edit(place, place, newline + before.rstrip() + newline + before + copied(whole))

    def _line_at(self, at: int) -> int:
        """The number of the line that a place of the file stands in."""
        return bisect.bisect_left(self.ends, at)

    def _breaks(self, children: Sequence[Found]) -> Iterator[Token]:
        """Line ends, and the marks before lines. Some line ends part texts."""
        hard = {
            bisect.bisect_right(self.begins, one.meta["span"][0])
            for one in children
            if one.type == "hardbreak" and "span" in one.meta
        }
        if first := self.marks[0]:
            yield Token("break", *first.span(), first.group())
            if first[0].endswith("[") and self.text[self.places[0][1] - 1] == "]":  # `:::note[A title]`
                yield Token("break", self.places[0][1] - 1, self.places[0][1], "]")
        for number in range(1, len(self.lines)):
            before, (start, _) = self.places[number - 1], self.places[number]
            mark, previous = self.marks[number], self.marks[number - 1]
            end = mark.end() if mark else start
            is_hard = number in hard
            is_apart = self.text.startswith("$$", start) or self.text.endswith("$$", *before)
            is_apart = is_apart or any(
                _TEMPLATE.fullmatch(self.text, *line) for line in self.places[number - 1 : number + 1]
            )
            if previous is not None:
                is_apart = is_apart or previous.end() >= before[1] or previous[0].startswith((":", "[!"))
            begin = before[1] - (is_hard and self.text.endswith("\\", *before))
            if mark or is_apart or is_hard:
                yield Token("break", begin, end, self.text[begin:end])
            else:
                yield Token("text", before[1], start, " ")

    def _codes(self, children: Sequence[Found], offset: int) -> Iterator[Token]:
        """The codes among the parser's tokens. `offset`: where in the block their text begins."""
        for one in children:
            if "span" not in one.meta or one.type in ("softbreak", "hardbreak", "text"):
                continue
            first, last = (at + offset for at in one.meta["span"])
            if one.type.startswith("strong"):  # it is the inner one of two marks
                first, last = (first - 1, last) if one.nesting > 0 else (first, last + 1)
            start, end = self.place(first), self.place(last)
            raw = self.text[start:end]
            if one.type == "image":
                middle = self.place(offset + one.meta["label"][1])
                yield Token("open", start, start + 2, "![", "image")
                yield from self._codes(one.children or [], offset + one.meta["label"][0])
                yield self._target("image", start + 2, middle, end)
            elif one.type == "link_close":
                yield self._target("link", self.place(offset + one.meta["label"][0]), start, end)
            elif one.type == "text_special":
                yield Token("text", start, end, one.content)
            elif one.type == "html_inline":
                yield _tag(start, end, raw)
            elif one.type in _WHOLE:
                attributes = _ATTRIBUTES.match(self.text, end)
                end = attributes.end() if attributes else end
                yield Token("protected", start, end, self.text[start:end])
            elif one.type == "template":
                of_template, word = statement(raw)
                yield Token(of_template, start, end, raw, word)
            elif one.type in _ALONE or not one.nesting:
                yield Token("alone", start, end, raw)
            else:
                name = one.type.rpartition("_")[0]
                kind: Kind = "open" if one.nesting > 0 else "close"
                yield Token(kind, start, end, raw, name, name in ("em", "strong", "s"))

    def _target(self, name: str, begin: int, middle: int, end: int) -> Token:
        """The end of a link; one whose text, which is translated, is its label, too, says its label from now on.
        Attributes of a link (`{target=_blank}`) stand close to it."""
        attributes = _ATTRIBUTES.match(self.text, end)
        if attributes and self.text[middle:end] not in ("]", "][]"):
            end = attributes.end()
        raw = self.text[middle:end]
        if raw in ("]", "][]"):
            return Token("close", middle, end, f"][{self.text[begin:middle]}]", name, fixed=True)
        return Token("close", middle, end, raw, name)


def _tag(start: int, end: int, raw: str) -> Token:
    name = re.sub(r"[</>]|[\s].*", "", raw, flags=re.DOTALL).lower()
    is_alone = Tag(0, len(raw), raw, name).closes_itself or raw.startswith(("<!", "<?")) or name in VOID
    kind: Kind = "alone" if is_alone else "close" if raw.startswith("</") else "open"
    return Token("break" if name == "br" else kind, start, end, raw, f"<{name}")


# -- the parser ----------------------------------------------------------------------------------------------------


@functools.cache
def _parser() -> MarkdownIt:
    """markdown-it with the plugins, whose inline tokens say where they stand in their block (`meta["span"]`)."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
    helpers: Any = SimpleNamespace(
        parseLinkLabel=_label_end, parseLinkDestination=parseLinkDestination, parseLinkTitle=parseLinkTitle
    )
    parser.helpers = helpers
    parser.use(footnote_plugin, inline=False, move_to_end=False, always_match_refs=True)
    parser.use(deflist_plugin).use(admon_plugin)
    parser.use(dollarmath_plugin, allow_space=False, allow_digits=False, double_inline=True)
    parser.inline.ruler.before("escape", "template", _whole("template", _TEMPLATE, "{"))
    parser.inline.ruler.before("escape", "kept", _whole("kept", _KEPT, "\\![@+^"))
    parser.inline.ruler.before("escape", "note", _note)
    parser.inline.ruler.before("escape", "span", _span)
    for rule in [*parser.inline.ruler.__rules__]:
        if rule.name != "text":
            parser.inline.ruler.at(rule.name, _recorded(rule.name, rule.fn))
    return parser


def _label_end(state: StateInline, start: int, no_links: bool = False) -> int:
    """The end of the label that begins at a bracket; -1 if there is none, or a link in it and there may be `no_links`.

    As markdown-it's own function, but for the steps that it may take (`LABEL_STEPS`).
    """
    before, state.pos = state.pos, start + 1
    opened, steps, end = 1, state.env.get("label steps", 0), -1
    last = state.src.rfind("]", start, state.posMax)
    while state.pos <= last and steps > 0:
        place, char = state.pos, state.src[state.pos]
        opened -= char == "]"
        if not opened:
            end = place
            break
        state.md.inline.skipToken(state)
        steps -= 1
        if char == "[" and state.pos == place + 1:  # part of nothing
            opened += 1
        elif char == "[" and no_links:
            break
    state.pos, state.env["label steps"] = before, steps
    return end


def _whole(kind: str, pattern: re.Pattern[str], begins: str) -> Callable[[StateInline, bool], bool]:
    """A rule by which all that a pattern matches is one token. `begins`: the characters that it begins with."""

    def rule(state: StateInline, silent: bool) -> bool:
        match = pattern.match(state.src, state.pos) if state.src[state.pos] in begins else None
        if match is None:
            return False
        if not silent:
            state.push(kind, "", 0)
        state.pos = match.end()
        return True

    return rule


def _span(state: StateInline, silent: bool) -> bool:
    """A rule for a text with attributes, `[...]{.name}`, and for the text of a link of a wiki, `[[page|...]]`."""
    start = state.pos
    page = _PAGE.match(state.src, start)
    begin = page.start("text") if page else start + 1
    end = page.end("text") if page else _label_end(state, start) if state.src[start] == "[" else -1
    close = re.compile(r"\]\]").match(state.src, end) if page else _ATTRIBUTES.match(state.src, end + 1)
    if end < 0 or close is None:
        return False
    if not silent:
        state.push("span_open", "", 1).meta = {"span": (start, begin)}
        last, state.pos, state.posMax = state.posMax, begin, end
        state.md.inline.tokenize(state)
        state.posMax = last
        state.push("span_close", "", -1).meta = {"span": (end, close.end())}
    state.pos = close.end()
    return True


def _note(state: StateInline, silent: bool) -> bool:
    """A rule for notes that stand in a text, as Pandoc has them: `^[...]`."""
    begin = state.pos + 2
    end = _label_end(state, begin - 1) if state.src.startswith("^[", state.pos) else -1
    if end < 0:
        return False
    if not silent:
        token = state.push("note", "", 0)
        token.children = []
        state.md.inline.parse(state.src[begin:end], state.md, state.env, token.children)
        token.meta = {"label": (begin, end)}
    state.pos = end + 1
    return True


def _recorded(name: str, rule: Callable[[StateInline, bool], bool]) -> Callable[[StateInline, bool], bool]:
    """A rule whose tokens have their places."""

    def run(state: StateInline, silent: bool) -> bool:
        start, count = state.pos, len(state.tokens)
        is_link = not silent and name in ("link", "image")
        if name == "image" and state.env.get("pictures", 0) > MAX_PICTURES:
            return False
        begin = start + (2 if name == "image" else 1)
        label = (begin, _label_end(state, begin - 1, name == "link")) if is_link else (0, 0)
        state.env["pictures"] = state.env.get("pictures", 0) + (name == "image")
        is_one = rule(state, silent)
        state.env["pictures"] -= name == "image"
        if not is_one:
            return False
        new, place = state.tokens[count:], state.pos
        if silent or not new:
            return True
        if name in ("emphasis", "strikethrough"):
            for token in reversed(new):  # each mark of a run, and before it what was pending
                if place > start and token.type == "text":
                    token.meta["span"] = (place - len(token.content), place)
                    place -= len(token.content)
        elif name == "link":
            opening = next(token for token in new if token.type == "link_open" and "span" not in token.meta)
            opening.meta["span"] = (start, start + 1)
            new[-1].meta |= {"span": (label[1], place), "label": label}
        elif name == "autolink":
            new[-1].type = "autolink"
            new[-1].meta["span"] = (start, place)
        else:
            new[-1].meta = {"span": (start, place), "label": label} | new[-1].meta
        return True

    return run


# -- front matter --------------------------------------------------------------------------------------------------


def _front_units(text: str, begin: int, end: int) -> Iterator[Unit]:
    """The values of YAML and TOML that people read."""
    several = [match for match in _LINES.finditer(text, begin, end) if match["name"] in READ_IN_FRONT]
    values = [unit for match in several for unit in _units_of_lines(text, match)]
    lines = {match.start() for match in several}
    values += (unit for unit in _units_of_fields(text, begin, end) if text.rfind("\n", 0, unit.start) + 1 not in lines)
    yield from sorted(values, key=lambda unit: unit.start)


def _units_of_lines(text: str, match: re.Match[str]) -> Iterator[Unit]:
    """The text of a value of several lines."""
    try:
        units = list(yaml_strings.units(match[0], Options()))
    except DragomanError:
        return
    where = f"line {line_of(text, match.start())}, {match['name']}"
    for unit in units:
        yield replace(unit, start=match.start() + unit.start, end=match.start() + unit.end, where=where)


def _units_of_fields(text: str, begin: int, end: int) -> Iterator[Unit]:
    """The texts of values that stand in a single line."""
    for match in _FIELD.finditer(text, begin, end):
        if READ_IN_FRONT.isdisjoint((match["name"], match["name"].lower())):
            continue
        written = match["value"]
        value = _unquoted(written)
        if value is None or not has_letters(value):
            continue
        render = functools.partial(_quoted, written[0])
        where = f"line {line_of(text, match.start('value'))}, {match['name']}"
        yield Unit((value,), *match.span("value"), render, where)


def _unquoted(written: str) -> str | None:
    """The text of a value; None for a value with escapes that JSON does not have."""
    if written[0] == '"':
        try:
            return str(json.loads(written))
        except ValueError:
            return None
    return written[1:-1].replace("''", "'") if written[0] == "'" else written


def _quoted(quote: str, items: Sequence[Item]) -> str:
    text = plain(items)
    if quote == "'" and "'" not in text:
        return f"'{text}'"
    needs_none = quote not in "\"'" and re.fullmatch(r"[^\W\d_](?:[^:#\n\"]|:(?=\S)|#)*", text) and " #" not in text
    return text if needs_none and text.strip() == text else json.dumps(text, ensure_ascii=False)


# -- writing -------------------------------------------------------------------------------------------------------


_MARKS = r"\\(?=[!-/:-@\[-`{-~]|\Z)|[`*\[\]<]|~(?=~)|&(?=#?\w{1,31};)"
_CHARACTERS = re.compile(rf"(?P<whole>(?!))|{_MARKS}")
_MARKUP = re.compile(rf"(?P<whole>\[(?![ xX^!])[^\[\]\\`*<>&]*\](?![(\[:{{]))|{_MARKS}")
"""Characters of markup; what stands between brackets is a link only where a name of a link does, or with an address."""


def _escaped(text: str, before: str, escapes_brackets: bool) -> str:
    """Text with escapes before the characters that would be read as markup."""
    text = (_CHARACTERS if escapes_brackets else _MARKUP).sub(lambda match: match["whole"] or f"\\{match[0]}", text)
    text = re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)
    if not before or before.endswith("\n"):  # at the beginning of a line
        text = re.sub(r"^(\d{1,9})([.)])(?=\s)", r"\1\\\2", text)
        text = re.sub(r"^(#{1,6}(?=\s|$)|>|[-+](?=\s|$)|=+$|-+$|~~~)", r"\\\1", text)
    return text
