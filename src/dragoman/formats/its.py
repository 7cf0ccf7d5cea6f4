"""XML of any kind by rules of the Internationalization Tag Set (ITS 2.0, W3C): what is text, and what stands in a line.

Rules come from a file (`its`, as XML or YAML), from the document, and for DocBook and DITA from the tables below. Paths
are those that ElementTree knows, with `|` between them, and `/@name` at the end for an attribute.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from dragoman.config import from_yaml
from dragoman.errors import Error
from dragoman.formats.base import Options, Unit, has_letters, line_of
from dragoman.formats.encoding import decoded
from dragoman.formats.inline import Token, units_of
from dragoman.formats.xml import Event, events, local
from dragoman.formats.xml_texts import as_value, value_token

KEPT = "elements that the rules leave"
ITS = "http://www.w3.org/2005/11/its"
_XML = "http://www.w3.org/XML/1998/namespace"


class Defaults(NamedTuple):
    """Names of elements of a kind of document."""

    within: frozenset[str]
    """Elements that stand in a line."""
    nested: frozenset[str]
    """Elements that stand in a text and hold a text of their own."""
    left: frozenset[str]
    spaces: frozenset[str]
    """Elements whose line ends count."""
    attributes: frozenset[str] = frozenset()


DOCBOOK = Defaults(
    frozenset({
        "abbrev", "accel", "acronym", "anchor", "application", "citation", "citerefentry", "citetitle", "classname",
        "co", "code", "command", "computeroutput", "constant", "coref", "database", "editor", "email", "emphasis",
        "envar", "errorcode", "errorname", "errortext", "errortype", "exceptionname", "filename", "firstterm",
        "footnote", "footnoteref", "foreignphrase", "function", "glossterm", "guibutton", "guiicon", "guilabel",
        "guimenu", "guimenuitem", "guisubmenu", "hardware", "indexterm", "inlineequation", "inlinemediaobject",
        "interface", "interfacename", "keycap", "keycode", "keycombo", "keysym", "link", "literal", "markup",
        "menuchoice", "methodname", "modifier", "mousebutton", "olink", "option", "optional", "parameter",
        "personname", "phrase", "productname", "productnumber", "prompt", "property", "quote", "replaceable",
        "returnvalue", "sgmltag", "shortcut", "structfield", "structname", "subscript", "superscript", "symbol",
        "systemitem", "tag", "token", "trademark", "type", "ulink", "uri", "userinput", "varname", "wordasword",
        "xref",
    }),
    frozenset({
        "footnote", "indexterm",
    }),
    frozenset({
        "anchor", "author", "classname", "classsynopsis", "cmdsynopsis", "co", "code", "command", "computeroutput",
        "constant", "coref", "date", "edition", "editor", "email", "envar", "equation", "filename", "funcsynopsis",
        "function", "inlineequation", "isbn", "issn", "keycode", "keysym", "literal", "manvolnum", "markup",
        "methodname", "option", "parameter", "personname", "productnumber", "programlisting", "prompt", "pubdate",
        "refentrytitle", "refname", "releaseinfo", "replaceable", "returnvalue", "screen", "sgmltag", "structfield",
        "structname", "synopsis", "systemitem", "tag", "token", "type", "uri", "userinput", "varname", "xref",
    }),
    frozenset({
        "address", "literallayout", "programlisting", "screen", "synopsis",
    }),
)  # fmt: skip
DITA = Defaults(
    frozenset({
        "abbreviated-form", "apiname", "b", "boolean", "cite", "cmdname", "codeph", "data", "data-about", "filepath",
        "fn", "foreign", "i", "image", "index-see", "indexterm", "keyword", "line-through", "link", "menucascade",
        "msgnum", "msgph", "option", "overline", "parml-ref", "parmname", "ph", "q", "state", "sub", "sup", "synph",
        "systemoutput", "term", "text", "tm", "tt", "u", "uicontrol", "userinput", "varname", "wintitle", "xref",
    }),
    frozenset({
        "fn", "foreign", "image", "indexterm",
    }),
    frozenset({
        "apiname", "author", "cmdname", "codeblock", "codeph", "critdates", "data", "data-about", "draft-comment",
        "filepath", "foreign", "msgnum", "option", "parmname", "permissions", "required-cleanup", "resourceid",
        "screen", "synph", "syntaxdiagram", "systemoutput", "userinput", "varname",
    }),
    frozenset({
        "codeblock", "lines", "msgblock", "pre", "screen",
    }),
    frozenset({
        "navtitle", "searchtitle",
    }),
)  # fmt: skip
_NOTHING = Defaults(*[frozenset[str]()] * 5)
_OF_ROOT: Mapping[str, Defaults] = {
    **dict.fromkeys((
        "book", "article", "chapter", "section", "appendix", "preface", "part", "set", "refentry", "reference",
        "sect1", "glossary",
    ), DOCBOOK),
    **dict.fromkeys((
        "topic", "concept", "task", "reference", "dita", "map", "bookmap", "glossentry", "troubleshooting",
        "glossgroup",
    ), DITA),
}  # fmt: skip


class Rule(NamedTuple):
    """A path, a property of what it selects (`translate`, `withinText`, `space`), and the value of the property."""

    path: str
    kind: str
    value: str


@dataclass
class _Node:
    """An element: its tags, what stands in it, and what the rules say of it."""

    element: ET.Element
    start: Event
    end: Event
    parts: "list[Event | _Node]" = field(default_factory=list)
    translate: bool = True
    within: str = "no"
    keeps_space: bool = False
    attributes: set[str] = field(default_factory=set)

    def nodes(self) -> "Iterator[_Node]":
        """The element and all in it, in order."""
        yield self
        for part in self.parts:
            if isinstance(part, _Node):
                yield from part.nodes()

    @property
    def is_inline(self) -> bool:
        return self.within == "nested" or (
            self.within == "yes" and all(part.is_inline for part in self.parts if isinstance(part, _Node))
        )


def attribute_units(text: str, options: Options) -> Iterator[Unit]:
    """The values of attributes that are text."""
    for node in _analysed(text, options).nodes():
        for name in sorted(node.attributes):
            value = re.compile(rf"\s(?:[\w.-]+:)?{re.escape(name)}\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
            if match := value.search(text, node.start.start, node.start.end):
                place = match.span(match.lastindex or 0)
                token = value_token(text, *place)
                yield from units_of([token], f"line {line_of(text, place[0])}, {name}", as_value, collapse=False)


def nested_units(text: str, options: Options) -> Iterator[Unit]:
    """The texts of elements that stand in other texts, as footnotes do."""
    done = 0
    for node in _analysed(text, options).nodes():
        if node.within == "nested" and node.start.start >= done:
            done = node.end.end
            yield from _units(text, node)


def units(text: str, options: Options) -> Iterator[Unit]:
    """The texts of elements."""
    yield from _units(text, _analysed(text, options))


def _units(text: str, node: _Node) -> Iterator[Unit]:
    """The texts of an element, parted by the tags of block elements."""
    run: list[Token] = []
    for part in [*node.parts, None]:
        if isinstance(part, Event) or (part is not None and part.is_inline):
            run += _tokens(text, part, node.translate)
            continue
        if run:
            where = f"line {line_of(text, run[0].start)}"
            for unit in units_of(run, where, source=text, collapse=not node.keeps_space):
                yield replace(unit, kept="" if node.translate else KEPT)
            run = []
        if part is not None:
            yield from _units(text, part)


def _tokens(text: str, part: Event | _Node, translate: bool) -> Iterator[Token]:
    """The tokens of the content of a line."""
    if isinstance(part, Event):
        raw = text[part.start : part.end]
        if part.kind == "text":
            yield Token("text", part.start, part.end, part.text)
        else:
            yield Token("protected" if raw.startswith("&") else "alone", part.start, part.end, raw)
        return
    start, end = part.start.start, part.end.end
    is_left = translate and not any(node.translate for node in part.nodes())
    if part.within == "nested" or is_left or not part.parts:
        is_word = is_left and part.within != "nested" and has_letters("".join(part.element.itertext()))
        yield Token("protected" if is_word else "alone", start, end, text[start:end])
        return
    yield Token("open", start, part.start.end, text[start : part.start.end], part.start.name)
    for inner in part.parts:
        for token in _tokens(text, inner, part.translate):
            is_protected = token.kind == "text" and translate and not part.translate
            yield token._replace(kind="protected") if is_protected else token
    yield Token("close", part.end.start, end, text[part.end.start : end], part.start.name)


# -- what the rules say --------------------------------------------------------------------------------------------


def _analysed(text: str, options: Options) -> _Node:
    """The root of a document, with what the rules say of each element."""
    root, namespaces = _tree(text, options)
    name = local(root.start.name)
    own = (rule._replace(path=_checked(rule.path, namespaces, options.name)) for rule in _rules_in(root))
    rules = [*_rules_of_file(options.its), *((rule, namespaces) for rule in own)]
    if not rules and name not in _OF_ROOT:
        raise Error.WRONG_SHAPE(
            f"<{name}>: no rules for XML of this kind",
            "name a file of ITS rules (`its`)",
            file=options.name,
            line=line_of(text, root.start.start),
        )
    defaults = _OF_ROOT.get(name, _NOTHING)
    by_element = {node.element: node for node in root.nodes()}
    chosen: dict[ET.Element, bool] = {}
    for element, node in by_element.items():
        tag = local(node.start.name)
        node.within = "nested" if tag in defaults.nested else "yes" if tag in defaults.within else "no"
        node.keeps_space = tag in defaults.spaces
        node.attributes = {local(key) for key in node.start.attributes} & defaults.attributes
        if tag in defaults.left:
            chosen[element] = False
    for rule, names in rules:
        for element, attribute in _selected(root.element, rule.path, names):
            node = by_element[element]
            if attribute:
                keys = {local(key) for key in node.start.attributes if attribute in ("*", local(key))}
                node.attributes = node.attributes | keys if rule.value == "yes" else node.attributes - keys
            elif rule.kind == "translate":
                chosen[element] = rule.value == "yes"
            elif rule.kind == "withinText":
                node.within = rule.value
            else:
                node.keeps_space = rule.value == "preserve"
    _inherit(root, chosen, translate=True, keeps_space=False)
    return root


def _inherit(node: _Node, chosen: dict[ET.Element, bool], *, translate: bool, keeps_space: bool) -> None:
    """Hand the properties of an element down to the elements in it, and read its own attributes."""
    own = node.element.get(f"{{{ITS}}}translate") or node.element.get("translate")
    node.translate = own == "yes" if own in ("yes", "no") else chosen.get(node.element, translate)
    node.within = node.element.get(f"{{{ITS}}}withinText") or node.within
    space = node.element.get(f"{{{_XML}}}space")
    node.keeps_space = space == "preserve" if space else node.keeps_space or keeps_space
    for part in node.parts:
        if isinstance(part, _Node):
            _inherit(part, chosen, translate=node.translate, keeps_space=node.keeps_space)


def _tree(text: str, options: Options) -> tuple[_Node, dict[str, str]]:
    """The root of a document, and its namespaces by their prefixes."""
    known: list[dict[str, str]] = [{"xml": _XML}]
    prefixes: dict[str, str] = {}
    root = None
    opened: list[_Node] = []
    for event in events(text, options):
        if event.kind == "start":
            own = {key[6:]: uri for key, uri in event.attributes.items() if key == "xmlns" or key.startswith("xmlns:")}
            known.append({**known[-1], **own})
            prefixes = {**own, **prefixes}
            names = {_resolved(key, known[-1], ""): value for key, value in event.attributes.items()}
            node = _Node(ET.Element(_resolved(event.name, known[-1], known[-1].get("", "")), names), event, event)
            if opened:
                opened[-1].parts.append(node)
                opened[-1].element.append(node.element)
            root = root or node
            opened.append(node)
        elif event.kind == "end":
            opened.pop().end = event
            known.pop()
        elif opened:
            opened[-1].parts.append(event)
            if event.kind == "text":
                _add_text(opened[-1].element, event.text)
    assert root is not None
    return root, prefixes


def _add_text(element: ET.Element, text: str) -> None:
    if len(element):
        element[-1].tail = (element[-1].tail or "") + text
    else:
        element.text = (element.text or "") + text


def _resolved(name: str, known: Mapping[str, str], default: str) -> str:
    prefix, _, own = name.rpartition(":")
    uri = known.get(prefix, "") if prefix else default
    return f"{{{uri}}}{own}" if uri else own


def _rules_in(root: _Node) -> Iterator[Rule]:
    """The rules of a document of ITS rules, or of a document with rules inside."""
    for node in root.nodes():
        for kind, value in (("translate", "translate"), ("withinText", "withinText"), ("preserveSpace", "space")):
            if node.element.tag == f"{{{ITS}}}{kind}Rule":
                yield Rule(node.element.get("selector", ""), value, node.element.get(value, ""))


_OF_YAML = {
    "translate": ("translate", "yes"), "attributes": ("translate", "yes"), "leave": ("translate", "no"),
    "within_text": ("withinText", "yes"), "nested": ("withinText", "nested"), "keep_spaces": ("space", "preserve"),
}  # fmt: skip


def _rules_of_file(path: Path | None) -> list[tuple[Rule, dict[str, str]]]:
    """The rules of a file, with its namespaces. One of YAML that names elements to translate leaves the others.

    Raises DragomanError for a file that cannot be read, or holds no rules.
    """
    if path is None:
        return []
    try:
        text, _ = decoded(path.read_bytes(), str(path), "xml")
    except OSError as error:
        raise Error.CANNOT_READ(f"cannot be read: {error.strerror}", file=path) from error
    if text.lstrip().startswith("<"):
        root, namespaces = _tree(text, Options(str(path)))
        rules = list(_rules_in(root))
    else:
        content = from_yaml(text, str(path))
        namespaces = dict(content.pop("namespaces", None) or {})
        if unknown := content.keys() - _OF_YAML.keys():
            raise Error.UNKNOWN_NAME(f"no rule {min(unknown)!r}", f"there are {', '.join(_OF_YAML)}", file=path)
        paths = {name: [given] if isinstance(given, str) else list(given or ()) for name, given in content.items()}
        rules = [Rule(str(one), *meaning) for name, meaning in _OF_YAML.items() for one in paths.get(name, ())]
        if any("@" not in str(one) for one in paths.get("translate", ())) and "leave" not in paths:
            rules.insert(0, Rule("/*", "translate", "no"))
    if not rules:
        raise Error.WRONG_SHAPE("no rules of ITS", "see docs/documents.md", file=path)
    return [(rule._replace(path=_checked(rule.path, namespaces, str(path))), namespaces) for rule in rules]


def _checked(selector: str, namespaces: dict[str, str], file: str) -> str:
    """A path that can be looked for."""
    try:
        list(_selected(ET.Element("x"), selector, namespaces))
    except (SyntaxError, KeyError, ValueError) as error:
        raise Error.BAD_SYNTAX(
            f"the path {selector!r} is none that is known here ({error})",
            "there are //name, /a/b, *, [@name='value'], |, and /@name at the end",
            file=file,
        ) from error
    return selector


def _selected(root: ET.Element, selector: str, namespaces: dict[str, str]) -> Iterator[tuple[ET.Element, str]]:
    """(element, name of its attribute, "" for the element) of what a path finds."""
    top = ET.Element("top")
    top.append(root)
    for one in re.split(r"\s*\|\s*(?![^\[]*\])", selector.strip()):
        path, _, attribute = one.rpartition("/@") if re.search(r"/@[\w:*.-]+$", one) else (one, "", "")
        path = f"{path or '/'}*" if path in ("", "/") else path
        for element in top.findall(f".{path}" if path.startswith("/") else f".//{path}", namespaces):
            yield element, local(attribute)
