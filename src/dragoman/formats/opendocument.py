"""OpenDocument (.odt, .ods, .odp, .odg): paragraphs and headings of its content, of its page styles and of its charts.

Fields that hold text are read with the sentence around them. What else holds a text for readers is a text by itself:
descriptions of pictures, entries of lists, buttons, captions of indexes, the title of the document.
"""

import html
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from dragoman.errors import Error
from dragoman.formats import formulas
from dragoman.formats.base import ASIDES, Options, Part, Pass, Unit, aside, left_aside, plain
from dragoman.formats.encoding import decoded
from dragoman.formats.inline import Kind, Token, units_of, without_reading
from dragoman.formats.language import in_element, of_opendocument, one_after_another
from dragoman.formats.office import FIELDS, NESTED, PROPERTIES, end_of_range
from dragoman.formats.package import Package
from dragoman.formats.xml import Event, attribute, depth_of, elements, events, local, tokens
from dragoman.formats.xml_texts import contents_of, places_of, values_of

PAIRS = ("span", "a", "ruby", "ruby-base", "meta", "meta-field")
FIELDS_OF_TEXT = (
    "bookmark-ref", "reference-ref", "title", "subject", "keywords", "description", "user-defined", "user-field-get",
    "user-field-input", "variable-get", "variable-set", "variable-input", "text-input", "placeholder",
    "conditional-text", "hidden-text", "drop-down", "chapter", "database-display",
)  # fmt: skip
"""Fields that show a text of the document, or a text that somebody has typed; others show a number or a date."""
BREAKS = ("line-break", "tab")
"""Elements that part texts, as many spaces in a row do: they are there to put what follows into a column."""
PARAGRAPHS = ("p", "h")
_IDS = ("name", "id", "change-id")
"""Attributes that the two ends of a range have in common."""
NOT_TEXT = ("tracked-changes", "settings")
MANIFEST = "META-INF/manifest.xml"
CONTENTS = ("content.xml", "styles.xml")
_TYPE = "application/vnd.oasis.opendocument."
_FORMULAS = {
    "table-cell": ("formula",), "content-validation": ("condition",), "condition": ("value",), "map": ("condition",),
    "named-expression": ("expression",), "apply-style-condition": ("value",), "variable-set": ("formula",),
}  # fmt: skip
_COPIES = {
    "table-cell": ("string-value",), "filter-condition": ("value",), "filter-set-item": ("value",),
    "data-pilot-field": ("source-field-name",), "data-pilot-member": ("name",),
}  # fmt: skip
_TYPED = ("title", "value", "current-value")
_VALUES = {
    "content-validation": ("title",), "help-message": ("title",), "error-message": ("title",), "a": ("title",),
    "button": ("label", "title"), "checkbox": ("label", "title"), "radio": ("label", "title"),
    "fixed-text": ("label",), "frame": ("label",), "option": ("label",), "item": ("label",), "column": ("label",),
    "text": _TYPED, "textarea": _TYPED, "listbox": ("title",), "combobox": ("title",),
    "label": ("value",), "drop-down": ("help",), "alphabetical-index-mark": ("string-value", "key1", "key2"),
    "alphabetical-index-mark-start": ("key1", "key2"), "placeholder": ("description",), "text-input": ("description",),
    "variable-input": ("description",), "user-field-input": ("description",),
    "toc-mark": ("string-value",), "user-index-mark": ("string-value",), "user-field-decl": ("string-value",),
    "variable-set": ("string-value",), "conditional-text": ("string-value-if-true", "string-value-if-false"),
    "hidden-text": ("string-value",), "list-level-style-number": ("num-prefix", "num-suffix"),
    "outline-level-style": ("num-prefix", "num-suffix"),
}  # fmt: skip
"""Attributes that people read: tips, captions of buttons, entries of lists and of indexes, words before numbers."""
_ELEMENTS = (
    "svg:title", "svg:desc", "presentation:footer-decl", "presentation:header-decl", "text:index-entry-span",
    "text:index-title-template",
)  # fmt: skip
_DESCRIBED = contents_of(_ELEMENTS, "description or footer")
_FIELDS_LEFT = (
    "text:date", "text:time", "creation-date", "modification-date", "print-date", "expression", "bibliography-mark",
    "sheet-name", "table-formula", "execute-macro", "measure", "author-name",
)  # fmt: skip
RANGES = "ranges of cells"
VALUES = "numbers, dates and truth values, which programs write by themselves"
_BESIDE = re.compile(r"<((?:\w+:)?(?:annotation|note-body|notes|section|table(?:-cell)?|page))(?=[\s/>])[^<>]*>")
_HIDDEN_STYLE = re.compile(
    r'<style:style\b(?=[^<>]*?\sstyle:name="([^"]*)")[^<>]*+>\s*<style:(?:table|drawing-page)-properties\b[^<>]*?'
    r'(?:table:display="false"|presentation:visibility="hidden")'
)
_LANGUAGE = in_element("dc:language")
METADATA = Part(
    (
        *aside("metadata", contents_of(("dc:title", "dc:subject", "dc:description", "meta:keyword"), "metadata")),
        contents_of(("meta:user-defined",), "property", kept=PROPERTIES),
    ),
    _LANGUAGE,
)


