"""Pages inside of a page: in comments that Outlook and old browsers show, in attributes (`<iframe srcdoc="...">`), and
in data for search engines (JSON-LD).
"""

import html
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from dragoman.errors import DragomanError
from dragoman.formats.base import Edit, Item, Options, Pass, Unit, has_letters, line_of, plain, spliced
from dragoman.formats.html import attribute_units, embedded_units, page_of, text_units
from dragoman.formats.html_language import with_language
from dragoman.formats.html_pieces import Piece
from dragoman.formats.json_strings import Value, as_json, content_of, values_of
from dragoman.languages.codes import language_of, tag_of

READ_IN_DATA = frozenset({
    "abstract", "alternativeHeadline", "articleBody", "articleSection", "caption", "description",
    "disambiguatingDescription", "headline", "keywords", "recipeCategory", "recipeIngredient", "recipeInstructions",
    "reviewBody", "slogan", "text",
})  # fmt: skip
"""Keys of schema.org whose values search engines show."""
TITLED = frozenset({
    "AboutPage", "Article", "BlogPosting", "BreadcrumbList", "CollectionPage", "ContactPage", "Course", "CreativeWork",
    "Event", "FAQPage", "HowTo", "HowToSection", "HowToStep", "HowToTip", "ImageObject", "ItemList", "ItemPage",
    "ListItem", "NewsArticle", "Offer", "OfferCatalog", "Product", "Question", "Recipe", "Service",
    "SiteNavigationElement", "TechArticle", "VideoObject", "WebPage",
})  # fmt: skip
"""Types of schema.org whose `name` is a title; those of people, firms and places are names."""
NAMES = "names in JSON-LD"
BROKEN = "JSON-LD that is no JSON"

_CONDITIONAL = re.compile(r"<!--\[if\b[^\]]*\]>(?!<!)(?P<inner>.*)<!\[endif\]-->", re.DOTALL | re.IGNORECASE)
_REFERENCE = re.compile(r"&(?:#\w+|\w+);?")
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]\w\w\\u\w{4}|u\w{4}|.)", re.DOTALL)
_MARKUP = re.compile(r"</?[A-Za-z][^<>]*>|&#?\w+;")


class _Inside(NamedTuple):
    """A page in characters `start` to `end` of another one, where it is written with escapes."""

    start: int
    end: int
    name: str
    escapes: re.Pattern[str] | None = None
    read: Callable[[str], str] = str
    write: Callable[[str], str] = str
    """The function that escapes a text for its place."""

    def unescaped(self, text: str) -> tuple[str, list[int]]:
        """The page without escapes, and where each of its characters begins in the text."""
        content, places, done = "", list[int](), self.start
        for match in [*(self.escapes.finditer(text, self.start, self.end) if self.escapes else ()), None]:
            stop = match.start() if match else self.end
            character = self.read(match[0]) if match else ""
            content += text[done:stop] + character
            places += [*range(done, stop), *[stop] * len(character)]
            done = match.end() if match else stop
        return content, [*places, self.end]


def _inside(one_pass: Pass, text: str, options: Options) -> Iterator[Unit]:
    """The units that a pass finds in the pages inside of a page."""
    for page in sorted(_pages(text, options), key=lambda page: page.start):
        content, places = page.unescaped(text)
        for unit in one_pass(content, options):
            start, end = places[unit.start], places[unit.end]
            render = partial(_written, page, unit)
            beside = partial(_beside, page, unit, places) if unit.beside else None
            where = f"line {line_of(text, start)}, {page.name}"
            yield replace(unit, start=start, end=end, render=render, where=where, beside=beside)


def _written(page: _Inside, unit: Unit, items: Sequence[Item]) -> str:
    return page.write(unit.render(items))


def _beside(page: _Inside, inner: Unit, places: Sequence[int], _: Unit, items: Sequence[Item]) -> Iterator[Edit]:
    for edit in inner.edits(items):
        yield Edit(places[edit.start], places[edit.end], page.write(edit.text))


