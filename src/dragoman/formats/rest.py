"""reStructuredText (.rst): titles, paragraphs, items, definitions, notes, texts of directives and of roles.

Code, comments, targets, substitutions, options and what unknown directives hold stay as they are.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from dragoman.formats.base import Code, Edit, Item, Options, Unit, has_letters, spliced
from dragoman.formats.inline import Token, units_of
from dragoman.formats.markup_tables import GRID, SIMPLE, Cell, Table, units_of_rows
from dragoman.formats.paragraphs import (
    Line,
    blank_after,
    display_width,
    kept_lines,
    layout,
    lines_of,
    marked_tokens,
    wrapped,
    written,
)
from dragoman.progress import say

COMMENTS, TABLES = "comments", "drawn tables whose columns cannot be read"
DIRECTIVES = "directives that hold code, or that are not known"
FIELDS, TERMS = "fields at the top, types", "terms of a glossary"

_ADMONITIONS = frozenset({
    "admonition", "attention", "caution", "danger", "error", "hint", "important", "note", "tip", "warning", "seealso",
    "todo", "topic", "sidebar", "rubric", "centered", "table", "list-table", "contents", "epigraph", "highlights",
    "pull-quote", "flat-table", "dropdown", "card", "grid-item-card", "tab-item", "tab", "details", "title", "footer",
    "header", "line-block", "compound",
})  # fmt: skip
"""Directives with text in their argument or first paragraph, and in their body."""
_VERSIONS = frozenset({"versionadded", "versionchanged", "deprecated", "versionremoved", "deprecated-removed"})
_HOLDERS = frozenset({
    "figure", "container", "class", "only", "ifconfig", "hlist", "glossary", "tabs", "tab-set", "grid", "meta",
    "option", "cmdoption", "program", "envvar", "confval", "describe", "object", "function", "data", "method", "module",
    "attribute", "exception", "setting", "templatetag", "templatefilter", "django-admin", "rst-class",
})  # fmt: skip
"""Directives with text in their body alone."""
_NAMED = frozenset(
    {"image", "include", "literalinclude", "code", "code-block", "sourcecode", "highlight", "raw", "math"}
)
"""Directives whose argument is the name of a file or of a language."""
_TEXT_OPTIONS = frozenset({"alt", "caption", "title", "subtitle", "header", "description", "keywords"})
_TITLED = frozenset({"ref", "doc", "term", "any", "numref", "download", "abbr", "guilabel", "sup", "sub", "emphasis",
                     "strong", "title", "title-reference", "subscript", "superscript", "dfn"})  # fmt: skip
_TEXT_ROLES = _TITLED - {"ref", "doc", "term", "any", "numref", "download"}
"""Roles whose text people read. The text of other roles is a name, unless it has a title."""
_CODE_ROLES = frozenset({"literal", "code", "math", "raw", "samp", "kbd", "file", "command", "program", "regexp"})
"""Roles without titles."""
_TOP_FIELDS = frozenset({
    "author", "authors", "organization", "contact", "address", "version", "revision", "status", "date", "copyright",
    "orphan", "tocdepth", "nocomments", "nosearch", "id", "maintainer", "license", "home", "tags", "slug", "category",
})  # fmt: skip

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1+")
_ITEM = re.compile(r"(?:[-*+•‣⁃]|\(?(?:\d{1,4}|[A-Za-z]|#|[ivxlcIVXLC]{2,6})[.)])(?:\s+|$)")
_FIELD = re.compile(r":(?![:\s])((?:[^:\\`]|\\.|:(?=\S)(?!`))+):(?:\s+|$)")
_OPTION = re.compile(r"(?:(?:--?|/|\+)\w[^\s,]*(?:[ =](?:<[^>]*>|[A-Za-z]\w*))?(?:, )?)+(?:\s{2,}|$)")
_EXPLICIT = re.compile(r"\.\.(?:\s+|$)")
_FOOTNOTE = re.compile(r"\[[\w#*.-]+\](?:\s+|$)")
_DIRECTIVE = re.compile(r"(?:\|(?P<sub>[^|]+)\|\s+)?(?P<name>[^\W_]+(?:[-._+:][^\W_]+)*)\s?::(?:\s+|$)")
_TARGET = re.compile(r"_(?:`|[^:]*:|_:)|__ ")

_TARGETS = re.compile(r"^[ \t]*\.\. _(?:`([^`\n]+)`|((?:[^:\n\\]|\\.|:(?=\S))+)):", re.MULTILINE)

_BEFORE, _AFTER = r"(?<![^\s\-:/'\"<(\[{‘“’«¡¿–—‐\\])", r"(?=[\s\-.,:;!?/'\")\]}>\\’”»…–—]|$)"
_PHRASE = r"(?:[^\\\n]|\\.|\n(?!\s*\n)){1,2000}?(?<!\s)"
_INLINE = re.compile(
    rf"{_BEFORE}(?:"
    rf"(?P<literal>``(?=\S).{{1,2000}}?(?<=\S)``{_AFTER})"
    rf"|(?P<role>:[\w:.+-]{{1,60}}:)`(?![\s`])(?P<of_role>{_PHRASE})`{_AFTER}"
    rf"|(?P<target>_`)(?P<of_target>[^`]{{1,500}})`{_AFTER}"
    rf"|(?P<phrase>`)(?![\s`])(?P<of_phrase>{_PHRASE})`(?P<reference>__?{_AFTER}|:[\w:.+-]{{1,60}}:|{_AFTER})"
    rf"|(?P<strong>\*\*)(?=\S)(?P<of_strong>(?:[^*\\]|\\.|\*(?!\*)){{1,2000}}?)(?<=\S)\*\*{_AFTER}"
    rf"|(?P<emphasis>\*)(?=[^\s*])(?P<of_emphasis>(?:[^*\\]|\\.){{1,2000}}?)(?<=\S)\*{_AFTER}"
    rf"|(?P<substitution>\|(?=\S)[^|\n]{{1,200}}?(?<=\S)\|(?:__?)?{_AFTER})"
    rf"|(?P<note>\[[\w#*.-]{{1,100}}\]_{_AFTER})"
    rf"|(?P<name>[A-Za-z0-9](?:[\w.+:-]{{0,200}}[A-Za-z0-9])?__?{_AFTER}))"
    r"|(?P<escape>\\(?:\s|.))",
    re.DOTALL,
)
_TITLE_AND_TARGET = re.compile(r"(?P<title>.*?\S)(?P<target>\s*(?<!\\)<[^<>]+>)", re.DOTALL)
_NEXT = Code("\0", "break")
"""Stands between the texts of a table's cells."""
_MARKED = re.compile(r"[`*|_\]]$|^[`*|_:\[]")


