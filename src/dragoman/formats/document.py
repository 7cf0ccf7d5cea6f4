"""A file to translate: its format told by name and content, its texts handed out, the file written with translations.

A format is one file of this folder and one row of `FORMATS`.
"""

import io
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from dragoman.errors import DragomanError, Error
from dragoman.formats import (
    android,
    apple,
    asciidoc,
    ass,
    epub,
    html,
    html_inside,
    html_language,
    its,
    json_strings,
    language,
    markdown,
    opc,
    opendocument,
    pdf,
    plain_text,
    po,
    presentation,
    properties,
    qt,
    rest,
    resx,
    string_catalog,
    subtitles,
    table,
    ttml,
    word,
    workbook,
    xliff,
    yaml_strings,
)
from dragoman.formats.base import Edit, Finish, Format, Item, Options, Part, Unit, plain, spliced
from dragoman.formats.encoding import Encoding, code_page, decoded, encoded, is_binary
from dragoman.formats.package import Package
from dragoman.progress import say

MAX_BYTES = 100 * 2**20
UNITS_AT_A_TIME = 1024
"""Texts that are translated together: fewer make small batches (64 take 1.8 times as long), and a stop loses them."""

TranslateUnits = Callable[[Sequence[Unit]], Iterable[tuple[Item, ...] | None]]
"""Of each unit the items of its translation; None leaves it as it is."""

MAX_FILES_DEEP = 2
"""Files inside of files that are read."""

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


class Document:
    """A file to translate, in memory."""

    def __init__(self, data: bytes, format: Format, options: Options) -> None:
        self.data, self.format, self.options = data, format, options

    @classmethod
    def load(cls, path: Path, options: Options | None = None) -> "Document":
        """Read a file. Raises DragomanError for a file that is of no known kind, too large, broken, or locked."""
        options = replace(options or Options(), name=str(path))
        try:
            if path.stat().st_size > MAX_BYTES:
                raise Error.TOO_LARGE(f"larger than {MAX_BYTES // 2**20} MiB", "split it", file=path)
            data = path.read_bytes()
        except OSError as error:
            raise Error.CANNOT_READ(f"cannot be read: {error.strerror}", file=path) from error
        kind = format_of(path, data)
        if options.bilingual:
            require_bilingual(kind, path)
        return cls(pdf.text_of(data, options.name).encode() if kind is FORMATS["pdf"] else data, kind, options)

    def texts(self) -> Iterator[Unit]:
        """The units of the file as it is, including units that are kept untranslated."""
        for name, data, part in self._parts():
            if part.is_file:
                inner = self._inside(name, data)
                yield from inner.texts() if inner else [_left(name)]
                continue
            text, _ = self._decoded(data, name, part.codec)
            for one_pass in part.passes:
                yield from one_pass(text, replace(self.options, name=name))

    def translated(self, translate: TranslateUnits) -> bytes:
        """The bytes of the file with translations in the place of its texts; its own where nothing changes."""
        changed, same = {}, []
        for name, data, part in self._parts():
            if part.is_file:
                inner = self._inside(name, data)
                new = inner.translated(translate) if inner else data
                _ = None if inner else list(translate([_left(name)]))
            else:
                new = self._translated_part(name, data, part, translate)
            if new != data:
                changed[name] = new
            elif finish := self._finish(part):
                same.append((name, data, finish, part.codec))
        for name, data, finish, codec in same if changed else ():  # parts without a text say the language, too
            text, encoding = self._decoded(data, name, codec)
            text = finish(text, replace(self.options, name=name))
            changed[name] = encoded(text, encoding, name, self.format.declares)
        if self.format.parts_of is None:
            return changed.get(self.options.name, self.data)
        parts = {name.removeprefix(f"{self.options.name}!"): new for name, new in changed.items()}
        return Package(self.data, self.options.name).written(parts) if parts else self.data

    def _parts(self) -> Iterator[tuple[str, bytes, Part]]:
        """(name, bytes, how it is read) of the file, or of each of its parts that hold text, in the file's order."""
        if self.format.parts_of is None:
            made = self.format.part_of
            part = made(self._decoded(self.data, self.options.name)[0]) if made else None
            yield self.options.name, self.data, part or Part(self.format.passes, self.format.finish)
            return
        package = Package(self.data, self.options.name)
        parts = self.format.parts_of(package)
        for name in package.names():
            if name in parts:
                yield f"{self.options.name}!{name}", package.read(name), parts[name]

    def _finish(self, part: Part) -> Finish | None:
        return part.both if self.options.bilingual else part.finish

    def _inside(self, name: str, data: bytes) -> "Document | None":
        """A part that is a file by itself, and a file inside of that file, but no deeper; None for a file of no known
        kind."""
        named = next((FORMATS[kind] for kind in ("html", "txt") if name.lower().endswith(FORMATS[kind].suffixes)), None)
        try:
            kind = _by_content(data, name) or named if name.count("!") <= MAX_FILES_DEEP else None
        except DragomanError as error:
            say(f"{error}: left as it is")
            return None
        if kind is None:
            return None
        bilingual = self.options.bilingual and kind.goes_bilingual
        return Document(data, kind, replace(self.options, name=name, bilingual=bilingual))

    def _decoded(self, data: bytes, name: str, codec: str = "") -> tuple[str, Encoding]:
        if self.format.declares == "player":
            codec = code_page(data, self.options.languages)
        return decoded(data, name, self.format.declares, codec, self.options.languages[:1])

    def _translated_part(self, name: str, data: bytes, part: Part, translate: TranslateUnits) -> bytes:
        text, encoding = self._decoded(data, name, part.codec)
        if self.format.declares == "player" and not encoding.codec.startswith("utf"):
            say(f"{name}: not UTF-8: read as {encoding.codec.replace('cp', 'windows-')}, as players do")
        options = replace(self.options, name=name)
        before = text
        for one_pass in part.passes:
            edits: list[Edit] = []
            remaining = one_pass(text, options)
            while units := list(itertools.islice(remaining, UNITS_AT_A_TIME)):
                for unit, items in zip(units, translate(units), strict=True):
                    if items is not None and (unit.bilingual or items != unit.items):
                        edits += unit.edits(items)
            text = spliced(text, edits)
        if text == before:
            return data
        if finish := self._finish(part):
            text = finish(text, options)
        return encoded(text, encoding, name, self.format.declares)


