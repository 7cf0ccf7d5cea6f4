"""AsciiDoc (.adoc): titles, paragraphs, items, cells, captions and the texts of links and images.

Blocks of code, comments, attributes, macros, anchors and conditions stay as they are.
"""

import bisect
import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import regex

from dragoman.formats.base import Edit, Item, Options, Unit, has_letters, line_of, plain
from dragoman.formats.inline import Token, units_of
from dragoman.formats.markup_tables import units_of_rows
from dragoman.formats.paragraphs import Line, blank_after, kept_lines, layout, lines_of, marked_tokens, wrapped, written

CODE, COMMENTS, ATTRIBUTES, NAMES = "blocks of code", "comments", "attributes", "names of manual pages"

_TEXT_ATTRIBUTES = frozenset({
    "description", "doctitle", "keywords", "subtitle", "toc-title", "caption", "figure-caption", "table-caption",
    "example-caption", "note-caption", "tip-caption", "warning-caption", "important-caption", "caution-caption",
    "appendix-caption", "untitled-label", "version-label", "last-update-label", "chapter-signifier",
})  # fmt: skip
_LOOKED_AT = 10_000
"""Characters of the attributes of a block that are looked at."""
_FENCE = re.compile(r"(-{4,}|\.{4,}|\+{4,}|/{4,}|`{3,})(?:[\w,+-]*)|(={4,}|\*{4,}|_{4,}|--|~{4,}|:{4,})")
"""The line around a block: of code, or of text."""
_QUOTED = re.compile(r">(?: |$)")
_COMMENT = re.compile(r"//(?!/)")
_TABLE = re.compile(r"([|!,:])={3,}")
_ATTRIBUTES = re.compile(r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]")
_IS_CODE = re.compile(
    r"\[(?:source|listing|literal|pass|stem|latexmath|asciimath|graphviz|plantuml|mermaid|ditaa|comment)\b|\[,\s*\w|\[%linenums"
)
_KEEPS_LINES = re.compile(r"\[(?:verse)\b|%hardbreaks")
_TITLE = re.compile(r"(?:={1,6}|#{1,6})\s+")
_ENTRY = re.compile(r":(!?\w[^:]*):(?:\s+|$)")
_ITEM = re.compile(r"(?:\*{1,5}|-|\.{1,5}|\d{1,4}\.|[a-zA-Z]\.|[ivxIVX]{1,5}\)|<(?:\d{1,3}|\.)>)\s+(?:\[[ xX*]\]\s+)?")
_TERM = re.compile(r"(?P<term>\S.*?)(?P<mark>:{2,4}|;;)(?:\s+|$)")
_REFERENCES = re.compile(r"<<#?([\w.-]+)(?=[,>])|xref:#?([\w.-]+)(?=\[)")
_MANUAL, _NAME = re.compile(r"\S.*\(\d\w*\)"), re.compile(r"\S.*?(?<! ) +- +")
_ADMONITION = re.compile(r"(?:NOTE|TIP|IMPORTANT|WARNING|CAUTION):\s+")
_BLOCK_MACRO = re.compile(r"(?P<name>[a-z][\w-]*)::(?P<target>[^\s\[]*)\[(?P<in>.*)\]")
_CAPTION = re.compile(r"\.(?=[^\s.])")
_CELL = r"(?<!\\)(?:(?<!\S)(?:(?:\d+(?:\.\d+)?|\.\d+)[+*])?(?:[<^>](?:\.[<^>])?|\.[<^>])?(?P<style>[adehlmsv])?)?"
"""The span and the style of a cell, which stand before its separator."""
_FORM, _SEPARATOR = re.compile(r"format=[\"']?(\w+)"), re.compile(r"separator=[\"']?(\\t|[^\s\"'\]])")
_SEPARATORS = {"csv": ",", "tsv": "\t", "dsv": ":"}

_B, _A = r"(?<![\w\\:;}])", r"(?![\w])"


