"""Android's string resources (strings.xml): strings, arrays and plurals that are to be translated."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dragoman.formats.base import Code, Item, Options, Unit, refuse
from dragoman.formats.inline import Kind, escaped, units_of
from dragoman.formats.xml import Event, attribute, events, local, tokens

_SIMPLE = {"n": "\n", "t": "\t", "@": "@", "?": "?", "'": "'", '"': '"', "\\": "\\"}


def units(text: str, options: Options) -> Iterator[Unit]:
    """The strings; not those with translatable="false", nor references."""
    held: list[Event] | None = None
    kept, name, root, where = False, "", "", ""
    for event in events(text, options):
        tag = local(event.name)
        if event.kind == "start" and not root:
            root = tag
            if root != "resources":
                raise refuse(
                    options, text, event.start, f"<{tag}>, not <resources>: of XML, Android's strings alone are known"
                )
        if event.kind == "start" and tag in ("string", "string-array", "plurals"):
            kept = attribute(event, "translatable") == "false"
            name = attribute(event, "name")
        if event.kind == "start" and tag in ("string", "item") and held is None:
            held = []
            quantity = attribute(event, "quantity")
            where = f"{name}[{quantity}]" if quantity else name
        if held is None:
            continue
        held.append(event)
        if event.kind == "end" and tag in ("string", "item"):
            content = text[held[0].end : held[-1].start]
            if not content.lstrip().startswith(("@", "?")):
                inside = list(tokens(text, held[1:-1], _whole, ("b", "i", "u"), _read))
                for unit in units_of(inside, where, _render, source=text, collapse=False):
                    yield replace(unit, kept='translatable="false"') if kept else unit
            held = None


def _whole(element: Sequence[Event]) -> tuple[Kind, str] | None:
    return ("protected", "") if element[0].name == "xliff:g" else None


def _read(text: str) -> str:
    text = re.sub(r"\s+", " ", text)  # white space that counts is written with a backslash
    text = re.sub(r"\\u([0-9A-Fa-f]{4})", lambda match: chr(int(match.group(1), 16)), text)
    return re.sub(r"\\(.)", lambda match: _SIMPLE.get(match.group(1), match.group(1)), text)


def _render(items: Sequence[Item]) -> str:
    written = "".join(item.raw if isinstance(item, Code) else _written(item) for item in items)
    return re.sub(r"^ | $", r"\\u0020", written)


def _written(text: str) -> str:
    text = text.replace("\\", "\\\\").replace("'", "\\'").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return escaped(re.sub(r"^([@?])", r"\\\1", text))
