"""Tokens of a paragraph to a unit: tags that belong together paired, what stands at the edges left outside."""

import html
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

from dragoman.formats.base import Code, Item, Unit, has_letters

Kind = Literal["text", "open", "close", "alone", "protected", "break", "cue"]

MAX_NESTED = 64
"""The most pairs inside of each other; codes of deeper pairs stand alone."""

BLANKS = " \t\r\n\f"
_SPACES = re.compile(f"[{BLANKS}]+")


class Token(NamedTuple):
    """Characters `start` to `end` of a file: text, as it reads, or a tag, as it is written."""

    kind: Kind
    start: int
    end: int
    text: str
    """For text: the text without escapes. For codes: the characters of the file."""
    name: str = ""
    """Of a tag: what its other half has, too."""
    repeats: bool = False
    fixed: bool = False
    """True if it is written together with its neighbours, so that it cannot be left outside of a unit."""


def escaped(text: str) -> str:
    """Text escaped for its place between tags."""
    return html.escape(text, quote=False)


def without_reading(markup: str) -> str:
    """The markup of a reading above a word without its text, which reads the source's words.

    >>> without_reading("<rp>(</rp><rt>かんじ</rt><rp>)</rp>")
    '<rp></rp><rt></rt><rp></rp>'
    """
    return re.sub(">[^<]+", ">", markup)


def as_markup(items: Sequence[Item]) -> str:
    """Items as XML and HTML have them."""
    return "".join(item.raw if isinstance(item, Code) else escaped(item) for item in items)


def as_attribute(items: Sequence[Item]) -> str:
    """Text escaped for its place between quotes; the codes of an attribute are a template's."""
    return "".join(item.raw if isinstance(item, Code) else html.escape(item) for item in items)


def units_of(
    tokens: Sequence[Token],
    where: str,
    render: Callable[[Sequence[Item]], str] = as_markup,
    *,
    collapse: bool = True,
    source: str | None = None,
) -> Iterator[Unit]:
    """The unit of a paragraph's tokens; none where it has no letters to translate.

    `collapse`: white space counts as one space, as in HTML. `source`: the file's text, where white space means no more
    than a space: that at the edges then stays outside of the unit.
    """
    paired = _paired(tokens)
    first, last = _edges(paired)
    inner = paired[first:last]
    if not any(token.kind == "text" and has_letters(token.text) for token, _ in inner):
        return
    start, end = inner[0][0].start, inner[-1][0].end
    texts = [_SPACES.sub(" ", token.text) if collapse and token.kind == "text" else token.text for token, _ in inner]
    if source is not None:
        if inner[0][0].kind == "text":
            raw = source[start : inner[0][0].end]
            start += len(raw) - len(raw.lstrip(BLANKS))
            texts[0] = texts[0].lstrip(" ") if raw[:1] in BLANKS else texts[0]
        if inner[-1][0].kind == "text":
            raw = source[inner[-1][0].start : end]
            end -= len(raw) - len(raw.rstrip(BLANKS))
            texts[-1] = texts[-1].rstrip(" ") if raw[-1:] in BLANKS else texts[-1]
    items: list[Item] = []
    blank = None  # the item whose last letter is a blank, and is the last thing that a reader sees
    is_empty = False
    for text, (token, pair) in zip(texts, inner, strict=True):
        if token.kind != "text":
            items.append(Code(text, token.kind, pair, token.repeats))
            is_seen = token.kind not in ("open", "close") or (token.kind == "close" and is_empty)
            blank = None if is_seen else blank
            is_empty = token.kind == "open"
            continue
        if collapse and blank is not None and text.startswith(" "):  # one of two: the one outside of a pair stays
            if isinstance(items[-1], Code) and items[-1].kind == "close" and items[blank] != " ":
                items[blank] = str(items[blank])[:-1]
            else:
                text = text.lstrip(" ")
        if items and isinstance(items[-1], str):
            items[-1] += text
        elif text:
            items.append(text)
        is_empty = is_empty and not text
        if text:
            blank = len(items) - 1 if text.endswith(" ") else None
    yield Unit(tuple(items), start, end, render, where)


def _paired(tokens: Sequence[Token]) -> list[tuple[Token, int]]:
    """Tokens with the number of their pair; a tag without its other half stands alone."""
    partner: dict[int, int] = {}
    opened: dict[str, list[int]] = {}
    stack: list[int] = []
    for place, token in enumerate(tokens):
        if token.kind == "open" and len(stack) < MAX_NESTED:
            opened.setdefault(token.name, []).append(place)
            stack.append(place)
        elif token.kind == "close" and opened.get(token.name):
            begin = opened[token.name][-1]
            # What was opened in between and not closed has no other half that nests.
            while stack[-1] != begin:
                opened[tokens[stack.pop()].name].pop()
            stack.pop()
            opened[token.name].pop()
            partner[begin] = partner[place] = begin
    return [
        (
            token if token.kind not in ("open", "close") or place in partner else token._replace(kind="alone"),
            partner.get(place, -1),
        )
        for place, token in enumerate(tokens)
    ]


def _edges(paired: Sequence[tuple[Token, int]]) -> tuple[int, int]:
    """The range of tokens without what stands at the edges: blanks, codes, pairs around everything or nothing."""
    first, last = 0, len(paired)
    closes = {pair: place for place, (token, pair) in enumerate(paired) if token.kind == "close"}
    opens = {pair: place for place, (token, pair) in enumerate(paired) if token.kind == "open"}
    while first < last:
        token, pair = paired[first]
        end_token, end_pair = paired[last - 1]
        if _is_edge(token):
            first += 1
        elif _is_edge(end_token):
            last -= 1
        elif token.kind == "open" and closes[pair] == last - 1 and not end_token.fixed:
            first, last = first + 1, last - 1
        elif token.kind == "open" and _is_blank(paired, first + 1, closes[pair]):
            first = closes[pair] + 1
        elif end_token.kind == "close" and _is_blank(paired, opens[end_pair] + 1, last - 1):
            last = opens[end_pair]
        else:
            break
    return first, last


def _is_edge(token: Token) -> bool:
    return not token.fixed and (
        token.kind in ("alone", "break", "cue") or (token.kind == "text" and not token.text.strip())
    )


def _is_blank(paired: Sequence[tuple[Token, int]], first: int, last: int) -> bool:
    """True if nothing from `first` to `last` is read. Looks at eight at most: the edges are found in linear time."""
    return last - first <= 8 and not any(
        token.fixed or token.kind == "protected" or (token.kind == "text" and token.text.strip())
        for token, _ in paired[first:last]
    )