def _pages(text: str, options: Options) -> Iterator[_Inside]:
    page = page_of(text, options.tags)
    for piece in page:
        match = _CONDITIONAL.fullmatch(text, piece.start, piece.end) if piece.is_translated and not piece.name else None
        if match:
            yield _Inside(*match.span("inner"), "comment")
        elif piece.tag and piece.name == "iframe" and piece.tag.opens and piece.is_translated:
            for name, _, start, end in piece.tag.attributes():
                if name == "srcdoc" and text[start - 1] in "\"'":
                    yield _Inside(start, end, name, _REFERENCE, html.unescape, html.escape)
    for data in _data(text, page):
        for value, content in data.values():
            if _MARKUP.search(content) and not data.kept(value):
                read = partial(_in_quotes, json.loads)
                yield _Inside(value.start + 1, value.end - 1, value.path[-1], _ESCAPE, read, _as_data)


def _in_quotes(read: Callable[[str], str], raw: str) -> str:
    return read(f'"{raw}"')


def _as_data(content: str) -> str:
    """A text in a string of JSON in a script."""
    return as_json(content)[1:-1].replace("</", "<\\/").replace("<!--", "<\\u0021--")


class _Data:
    """The JSON-LD of a script."""

    def __init__(self, text: str, piece: Piece) -> None:
        self.start, self.text = piece.start, text[piece.start : piece.end]
        content_of(self.text, Options())
        self.strings = list(values_of(self.text))
        types = {value.parent: value for value in self.strings if value.path[-1:] == ("@type",)}
        self.titled = {parent for parent, value in types.items() if self.content(value) in TITLED}

    def content(self, value: Value) -> str:
        raw = self.text[value.start : value.end]
        return str(json.loads(raw)) if raw[0] == '"' else ""

    def values(self) -> Iterator[tuple[Value, str]]:
        """The texts that people may read, with their places in the file."""
        for value in self.strings:
            key = next((key for key in reversed(value.path) if key), "")
            content = self.content(value) if key == "name" or key in READ_IN_DATA else ""
            if has_letters(content):
                path = (*value.path[:-1], key)
                yield value._replace(path=path, start=value.start + self.start, end=value.end + self.start), content

    def kept(self, value: Value) -> str:
        """The reason why a text is left as it is."""
        return NAMES if value.path[-1] == "name" and value.parent not in self.titled else ""


def _data(text: str, page: Sequence[Piece]) -> Iterator[_Data]:
    """The JSON-LD of a page that can be read."""
    for piece in _scripts(page):
        try:
            yield _Data(text, piece)
        except DragomanError:
            continue


def _scripts(page: Sequence[Piece]) -> Iterator[Piece]:
    """The contents of scripts of JSON-LD."""
    for number, piece in enumerate(page[:-1]):
        if piece.tag is None or piece.name != "script" or not (piece.tag.opens and piece.is_labelled):
            continue
        if (piece.tag.get("type") or "").strip().lower() == "application/ld+json" and not page[number + 1].name:
            yield page[number + 1]


def data_units(text: str, options: Options) -> Iterator[Unit]:
    """The texts of JSON-LD without markup, and the texts that are kept."""
    page = page_of(text, options.tags)
    for piece in _scripts(page):
        try:
            data = _Data(text, piece)
        except DragomanError:
            where = f"line {line_of(text, piece.start)}"
            yield Unit((text[piece.start : piece.end],), piece.start, piece.end, plain, where, kept=BROKEN)
            continue
        for value, content in data.values():
            kept = data.kept(value)
            if kept or not _MARKUP.search(content):
                where = f"line {line_of(text, value.start)}, {value.path[-1]}"
                yield Unit((content,), value.start + 1, value.end - 1, _data_written, where, kept=kept)


def _data_written(items: Sequence[Item]) -> str:
    return _as_data(plain(items))


def finish(text: str, options: Options) -> str:
    """The page, and those inside of it, with their language changed to the target's; so is that of JSON-LD."""
    src, tgt = options.languages
    edits = [
        Edit(data.start + value.start, data.start + value.end, as_json(tag_of(tgt)))
        for data in (_data(text, page_of(text)) if tgt else ())
        for value in data.strings
        if value.path[-1:] == ("inLanguage",) and language_of(data.content(value)) == language_of(src)
    ]
    for page in _pages(text, options):
        content, _ = page.unescaped(text)
        if (written := with_language(content, options)) != content:
            edits.append(Edit(page.start, page.end, page.write(written)))
    return with_language(spliced(text, edits), options)


PASSES: tuple[Pass, ...] = (
    *(partial(_inside, one_pass) for one_pass in (attribute_units, embedded_units, text_units)),
    data_units,
)