def units(text: str, options: Options) -> Iterator[Unit]:
    """The texts of a file in order."""
    yield from _Reader(text).units()


class _Reader:
    """A file line by line; columns say which line stands in which block."""

    def __init__(self, text: str, around: "_Reader | None" = None) -> None:
        """`around`: the file of a table, where the text is what a cell of the table holds."""
        self.text = text
        self.lines: Sequence[Line] = lines_of(text)
        self.at = 0
        self.terms: tuple[int, int] = (-1, 0)
        """The column of terms of a glossary, and the line that ends it."""
        self.is_top = around is None
        references = _references(text) if around is None else []
        own = {_name(match[1] or match[2]) for match in _TARGETS.finditer(text)}
        self.referred: frozenset[str] = (
            around.referred if around else frozenset(name for name, url in references if not url) - own
        )
        """Names of titles to which references go."""
        targets = {name: "" for name, url in references if url == "_" and name in self.referred}
        links = {name: url for name, url in references if url not in ("", "_")}
        self.urls: dict[str, str] = around.urls if around else links | targets
        """Addresses by the text of their link, which is a name, too; "" for a target in a text that keeps its name."""

    def units(self) -> Iterator[Unit]:
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if not line.text:
                self.at += 1
            else:
                yield from self._block(line, line.column)

    def _block(self, line: Line, base: int) -> Iterator[Unit]:
        """The units of a block that begins in a line, or behind a mark in it; `base`: the column of the first mark."""
        if (title := self._title(line)) is not None:
            yield from title
        elif GRID.fullmatch(line.text) or SIMPLE.fullmatch(line.text):
            yield from self._table(self._end_of_table(line))
        elif line.text.startswith(">>> "):
            yield from self._kept(DIRECTIVES, blank_after(self.lines, self.at))
        elif mark := _EXPLICIT.match(line.text):
            yield from self._explicit(line.after(mark.end()), line.column)
        elif line.text == "__" or line.text.startswith("__ "):
            self.at += 1
        elif mark := _ITEM.match(line.text):
            yield from self._rest(line.after(mark.end()), line.column)
        elif mark := _FIELD.match(line.text):
            yield from self._field(line, mark)
        elif (mark := _OPTION.match(line.text)) and mark.end() > 2:
            yield from self._rest(line.after(mark.end()), line.column)
        elif line.text == "|" or line.text.startswith("| "):
            rest = line.after(1)
            yield from self._paragraph([rest] if rest.text else [])
            self.at += 1
        else:
            yield from self._text(line, line.column)

    def _rest(self, line: Line, base: int) -> Iterator[Unit]:
        """The units of a line behind a mark; none, where its text is in the following lines."""
        if line.text:
            yield from self._block(line, base)
        else:
            self.at += 1

    def _text(self, first: Line, base: int, hanging: bool = False) -> Iterator[Unit]:
        """A paragraph, or a term. `hanging`: its further lines begin in a column of their own."""
        members = [first]
        end = self.at + 1
        while end < len(self.lines) and self.lines[end].text:
            following = self.lines[end]
            column = self.lines[self.at + 1].column if hanging else first.column
            if following.column != column or (hanging and (column <= base or _FIELD.match(following.text))):
                break
            members.append(following)
            end += 1
        is_term = len(members) == 1 and end < len(self.lines) and self.lines[end].column > first.column
        is_term = is_term and bool(self.lines[end].text)
        is_literal = members[-1].text.endswith("::")
        of_glossary = first.column == self.terms[0] and end <= self.terms[1]
        self.at = end
        self.is_top = False
        yield from self._paragraph(members, TERMS if of_glossary else "", is_term, hanging)
        if is_literal and not is_term:
            self._skip_literal(base if hanging else first.column)

    def _paragraph(
        self, members: Sequence[Line], kept: str = "", is_term: bool = False, hanging: bool = False
    ) -> Iterator[Unit]:
        if not members:
            return
        start, end = members[0].start, members[-1].end
        text = self.text[start:end]
        kind_of_term = re.search(r"\s+:\s.*$", text) if is_term else None
        end -= len((re.search(r"\s*::$", text) or kind_of_term or [""])[0])
        render = partial(_render_hanging if hanging else _render, *layout(self.text, members))
        for unit in units_of(
            list(_tokens(self.text, start, end, self.urls)), f"line {members[0].number}", render, source=self.text
        ):
            yield _with(unit, kept)

    def _title(self, line: Line) -> list[Unit] | None:
        """The unit of a title with the lines of marks below and above it; none for such a line alone."""
        below = self.lines[self.at + 1] if self.at + 1 < len(self.lines) else None
        last = self.lines[self.at + 2] if self.at + 2 < len(self.lines) else None
        is_mark = _ADORNMENT.fullmatch(line.text) is not None and line.text not in ("::", "..")
        if is_mark and below and below.text and last and (last.text, last.column) == (line.text, line.column):
            members, over = [line, below, last], True
        elif is_mark and not (below and _is_below(line, below)):
            if len(line.text) < 4:
                return None
            members, over = [line], False
        elif below and _is_below(line, below):
            members, over = [line, below], False
        else:
            return None
        self.at += len(members)
        if len(members) == 1:
            return []
        title, under = (members[1], members[2]) if over else (members[0], members[1])
        name = _name(title.text)
        target = f".. _`{name}`:\n\n" if name in self.referred and name not in self.urls else ""
        render = partial(_titled, self.text, members[0].start if over else None, title, under, target)
        parts = list(
            units_of(list(_tokens(self.text, title.start, title.end, self.urls)), f"line {title.number}", render)
        )
        return [
            _with(unit, "", members[0].start, under.end)
            if (unit.start, unit.end) == (title.start, title.end)
            else _with(unit, "a title with codes around it")
            for unit in parts
        ]

    def _field(self, line: Line, mark: re.Match[str]) -> Iterator[Unit]:
        name = mark[1].lower()
        rest = line.after(mark.end())
        is_left = (self.is_top and line.column == 0 and name in _TOP_FIELDS) or re.match(r"r?type\b|vartype", name)
        if is_left or not rest.text:
            if rest.text:
                yield from kept_lines(self.text, [rest], FIELDS)
            self.at += 1
        else:
            yield from self._text(rest, line.column, hanging=True)

    def _explicit(self, line: Line, base: int) -> Iterator[Unit]:
        """A note, a target, a directive or a comment."""
        if mark := _FOOTNOTE.match(line.text):
            rest = line.after(mark.end())
            if _EXPLICIT.match(rest.text):
                yield from self._block(rest, base)
            elif rest.text:
                yield from self._text(rest, base, hanging=True)
            else:
                self.at += 1
        elif _TARGET.match(line.text):
            self.at = self._end_of_body(base)
        elif mark := _DIRECTIVE.match(line.text):
            yield from self._directive(mark, line.after(mark.end()), base)
        else:
            yield from self._kept(COMMENTS, self._end_of_body(base))

    def _directive(self, mark: re.Match[str], rest: Line, base: int) -> Iterator[Unit]:
        name = mark["name"].lower()
        end = self._end_of_body(base)
        if mark["sub"] and name == "replace":
            yield from self._text(rest, base, hanging=True)
        elif name in _ADMONITIONS or name in _VERSIONS:
            if name in _VERSIONS and (version := re.match(r"\S+(?:\s+|$)", rest.text)):
                rest = rest.after(version.end())
            if rest.text:
                yield from self._text(rest, base, hanging=True)
            else:
                self.at += 1
            yield from self._options(base)
        elif name == "csv-table":
            yield from self._csv_table(rest, base, end)
        elif name == "toctree":
            self.at += 1
            yield from self._options(base)
            yield from self._contents(end)
        elif name in _HOLDERS or ":" in name:
            self.at += 1
            while self.at < end and self.lines[self.at].text and not self.lines[self.at].text.startswith(":"):
                self.at += 1  # a signature of several lines
            yield from self._options(base)
            if name == "glossary":
                first = next((line for line in self.lines[self.at : end] if line.text), None)
                self.terms = (first.column if first else -1, end)
        else:
            if rest.text and name not in _NAMED:
                yield from kept_lines(self.text, [rest], DIRECTIVES)
            self.at += 1
            yield from self._options(base)
            yield from self._kept(DIRECTIVES, end)

    def _contents(self, end: int) -> Iterator[Unit]:
        """The entries of a table of contents that have a title of their own: `Title <file>`."""
        while self.at < end:
            line = self.lines[self.at]
            self.at += 1
            if entry := _TITLE_AND_TARGET.fullmatch(line.text):
                stop = line.start + entry.end("title")
                yield from self._paragraph([line._replace(end=stop, text=entry["title"])])

    def _csv_table(self, title: Line, base: int, end: int) -> Iterator[Unit]:
        """The title, the headings and the cells of a table in CSV."""
        if title.text:
            yield from self._text(title, base, hanging=True)
        else:
            self.at += 1
        options: dict[str, Line] = {}
        name = ""
        while self.at < end and (line := self.lines[self.at]).text:
            if mark := _FIELD.match(line.text):
                name, options[mark[1]] = mark[1], line.after(mark.end())
            elif name:
                options[name] = options[name]._replace(end=line.end)
            self.at += 1
        body = [line for line in self.lines[self.at : end] if line.text]
        own = options["delim"].text if "delim" in options else ","
        separator = {"tab": "\t", "space": " "}.get(own, own)
        rows = [(line.start, line.end) for line in (options.get("header"),) if line]
        rows += [(body[0].start, body[-1].end)] if body else []
        if len(separator) > 1 or options.keys() & {"escape", "quote", "keepspace"}:
            yield from kept_lines(self.text, body, DIRECTIVES) if body else ()
        else:
            for start, stop in rows:
                tokens = partial(_tokens, urls=self.urls)
                yield from units_of_rows(self.text, start, stop, separator, tokens, partial(_render, 0, ""))
        self.at = end

    def _options(self, base: int) -> Iterator[Unit]:
        while self.at < len(self.lines):
            line = self.lines[self.at]
            mark = _FIELD.match(line.text)
            if not mark or line.column <= base:
                return
            rest = line.after(mark.end())
            if mark[1].partition(" ")[0] in _TEXT_OPTIONS and rest.text:
                yield from self._paragraph([rest])
            self.at += 1

    def _end_of_body(self, base: int) -> int:
        """The line that ends what stands to the right of a column."""
        end = self.at + 1
        while end < len(self.lines) and (not self.lines[end].text or self.lines[end].column > base):
            end += 1
        while not self.lines[end - 1].text and end - 1 > self.at:
            end -= 1
        return end

    def _end_of_table(self, line: Line) -> int:
        """The line behind a table: simple ones may have blank lines in them, and end with a line of their marks."""
        end = blank_after(self.lines, self.at)
        if SIMPLE.fullmatch(line.text):
            marks = [at for at in range(self.at, len(self.lines)) if SIMPLE.fullmatch(self.lines[at].text)]
            ends = [at for at in marks[1:] if at + 1 == len(self.lines) or not self.lines[at + 1].text]
            end = ends[0] + 1 if ends else end
        return end

    def _table(self, end: int) -> Iterator[Unit]:
        """The unit of a table, parted between the texts of its cells, and the units that are kept."""
        members = self.lines[self.at : end]
        column, start, stop = members[0].column, members[0].start, members[-1].end
        lines = [self.text[line.start - line.column : line.end][column:] for line in members]
        table = Table(lines)
        texts = {cell: "\n".join(table.text(cell)) for cell in table.cells}
        inside = {cell: list(_Reader(text, self).units()) for cell, text in texts.items()}
        if not table.cells:
            yield from self._kept(TABLES, end)
            return
        self.at = end
        self.is_top = False
        where = f"line {members[0].number}"
        for unit in (unit for units in inside.values() for unit in units if unit.kept):
            yield replace(unit, start=start, end=start, where=where)
        parts = [(cell, unit) for cell, units in inside.items() for unit in units if not unit.kept]
        items = [item for _, unit in parts for item in (_NEXT, *unit.items)][1:]
        newline = "\r\n" if "\r\n" in self.text[start:stop] else "\n"

        def render(new: Sequence[Item]) -> str:
            groups = [
                list(group) for is_mark, group in itertools.groupby(new, lambda item: item == _NEXT) if not is_mark
            ]
            edits: dict[Cell, list[Edit]] = {}
            for (cell, unit), group in zip(parts, groups, strict=True):
                edits.setdefault(cell, []).extend(unit.edits(group))
            written = table.written({cell: spliced(texts[cell], made).split("\n") for cell, made in edits.items()})
            if written is None:
                say(f"{where}: a drawn table stays as it is, as it has no room for another line")
                return self.text[start:stop]
            return written.replace("\n", newline + " " * column)

        if parts:
            yield Unit(tuple(items), start, stop, render, where)

    def _skip_literal(self, base: int) -> None:
        """Go behind the literal block after `::`."""
        begin = self.at
        while begin < len(self.lines) and not self.lines[begin].text:
            begin += 1
        if begin == len(self.lines) or begin == self.at:
            return
        first = self.lines[begin]
        if first.column > base:
            self.at = begin
            self.at = self._end_of_body(base)
        elif re.match(r"[!-/:-@\[-`{-~]", first.text):  # a quotation, whose lines have a mark
            end = begin
            while end < len(self.lines) and self.lines[end].text[:1] == first.text[0]:
                end += 1
            self.at = end

    def _kept(self, reason: str, end: int) -> Iterator[Unit]:
        """The unit of lines that are left as they are."""
        members = [line for line in self.lines[self.at : end] if line.text]
        self.at = max(end, self.at)
        if members:
            yield from kept_lines(self.text, members, reason)