def _inline(code: str, single: str, quoted: str) -> re.Pattern[str]:
    """The markup in a line. `code`, `quoted`: marks around code and quotations; `single`: marks that stand alone."""
    return re.compile(
        r"(?P<pass>\+{3}.*?\+{3}|\+\+.*?\+\+|pass:[a-z,]*\[[^\]]{0,1000}+(?:(?<=\\)\][^\]]{0,1000}+){0,50}(?<!\\)\]|\$\$.*?\$\$)"
        rf"|(?P<code>{code}|{_B}\+(?=\S)[^+]*?(?<=\S)\+{_A})"
        r"|(?P<reference><<[^<>]*?(?:,(?P<of_reference>[^<>]*))?>>)"
        r"|(?P<footnote>footnote:[\w-]*\[(?:[^\[\]\\]|\\.|\[[^\[\]]*\])*\])"
        r"|(?P<anchor>\[\[[^\[\]]*\]\]|\[\[\[[^\[\]]*\]\]\]|\(\(\(.{1,300}?\)\)\)(?!\))|anchor:[\w-]+\[[^\]]{0,1000}\]|indexterm2?:\[[^\]]{0,1000}\]"
        r"|(?<=\s)<\d{1,3}>|\{empty\}|\{nbsp\}|\((?:C|R|TM)\))"
        r"|(?P<term>\(\((?P<of_term>[^(].{0,300}?)\)\)(?!\)))"
        r"|(?P<link>(?:(?:link|mailto|xref):|(?:https?|irc|ftp|file)://|\{[\w-]+\})[^\s\[\]]{0,1000})\[(?P<of_link>(?:[^\]\\]{1,500}+|\\.){0,40}+)\]"
        r"|(?P<macro>(?:image|icon|kbd|btn|menu|stem|latexmath|asciimath|include|video|audio|(?<![a-z-])(?![a-z]+footnote:)[a-z][a-z-]*):[^\s\[\]:]*\[(?:[^\]\\]{1,500}+|\\.){0,40}+\])"
        r"|(?P<attribute>\{[\w-]+(?::[^{}]*)?\})"
        r"|(?P<url>(?:https?|ftp)://[^\s\[\]<>]*[^\s\[\]<>.,;:!?)])"
        r"|(?P<pair>(?:\[[^\[\]\n]*\])?(?:"
        r"(?P<double>\*\*|__|##)(?=\S)(?P<in_double>.{1,1000}?)(?<=\S)(?P=double)"
        rf"|{_B}(?P<single>[{single}])(?=\S)(?!(?P=single))(?P<in_single>(?:[^\n]|\n(?!\n)){{0,1000}}?)(?<=\S)(?P=single){_A}"
        r"|(?P<script>[\^~])(?=\S)(?P<in_script>[^\s^~]+)(?P=script)"
        rf"|{quoted}))"
        r"|(?P<hard>[ \t]\+(?:\r?\n|\Z))"
        r"|(?P<escape>\\(?=[*_`#+\[{<^~'\"(]))",
        re.DOTALL,
    )


_INLINE = _inline(
    rf"``(?=\S).{{1,1000}}?(?<=\S)``|{_B}`(?=\S)[^`]*?(?<=\S)`{_A}",
    "*_#",
    r"(?P<quoted>[\"'])`(?=\S)(?P<in_quoted>[^`]+?)`(?P=quoted)",
)
_INLINE_COMPAT = _inline(
    rf"{_B}`(?=[^\s`])[^`]*?(?<=\S)`(?![`\w])", "*_#'", rf"{_B}(?P<quoted>``?)(?=\S)(?P<in_quoted>[^`']+?)''?{_A}"
)
"""Markup in compat mode, which a document is in whose title has a line below, or that says `:compat-mode:`."""
_IN_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]")
_IS_COMPAT = re.compile(
    r"(?s:.*\n)?:compat-mode:|(?:[^\S\n]*+\n|(?://|:)[^\n]*+\n)*+(?![=#:/\[])\w[^\n]*+\n={2,}[ \t]*$", re.MULTILINE
)
_BEGINS_BLOCK = re.compile(rf"(?<= \+)\n[ \t]*|\n[ \t]*(?={_ITEM.pattern}|//|\+$|={{2,}}$|-{{2,}}$)", re.MULTILINE)
"""The end of a line behind what would be a hard break, or before what would begin an item, a comment or a block."""
_INNER = re.compile(
    r"(?<![`:\\])footnote:[\w-]*\[(?:[^\[\]\\]|\\.|\[[^\[\]]*\])*\]|(?<![\w`:])(?:image:[^\s\[\]:]+\[(?:[^\]\\]{1,500}+|\\.){0,40}+\])"
    r"|\[\[[\w:.-]+,[ ]*(?P<name>[^\[\]\n,\"]+)\]\]"
    r"|(?m:^)\[[^\n\"]*\b(?:title|caption|reftext)=\"(?P<quoted>[^\"\n\\]+)\"[^\n]*\]$",
    re.MULTILINE,
)
_MARKED = re.compile(r"[*_#`]$|^(?:[*_#`]|\[[^\[\]]*\][*_#])")


