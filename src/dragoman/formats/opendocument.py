"""OpenDocument (.odt, .ods, .odp): paragraphs and headings of its content and of its page styles."""

import re
from collections.abc import Callable, Iterator, Sequence

from dragoman.formats.base import Options, Pass, Unit
from dragoman.formats.inline import Kind, units_of
from dragoman.formats.xml import Event, attribute, elements, events, local, tokens

PAIRS = ("span", "a", "ruby", "ruby-base", "meta", "meta-field", "bookmark-ref", "reference-ref")
BREAKS = ("line-break", "tab")
"""Elements that part texts, as many spaces in a row do: they are there to put what follows into a column."""
NOT_TEXT = ("tracked-changes", "forms", "settings")


def paragraphs(nested: int) -> Pass:
    """The pass for paragraphs that stand inside of `nested` others (notes, text boxes)."""

    def units(text: str, options: Options) -> Iterator[Unit]:
        if nested and not re.search(r"<(?:text:note-body|draw:text-box|office:annotation)\b", text):
            return
        for number, inside in elements(events(text, options), ("text:p", "text:h"), nested, NOT_TEXT):
            found = list(tokens(text, inside[1:-1], _whole, ("span",)))
            yield from units_of(found, f"paragraph {number}", source=text)

    return units


def _whole(element: Sequence[Event]) -> tuple[Kind, str] | None:
    tag, is_empty = local(element[0].name), element[-1].start == element[-1].end
    if tag in BREAKS or (tag == "s" and attribute(element[0], "c", "1") != "1"):
        return "break", ""
    return None if tag in PAIRS and not is_empty else ("alone", "")


def part(name: str, names: Sequence[str], read: Callable[[str], bytes]) -> tuple[Pass, ...]:
    """The passes of a part of the file."""
    return (paragraphs(2), paragraphs(1), paragraphs(0)) if name in ("content.xml", "styles.xml") else ()
