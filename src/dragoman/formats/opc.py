"""Office's packages (Open Packaging Conventions): what a part is, told by relationships and media types.

Names of parts mean nothing. The address of a relationship's type and a media type end in the same word, which is the
part's kind here: `header`, `slide`, `worksheet`, `comments` ... A part that has neither is told by its first element.
"""

import posixpath
import re
from collections.abc import Iterator
from urllib.parse import unquote

from dragoman.errors import DragomanError
from dragoman.formats.base import Options
from dragoman.formats.encoding import decoded
from dragoman.formats.package import Package
from dragoman.formats.xml import attribute, events, local

CONTENT_TYPES = "[Content_Types].xml"
MAIN = "officedocument"
"""The kind of the part from which all others are reached."""
PLAIN_XML = ("application/xml", "text/xml")
OF_ELEMENTS = {
    "chartSpace": "chart", "cmLst": "comments", "comments": "comments", "dataModel": "diagramdata",
    "drawing": "diagramdrawing", "document": "document", "endnotes": "endnotes", "footnotes": "footnotes",
    "ftr": "footer", "hdr": "header", "notes": "notesslide", "sld": "slide", "sst": "sharedstrings",
    "table": "table", "ThreadedComments": "threadedcomment", "workbook": "workbook", "worksheet": "worksheet",
    "wsDr": "drawing", "presentation": "presentation", "sldMaster": "slidemaster", "sldLayout": "slidelayout",
    "numbering": "numbering", "styles": "styles",
}  # fmt: skip
"""Kinds by the first element of a part."""
MAIN_ELEMENTS = ("document", "presentation", "workbook")
LONGEST_TYPE = 200
"""Characters of a type's end that its kind is told from."""
_KIND = re.compile(r"([\w-]+?)(?:\.main)?(?:\+xml)?$")


def kinds(package: Package) -> dict[str, str]:
    """The kind of each part by its name, in lower case. The relationship that leads to the part gives its kind; else
    its media type or its first element does."""
    names = _names(package)
    by_name: dict[str, str] = {}
    to_read = [""]
    while to_read:
        for _, type, target in _relationships(package, names, to_read.pop()):
            if target not in by_name:
                by_name[target] = _word(type)
                to_read.append(target)
    types = _media_types(package, names)
    for name in package.names():
        if name not in by_name:
            type = types.get(name, "application/xml" if name.endswith(".xml") else "")
            by_name[name] = OF_ELEMENTS.get(_first_element(package, name), "") if type in PLAIN_XML else _word(type)
    return by_name


def targets(package: Package, part: str) -> dict[str, str]:
    """The names of the parts that a part's relationships lead to, by the relationships' ids."""
    return {id: name for id, _, name in _relationships(package, _names(package), part)}


def main_media_type(package: Package) -> str:
    """The media type of the main part, or the name of its first element where it has none; "" without such a part.

    Where no relationship names the main part, its media type or its first element does.
    """
    names = _names(package)
    types = _media_types(package, names)
    main = next((name for _, type, name in _relationships(package, names, "") if _word(type) == MAIN), "")
    main = main or next((name for name, type in types.items() if ".main" in type), "")
    if not main:
        parts = (name for name in package.names() if name.endswith(".xml"))
        return next((root for name in parts if (root := _first_element(package, name)) in MAIN_ELEMENTS), "")
    type = types.get(main, "")
    return _first_element(package, main) if not type or type in PLAIN_XML else type


def _first_element(package: Package, name: str) -> str:
    try:
        root = re.search(r"<(?:[\w.-]+:)?(\w+)[\s>/]", decoded(package.read(name), name, "xml")[0][:65536])
    except DragomanError:  # no XML, whatever its name says
        return ""
    return root.group(1) if root else ""


def _word(type: str) -> str:
    match = _KIND.search(type[-LONGEST_TYPE:])
    return match.group(1).lower() if match else ""


def _plain(name: str) -> str:
    """A part's name as names are compared: without regard to case, with slashes."""
    return name.replace("\\", "/").lstrip("/").lower()


def _names(package: Package) -> dict[str, str]:
    return {_plain(name): name for name in package.names()}


def _relationships(package: Package, names: dict[str, str], source: str) -> Iterator[tuple[str, str, str]]:
    """(id, type, name of the part) of each relationship of a part, of the package itself for ""."""
    folder, _, base = source.replace("\\", "/").rpartition("/")
    part = names.get(_plain(posixpath.join(folder, "_rels", f"{base}.rels")))
    if part is None:
        return
    for event in events(decoded(package.read(part), part, "xml")[0], Options(part)):
        if event.kind == "start" and local(event.name) == "Relationship":
            target = unquote(attribute(event, "Target").partition("#")[0]).replace("\\", "/")
            name = names.get(_plain(posixpath.normpath(posixpath.join("/", folder, target))))
            if name is not None and attribute(event, "TargetMode") != "External":
                yield attribute(event, "Id"), attribute(event, "Type"), name


def _media_types(package: Package, names: dict[str, str]) -> dict[str, str]:
    """The media type of each part that has one."""
    listed = names.get(_plain(CONTENT_TYPES))
    if listed is None:
        return {}
    suffixes: dict[str, str] = {}
    of_names: dict[str, str] = {}
    for event in events(decoded(package.read(listed), listed, "xml")[0], Options(listed)):
        if event.kind == "start" and local(event.name) == "Default":
            suffixes[attribute(event, "Extension").lower()] = attribute(event, "ContentType")
        elif event.kind == "start" and local(event.name) == "Override":
            of_names[_plain(unquote(attribute(event, "PartName")))] = attribute(event, "ContentType")
    types = {name: of_names.get(plain) or suffixes.get(plain.rpartition(".")[2], "") for plain, name in names.items()}
    return {name: type for name, type in types.items() if type}