def units(text: str, options: Options) -> Iterator[Unit]:
    """The texts of a file in order."""
    yield from _Reader(text).units()


def inner_units(text: str, options: Options) -> Iterator[Unit]:
    """The texts of footnotes, descriptions of images, and names of places and blocks, which stand in other texts."""
    kept = sorted((unit.start, unit.end) for unit in _Reader(text).units() if unit.kept)
    for match in _INNER.finditer(text):
        name = next((name for name in ("name", "quoted") if match[name]), "")
        start = match.start(name) if name else text.index("[", match.start()) + 1
        where = f"line {line_of(text, start)}"
        number = bisect.bisect_right(kept, (start, len(text)))
        if number and start < kept[number - 1][1]:
            continue
        if match.group().startswith("image"):
            yield from _named_texts(text, start, match.end() - 1, where)
        elif name:
            render = partial(_in_attributes, name == "quoted")
            yield from units_of([Token("text", *match.span(name), match[name])], where, render, source=text)
        else:
            tokens = list(_tokens(text, start, match.end() - 1))
            yield from units_of(tokens, where, partial(_render, 0, ""), source=text)


class _Reader:
    """A file line by line."""

    def __init__(self, text: str, cell: Sequence[Line] = (), referred: frozenset[str] | None = None) -> None:
        """`cell`: the lines are a cell's, which is a document in itself; its references are the whole file's."""
        self.text = text
        self.lines = cell or lines_of(text)
        self.at = 0
        self.attributes = ""
        """The line of attributes before a block."""
        self.opened: list[str] = []
        self.is_header = self.has_title = False
        self.referred = (
            frozenset(name for pair in _REFERENCES.findall(text) for name in pair) if referred is None else referred
        )
        """Names of places that references go to."""
        self.is_manual = False
        """True in a manual page up to its first paragraph, `NAME - purpose`."""
        self.attached = ""
        """The `+` or `::` that the next block stands below, which belongs to the item then."""

    def units(self) -> Iterator[Unit]:
        if self.lines and self.lines[0].text == "---":  # front matter of a site
            ends = [at for at, line in enumerate(self.lines[1:], 1) if line.text == "---"]
            if ends:
                yield from self._kept(ATTRIBUTES, ends[0] + 1)
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if not line.text:
                self.is_header = False
                self.at += 1
            elif self.is_header and not line.text.startswith((":", "//")):  # authors and revision
                yield from self._kept(ATTRIBUTES, self.at + 1)
            else:
                yield from self._block(line)

    def _block(self, line: Line) -> Iterator[Unit]:
        text = line.text
        attributes, self.attributes = self.attributes, ""
        if _COMMENT.match(text):
            yield from self._kept(COMMENTS, self.at + 1)
            self.attributes = attributes
        elif table := _TABLE.fullmatch(text):
            yield from self._table(text, attributes, table[1])
        elif fence := _FENCE.fullmatch(text):
            yield from self._fenced(text, attributes, fence[1] or text, is_code=bool(fence[1]))
        elif not line.column and _ATTRIBUTES.fullmatch(text):
            self.attributes = (attributes + text)[-_LOOKED_AT:]
            self.at += 1
        elif _IS_CODE.search(attributes) and not _CAPTION.match(text):
            yield from self._kept(CODE, blank_after(self.lines, self.at))
        elif (entry := _ENTRY.match(text)) and not line.column:
            yield from self._entry(line, entry)
        elif macro := _BLOCK_MACRO.fullmatch(text):
            self.at += 1
            yield from self._macro(line, macro)
        elif text in ("'''", "<<<", "+", "---", "***", "- - -"):
            self.attached = "+" if text == "+" else ""
            self.at += 1
        elif _QUOTED.match(text):
            yield from self._quoted()
        elif line.column and self.attached != "::" and not _ITEM.match(text) and not _TERM.match(text):
            yield from self._kept(CODE, blank_after(self.lines, self.at))
        else:
            yield from self._text(line, attributes)

    def _text(self, line: Line, attributes: str) -> Iterator[Unit]:
        """A title, an item or a paragraph."""
        if not line.column and (mark := _TITLE.match(line.text)):
            title = line.after(mark.end())
            self._begin(title, is_title=mark.group().strip() in ("=", "#"))
            if self._is_manual_title(title):
                yield from self._kept(NAMES, self.at + 1)
            else:
                yield from (replace(unit, also=self._anchor(line, title)) for unit in self._one_line(title))
        elif not line.column and (mark := _CAPTION.match(line.text)):
            yield from self._one_line(line.after(mark.end()))
            self.attributes = attributes
        elif mark := _ITEM.match(line.text):
            yield from self._paragraph(line.after(mark.end()), attributes, is_item=True)
        elif mark := _TERM.match(line.text):
            term = line._replace(end=line.start + mark.end("term"), text=mark["term"])
            yield from self._unit([term])
            rest = line.after(mark.end())
            if rest.text:
                yield from self._paragraph(rest, attributes, is_item=True)
            else:
                self.attached = "::"
                self.at += 1
        elif mark := _ADMONITION.match(line.text):
            yield from self._paragraph(line.after(mark.end()), attributes)
        else:
            below = self.lines[self.at + 1] if self.at + 1 < len(self.lines) else None
            if (
                below
                and re.fullmatch(r"([=~^+-])\1+", below.text)
                and below.text not in self.opened
                and abs(len(below.text) - len(line.text)) < 2
            ):
                self._begin(line, is_title=below.text[0] == "=")
                if self._is_manual_title(line):
                    yield from self._kept(NAMES, self.at + 2)
                    return
                render = partial(_underlined, self.text, line, below)
                for unit in self._units_of([line], render):
                    yield replace(unit, end=below.end, also=self._anchor(line, line))
                self.at += 2
            else:
                name = _NAME.match(line.text) if self.is_manual else None
                self.is_manual = False
                yield from self._paragraph(line.after(name.end()) if name else line, attributes)

    def _begin(self, title: Line, is_title: bool) -> None:
        """Begin a section, or the header of the document, which ends with a blank line."""
        self.is_header = is_title and not self.has_title
        self.is_manual = self.is_manual or self._is_manual_title(title)
        self.has_title = True

    def _anchor(self, line: Line, title: Line) -> tuple[Edit, ...]:
        """The edit that keeps the name of a section which references go to: with another title it has another one."""
        bare = re.sub(r"[^\w .-]", "", title.text.lower())
        name = "_" + re.sub(r"[ ._-]+", "_", bare).strip("_")
        newline = "\r\n" if "\r\n" in self.text else "\n"
        return (Edit(line.start, line.start, f"[[{name}]]{newline}"),) if name in self.referred else ()

    def _is_manual_title(self, title: Line) -> bool:
        """True for the title of a manual page: `ls(1)`."""
        return self.is_header and _MANUAL.fullmatch(title.text) is not None

    def _one_line(self, line: Line) -> Iterator[Unit]:
        self.at += 1
        yield from self._unit([line])

    def _paragraph(self, first: Line, attributes: str, is_item: bool = False) -> Iterator[Unit]:
        """A paragraph ends with a blank line, or with the begin of a block or of an item."""
        members = [first]
        is_item, self.attached = is_item or bool(self.attached), ""
        self.at += 1
        while self.at < len(self.lines):
            following = self.lines[self.at]
            text = following.text
            is_block = (
                not text or text == "+" or _FENCE.fullmatch(text) or _TABLE.fullmatch(text)
                or (_ATTRIBUTES.fullmatch(text) and not following.column) or _BLOCK_MACRO.fullmatch(text)
                or text.startswith("//")
            )  # fmt: skip
            if is_block or (is_item and (_ITEM.match(text) or _TERM.match(text))):
                break
            members.append(following)
            self.at += 1
        groups = [[line] for line in members] if _KEEPS_LINES.search(attributes) else [members]
        for group in groups:
            yield from self._unit(group)

    def _unit(self, members: Sequence[Line]) -> Iterator[Unit]:
        yield from self._units_of(members, partial(_render, *layout(self.text, members)))

    def _units_of(self, members: Sequence[Line], render: "partial[str]") -> Iterator[Unit]:
        start, end = members[0].start, members[-1].end
        yield from units_of(list(_tokens(self.text, start, end)), f"line {members[0].number}", render, source=self.text)

    def _quoted(self) -> Iterator[Unit]:
        """A quotation as in Markdown: each line begins with `> `."""
        group: list[Line] = []
        while (line := self.lines[self.at] if self.at < len(self.lines) else None) or group:
            mark = _QUOTED.match(line.text) if line else None
            inner = line.after(mark.end()) if line and mark else None
            item = _ITEM.match(inner.text) if inner else None
            if group and (inner is None or item or not inner.text):
                width, between = layout(self.text, group)
                blank = [Token("text", one.end, two.start, " ") for one, two in itertools.pairwise(group)] + [None]
                tokens = [token for one, gap in zip(group, blank, strict=True)
                          for token in (*_tokens(self.text, one.start, one.end), gap) if token]  # fmt: skip
                render = partial(_render, width, f"{between[: -group[-1].column]}> ")
                yield from units_of(tokens, f"line {group[0].number}", render)
                group = []
            if inner is None:
                break
            group += [inner.after(item.end()) if item else inner] if inner.text else []
            self.at += 1

    def _entry(self, line: Line, mark: re.Match[str]) -> Iterator[Unit]:
        """An attribute of the document; it goes on over lines that end with a backslash. Some attributes are text."""
        rest = line.after(mark.end())
        end = self.at + 1
        while end < len(self.lines) and self.lines[end - 1].text.endswith("\\"):
            end += 1
        if mark[1] in _TEXT_ATTRIBUTES and rest.text and end == self.at + 1:
            yield from self._one_line(rest)
        else:
            self.at = end
            yield from kept_lines(self.text, [rest], ATTRIBUTES)

    def _macro(self, line: Line, macro: re.Match[str]) -> Iterator[Unit]:
        """The description of an image, the text of a condition."""
        start, end = line.start + macro.start("in"), line.start + macro.end("in")
        if macro["name"] in ("image", "video", "audio"):
            yield from _named_texts(self.text, start, end, f"line {line.number}")
        elif macro["name"] in ("ifdef", "ifndef") and has_letters(macro["in"]):
            yield from self._unit([line._replace(start=start, end=end, text=macro["in"])])

    def _fenced(self, mark: str, attributes: str, fence: str, is_code: bool) -> Iterator[Unit]:
        """A block between two equal lines: code is left, text is read on."""
        if mark in self.opened:
            del self.opened[self.opened.index(mark) :]
            self.at += 1
        elif is_code or _IS_CODE.search(attributes):
            end = self._line_of(fence)
            reason = COMMENTS if mark.startswith("////") else CODE
            yield from self._kept(reason, end + 1)
        else:
            self.opened.append(mark)
            self.at += 1

    def _table(self, mark: str, attributes: str, separator: str) -> Iterator[Unit]:
        """The cells of a table: lines of a cell are one text, paragraphs and items of it are texts by themselves."""
        end = self._line_of(mark)
        form = next(iter(_FORM.findall(attributes)), {",": "csv", ":": "dsv"}.get(separator, "psv"))
        separator = next(iter(_SEPARATOR.findall(attributes)), _SEPARATORS.get(form, "!" if separator == "!" else "|"))
        separator = separator.replace("\\t", "\t")
        if form in _SEPARATORS:
            yield from self._rows(end, separator, is_escaped=form == "dsv")
            return
        cell = re.compile(_CELL + re.escape(separator))
        group: list[Line] = []
        style = ""
        read = (line for line in self.lines[self.at + 1 : end] if not _COMMENT.match(line.text))
        for line in [*read, None]:
            marks = list(cell.finditer(line.text)) if line else []
            starts = [0, *(mark.end() for mark in marks)]
            stops = [*(mark.start() for mark in marks), len(line.text) if line else 0]
            for number, (start, stop) in enumerate(zip(starts, stops, strict=True)):
                if number or line is None or (not line.text and style != "a"):
                    yield from self._cell(group, style)
                    group = []
                if number:
                    style = marks[number - 1]["style"] or ""
                piece = line.after(start) if line else None
                if line and piece and line.text[start:stop].strip():
                    inner = line.text[start:stop].strip()
                    if style != "a" and (_ITEM.match(inner) or _BLOCK_MACRO.fullmatch(inner)):
                        yield from self._cell(group, style)
                        group = []
                    group.append(piece._replace(end=piece.start + len(inner), text=inner))
                elif line and not line.text:
                    group.append(line)
        self.at = end + 1

    def _rows(self, end: int, separator: str, is_escaped: bool) -> Iterator[Unit]:
        """The cells of a table of CSV."""
        inside = self.lines[self.at + 1 : end]
        self.at = end + 1
        if inside:
            yield from units_of_rows(
                self.text, inside[0].start, inside[-1].end, separator, _tokens, partial(_render, 0, ""), is_escaped
            )

    def _cell(self, group: Sequence[Line], style: str) -> Iterator[Unit]:
        if not group:
            return
        if style == "a":  # a document in itself
            yield from _Reader(self.text, [group[0]._replace(column=0), *group[1:]], self.referred).units()
            return
        if style in ("l", "m"):
            yield from kept_lines(self.text, group, CODE)
            return
        if macro := _BLOCK_MACRO.fullmatch(group[0].text):
            yield from self._macro(group[0], macro)
            yield from self._cell(group[1:], style)
            return
        mark = _ITEM.match(group[0].text) or _ADMONITION.match(group[0].text)
        yield from self._unit([group[0].after(mark.end()) if mark else group[0], *group[1:]])

    def _line_of(self, mark: str) -> int:
        """The number of the next line that is a mark; of the one after the last, where there is none."""
        following = range(self.at + 1, len(self.lines))
        return next((at for at in following if self.lines[at].text == mark), len(self.lines))

    def _kept(self, reason: str, end: int) -> Iterator[Unit]:
        """The unit of lines that are left as they are."""
        members = [line for line in self.lines[self.at : end] if line.text]
        self.at = end
        if members:
            yield from kept_lines(self.text, members, reason)


