"""Markdown: the blocks by markdown-it-py (CommonMark, tables); inside of them emphasis, links and code as codes.

Fences, indented code, HTML blocks, formulas, link definitions, front matter and the marks of tasks, footnotes, alerts
and definitions stay as they are.
"""

import html
import re
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference

from dragoman.formats.base import Code, Item, Options, Unit
from dragoman.formats.html import VOID
from dragoman.formats.inline import Kind, Token, units_of

_FRONT = re.compile(r"(---|\+\+\+)[ \t]*\r?\n.*?\n(?:\1|\.\.\.)[ \t]*\r?\n", re.DOTALL)
_INLINE = re.compile(
    r"(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|(?P<whole>(?<!`)(`+)(?!`).{0,2000}?(?<!`)\3(?!`)|<(?:https?://|mailto:)[^<>\s]{1,2000}>"
    r"|\$\$.{1,2000}?\$\$|\$(?=[^\s$])[^$\n]{0,500}(?<=[^\s$])\$(?!\d)|\{\{.{0,500}?\}\}|\{%.{0,500}?%\})"
    r"|(?P<tag></?[A-Za-z][^<>\n]{0,1000}>|<!--.{0,2000}?-->)"
    r"|(?P<link>!?\[(?!\^))|(?P<alone>\[\^[^\]\n]{1,100}\]|\{[#.:][^{}\n]{1,200}\})"
    r"|(?P<end>\](?:\((?:[^()\n]|\([^()\n]{0,500}\)){0,2000}\)|\[[^\[\]\n]{0,500}\])?)"
    r"|(?P<mark>\*{1,3}|_{1,3}|~~)"
    r"|(?P<entity>&(?:[A-Za-z]{1,31}|#\d{1,7}|#x[0-9A-Fa-f]{1,6});)",
    re.DOTALL,
)
_BEFORE = re.compile(
    r"(?:\[[ xX]\](?=\s)|\[\^[^\]\s]{1,100}\]:|\[![A-Za-z]{1,20}\][-+]?|:(?=[ \t])|:{3,}[ \t]*[\w-]*"
    r"|[!?]{3}\+?[ \t]+[\w-]+|\[TOC\]|\[\[toc\]\])[ \t]*"
)
"""The mark of a task, a footnote, an alert, a definition, a container or an admonition before a line's text."""
_LABEL_END = re.compile(r"((?:[^\[\]\\]|\\.){0,999})\](\(|\[([^\[\]]{0,999})\])?")
_NOTE, _NO_NOTE = "[^", "\1^"
"""Notes are unknown to CommonMark, which takes `[^1]: word` for the definition of a link."""

Place = tuple[int, int]
"""Where a line begins and ends in the file."""


def units(text: str, options: Options) -> Iterator[Unit]:
    """The paragraphs, headings, items and cells of tables."""
    front = _FRONT.match(text)
    begin = front.end() if front else 0
    starts = [begin, *(match.end() for match in re.compile("\n").finditer(text, begin)), len(text) + 1]
    first_line = text.count("\n", 0, begin) + 1
    at = begin
    env: dict[str, Any] = {}
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    is_cell = False
    for token in parser.parse(text[begin:].replace(_NOTE, _NO_NOTE), env):
        if token.type.endswith("_open"):
            is_cell = token.type in ("td_open", "th_open")
        if token.type != "inline" or token.map is None or not token.content.strip():
            continue
        at = max(at, starts[token.map[0]])
        limit = starts[token.map[1]] - 1
        content = token.content.replace(_NO_NOTE, _NOTE)
        lines = [line.strip() for line in (content.replace("|", "\\|") if is_cell else content).split("\n")]
        for line in lines:
            # Where the parser has unescaped or joined something, the text is not there as it reads: left alone.
            place = text.find(line, at, limit + 1) if line else -1
            if place < 0:
                break
            at = place + len(line)
        else:
            where = f"line {first_line + token.map[0]}"
            places = _places(text, lines, max(starts[token.map[0]], begin), at)
            for part in _parts(text, places):
                tokens = list(_tokens(text, part, env.get("references", {})))
                yield from units_of(tokens, where, partial(_render, is_cell), source=text)


def _places(text: str, lines: Sequence[str], begin: int, end: int) -> list[Place]:
    """The places of a block's lines, the last of which ends at `end`."""
    places: list[Place] = []
    for line in reversed(lines):  # from the end: a cell's text may stand in the cells before it, too
        start = text.rfind(line, begin, end)
        places.append((start, start + len(line)))
        end = start
    return places[::-1]