def _with(unit: Unit, kept: str, start: int | None = None, end: int | None = None) -> Unit:
    return Unit(unit.items, unit.start if start is None else start, unit.end if end is None else end, unit.render,
                unit.where, kept=kept)  # fmt: skip


def _is_below(line: Line, below: Line) -> bool:
    """True if a line of marks stands below a title."""
    is_mark = _ADORNMENT.fullmatch(below.text) is not None and below.column == line.column and below.text != "::"
    is_text = not _EXPLICIT.match(line.text) and has_letters(line.text)
    return is_mark and is_text and (len(below.text) >= min(display_width(line.text), 4))


def _titled(text: str, over: int | None, title: Line, under: Line, target: str, items: Sequence[Item]) -> str:
    """A title, its lines of marks as long as the title, and above it a target with the old name of the title."""
    translation = _render(0, "", items)
    own = len(under.text) if len(under.text) > display_width(title.text) else 0
    marks = under.text[0] * max(display_width(translation) + 2 * (title.column - under.column), own)
    above = marks + text[over + len(under.text) : title.start] if over is not None else ""
    return target + above + translation + text[title.end : under.start] + marks


def _name(text: str) -> str:
    """The name of a link or a title, as references compare it."""
    return " ".join(_read(text).split()).casefold()


def _references(text: str) -> list[tuple[str, str]]:
    """(name, address) of links, "" for a reference to a name, "_" for a target in a text."""
    links = []
    for match in _INLINE.finditer(text):
        if match["name"]:
            links.append((_name(match["name"].rstrip("_")), ""))
        elif match["target"]:
            links.append((_name(match["of_target"]), "_"))
        elif (match["reference"] or "").startswith("_"):
            titled = _TITLE_AND_TARGET.fullmatch(match["of_phrase"])
            url = titled["target"].strip()[1:-1] if titled else ""
            is_alias = url.endswith("_")
            if not is_alias and match["reference"].startswith("__"):  # has no name
                continue
            name = url[:-1] if is_alias else titled["title"] if titled else match["of_phrase"]
            links.append((_name(name), "" if is_alias else url))
    return links