def _named_texts(text: str, start: int, end: int, where: str) -> Iterator[Unit]:
    """The texts of a macro's attributes: the first one, `alt` and `title`."""
    pattern = re.compile(r"(?:(?<=\[)|(?:alt|title)=)(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|(?P<bare>[^\",=\]]+))(?=,|\])")
    for match in pattern.finditer(text, start - 1, end + 1):
        name = "quoted" if match["quoted"] else "bare"
        if match[name] and has_letters(match[name]):
            place = match.span(name)
            render = partial(_in_attributes, name == "quoted")
            yield from units_of([Token("text", *place, match[name])], where, render, source=text)


def _in_attributes(is_quoted: bool, items: Sequence[Item]) -> str:
    text = plain(items)
    if is_quoted:
        return re.sub(r'(?<!\\)"', r"\\\"", text)
    return '"' + text.replace('"', r"\"") + '"' if re.search(r'[,"=\]]', text) else text


# -- inline markup -------------------------------------------------------------------------------------------------


def _tokens(text: str, start: int, end: int) -> Iterator[Token]:
    return marked_tokens(text, start, end, _inline_of(text), lambda match: _token(text, match))


@functools.lru_cache(maxsize=1)  # a file asks for each of its texts
def _inline_of(text: str) -> re.Pattern[str]:
    return _INLINE_COMPAT if _IS_COMPAT.match(text) else _INLINE


