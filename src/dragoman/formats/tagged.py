"""A text with tags of XML, whole or a piece of a file, as clients of a server send it (`Tags`).

Which elements part texts is seen from how they stand, if nobody says it: those in a text, with words beside them, are
codes of that text; the others are its structure.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dragoman.errors import DragomanError
from dragoman.formats import html
from dragoman.formats.base import Options, Tags, Unit, line_of
from dragoman.formats.inline import Kind, units_of
from dragoman.formats.xml import Event, after, attribute, events, tokens

_PROLOG = re.compile(r"\s*(?:<\?xml\b.*?\?>)?\s*(?:<!DOCTYPE\b[^>\[]*(?:\[.*?\]\s*)?>)?", re.DOTALL)
_ROOT = "_"
"""The element that is put around a text, which may have several roots, or none."""


def units(text: str, options: Options) -> Iterator[Unit]:
    """The texts between the tags that part them. What is not well-formed is read as HTML."""
    try:
        page = _events(text, options)
    except DragomanError:
        yield from html.text_units(text, options)
        return
    splitting = _outline(page, options.tags) - options.tags.non_splitting | options.tags.splitting
    block: list[Event] = []
    at = 0
    while at < len(page):
        event = page[at]
        end = after(page, at) if _is_kept(event, options.tags) else at + 1
        if event.kind in ("start", "end") and event.name in splitting and end == at + 1:
            yield from _of_block(text, block, options)
            block = []
        else:
            block += page[at:end]
        at = end
    yield from _of_block(text, block, options)


def check(text: str) -> None:
    """Raises DragomanError for a text that is not well-formed."""
    _events(text, Options("the text"))


def _events(text: str, options: Options) -> list[Event]:
    prolog = _PROLOG.match(text)
    begin = prolog.end() if prolog else 0
    shift = begin - len(f"<{_ROOT}>")
    around = events(f"<{_ROOT}>{text[begin:]}</{_ROOT}>", options)
    moved = (event._replace(start=event.start + shift, end=event.end + shift) for event in around)
    return [event for event in moved if begin <= event.start and event.end <= len(text) and event.start < len(text)]


def _of_block(text: str, block: Sequence[Event], options: Options) -> Iterator[Unit]:
    def whole(element: Sequence[Event]) -> tuple[Kind, str] | None:
        return ("protected", "") if _is_kept(element[0], options.tags) else None

    if block:
        where = f"line {line_of(text, block[0].start)}"
        yield from units_of(list(tokens(text, block, whole)), where, source=text)


def _is_kept(event: Event, tags: Tags) -> bool:
    """True for the begin of an element that is not translated."""
    if event.kind != "start":
        return False
    says = attribute(event, "translate") == "no" or "notranslate" in attribute(event, "class").split()
    return says or event.name in tags.ignored


@dataclass
class _Element:
    name: str = ""
    children: list["_Element"] = field(default_factory=list)
    has_text: bool = False
    """True if words stand directly in the element."""

    @property
    def is_list(self) -> bool:
        """True for an element of several texts and nothing between them."""
        return not self.has_text and sum(child.has_text or bool(child.children) for child in self.children) > 1


def _outline(page: Sequence[Event], tags: Tags) -> frozenset[str]:
    """The names of elements that part texts: elements that stand beside no words anywhere in the file."""
    if not tags.outline:
        return frozenset()
    root = _Element()
    path = [root]
    at = 0
    while at < len(page):
        event = page[at]
        if event.kind == "text" and event.text.strip():
            path[-1].has_text = True
        elif event.kind == "end":
            path.pop()
        elif event.kind == "start" and not _is_kept(event, tags):
            path.append(_Element(event.name))
            path[-2].children.append(path[-1])
        at = after(page, at) if _is_kept(event, tags) else at + 1
    structure, inline = set[str](), set[str]()
    waiting = [root]
    while waiting:
        element = waiting.pop()
        for child in element.children:
            is_inline = element.has_text and not child.is_list
            (inline if is_inline else structure).add(child.name)
            if not is_inline:
                waiting.append(child)
    return frozenset(structure - inline)
