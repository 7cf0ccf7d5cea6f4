"""Markdown by markdown-it-py and its plugins: blocks and inline markup are what they find, each with its place.

Tables, footnotes, definition lists, admonitions, formulas and strikethrough are known beside CommonMark. HTML is read
as such. Fences, code, formulas, link targets and definitions, shortcodes, marks of tasks and alerts stay as they are,
and so does front matter but for titles and descriptions.
"""

import functools
import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.helpers import parseLinkLabel
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token as Found
from mdit_py_plugins.admon import admon_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin

from dragoman.formats.base import Code, Edit, Item, Options, Unit, has_letters, line_of, plain
from dragoman.formats.bilingual_html import copied
from dragoman.formats.html import attribute_units_within, units_within
from dragoman.formats.html_pieces import VOID
from dragoman.formats.inline import Kind, Token, units_of

READ_IN_FRONT = frozenset({
    "title", "linkTitle", "subtitle", "description", "summary", "excerpt", "tagline", "caption", "abstract", "lead",
    "heading", "sidebar_label", "alt",
})  # fmt: skip
"""Names of the values of front matter that people read."""

_FRONT = re.compile(r"(---|\+\+\+)[ \t]*\r?\n(?P<inner>.*?\n)?(?:\1|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_FIELD = re.compile(
    r"""^[ \t]*["']?(?P<name>[\w-]+)["']?[ \t]*[:=][ \t]*"""
    r"""(?P<value>"(?:[^"\\\n]|\\.)*"|'(?:[^'\n]|'')*'|[^\s"'\[{&*|>#!%@`-][^\n#]*?)"""
    r"[ \t]*(?:#[^\n]*)?\r?$",
    re.MULTILINE,
)
_TEMPLATE = re.compile(
    r"\{\{[^\n]{0,500}?\}\}|\{%.{0,500}?%\}|\{[#.:][^{}\n]{1,200}\}|\{\w+\}`[^`\n]{0,500}`", re.DOTALL
)
"""Shortcodes, code of templates, attributes and roles."""
_BEFORE = re.compile(
    r"(?:\[[ xX]\](?=\s)|\[![A-Za-z]{1,20}\][-+]?|:{3,}[ \t]*(?:\{[^{}\n]*\}|[\w-]*)|\[TOC\]|\[\[toc\]\])[ \t]*"
)
"""The mark of a task, an alert or a container before a line's text."""
_TAB = re.compile(r'^([ \t]*)={3}[!+]*[ \t]+(?=")', re.MULTILINE)
_ALONE = frozenset({"footnote_ref", "footnote_anchor", "template", "note"})
_WHOLE = frozenset({"code_inline", "math_inline", "math_inline_double", "autolink"})

_PICTURE = re.compile(r" *!\[(?:[^\[\]\\]|\\.)*\](?:\([^()\n]*\)|\[[^\]\n]*\])?")
"""A picture, which comes once."""
_TARGET = re.compile(r"\]\([^()\n]*\)|\]\[[^\]\n]*\]")

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
    """True for a paragraph beside which another one may stand."""
    lost: str = ""
    """A text that is not in the file as it reads."""


def inner_units(text: str, options: Options) -> Iterator[Unit]:
    """Notes that stand in a text (`^[...]`), and the attributes that people read in HTML."""
    for place in _found(text):
        if place.block is None:
            yield from attribute_units_within(text, place.start, place.end)
            continue
        for one in place.children:
            if "span" in one.meta and one.type == "html_inline":
                start, end = map(place.block.place, one.meta["span"])
                yield from attribute_units_within(text, start, end)
            elif one.type == "note":
                render = functools.partial(_render, place.block.is_cell)
                yield from units_of(list(place.block.note_tokens(one)), place.where, render, source=text)


def units(text: str, options: Options) -> Iterator[Unit]:
    """The titles of the front matter, paragraphs, headings, items and cells of tables."""
    front = _FRONT.match(text)
    if front and front["inner"]:
        yield from _front_units(text, *front.span("inner"))
    for place in _found(text):
        if place.lost:
            reason = "text that is not in the file as it reads"
            yield Unit((place.lost,), place.start, place.end, plain, place.where, kept=reason)
        elif place.block is None:
            yield from units_within(text, place.start, place.end, options)
        else:
            tokens = list(place.block.tokens(place.children))
            render = functools.partial(_render, place.block.is_cell)
            for unit in units_of(tokens, place.where, render, source=text):
                beside = functools.partial(place.block.beside, place.is_apart)
                yield replace(unit, beside=beside) if options.bilingual else unit


