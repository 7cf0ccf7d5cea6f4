"""E-books (.epub): their chapters, which are XHTML, and their tables of contents."""

from collections.abc import Callable, Iterator, Sequence

from dragoman.formats.base import Options, Pass, Unit
from dragoman.formats.html import attribute_units, text_units
from dragoman.formats.inline import Token, units_of
from dragoman.formats.xml import events, local


def part(name: str, names: Sequence[str], read: Callable[[str], bytes]) -> tuple[Pass, ...]:
    """The passes of a part of the book."""
    lowered = name.lower()
    if lowered.endswith((".xhtml", ".html", ".htm")):
        return (attribute_units, text_units)
    return (contents,) if lowered.endswith(".ncx") else ()


def contents(text: str, options: Options) -> Iterator[Unit]:
    """The labels of a table of contents (NCX)."""
    inside = False
    for event in events(text, options):
        if local(event.name) == "text":
            inside = event.kind == "start"
        elif inside and event.kind == "text":
            yield from units_of([Token("text", event.start, event.end, event.text)], "table of contents", source=text)