class Beside(NamedTuple):
    """A place of a file that is no text of the document itself: a comment, a note, something hidden, a result."""

    start: int
    end: int
    kind: str


def paragraphs(nested: int, texts: formulas.Texts) -> Pass:
    """The pass for paragraphs that stand inside of `nested` others (notes, text boxes)."""

    def units(text: str, options: Options) -> Iterator[Unit]:
        if nested and nested > depth_of(text, ("note-body", "text-box", "annotation")):
            return
        beside, within = deque(_beside(text)), list[Beside]()
        for number, inside in elements(events(text, options), PARAGRAPHS, nested, NOT_TEXT):
            at = inside[0].start
            while beside and beside[0].start <= at:
                within.append(beside.popleft())
            while within and within[-1].end <= at:
                within.pop()
            kind = within[-1].kind if within else ""
            for unit in _paragraph(text, inside, f"paragraph {number}"):
                if kind == formulas.RESULTS and plain(unit.items).casefold() in texts():
                    kind = ""
                if not kind or kind in options.asides:
                    yield unit
                else:
                    yield replace(unit, kept=left_aside(kind) if kind in ASIDES else kind)

    return units


def _paragraph(text: str, inside: Sequence[Event], where: str) -> Iterator[Unit]:
    content = [
        token._replace(text=without_reading(token.text), fixed=True) if token.name == "ruby-text" else token
        for token in tokens(text, inside[1:-1], _whole, ("span",))
    ]
    yield from units_of(_with_blanks(content), where, source=text)


def _whole(element: Sequence[Event]) -> tuple[Kind, str] | None:
    tag, is_empty = local(element[0].name), element[-1].start == element[-1].end
    if tag in BREAKS or (tag == "s" and attribute(element[0], "c", "1") != "1"):
        return "break", ""
    if tag == "annotation":
        return "open", f"annotation {attribute(element[0], 'name')}"
    if tag.endswith(("-start", "-end")):
        return end_of_range(tag, next((id for name in _IDS if (id := attribute(element[0], name))), ""))
    return None if tag in (*PAIRS, *FIELDS_OF_TEXT) and not is_empty else ("alone", tag)


def _with_blanks(tokens: Sequence[Token]) -> list[Token]:
    """Tokens with a blank in the place of a `text:s` that is the only blank between two words."""
    out = list(tokens)
    before = ""
    waiting: list[int] = []
    for place, token in enumerate(tokens):
        if token.kind == "alone" and token.name == "s":
            waiting.append(place)
        elif token.kind == "break":
            before, waiting = "", []
        elif token.kind == "text" and token.text:
            if len(waiting) == 1 and before and not (before[-1].isspace() or token.text[0].isspace()):
                out[waiting[0]] = tokens[waiting[0]]._replace(kind="text", text=" ")
            before, waiting = token.text, []
    return out


def _beside(text: str) -> list[Beside]:
    beside = []
    ends: dict[str, int] = {}
    hidden = set(_HIDDEN_STYLE.findall(text))
    for tag in _BESIDE.finditer(text):
        name = local(tag[1])
        kind = "comments" if name == "annotation" else "notes"
        if name in ("section", "table", "page"):
            style = re.search(r'\s(?:table|draw):style-name="([^"]*)"', tag.group())
            is_hidden = ':display="none"' in tag.group() or (style is not None and style[1] in hidden)
            kind = "hidden" if is_hidden else ""
        elif name == "table-cell":
            is_value = re.search(r'\s\w+:value-type="(?!string|void)', tag.group())
            kind = formulas.RESULTS if ':formula="' in tag.group() else VALUES if is_value else ""
        if not kind or tag.group().endswith("/>"):
            continue
        if ends.get(tag[1], 0) <= tag.start():
            end = text.find(f"</{tag[1]}>", tag.end())
            ends[tag[1]] = end if end >= 0 else len(text)
        if ends[tag[1]] < len(text):
            beside.append(Beside(tag.start(), ends[tag[1]], kind))
    return beside


def descriptions(text: str, options: Options) -> Iterator[Unit]:
    """Titles, descriptions and footers. LibreOffice keeps the ranges of a chart's cells in descriptions: they stay."""
    for unit in _DESCRIBED(text, options):
        yield replace(unit, kept=RANGES) if _RANGE.fullmatch(plain(unit.items)) else unit


