"""OpenDocument (.odt, .ods, .odp): paragraphs and headings of its content and of its page styles."""

import re
from collections.abc import Callable, Iterator, Sequence

from dragoman.formats.base import Options, Pass, Unit
from dragoman.formats.inline import Token, units_of
from dragoman.formats.xml import Event, after, events, local

PAIRS = ("span", "a", "ruby", "ruby-base", "meta", "meta-field", "bookmark-ref", "reference-ref")
NOT_TEXT = ("tracked-changes", "forms", "settings")


def paragraphs(nested: int) -> Pass:
    """The pass for paragraphs that stand inside of `nested` others (notes, text boxes)."""

    def units(text: str, options: Options) -> Iterator[Unit]:
        if nested and not re.search(r"<(?:text:note-body|draw:text-box|office:annotation)\b", text):
            return
        stack: list[list[Event]] = []
        number = skipped = 0
        for event in events(text, options):
            tag = local(event.name)
            if tag in NOT_TEXT:
                skipped += {"start": 1, "end": -1}.get(event.kind, 0)
            is_paragraph = event.name in ("text:p", "text:h")
            if event.kind == "start" and is_paragraph and not skipped:
                stack.append([])
                number += 1
            for held in stack:
                held.append(event)
            if event.kind == "end" and is_paragraph and stack:
                inside = stack.pop()
                if len(stack) == nested:
                    yield from units_of(list(_tokens(text, inside[1:-1])), f"paragraph {number}", source=text)

    return units


def _tokens(text: str, inside: Sequence[Event]) -> Iterator[Token]:
    at = 0
    while at < len(inside):
        event = inside[at]
        raw = text[event.start : event.end]
        tag = local(event.name)
        if event.kind == "text":
            yield Token("text", event.start, event.end, event.text)
        elif event.kind == "end":
            yield Token("close", event.start, event.end, raw, event.name, tag == "span")
        elif event.kind == "start" and tag in PAIRS and not _is_empty(inside, at):
            yield Token("open", event.start, event.end, raw, event.name, tag == "span")
        elif event.kind == "start":
            stop = after(inside, at) - 1
            yield Token("alone", event.start, inside[stop].end, text[event.start : inside[stop].end])
            at = stop
        else:
            yield Token("alone", event.start, event.end, raw)
        at += 1


def _is_empty(inside: Sequence[Event], at: int) -> bool:
    following = inside[at + 1] if at + 1 < len(inside) else None
    return following is not None and following.kind == "end" and following.start == following.end


def part(name: str, names: Sequence[str], read: Callable[[str], bytes]) -> tuple[Pass, ...]:
    """The passes of a part of the file."""
    return (paragraphs(2), paragraphs(1), paragraphs(0)) if name in ("content.xml", "styles.xml") else ()
