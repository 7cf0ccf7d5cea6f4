"""What other readers see in a file, format by format: how it is built, and the text in it.

None of them is Dragoman's: lxml, html5lib, openpyxl's parts as plain XML, polib, json, PyYAML, plistlib, pysubs2, csv,
plain markdown-it; asciidoctor for AsciiDoc where it is there (Debian has it). Of
plain text and reStructuredText the words are compared.
"""

import csv
import io
import json
import plistlib
import re
import shutil
import subprocess
import zipfile  # noqa: TID251 - of files in memory, whose names are looked at alone
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import html5lib
import polib
import pysubs2
import yaml
from lxml import etree
from markdown_it import MarkdownIt

FORMATTING = {"r", "rPr", "t", "span", "proofErr", "lastRenderedPageBreak", "bookmarkStart", "bookmarkEnd"}
"""Elements that may be opened and closed again where words move."""
INLINE = FORMATTING | {
    "a", "abbr", "acronym", "b", "big", "bpt", "cite", "del", "dfn", "em", "emphasis", "ept", "font", "g", "hyperlink",
    "i", "ins", "link", "mark", "nobr", "pc", "ph", "phoneticPr", "q", "rPh", "ref", "s", "smartTag", "small", "strike",
    "strong", "sub", "sup", "u", "ulink", "wbr", "x", "xref",
}  # fmt: skip
ORDERED = {
    "p", "tr", "td", "th", "li", "h", "h1", "h2", "h3", "h4", "h5", "h6", "div", "table", "tc", "tbl", "sectPr", "row",
    "c", "si", "para", "title", "section", "dd", "dt",
}  # fmt: skip
"""Elements that stay in their order; those in a sentence move with its words."""
LANGUAGE = re.compile(r"(?i)lang|locale|country|bidi$|script$")
"""Names of attributes and elements that say a language."""
NOT_SHOWN = {"script", "style", "binary-data", "instrText", "resheader"}
SEEN = {"alt", "title", "placeholder", "label", "aria-label", "content", "descr", "summary"}
"""Attributes that a reader of a page sees."""
CODE = {"code", "kbd", "pre", "samp", "svg", "tt", "var", "literal", "programlisting", "screen"}
"""Elements that are left as they are: they part words, but are none that anybody looks for in what was left."""


class Unread(Exception):
    """The other reader cannot read a file either."""


@dataclass
class Reading:
    """How a file is built (a list that must stay the same), its text, and what was translated before."""

    structure: list[Any] = field(default_factory=list)
    text: str = ""
    unseen: set[str] = field(default_factory=set)
    """Words that are in the text, but are code, or in places that no reader of the file sees."""
    targets: list[tuple[str, str]] | None = None
    """(source, translation) of each unit of a file that holds both languages."""
    drafts: set[int] = field(default_factory=set)
    """Numbers of the units whose translation is a guess."""


def local(name: Any) -> str:
    return str(name).rpartition("}")[2].rpartition(":")[2]


def of_element(
    element: Any,
    out: list[str],
    structure: list[Any],
    skipped: frozenset[str] = frozenset(),
    unseen: set[str] | None = None,
) -> None:
    """Add the text and the structure of an element of lxml or ElementTree, in the order of the file."""
    if not isinstance(element.tag, str):
        return
    name = local(element.tag)
    if name in skipped:
        return
    if name not in FORMATTING:
        names = sorted(
            local(key) for key in element.attrib if not LANGUAGE.search(local(key)) and local(key) != "space"
        )
        structure.append((name, *names))
    if name not in ("rPr", *NOT_SHOWN):
        inline = name in INLINE
        begin = len(out)
        values = [
            (key, value) for key, value in element.items() if not LANGUAGE.search(local(key)) and " " in value.strip()
        ]
        out += [] if inline else [" ", *(f"{value} " for _, value in values)]
        if not LANGUAGE.search(name):
            out.append(element.text or "")
        for child in element:
            of_element(child, out, structure, skipped, unseen)
            out.append(child.tail or "")
        out += [] if inline else [" "]
        if unseen is not None:
            hidden = out[begin:] if name in CODE else [value for key, value in values if local(key) not in SEEN]
            unseen.update(word for text in hidden for word in words_of(text))


