"""Markdown: the blocks by markdown-it-py (CommonMark, tables); inside of them emphasis, links and code as codes.

Fences, indented code, HTML blocks, link definitions and front matter stay as they are.
"""

import html
import re
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt

from dragoman.formats.base import Code, Item, Options, Unit
from dragoman.formats.html import VOID
from dragoman.formats.inline import Kind, Token, units_of

_FRONT = re.compile(r"---[ \t]*\r?\n.*?\n(?:---|\.\.\.)[ \t]*\r?\n", re.DOTALL)
_INLINE = re.compile(
    r"(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|(?P<code>(?<!`)(`+)(?!`).{0,2000}?(?<!`)\3(?!`))"
    r"|(?P<auto><(?:https?://|mailto:)[^<>\s]{1,2000}>)"
    r"|(?P<tag></?[A-Za-z][^<>\n]{0,1000}>|<!--.{0,2000}?-->)"
    r"|(?P<image>!\[)|(?P<link>\[(?!\^))|(?P<note>\[\^[^\]\n]{1,100}\])"
    r"|(?P<end>\](?:\((?:[^()\n]|\([^()\n]{0,500}\)){0,2000}\)|\[[^\[\]\n]{0,500}\])?)"
    r"|(?P<mark>\*{1,3}|_{1,3}|~~)"
    r"|(?P<entity>&(?:[A-Za-z]{1,31}|#\d{1,7}|#x[0-9A-Fa-f]{1,6});)",
    re.DOTALL,
)


def units(text: str, options: Options) -> Iterator[Unit]:
    """The paragraphs, headings, items and cells of tables."""
    front = _FRONT.match(text)
    begin = front.end() if front else 0
    starts = [begin, *(match.end() for match in re.compile("\n").finditer(text, begin)), len(text) + 1]
    first_line = text.count("\n", 0, begin) + 1
    at = begin
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text[begin:]):
        if token.type != "inline" or token.map is None or not token.content.strip():
            continue
        at = max(at, starts[token.map[0]])
        limit = starts[token.map[1]] - 1
        for line in token.content.split("\n"):
            # Where the parser has unescaped or joined something, the text is not there as it reads: left alone.
            place = text.find(line.strip(), at, limit + 1) if line.strip() else -1
            if place < 0:
                break
            at = place + len(line.strip())
        else:
            where = f"line {first_line + token.map[0]}"
            yield from _block(text, token.content, max(starts[token.map[0]], begin), at, where)


def _block(text: str, content: str, begin: int, end: int, where: str) -> Iterator[Unit]:
    """The units of a block whose text ends at `end`; a hard line break parts it."""
    lines = content.split("\n")
    places: list[tuple[int, int]] = []
    upto = end
    for line in reversed(lines):  # from the end: a cell's text may stand in the cells before it, too
        start = text.rfind(line.strip(), begin, upto)
        places.append((start, start + len(line.strip())))
        upto = start
    places.reverse()
    part: list[tuple[int, int]] = []
    for number, (start, stop) in enumerate(places, 1):
        backslash = number < len(places) and text[stop - 1] == "\\"
        part.append((start, stop - backslash))
        if backslash or number == len(places) or text[stop : stop + 2] == "  ":
            yield from units_of(list(_tokens(text, part)), where, _render, source=text)
            part = []


def _tokens(text: str, places: Sequence[tuple[int, int]]) -> Iterator[Token]:
    links = 0
    previous = None
    for start, stop in places:
        if previous is not None:
            yield Token("text", previous, start, " ")
        previous = stop
        done = start
        for match in _INLINE.finditer(text, start, stop):
            raw, kind = match.group(), next(name for name in _INLINE.groupindex if match[name])
            if kind == "end" and not links:
                continue
            if kind == "link" and not re.compile(r"[^\]]{0,2000}\](?:\(|\[|(?!:))").match(text, match.end(), stop):
                continue
            if match.start() > done:
                yield Token("text", done, match.start(), text[done : match.start()])
            done = match.end()
            if kind == "escape":
                yield Token("text", *match.span(), raw[1:])
            elif kind == "entity":
                yield Token("text", *match.span(), html.unescape(raw))
            elif kind in ("code", "auto"):
                yield Token("protected", *match.span(), raw)
            elif kind in ("image", "link"):
                links += 1
                yield Token("open", *match.span(), raw, "link")
            elif kind == "end":
                links -= 1
                yield Token("close", *match.span(), raw, "link")
            elif kind == "mark":
                yield _mark(text, match, start, stop)
            elif kind == "tag":
                name = re.sub(r"[</>]|[\s].*", "", raw)
                closes, alone = raw.startswith("</"), raw.endswith("/>") or raw.startswith("<!--")
                other: Kind = "alone" if alone or name in VOID else "close" if closes else "open"
                yield Token("break" if name == "br" else other, *match.span(), raw, f"<{name}")
            else:
                yield Token("alone", *match.span(), raw)
        if done < stop:
            yield Token("text", done, stop, text[done:stop])


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


def _render(items: Sequence[Item]) -> str:
    out = ""
    for item in items:
        out += item.raw if isinstance(item, Code) else _escaped(item, out)
    return out


def _escaped(text: str, before: str) -> str:
    """Text in which nothing is read as markup that is none."""
    text = re.sub(r"([\\`*\[\]<])|&(?=#?\w{1,31};)", lambda match: f"\\{match.group()}", text)
    text = re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)
    if not before:  # at the beginning of a block
        text = re.sub(r"^(\d{1,9})([.)])(?=\s)", r"\1\\\2", text)
        text = re.sub(r"^(#{1,6}(?=\s|$)|>|[-+](?=\s|$)|=+$|-+$|~~~)", r"\\\1", text)
    return text