def _left(name: str) -> Unit:
    """The unit that counts an inner file that is kept as it is."""
    return Unit((name,), 0, 0, plain, name, kept=f"the file {name.rpartition('/')[2]} inside")


def require_bilingual(kind: Format, path: Path) -> None:
    """Raises DragomanError for a file of a format in which no translation can stand below its source."""
    if not kind.goes_bilingual:
        known = sorted({suffix for one in FORMATS.values() if one.goes_bilingual for suffix in one.suffixes})
        raise Error.UNSUPPORTED(
            f"`bilingual`: in {kind.name} translations are not put below their sources",
            f"leave it out; possible in {' '.join(known)}",
            file=path,
        )


def format_of(path: Path, data: bytes) -> Format:
    """The format of a file. Raises DragomanError where name and content do not agree, or it is of no known kind."""
    suffix = path.suffix.lower()
    named = next((kind for kind in FORMATS.values() if suffix in kind.suffixes), None)
    if data.startswith(_OLE):
        raise Error.LOCKED(
            "an old Office file, or one that is protected by a password",
            "save it as .docx, .pptx or .xlsx without a password",
            file=path,
        )
    detected = _by_content(data, str(path))
    if named is FORMATS["android"]:  # many kinds of files are called .xml
        root = re.search(rb"<(?:[\w.-]+:)?([\w.-]+)", data[:65536])
        name = root.group(1).decode() if root else ""
        named = FORMATS[_ROOTS.get(name, "xml")]
    if named is FORMATS["ts"] and not is_known(path.with_suffix(".ts"), data):
        raise Error.WRONG_FILE_TYPE(
            "is no catalogue of Qt, although its name ends in .ts", "is it TypeScript, or a video?", file=path
        )
    if named and detected and detected is not named:
        raise Error.WRONG_FILE_TYPE(f"is {detected.name}, although its name ends in {suffix}", "rename it", file=path)
    if named and named.parts_of is not None and not detected:
        raise Error.WRONG_FILE_TYPE(
            f"is not {named.name}, although its name ends in {suffix}", "is it damaged?", file=path
        )
    if kind := named or detected:
        return kind
    if suffix == ".mdx":
        raise Error.UNKNOWN_FORMAT("MDX, Markdown with programs in it", "name it .md if it has none", file=path)
    raise Error.UNKNOWN_FORMAT(
        "of no known kind", f"known: {' '.join(SUFFIXES)} (if it is plain lines of text: -i {path})", file=path
    )