def _parts(text: str, places: Sequence[Place]) -> Iterator[list[Place]]:
    """The lines of each text of a block: a hard line break parts it, and a line with a mark begins another one."""
    part: list[Place] = []
    in_formula = False
    for number, (start, stop) in enumerate(places, 1):
        line = text[start:stop]
        if in_formula or line.startswith("$$"):
            yield part
            part, in_formula = [], in_formula != (line.count("$$") == 1)
            continue
        if mark := _BEFORE.match(text, start, stop):
            yield part
            part, start = [], mark.end()
        backslash = number < len(places) and text[stop - 1] == "\\"
        part.append((start, stop - backslash))
        if backslash or number == len(places) or text[stop : stop + 2] == "  " or start == stop:
            yield part
            part = []
    yield part


def _tokens(text: str, places: Sequence[Place], references: Collection[str]) -> Iterator[Token]:
    """The tokens of a text. `references`: labels of links that the file defines."""
    labels: list[str] = []
    previous = None
    for start, stop in places:
        if previous is not None:
            yield Token("text", previous, start, " ")
        previous = stop
        done = start
        for match in _INLINE.finditer(text, start, stop):
            kind = next(name for name in _INLINE.groupindex if match[name])
            if kind == "link":
                label = _label(text, match.end(), stop, references)
                if label is None:
                    continue
                labels.append(label)
            elif kind == "end" and not labels:
                continue
            if match.start() > done:
                yield Token("text", done, match.start(), text[done : match.start()])
            done = match.end()
            yield _mark(text, match, start, stop) if kind == "mark" else _token(match, kind, labels)
        if done < stop:
            yield Token("text", done, stop, text[done:stop])


def _token(match: re.Match[str], kind: str, labels: list[str]) -> Token:
    """The token of a piece of markup. `labels`: of the links that are open."""
    raw, place = match.group(), match.span()
    if kind == "escape":
        return Token("text", *place, raw[1:])
    if kind == "entity":
        return Token("text", *place, html.unescape(raw))
    if kind == "whole":
        return Token("protected", *place, raw)
    if kind == "link":
        return Token("open", *place, raw, "link")
    if kind == "end":
        label = labels.pop()
        return Token("close", *place, f"][{label}]" if label else raw, "link")
    if kind == "tag":
        name = re.sub(r"[</>]|[\s].*", "", raw)
        is_alone = raw.endswith("/>") or raw.startswith("<!--") or name in VOID
        other: Kind = "alone" if is_alone else "close" if raw.startswith("</") else "open"
        return Token("break" if name == "br" else other, *place, raw, f"<{name}")
    return Token("alone", *place, raw)


def _label(text: str, start: int, stop: int, references: Collection[str]) -> str | None:
    """The label of a link whose text, which is translated, is its label, too; "" for other links; None: it is none."""
    match = _LABEL_END.match(text, start, stop)
    if match is None:  # there are brackets in it
        return "" if re.compile(r"[^\n]{0,2000}?\]\(").match(text, start, stop) else None
    if (match[2] or "")[:1] == "(":
        return ""
    label = match[3] or match[1]
    if normalizeReference(label) not in references:
        return None
    return "" if match[3] else label


def _mark(text: str, match: re.Match[str], start: int, stop: int) -> Token:
    """A run of emphasis marks: it opens before a word, closes after one, and is text by itself or inside of a word."""
    before = text[match.start() - 1] if match.start() > start else " "
    after = text[match.end()] if match.end() < stop else " "
    raw = match.group()
    if raw[0] == "_" and before.isalnum() and after.isalnum():
        return Token("text", *match.span(), raw)
    opens = not after.isspace() and (after.isalnum() or before.isspace() or not before.isalnum())
    closes = not before.isspace() and (before.isalnum() or after.isspace() or not after.isalnum())
    if opens and (before.isspace() or not closes or before in "([{\"'“„«"):
        return Token("open", *match.span(), raw, raw, True)
    if closes:
        return Token("close", *match.span(), raw, raw, True)
    return Token("text", *match.span(), raw)


def _render(is_cell: bool, items: Sequence[Item]) -> str:
    out = ""
    for item in items:
        out += item.raw if isinstance(item, Code) else _escaped(item, out)
    return re.sub(r"(?<!\\)\|", r"\\|", out) if is_cell else out


def _escaped(text: str, before: str) -> str:
    """Text in which nothing is read as markup that is none."""
    text = re.sub(r"([\\`*\[\]<])|&(?=#?\w{1,31};)", lambda match: f"\\{match.group()}", text)
    text = re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)
    if not before:  # at the beginning of a block
        text = re.sub(r"^(\d{1,9})([.)])(?=\s)", r"\1\\\2", text)
        text = re.sub(r"^(#{1,6}(?=\s|$)|>|[-+](?=\s|$)|=+$|-+$|~~~)", r"\\\1", text)
    return text
