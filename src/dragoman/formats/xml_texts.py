"""Passes for XML whose texts are the contents of elements, or the values of attributes, of known names."""

import html
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from dragoman.formats.base import Item, Options, Pass, Unit, plain
from dragoman.formats.inline import Token, units_of
from dragoman.formats.xml import Event, elements, events, tokens

_FILE = re.compile(r"\S+\.\w{2,4}")
"""A value that is the name of a file: programs write it where nobody has described a picture."""


def contents_of(
    names: Collection[str], where: str, within: Collection[str] = (), *, collapse: bool = True, kept: str = ""
) -> Pass:
    """The pass for the contents of elements, if they stand inside of others (`within`). `kept`: why they stay."""
    some = re.compile(rf"[<:](?:{'|'.join(map(re.escape, names))})[\s>]")

    def units(text: str, options: Options) -> Iterator[Unit]:
        if some.search(text) is None:
            return
        whole = events(text, options)
        places = (inside for _, inside in elements(whole, within)) if within else (whole,)
        for place in places:
            for number, inside in elements(place, names):
                for unit in units_of_element(text, inside, f"{where} {number}", source=text, collapse=collapse):
                    yield replace(unit, kept=kept)

    return units


def units_of_element(
    text: str, element: Sequence[Event], where: str, *, collapse: bool = False, source: str | None = None
) -> Iterator[Unit]:
    """The unit of what an element says; elements in it are codes."""
    inside = list(tokens(text, element[1:-1], lambda _: ("alone", "")))
    yield from units_of(inside, where, collapse=collapse, source=source)


def places_of(names: Mapping[str, Sequence[str]]) -> Callable[[str], Iterator[tuple[int, int]]]:
    """Finds (start, end) of the values of attributes: by an element's name, without a prefix, their names.

    `*` stands for all other elements.
    """
    elements = "|".join(r"[\w.-]+" if name == "*" else re.escape(name) for name in names)
    tag = re.compile(rf"<(?:[\w.-]+:)?({elements})(?=\s)(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>")
    values = {
        name: re.compile(rf"\s(?:[\w.-]+:)?(?:{'|'.join(of_element)})\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
        for name, of_element in names.items()
    }

    def places(text: str) -> Iterator[tuple[int, int]]:
        for element in tag.finditer(text):
            for value in values[element[1] if element[1] in values else "*"].finditer(text, *element.span()):
                yield value.span(value.lastindex or 0)

    return places


def values_of(names: Mapping[str, Sequence[str]], where: str, kept: str = "") -> Pass:
    """The pass for the values of attributes that people read: by an element's name, without a prefix, their names."""
    places = places_of(names)

    def units(text: str, options: Options) -> Iterator[Unit]:
        for start, end in places(text):
            token = value_token(text, start, end)
            if not _FILE.fullmatch(token.text):
                for unit in units_of([token], where, as_value, collapse=False):
                    yield replace(unit, kept=kept)

    return units


def tag_with(name: str, attribute: str, value: str) -> str:
    """The pattern of a start tag that has an attribute of this value; not of an empty tag. There is one way to match
    it: patterns around it do not try it anew for each time that the attribute seems to be there."""
    return rf"<(?:[\w.-]+:)?{name}(?=[^<>]*?\s{attribute}=[\"']{value}[\"'])(?=\s)[^<>]*+(?<!/)>"


def value_token(text: str, start: int, end: int) -> Token:
    """The text of an attribute's value as readers of XML have it: white space that is written as it is is a space."""
    return Token("text", start, end, html.unescape(re.sub(r"\r\n|[\r\n\t]", " ", text[start:end])))


_IN_VALUES = {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
"""White space that XML readers turn into a space in an attribute, unless it is escaped."""


def as_value(items: Sequence[Item]) -> str:
    """Text escaped for its place between quotes."""
    return re.sub(r"[\n\r\t]", lambda char: _IN_VALUES[char.group()], html.escape(plain(items)))