def _token(text: str, match: re.Match[str]) -> Iterator[Token]:
    """The tokens of a piece of markup."""
    start, end = match.span()
    raw = match.group()
    inner = next((name for name in ("in_double", "in_single", "in_script", "in_quoted", "of_link", "of_reference",
                             "of_term") if match[name]), "")  # fmt: skip
    if match["escape"]:
        yield Token("text", start, end, "")
    elif match["hard"]:
        yield Token("break", start, end, raw)
    elif inner in ("of_link", "of_reference") and not re.search(r"^[^,]*=", match[inner]):
        begin, stop = match.span(inner)
        stop = begin + len(re.sub(r"(?:\^|,\s*\w+=.*)$", "", match[inner]))
        yield Token("open", start, begin, text[start:begin], "link")
        yield from _tokens(text, begin, stop)
        yield Token("close", stop, end, text[stop:end], "link")
    elif inner.startswith("in_") or inner == "of_term":
        begin, stop = match.span(inner)
        yield Token("open", start, begin, text[start:begin], inner + raw[:1], True)
        yield from _tokens(text, begin, stop)
        yield Token("close", stop, end, text[stop:end], inner + raw[:1], True)
    elif match["footnote"] or match["anchor"] or (match["macro"] and raw.startswith(("image:", "icon:"))):
        yield Token("alone", start, end, raw)
    else:
        yield Token("protected", start, end, raw)