def in_order(structure: list[Any]) -> list[Any]:
    """The elements that part texts, in their order, and the others."""
    return [row[0] for row in structure if row[0] in ORDERED] + sorted(structure)


def xml(data: bytes, skipped: frozenset[str] = frozenset()) -> Reading:
    try:
        root = etree.fromstring(data, etree.XMLParser(resolve_entities=False, huge_tree=True, no_network=True))
    except (etree.XMLSyntaxError, ValueError) as error:
        raise Unread(str(error)) from error
    out: list[str] = []
    structure: list[Any] = []
    unseen: set[str] = set()
    of_element(root, out, structure, skipped, unseen)
    return Reading(in_order(structure), "".join(out), unseen)


def html(data: bytes) -> Reading:
    out: list[str] = []
    structure: list[Any] = []
    unseen: set[str] = set()
    tree = html5lib.parse(data, treebuilder="etree", namespaceHTMLElements=False)
    of_element(tree, out, structure, unseen=unseen)
    return Reading(in_order(structure), "".join(out), unseen)


def package(data: bytes) -> Reading:
    """The parts of a package in order; those of XML as such, the others byte for byte."""
    whole = Reading()
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        for info in file.infolist():
            content = file.read(info)
            whole.structure.append(info.filename)
            if re.search(r"\.(xml|xhtml|html?|opf|ncx|vml|rels)$", info.filename):
                try:
                    part = xml(content)
                except Unread:
                    part = html(content)
                whole.structure += part.structure
                whole.text += f"{part.text}\n"
                whole.unseen |= part.unseen if info.filename.endswith("html") else set(words_of(part.text))
            elif content.startswith(b"PK"):
                part = package(content)
                whole.structure += part.structure
                whole.text += f"{part.text}\n"
            else:
                whole.structure.append(hash(content))
    return whole


def catalogue(data: bytes) -> Reading:
    try:
        file = polib.pofile(data.decode(encoding_of_po(data)), check_for_duplicates=False)
    except (OSError, ValueError, LookupError, UnicodeError, IndexError) as error:
        raise Unread(str(error)) from error
    structure = [
        (entry.msgctxt, entry.msgid, entry.msgid_plural, entry.comment, entry.tcomment, str(entry.occurrences))
        for entry in file
    ]
    targets: list[tuple[str, str]] = []
    drafts: set[int] = set()
    for entry in file:
        if entry.obsolete:
            continue
        if entry.fuzzy:
            drafts |= {len(targets), len(targets) + 1} if entry.msgid_plural else {len(targets)}
        targets += [(entry.msgid, entry.msgstr)] if not entry.msgid_plural else [
            (entry.msgid, entry.msgstr_plural.get(0, "")), (entry.msgid_plural, entry.msgstr_plural.get(1, "")),
        ]  # fmt: skip
    return Reading(structure, targets=targets, drafts=drafts)


def encoding_of_po(data: bytes) -> str:
    declared = re.search(rb"charset=([\w-]+)", data[:4096])
    name = declared[1].decode() if declared else "utf-8"
    return "utf-8" if name == "CHARSET" else name


def bilingual(unit: str, source: str, target: str) -> Callable[[bytes], Reading]:
    """A reader of XML whose elements `unit` hold a source and its translation."""

    def read(data: bytes) -> Reading:
        whole = xml(data, frozenset({target, "numerusform"}))
        root = etree.fromstring(data, etree.XMLParser(huge_tree=True, no_network=True))
        targets = []
        drafts = set()
        for element in root.iter():
            if local(element.tag) == unit:
                if any(one.get("type") == "unfinished" for one in element if local(one.tag) == target):
                    drafts.add(len(targets))
                of_unit: dict[str, str] = {}
                for name in (source, target):
                    found = [one for one in element if local(one.tag) == name]
                    out: list[str] = []
                    for one in found:
                        of_element(one[-1] if len(one) and local(one[-1].tag) == "numerusform" else one, out, [])
                    of_unit[name] = "".join(out)
                targets.append((of_unit[source], of_unit[target]))
        structure = [row for row in whole.structure if row[0] not in INLINE | {"bx", "ex"}]
        # states and marks of a translation stand in attributes of its unit, or of the header
        return Reading([row if isinstance(row, str) else row[0] for row in structure], targets=targets, drafts=drafts)

    return read