# -- inline markup -------------------------------------------------------------------------------------------------


def _tokens(text: str, start: int, end: int, urls: dict[str, str]) -> Iterator[Token]:
    return marked_tokens(text, start, end, _INLINE, lambda match: _token(text, match, urls))


def _token(text: str, match: re.Match[str], urls: dict[str, str]) -> Iterator[Token]:
    """The tokens of a piece of markup.

    A link that is referred to by its text gets its address there, as the text changes."""
    start, end = match.span()
    raw = match.group()
    if match["escape"]:
        is_blank = not raw[1].strip()
        yield Token("text", start, end, "" if is_blank else raw[1])  # `written` parts markup from letters again
    elif match["target"] and urls.get(_name(match["of_target"])) == "":
        yield Token("protected", start, end, raw)
    elif match["strong"] or match["emphasis"] or match["target"]:
        kind = next(name for name in ("strong", "emphasis", "target") if match[name])
        yield from _pair(text, kind, (start, *match.span(f"of_{kind}"), end), repeats=kind != "target")
    elif (match["of_phrase"] or "").startswith("<"):  # an address alone
        yield Token("protected", start, end, raw)
    elif match["role"] or match["phrase"]:
        inner = "of_role" if match["role"] else "of_phrase"
        role = (match["role"] or match["reference"] or "").strip(":").rpartition(":")[2]
        titled = _TITLE_AND_TARGET.fullmatch(text, *match.span(inner))
        begin, stop = titled.span("title") if titled else match.span(inner)
        if (titled and role not in _CODE_ROLES) or role in _TEXT_ROLES or role == "__":
            yield from _pair(text, "role", (start, begin, stop, end))
        elif role == "_":  # its text, which is translated, is the name that it refers to
            name = text[begin:stop]
            yield Token("open", start, begin, "`", "reference")
            yield Token("text", begin, stop, _read(name))
            close = f" <{urls.get(_name(name)) or name + '_'}>`__"
            yield Token("close", stop, end, close, "reference", fixed=True)
        else:
            yield Token("protected", start, end, raw)
    elif match["note"]:
        yield Token("alone", start, end, raw)
    else:
        name = (match["name"] or "").rstrip("_")
        url = urls.get(_name(name)) if name and not raw.endswith("__") else None
        yield Token("protected", start, end, f"`{name} <{url}>`__" if url else raw)