def _render(width: int, between: str, items: Sequence[Item]) -> str:
    text = written(_doubled(_without_blanks(items)), _escaped, "", _MARKED)
    if any(not isinstance(item, str) and item.kind == "break" for item in items):
        return text.replace("\0+\0", f" +{between}").replace("\0", " ")
    return _BEGINS_BLOCK.sub(" ", wrapped(text, width, between))


def _without_blanks(items: Sequence[Item]) -> list[Item]:
    """Items without pairs of marks around nothing, and with blanks at the edges of a pair outside: marks with a blank
    behind the first one or before the last one are none."""
    out: list[Item] = []
    for item in items:
        before = out[-1] if out else ""
        if isinstance(item, str) and not isinstance(before, str) and before.kind == "open" and before.repeats:
            bare = item.lstrip()
            if len(bare) < len(item) and len(out) > 1:
                out.insert(len(out) - 1, " ")
            item = bare
        elif not isinstance(item, str) and item.kind == "close" and item.repeats:
            if not isinstance(before, str) and before.kind == "open" and before.pair == item.pair:
                out.pop()
                continue
            if isinstance(before, str) and before[-1:].isspace():
                out[-1] = before.rstrip()
                out += [item, " "]
                continue
        if item != "":
            out.append(item)
    return out


def _doubled(items: Sequence[Item]) -> list[Item]:
    """Items with marks of formatting written twice where a letter stands beside them, as they must be there."""
    out = list(items)
    closes = {item.pair: at for at, item in enumerate(items) if not isinstance(item, str) and item.kind == "close"}
    for place, item in enumerate(items):
        if isinstance(item, str) or item.kind != "open" or not re.search(r"(?<![*_#])[*_#]$", item.raw):
            continue
        end = closes.get(item.pair, place)
        before = items[place - 1] if place else ""
        after = items[end + 1] if end + 1 < len(items) else ""
        joined = [isinstance(one, str) and _IN_WORD.match(one) for one in (before[-1:], after[:1])]
        closing = items[end]
        if any(joined) and not isinstance(closing, str):
            out[place] = item._replace(raw=item.raw + item.raw[-1])
            out[end] = closing._replace(raw=closing.raw * 2)
    return out


def _underlined(text: str, title: Line, below: Line, items: Sequence[Item]) -> str:
    translation = _render(0, "", items)
    return translation + text[title.end : below.start] + below.text[0] * len(translation)


def _escaped(text: str, before: str) -> str:
    """Text with a backslash before characters that would be read as markup."""
    text = re.sub(r"(?<!\w)[*_`#](?=\S)(?=[^\n]{0,1000}\S[*_`#](?!\w))|\{(?=[\w-]+\})|<<(?=[^<>]*>>)", r"\\\g<0>", text)
    text = re.sub(r"(?<=[^\s:])::(?=\s|$)", "{two-colons}", text)
    if not before:
        text = re.sub(r"^(?=(?:\*{1,5}|-|\.{1,5}|\d{1,4}\.|={1,6}|#{1,6}|//|>)\s|\.[^\s.]|\[.*\]$)", "{empty}", text)
    return text