def string_catalogue(data: bytes) -> Reading:
    strings = values(json.loads(data))
    return Reading(sorted(path for path, _ in strings if "localizations" not in path), targets=[])


def values(node: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], str]]:
    """(path, text) of the leaves of what JSON, YAML and property lists hold."""
    if isinstance(node, dict):
        return [leaf for key, value in node.items() for leaf in values(value, (*path, str(key)))]
    if isinstance(node, list | tuple):
        return [leaf for number, value in enumerate(node) for leaf in values(value, (*path, str(number)))]
    return [(path, node if isinstance(node, str) else "")]


def leaves(load: Callable[[bytes], Any], skipped: int = 0) -> Callable[[bytes], Reading]:
    """A reader of a tree of keys and values. `skipped`: keys at the top that may be names of languages."""

    def read(data: bytes) -> Reading:
        try:
            found = values(load(data))
        except (ValueError, yaml.YAMLError, UnicodeError, plistlib.InvalidFileException, OverflowError) as error:
            raise Unread(str(error)) from error
        plural = re.compile(r"^(zero|one|two|few|many|other)$|_(zero|one|two|few|many|other)$")
        structure = [tuple(plural.sub("", key) for key in path) for path, _ in found]
        kept = list(dict.fromkeys(structure))
        return Reading([path[skipped:] for path in kept], "\n".join(text for _, text in found))

    return read


class Loader(yaml.SafeLoader):
    """YAML with tags of programs."""


Loader.add_multi_constructor("", lambda loader, suffix, node: str(getattr(node, "value", "")))
Loader.add_constructor("tag:yaml.org,2002:timestamp", lambda loader, node: node.value)


def subtitles(kind: str) -> Callable[[bytes], Reading]:
    def read(data: bytes) -> Reading:
        text = decoded(data)
        try:
            file = pysubs2.SSAFile.from_string(text, kind)
        except Exception as error:
            raise Unread(str(error)) from error
        rows = [(line.start, line.end, line.style, line.name, line.type) for line in file]
        said = [re.sub(r"\\h", " ", line.plaintext) for line in file if line.type == "Dialogue" and not line.is_drawing]
        return Reading(rows, "\n".join(said))

    return read


def timed_lines(data: bytes) -> Reading:
    text = re.sub(r"(?m)^(?:WEBVTT|NOTE|STYLE|REGION)(?:.+\n)*(?:.*\n)", "\n", decoded(data))
    times = re.findall(r"(?m)^.*\d+:\d\d[:.,]\d.*$", text)
    return Reading(times, re.sub(r"(?m)^.*\d+:\d\d[:.,]\d.*$", "", text))


def decoded(data: bytes) -> str:
    for codec in ("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig", "cp1252"):
        try:
            return data.decode(codec).replace("\r\n", "\n").replace("\r", "\n")
        except UnicodeError:
            pass
    return data.decode("latin-1")


def as_lines(data: bytes) -> Reading:
    # what AsciiDoc and reStructuredText need beside a translation: an empty attribute, the target of a link
    return Reading([], re.sub(r"(?m)^:?lang:.*$|^\.\. _.*:$|\{empty\}|\s+<[^<>`]*>(?=`_)", "", decoded(data)))


def escaped_lines(data: bytes) -> Reading:
    """Java's properties and Apple's strings: keys, and values without escapes."""
    text = re.sub(r"\\[uU]([0-9A-Fa-f]{4})", lambda match: chr(int(match[1], 16)), decoded(data))
    text = re.sub(r"\\\r?\n[ \t]*", "", text)
    key = re.compile(r"""^[ \t]*("(?:[^"\\]|\\.)*"|[^#!\s=:"/*](?:[^\s=:\\]|\\.)*)\s*[=:\s]""", re.MULTILINE)
    keys = key.findall(text)
    text = re.sub(r"(?m)^[ \t]*[#!].*$|/\*(?s:.*?)\*/|^[ \t]*//.*$", "", key.sub("", text))
    return Reading(keys, re.sub(r"\\([^nrtu])", r"\1", re.sub(r"\\[nrt]", " ", text)))


