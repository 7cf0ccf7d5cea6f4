"""E-books (.epub): chapters, which are XHTML, tables of contents, and the book's title and description.

The container names the book's package file, and that lists every part with its media type: names of parts mean nothing.
"""

import posixpath
import unicodedata
from collections.abc import Iterator
from urllib.parse import unquote

from dragoman.errors import Error
from dragoman.formats import html
from dragoman.formats.base import Options, Part, aside
from dragoman.formats.direction import of_css, of_spine
from dragoman.formats.encoding import decoded
from dragoman.formats.html_language import with_language
from dragoman.formats.language import in_attributes, in_element, one_after_another
from dragoman.formats.package import Package
from dragoman.formats.xml import Event, attribute, events, local
from dragoman.formats.xml_texts import contents_of, values_of

CONTAINER = "META-INF/container.xml"
LOCKS = "META-INF/encryption.xml"
BOOK = Part(
    (
        *aside(
            "metadata",
            contents_of(("dc:title", "dc:description", "dc:subject"), "the book's title or description"),
        ),
        values_of({"reference": ("title",)}, "guide"),
    ),
    one_after_another(in_element("dc:language"), in_attributes({"package": ("lang",)}), of_spine),
    in_element("dc:language", beside=True),
)
CHAPTER = Part((html.attribute_units, html.embedded_units, html.text_units), with_language)
CONTENTS = Part(
    (contents_of(("text",), "table of contents", within=("docTitle", "navLabel", "navInfo")),),
    in_attributes({"ncx": ("lang",), "docTitle": ("lang",)}),
)
STYLES = Part(finish=of_css, codec="latin-1")
"""Style sheets, whatever encoding they are in: only ASCII is changed in them."""
OF_TYPES = {
    "application/xhtml+xml": CHAPTER, "text/html": CHAPTER, "application/x-dtbncx+xml": CONTENTS,
    "text/css": STYLES,
}  # fmt: skip


def parts(package: Package) -> dict[str, Part]:
    """The parts of a book that hold text: those that its package files list, whatever they are called."""
    names = {_plain(name): name for name in package.names()}
    locked = {
        _plain(unquote(attribute(tag, "URI"))) for tag in _tags(package, names.get(_plain(LOCKS)), "CipherReference")
    }
    by_name: dict[str, Part] = {}
    for root in _tags(package, names.get(_plain(CONTAINER)), "rootfile"):
        book = names.get(_plain(unquote(attribute(root, "full-path"))))
        for item in _tags(package, book, "item"):
            address = unquote(attribute(item, "href").partition("#")[0])
            name = names.get(_plain(posixpath.normpath(posixpath.join(posixpath.dirname(str(book)), address))))
            part = OF_TYPES.get(attribute(item, "media-type").strip().lower())
            if name is not None and part is not None and not (part is STYLES and b"\0" in package.read(name)):
                if _plain(name) in locked:  # letters of fonts often are, which nobody reads here
                    raise Error.LOCKED(
                        f"its part {name!r} is encrypted (DRM)", "get the book without it", file=package.name
                    )
                by_name[name] = part
        if book is not None:
            by_name[book] = BOOK
    return by_name


def media_type(package: Package) -> str:
    """The media type of books, for a package with a container file that does not declare its type."""
    return "application/epub+zip" if CONTAINER in package.names() else ""


def _plain(name: str) -> str:
    """A part's name as names are compared: without regard to case and to the way in which accents are written."""
    return unicodedata.normalize("NFC", name).lower()


def _tags(package: Package, part: str | None, name: str) -> Iterator[Event]:
    """The start tags of a name in a part, if there is one."""
    if part is None:
        return
    for event in events(decoded(package.read(part), part, "xml")[0], Options(part)):
        if event.kind == "start" and local(event.name) == name:
            yield event