_CELL = r"(?:'(?:[^']|'')*+'|[^\s'.:]++)?\.\$?[A-Z]{1,3}\$?\d{1,7}"
_RANGE = re.compile(rf"\$?{_CELL}(?:[:\s]\$?{_CELL})*+[:\s]?")


def left_out(text: str, options: Options) -> Iterator[Unit]:
    """Texts that stay, to be counted: what fields show that the program works out by itself."""
    for number, inside in elements(events(text, options), _FIELDS_LEFT):
        shown = "".join(event.text for event in inside)
        if re.search(r"[^\W\d_]{3}", shown):
            yield Unit((shown,), inside[0].start, inside[-1].end, plain, f"field {number}", kept=FIELDS)


def deletions(nested: int) -> Pass:
    """The pass for the paragraphs of tracked deletions."""

    def units(text: str, options: Options) -> Iterator[Unit]:
        if "tracked-changes" not in text:
            return
        for _, changes in elements(events(text, options), ("tracked-changes",)):
            for number, inside in elements(changes, PARAGRAPHS, nested):
                yield from _paragraph(text, inside, f"deletion {number}")

    return units


def parts(package: Package) -> dict[str, Part]:
    """The parts of a document that hold text: its own, and those of the charts and formulas in it."""
    names = {name.replace("\\", "/"): name for name in package.names()}
    folders = ["", *(folder for folder, type in _media_types(package, names).items() if type.startswith(_TYPE))]
    contents = [names[folder + name] for folder in folders for name in CONTENTS if folder + name in names]

    part = _contents(lambda: (decoded(package.read(name), name, "xml")[0] for name in contents))
    return dict.fromkeys(contents, part) | {
        names[name]: METADATA for folder in folders if (name := f"{folder}meta.xml") in names
    }


def flat(text: str) -> Part:
    """A document that is one file (.fodt, .fods, .fodp, .fodg): how it is read."""
    whole = _contents(lambda: [text])
    return Part((*METADATA.passes, *whole.passes), one_after_another(_LANGUAGE, of_opendocument))


def _contents(every: Callable[[], Iterable[str]]) -> Part:
    """The way in which parts with text are read. `every`: all of them; formulas and filters name their cells."""

    @cache
    def texts() -> dict[str, str]:
        return formulas.by_lower_case(text for part in every() for text in _texts_of_cells(part))

    passes = (
        values_of(_VALUES, "what programs show"),
        descriptions,
        left_out,
        formulas.in_values(_FORMULAS, texts),
        formulas.copies(_COPIES, texts),
        *aside("changes", deletions(1), deletions(0)),
        *(paragraphs(nested, texts) for nested in NESTED),
        values_of({"table": ("name",)}, "sheet", formulas.SHEETS),
        contents_of(("number:text",), "format", kept=formulas.FORMATS),
    )
    return Part(passes, of_opendocument)


def _texts_of_cells(text: str) -> Iterator[str]:
    """The texts of cells without a formula, and the texts of a list of choices."""
    for _, cell in elements(events(text, Options()), ("table-cell",)):
        if not attribute(cell[0], "formula"):
            for _, inside in elements(cell, PARAGRAPHS):
                yield from (plain(unit.items) for unit in _paragraph(text, inside, ""))
            yield attribute(cell[0], "string-value")
    for start, end in places_of({"variable-set": ("string-value",), "user-field-decl": ("string-value",)})(text):
        yield html.unescape(text[start:end])
    for start, end in places_of({"content-validation": ("condition",)})(text):
        if "in-list" in text[start:end]:
            yield from (choice for _, _, choice, _ in formulas.texts_of(text, start, end))


def media_type(package: Package) -> str:
    """The media type of a package by its own word: in its part `mimetype`, or in its manifest.

    Raises DragomanError where the manifest says how a part is encrypted.
    """
    names = {name.replace("\\", "/"): name for name in package.names()}
    if MANIFEST in names and b"encryption-data" in package.read(names[MANIFEST]):
        raise Error.LOCKED("is protected by a password", "save it without one", file=package.name)
    if "mimetype" in names:
        return package.read(names["mimetype"]).strip().decode("latin-1")
    return _media_types(package, names).get("/", "")


def _media_types(package: Package, names: Mapping[str, str]) -> dict[str, str]:
    """The media types of the manifest, by the names of parts and of folders."""
    if MANIFEST not in names:
        return {}
    listed = decoded(package.read(names[MANIFEST]), MANIFEST, "xml")[0]
    entries = (event for event in events(listed, Options(MANIFEST)) if local(event.name) == "file-entry")
    return {attribute(event, "full-path"): attribute(event, "media-type") for event in entries if event.kind == "start"}