_ROOTS = {
    "resources": "android", "xliff": "xliff", "tmx": "tmx", "tt": "ttml", "TS": "ts", "html": "html", "root": "resx",
}  # fmt: skip
"""The formats of files called .xml, by their first element; all others need rules."""
_QT = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:\?xml|!|TS\b)")
_LOOKED_AT = 1024


def is_known(path: Path, data: bytes | None = None) -> bool:
    """True for a file whose name is that of a format; files called .ts are of Qt by their first bytes only."""
    suffix = path.suffix.lower()
    if suffix not in FORMATS["ts"].suffixes:
        return suffix in SUFFIXES
    try:
        with io.BytesIO(data) if data is not None else path.open("rb") as stream:
            return _QT.match(stream.read(_LOOKED_AT)) is not None
    except OSError:  # who reads it says so
        return True


def is_compiled(path: Path) -> bool:
    """True for a file that is named like a text format but is no text: a .strings file that Xcode has compiled."""
    kind = next((kind for kind in FORMATS.values() if path.suffix.lower() in kind.suffixes), None)
    if kind is None or kind.parts_of is not None or kind is FORMATS["pdf"]:
        return False
    try:
        with path.open("rb") as stream:
            return is_binary(stream.read(8 * _LOOKED_AT))
    except OSError:  # who reads it says so
        return False


def _by_content(data: bytes, name: str) -> Format | None:
    """The format that a file's bytes show for certain."""
    if data.startswith(b"%PDF-"):
        return FORMATS["pdf"]
    if data.startswith(b"bplist"):
        raise Error.WRONG_FILE_TYPE(
            "a property list that Xcode has compiled", "make a text of it: plutil -convert xml1", file=name
        )
    if not data.startswith(b"PK\x03\x04"):
        return None
    package = Package(data, name)
    main = opc.main_media_type(package)
    for kind, types in OFFICE.items():
        if main in types or main.startswith(types[1:]):
            return FORMATS[kind]
    says = opendocument.media_type(package) or epub.media_type(package)
    return next((FORMATS[kind] for kind, type in MIMETYPES.items() if says.startswith(type)), None)


OFFICE = {
    "docx": ("document", "application/vnd.openxmlformats-officedocument.wordprocessingml", "application/vnd.ms-word"),
    "pptx": (
        "presentation",
        "application/vnd.openxmlformats-officedocument.presentationml",
        "application/vnd.ms-powerpoint",
    ),
    "xlsx": (
        "workbook",
        "application/vnd.openxmlformats-officedocument.spreadsheetml",
        "application/vnd.ms-excel.sheet.macro",
        "application/vnd.ms-excel.template.macro",
    ),
}
"""The first element of a main part, and how its media type begins."""
MIMETYPES = {
    "odt": "application/vnd.oasis.opendocument.text",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odp": "application/vnd.oasis.opendocument.presentation",
    "odg": "application/vnd.oasis.opendocument.graphics",
    "epub": "application/epub+zip",
}


