"""E-books (.epub): chapters, which are XHTML, tables of contents, and the book's title and description.

The container names the book's package file, and that lists every part with its media type: names of parts mean nothing.
"""

import posixpath
from collections.abc import Iterator
from urllib.parse import unquote

from dragoman.formats import html
from dragoman.formats.base import Options, Part, aside
from dragoman.formats.encoding import decoded
from dragoman.formats.language import in_attributes, in_element, one_after_another
from dragoman.formats.package import Package
from dragoman.formats.xml import Event, attribute, events, local
from dragoman.formats.xml_texts import contents_of, values_of

CONTAINER = "META-INF/container.xml"
BOOK = Part(
    (
        *aside(
            "metadata",
            contents_of(("dc:title", "dc:description", "dc:subject"), "the book's title or description"),
        ),
        values_of({"reference": ("title",)}, "guide"),
    ),
    one_after_another(in_element("dc:language"), in_attributes({"package": ("lang",)})),
    in_element("dc:language", beside=True),
)
CHAPTER = Part((html.attribute_units, html.embedded_units, html.text_units), html.with_language)
CONTENTS = Part(
    (contents_of(("text",), "table of contents"),), in_attributes({"ncx": ("lang",), "docTitle": ("lang",)})
)
OF_TYPES = {"application/xhtml+xml": CHAPTER, "text/html": CHAPTER, "application/x-dtbncx+xml": CONTENTS}


def parts(package: Package) -> dict[str, Part]:
    """The parts of a book that hold text: those that its package files list, whatever they are called."""
    names = {name.lower(): name for name in package.names()}
    found: dict[str, Part] = {}
    for root in _tags(package, names.get(CONTAINER.lower()), "rootfile"):
        book = names.get(unquote(attribute(root, "full-path")).lower())
        for item in _tags(package, book, "item"):
            address = unquote(attribute(item, "href").partition("#")[0])
            name = names.get(posixpath.normpath(posixpath.join(posixpath.dirname(str(book)), address)).lower())
            part = OF_TYPES.get(attribute(item, "media-type").strip().lower())
            if name is not None and part is not None:
                found[name] = part
        if book is not None:
            found[book] = BOOK
    return found


def media_type(package: Package) -> str:
    """The media type of books, for a package that has a container file but does not say what it is."""
    return "application/epub+zip" if CONTAINER in package.names() else ""


def _tags(package: Package, part: str | None, name: str) -> Iterator[Event]:
    """The start tags of a name in a part, if there is one."""
    if part is None:
        return
    for event in events(decoded(package.read(part), part, "xml")[0], Options(part)):
        if event.kind == "start" and local(event.name) == name:
            yield event