def _found(text: str) -> Iterator[_Place]:
    """The blocks of text and of HTML, in order."""
    front = _FRONT.match(text)
    begin = front.end() if front else 0
    starts = [begin, *(match.end() for match in re.compile("\n").finditer(text, begin)), len(text) + 1]
    first_line = text.count("\n", 0, begin) + 1
    at = begin
    is_cell = is_apart = False
    notes = 0
    for token in _parser().parse(_TAB.sub(r"\1!!! tab ", text[begin:])):
        notes += token.nesting * token.type.startswith(("footnote_", "dd_"))
        if token.type.endswith("_open"):
            is_cell = token.type in ("td_open", "th_open")
            is_apart = token.type == "paragraph_open" and not token.hidden and not notes
        if token.map is None:
            continue
        where = f"line {first_line + token.map[0]}"
        if token.type == "html_block":
            start, end = starts[token.map[0]], min(starts[token.map[1]], len(text))
            if text[start:end].strip() == token.content.strip():  # not in a quotation, whose lines have marks
                yield _Place(start, end, where)
                at = max(at, end)
        if token.type != "inline" or not token.content.strip():
            continue
        at = max(at, starts[token.map[0]])
        limit = starts[min(max(token.map[1], token.map[0] + 1), len(starts) - 1)] - 1
        lines = token.content.split("\n")
        places = _places(text, [line.replace("|", "\\|") if is_cell else line for line in lines], at, limit)
        if places is None:
            yield _Place(at, at, where, lost=token.content)
            continue
        at = places[-1][1]
        block = _Block(text, lines, places, is_cell)
        yield _Place(places[0][0], at, where, block, token.children or (), is_apart)


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
        self.begins = [0]
        """Of each line: its first character, counted in the block."""
        for line in lines:
            self.begins.append(self.begins[-1] + len(line) + 1)
        self.marks = [_BEFORE.match(text, *place) for place in places]

    def place(self, at: int) -> int:
        """Where a character of the block stands in the file."""
        number = next(number for number in reversed(range(len(self.lines))) if self.begins[number] <= at)
        start, end = self.places[number]
        inside = self.lines[number][: at - self.begins[number]]
        lead = 0 if self.text.startswith(self.lines[number][:1], start) else len(inside) - len(inside.lstrip())
        return min(start + len(inside) - lead + (inside.count("|") if self.is_cell else 0), end)

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
        """Codes in order, and the texts between them."""
        for code in sorted(codes, key=lambda code: (code.start, -code.end)):
            if code.start < done:
                continue
            if done < code.start:
                yield Token("text", done, code.start, self.text[done : code.start])
            yield code
            done = code.end
        if done < end:
            yield Token("text", done, end, self.text[done:end])

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
        return next(number for number, (_, end) in enumerate(self.places) if at <= end)

    def _breaks(self, children: Sequence[Found]) -> Iterator[Token]:
        """Line ends, of which some part texts, and the marks before lines."""
        hard = {one.meta["span"][0] for one in children if one.type == "hardbreak" and "span" in one.meta}
        if first := self.marks[0]:
            yield Token("break", *first.span(), first.group())
        for number in range(1, len(self.lines)):
            before, (start, _) = self.places[number - 1], self.places[number]
            mark, previous = self.marks[number], self.marks[number - 1]
            end = mark.end() if mark else start
            is_hard = any(self.begins[number - 1] <= at < self.begins[number] for at in hard)
            is_apart = self.text.startswith("$$", start) or self.text.endswith("$$", *before)
            is_apart = is_apart or any(
                _TEMPLATE.fullmatch(self.text, *line) for line in self.places[number - 1 : number + 1]
            )
            if previous is not None:
                is_apart = is_apart or previous.end() >= before[1] or previous[0].startswith(":")
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
                yield Token("protected", start, end, raw)
            elif one.type in _ALONE or not one.nesting:
                yield Token("alone", start, end, raw)
            else:
                name = one.type.rpartition("_")[0]
                kind: Kind = "open" if one.nesting > 0 else "close"
                yield Token(kind, start, end, raw, name, name in ("em", "strong", "s"))

    def _target(self, name: str, begin: int, middle: int, end: int) -> Token:
        """The end of a link; one whose text, which is translated, is its label, too, says its label from now on."""
        raw = self.text[middle:end]
        if raw in ("]", "][]"):
            return Token("close", middle, end, f"][{self.text[begin:middle]}]", name, fixed=True)
        return Token("close", middle, end, raw, name)