FORMATS: dict[str, Format] = {
    "txt": Format("plain text", (".txt", ".text"), (plain_text.units,), goes_bilingual=True),
    "md": Format(
        "Markdown",
        (".md", ".markdown"),
        (markdown.title_units, markdown.inner_units, markdown.units),
        finish=language.one_after_another(language.of_front_matter, html_language.in_markdown),
        goes_bilingual=True,
    ),
    "asciidoc": Format(
        "AsciiDoc",
        (".adoc", ".asciidoc", ".asc"),
        (asciidoc.inner_units, asciidoc.units),
        finish=language.of_asciidoc,
    ),
    "rest": Format("reStructuredText", (".rst", ".rest"), (rest.units,), finish=language.of_rest),
    "html": Format(
        "HTML",
        (".html", ".htm", ".xhtml"),
        (*html_inside.PASSES, html.attribute_units, html.embedded_units, html.text_units),
        finish=html_inside.finish,
        declares="html",
        goes_bilingual=True,
    ),
    "srt": Format("SubRip subtitles", (".srt",), (subtitles.units,), declares="player", goes_bilingual=True),
    "vtt": Format("WebVTT subtitles", (".vtt",), (subtitles.units,), finish=language.of_subtitles, goes_bilingual=True),
    "sbv": Format("YouTube's subtitles", (".sbv",), (subtitles.sbv_units,), declares="player", goes_bilingual=True),
    "ass": Format("SubStation Alpha subtitles", (".ass", ".ssa"), (ass.units,), declares="player", goes_bilingual=True),
    "ttml": Format(
        "TTML subtitles",
        (".ttml", ".dfxp", ".itt"),
        (ttml.units,),
        declares="xml",
        finish=language.of_ttml,
        goes_bilingual=True,
    ),
    "docx": Format(
        "a Word document",
        (".docx", ".docm", ".dotx", ".dotm"),
        parts_of=word.parts,
        declares="xml",
        goes_bilingual=True,
    ),
    "pptx": Format(
        "a PowerPoint presentation",
        (".pptx", ".pptm", ".potx", ".potm", ".ppsx", ".ppsm"),
        parts_of=presentation.parts,
        declares="xml",
    ),
    "xlsx": Format("an Excel workbook", (".xlsx", ".xlsm", ".xltx", ".xltm"), parts_of=workbook.parts, declares="xml"),
    "odt": Format("an OpenDocument text", (".odt", ".ott"), parts_of=opendocument.parts, declares="xml"),
    "ods": Format("an OpenDocument spreadsheet", (".ods", ".ots"), parts_of=opendocument.parts, declares="xml"),
    "odp": Format("an OpenDocument presentation", (".odp", ".otp"), parts_of=opendocument.parts, declares="xml"),
    "odg": Format("an OpenDocument drawing", (".odg", ".otg"), parts_of=opendocument.parts, declares="xml"),
    "fodt": Format(
        "flat OpenDocument", (".fodt", ".fods", ".fodp", ".fodg"), part_of=opendocument.flat, declares="xml"
    ),
    "epub": Format("an e-book", (".epub",), parts_of=epub.parts, declares="xml", goes_bilingual=True),
    "po": Format("a gettext catalogue", (".po", ".pot"), (po.units,), declares="po", finish=po.with_header),
    "xliff": Format(
        "XLIFF",
        (".xlf", ".xliff", ".sdlxliff", ".mxliff", ".mqxliff", ".txlf"),
        (xliff.xliff_units,),
        declares="xml",
        finish=xliff.with_target_language,
    ),
    "tmx": Format("a translation memory (TMX)", (".tmx",), (xliff.tmx_units,), declares="xml"),
    "json": Format("JSON messages", (".json", ".arb"), (json_strings.units,), finish=json_strings.with_locale),
    "yaml": Format("YAML messages", (".yml", ".yaml"), (yaml_strings.units,), finish=yaml_strings.with_locale),
    "properties": Format("Java properties", (".properties",), (properties.units,), declares="properties"),
    "android": Format("Android strings", (".xml",), (android.units,), declares="xml", finish=language.of_android),
    "strings": Format("Apple's strings", (".strings",), (apple.strings_units,)),
    "stringsdict": Format("Apple's plurals", (".stringsdict",), (apple.plist_units,), declares="xml"),
    "xcstrings": Format("an Apple string catalogue", (".xcstrings",), (string_catalog.units,)),
    "resx": Format("resources of .NET", (".resx", ".resw"), (resx.units,), declares="xml"),
    "ts": Format("a Qt catalogue", (".ts",), (qt.units,), declares="xml", finish=qt.with_language),
    "xml": Format(
        "XML by rules of ITS",
        (".dita", ".ditamap", ".docbook", ".dbk"),
        (its.attribute_units, its.nested_units, its.units),
        declares="xml",
        finish=language.of_xml,
    ),
    "csv": Format("a table", (".csv", ".tsv", ".tab"), (table.units,)),
    "pdf": Format("a PDF", (".pdf",), (plain_text.units,), goes_bilingual=True),
}
"""The formats by name."""

SUFFIXES = sorted({suffix for kind in FORMATS.values() for suffix in kind.suffixes})
"""The ends of the names of files that can be translated."""
