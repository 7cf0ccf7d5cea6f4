"""Resources of .NET (.resx, .resw): the values that are texts."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dragoman.formats.base import Code, Options, Unit, line_of, refuse
from dragoman.formats.inline import as_markup
from dragoman.formats.messages import label
from dragoman.formats.xml import Event, attribute, children, elements, events, local
from dragoman.formats.xml_texts import units_of_element

TYPED = "values with a type: files, pictures, sizes"
_LOCKED = re.compile(r"\{Locked(?:\s*=\s*(?P<words>[^{}]*))?\}")
"""A comment for translators by which a text, or words in it, are not translated."""
_WORDS = re.compile(r"\"([^\"]+)\"|'([^']+)'|([^\s\"',;]+)")


def units(text: str, options: Options) -> Iterator[Unit]:
    """The values of `<data>`; those with a type, and what a designer of forms writes down for itself, are left."""
    inside = list(events(text, options))
    root = next((event for event in inside if event.kind == "start"), None)
    if root is not None and local(root.name) != "root":
        raise refuse(options, text, root.start, f"<{local(root.name)}>, not <root>: no resources of .NET")
    for _, data in elements(inside, ("data",), level=0):
        kind = attribute(data[0], "type")
        is_text = not attribute(data[0], "mimetype") and (not kind or kind.startswith("System.String"))
        for unit in _of_data(text, data):
            yield unit if is_text else replace(unit, kept=TYPED)


def _of_data(text: str, data: Sequence[Event]) -> Iterator[Unit]:
    parts = {local(part[0].name): part for part in children(data)}
    name, value = attribute(data[0], "name"), parts.get("value")
    if value is None:
        return
    where = f"line {line_of(text, value[0].start)}, {name}"
    for unit in units_of_element(text, value, where):
        comment = "".join(event.text for event in parts.get("comment", ()))
        locked = _LOCKED.search(comment)
        if name.startswith(">>"):
            yield replace(unit, kept="names of a designer of forms")
        elif locked and not locked["words"]:
            yield replace(unit, kept="{Locked}")
        else:
            yield _with_label(unit, _words(locked["words"]) if locked else ())


def _words(written: str) -> tuple[str, ...]:
    return tuple("".join(match.groups("")) for match in _WORDS.finditer(written))


def _with_label(unit: Unit, locked: Sequence[str]) -> Unit:
    """A unit without its accelerator, its locked words whole."""
    [first, *others] = unit.items
    if locked:
        pattern = re.compile(f"({'|'.join(map(re.escape, sorted(locked, key=len, reverse=True)))})")
        pieces = [
            Code(piece, "protected") if number % 2 else piece
            for item in unit.items if isinstance(item, str)
            for number, piece in enumerate(pattern.split(item)) if piece
        ]  # fmt: skip
        is_plain = all(isinstance(item, str) for item in unit.items)
        return replace(unit, items=tuple(pieces)) if is_plain and len(pieces) > 1 else unit
    if others or not isinstance(first, str):
        return unit
    bare, written = label(first)
    return replace(unit, items=(bare,), render=lambda items: as_markup((written(items),)))