def _tag(start: int, end: int, raw: str) -> Token:
    name = re.sub(r"[</>]|[\s].*", "", raw, flags=re.DOTALL).lower()
    is_alone = raw.endswith("/>") or raw.startswith(("<!", "<?")) or name in VOID
    kind: Kind = "alone" if is_alone else "close" if raw.startswith("</") else "open"
    return Token("break" if name == "br" else kind, start, end, raw, f"<{name}")


# -- the parser ----------------------------------------------------------------------------------------------------


@functools.cache
def _parser() -> MarkdownIt:
    """markdown-it with the plugins, whose inline tokens say where they stand in their block (`meta["span"]`)."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
    parser.use(footnote_plugin, inline=False, move_to_end=False, always_match_refs=True)
    parser.use(deflist_plugin).use(admon_plugin)
    parser.use(dollarmath_plugin, allow_space=False, allow_digits=False, double_inline=True)
    parser.inline.ruler.before("escape", "template", _template)
    parser.inline.ruler.before("escape", "note", _note)
    for rule in [*parser.inline.ruler.__rules__]:
        if rule.name != "text":
            parser.inline.ruler.at(rule.name, _recorded(rule.name, rule.fn))
    return parser


def _template(state: StateInline, silent: bool) -> bool:
    """A rule for shortcodes and code of templates."""
    match = _TEMPLATE.match(state.src, state.pos) if state.src[state.pos] == "{" else None
    if match is None:
        return False
    if not silent:
        state.push("template", "", 0)
    state.pos = match.end()
    return True


def _note(state: StateInline, silent: bool) -> bool:
    """A rule for notes that stand in a text, as Pandoc has them: `^[...]`."""
    begin = state.pos + 2
    end = parseLinkLabel(state, begin - 1) if state.src.startswith("^[", state.pos) else -1
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
        begin = start + (2 if name == "image" else 1)
        label = (begin, parseLinkLabel(state, begin - 1, name == "link")) if is_link else (0, 0)
        if not rule(state, silent):
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
    for match in _FIELD.finditer(text, begin, end):
        if match["name"] not in READ_IN_FRONT:
            continue
        written = match["value"]
        said = _unquoted(written)
        if said is None or not has_letters(said):
            continue
        render = functools.partial(_quoted, written[0])
        where = f"line {line_of(text, match.start('value'))}, {match['name']}"
        yield Unit((said,), *match.span("value"), render, where)


def _unquoted(written: str) -> str | None:
    """The text of a value; None for one with escapes that are not JSON's."""
    if written[0] == '"':
        try:
            return str(json.loads(written))
        except ValueError:
            return None
    return written[1:-1].replace("''", "'") if written[0] == "'" else written


def _quoted(quote: str, items: Sequence[Item]) -> str:
    said = plain(items)
    if quote == "'" and "'" not in said:
        return f"'{said}'"
    needs_none = quote not in "\"'" and re.fullmatch(r"[^\W\d_](?:[^:#\n\"]|:(?=\S)|#)*", said) and " #" not in said
    return said if needs_none and said.strip() == said else json.dumps(said, ensure_ascii=False)


# -- writing -------------------------------------------------------------------------------------------------------


def _render(is_cell: bool, items: Sequence[Item]) -> str:
    out = ""
    for item, following in itertools.zip_longest(items, items[1:]):
        out += item.raw if isinstance(item, Code) else _escaped(item, out)
        if isinstance(following, Code) and following.raw == "[" and out.endswith("!"):  # that is no picture
            out = out[:-1] + "\\!"
    return re.sub(r"(?<!\\)\|", r"\\|", out) if is_cell else out


def _escaped(text: str, before: str) -> str:
    """Text in which nothing is read as markup that is none."""
    text = re.sub(r"([\\`*\[\]<]|~(?=~))|&(?=#?\w{1,31};)", lambda match: f"\\{match.group()}", text)
    text = re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)
    if not before or before.endswith("\n"):  # at the beginning of a line
        text = re.sub(r"^(\d{1,9})([.)])(?=\s)", r"\1\\\2", text)
        text = re.sub(r"^(#{1,6}(?=\s|$)|>|[-+](?=\s|$)|=+$|-+$|~~~)", r"\\\1", text)
    return text