def table(data: bytes) -> Reading:
    text = decoded(data)
    first = text.partition("\n")[0]
    delimiter = max("\t;,", key=first.count)
    rows = list(csv.reader(io.StringIO(text), delimiter=delimiter))
    return Reading([len(row) for row in rows], "\n".join(" ".join(row) for row in rows))


ASCIIDOCTOR = (
    "asciidoctor",
    "-q",
    "-e",
    "-S",
    "secure",
    "-a",
    "sectids!",
    "-a",
    "attribute-missing=skip",
    "-o",
    "-",
    "-",
)


def asciidoc(data: bytes) -> Reading:
    """The page that asciidoctor makes: its blocks in order with what they are and how many words each has, and the
    formatting in each; the words alone where the program is not there."""
    if shutil.which(ASCIIDOCTOR[0]) is None:
        return as_lines(data)
    done = subprocess.run(ASCIIDOCTOR, input=data, capture_output=True, timeout=120)
    if done.returncode:
        raise Unread(done.stderr.decode(errors="replace")[:200])
    rows: list[tuple[str, str, list[str], list[str]]] = []

    def walk(element: Any) -> None:
        is_inline = element.tag in INLINE | CODE | {"br", "img"}
        if is_inline:
            rows[-1][2].append(element.tag)
        else:
            rows.append((element.tag, element.get("class", ""), [], []))
        edge = " " if element.tag in CODE | {"br"} else ""  # code takes part in a sentence as a word
        rows[-1][3].extend((edge, element.text or ""))
        for child in element:
            walk(child)
            rows[-1][3].append(child.tail or "")
        rows[-1][3].append(edge)
        if not is_inline:
            rows.append((f"/{element.tag}", "", [], []))

    walk(html5lib.parse(done.stdout.decode(), treebuilder="etree", namespaceHTMLElements=False))
    texts = ["".join(text) for *_, text in rows]
    structure = [
        (tag, kind, sorted(inline), len(list(words_of(text))))
        for (tag, kind, inline, _), text in zip(rows, texts, strict=True)
    ]
    return Reading(structure, "\n".join(texts))


MARKDOWN = MarkdownIt("commonmark").enable("table")

READERS: dict[str, tuple[str, Callable[[bytes], Reading]]] = {
    "txt": ("words", as_lines),
    "md": ("markdown-it", lambda data: html(MARKDOWN.render(decoded(data)).encode())),
    "asciidoc": ("asciidoctor", asciidoc),
    "rest": ("words", as_lines),
    "html": ("html5lib", html),
    "srt": ("pysubs2", subtitles("srt")),
    "vtt": ("times of lines", timed_lines),
    "sbv": ("times of lines", timed_lines),
    "ass": ("pysubs2", subtitles("ass")),
    "ttml": ("lxml", xml),
    **dict.fromkeys(("docx", "pptx", "xlsx", "odt", "ods", "odp", "odg", "epub"), ("lxml, parts", package)),
    "po": ("polib", catalogue),
    "xliff": ("lxml", bilingual("trans-unit", "source", "target")),
    "tmx": ("lxml", lambda data: Reading(targets=[])),
    "json": ("json", leaves(json.loads, 1)),
    "yaml": ("PyYAML", leaves(lambda data: list(yaml.load_all(data, Loader)), 2)),
    "properties": ("keys and words", escaped_lines),
    "android": ("lxml", xml),
    "strings": ("keys and words", escaped_lines),
    "stringsdict": ("plistlib", leaves(plistlib.loads)),
    "xcstrings": ("json", string_catalogue),
    **dict.fromkeys(("resx", "fodt"), ("lxml", xml)),
    "ts": ("lxml", bilingual("message", "source", "translation")),
    "xml": ("lxml", xml),
    "csv": ("csv", table),
}
"""Of each format the name of its reader, and the reader."""


def words_of(text: str) -> Iterator[str]:
    """The words of a text, of letters alone."""
    for match in re.finditer(r"[^\W\d_]+", text):
        yield match.group()