def _pair(text: str, name: str, places: tuple[int, int, int, int], repeats: bool = False) -> Iterator[Token]:
    start, begin, stop, end = places
    yield Token("open", start, begin, text[start:begin], name, repeats)
    yield Token("text", begin, stop, _read(text[begin:stop]))
    yield Token("close", stop, end, text[stop:end], name, repeats)


def _read(text: str) -> str:
    return re.sub(r"\\(\s?)(.?)", r"\2", text, flags=re.DOTALL)


def _render(width: int, between: str, items: Sequence[Item]) -> str:
    return wrapped(written(items, _escaped, "\\ ", _MARKED), width, between)


def _render_hanging(width: int, between: str, items: Sequence[Item]) -> str:
    """A paragraph whose second line says in which column its block stands: it goes on having one."""
    text = _render(width, between, items)
    if not width or between in text:
        return text
    first, _, last = text.rpartition(" ")
    return f"{first}{between}{last}"


def _escaped(text: str, before: str) -> str:
    """Text with a backslash before characters that would be read as markup."""
    text = re.sub(r"[\\`]|\*(?=\S)|\|(?=\S)|(?<=\w)_(?!\w)", lambda char: f"\\{char[0]}", text)
    if not before:
        text = re.sub(r"^(?=(?:[-+*•‣⁃|]|\.\.|>>>|\(?(?:\d{1,4}|[A-Za-z]|#)[.)])(?:\s|$)|:\S)", r"\\", text)
    return text
