"""The pieces of a page, HTML or XHTML, with their places: tags, text, and code of templates.

Pieces are cut as HTML's tokenizer cuts them. Which element a piece belongs to says tinyhtml5's tree, which is given the
pieces one by one: end tags that are left out, misnested ones and the rest are what browsers make of them.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from tinyhtml5.constants import Token, table_insert_mode_elements
from tinyhtml5.parser import HTMLParser
from tinyhtml5.treebuilder import Element

NOT_TRANSLATED = frozenset({
    "code", "kbd", "samp", "var", "tt", "pre", "listing", "script", "style", "math", "textarea", "xmp", "plaintext",
    "metadata",
})  # fmt: skip
EMBEDDED = frozenset({"select", "datalist", "audio", "video", "object", "canvas", "picture", "map", "iframe", "svg"})
"""Elements that stand in a line as one object; texts inside of them are translated by themselves."""
RAW = frozenset({
    "script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "plaintext"
})  # fmt: skip
"""Elements whose content is no markup."""
VOID = frozenset({
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "image", "img", "input", "keygen",
    "link", "meta", "param", "source", "track", "wbr",
})  # fmt: skip
MAX_DEPTH = 256
"""Elements in elements; what is deeper belongs to the last one. Browsers have such a limit, too."""

CDATA = "<![CDATA["

_S = " \t\n\f\r"
CODE = r"<%.{0,1000}?%>|<\?.{0,1000}?\?>|\{%.{0,1000}?%\}|\{\{(?:(?!</?[A-Za-z])[^\n]){0,1000}?\}\}"
"""Code of a template inside of a tag."""
_ATTRIBUTE = (
    rf"(?:{CODE}|(?P<name>=[^{_S}/>=]*+|[^{_S}/>=]++)(?:[{_S}]*+=[{_S}]*+"
    rf'(?:"(?P<double>(?:[^"<{{]++|{CODE}|[<{{])*+)(?:"|\Z)'
    rf"|'(?P<single>(?:[^'<{{]++|{CODE}|[<{{])*+)(?:'|\Z)"
    rf"|(?P<bare>(?![\"'])(?:[^{_S}><{{]++|{CODE}|[<{{])++))?+)?+)"
)
_ATTRIBUTES = re.compile(_ATTRIBUTE, re.DOTALL)
_BARE_ATTRIBUTE = re.sub(r"\?P<\w+>", "?:", _ATTRIBUTE)
_BRACKETS = r"\([^()\n]{0,500}(?:\([^()\n]{0,200}(?:\([^()\n]{0,200}\)[^()\n]{0,200}){0,20}\)[^()\n]{0,200}){0,20}\)"
_PIECE = re.compile(
    # control flow of Angular, which ends with a brace of its own (`scan`)
    rf"(?P<block>(?<![\w@.])@(?:(?:if|else[ ]if|for|switch|case|defer|placeholder|loading)\s{{0,9}}{_BRACKETS}"
    r"|(?:else|empty|default|defer|placeholder|loading|error)\b)\s{0,99}\{|(?<![\w@.])@let\s{1,9}\w{1,64}\s{0,9}=[^;<>]{1,500};)"
    rf"|(?P<tag></?[A-Za-z][^{_S}/>]*+(?:[{_S}/]++|{_BARE_ATTRIBUTE})*+>)"
    r"|(?P<comment><!--(?:-?>|.*?(?:--!?>|\Z)))"
    r"|(?P<code><%(?:--)?|<\?(?:php\b|[=\s])|\{\{(?:!--|--|\{)?|\{!!|\{%|\{#)"
    r"|(?P<other><[!?][^>]*+(?:>|\Z)|</(?:>|[^A-Za-z][^>]*+(?:>|\Z)))"
    r"|(?P<cut></?[A-Za-z].*)",
    re.DOTALL,
)
"""A piece of markup. A tag that the page ends in is nothing that browsers show, as is all in it."""
_NAME = re.compile(rf"</?([^{_S}/>]+)")
_CLOSED_BY = {
    "<%": "%>", "<%--": "--%>", "<?": "?>", "{{": "}}", "{{{": "}}}", "{{!--": "--}}", "{{--": "--}}", "{!!": "!!}",
    "{%": "%}", "{#": "#}",
}  # fmt: skip
_LONGEST = {"{{": 1000, "{{{": 1000, "{{!--": 2000, "{{--": 2000, "{!!": 1000, "{#": 1000, "{%": 2000}
"""Characters of a piece of code that begins with a brace."""
_STRING = re.compile(r"\"[^\"<>]*(?:<[^\"<>]*>[^\"<>]*)*\"|'[^'<>]*(?:<[^'<>]*>[^'<>]*)*'")
_TAG_INSIDE = re.compile(r"</?[A-Za-z]")
"""A tag. Code between braces has one in strings alone: other braces around tags are those of a page about templates."""
_DOCTYPE = re.compile(
    r"""<!doctype\s+([^\s>]+)(?:\s+public\s*("[^">]*"|'[^'>]*')|\s+system)?(?:\s*("[^">]*"|'[^'>]*'))?""", re.IGNORECASE
)


@dataclass(slots=True)
class Tag:
    """A piece of markup: `name` is "" for comments, declarations, code of templates and what is in a script."""

    start: int
    end: int
    text: str
    name: str = ""
    opens: bool = True

    def attributes(self) -> list[tuple[str, str, int, int]]:
        """(name, value, and where that begins and ends in the file) of each attribute."""
        attributes = []
        for match in _ATTRIBUTES.finditer(self.text, len(self.name) + 1, len(self.text) - 1):
            if match["name"]:
                group = next((name for name in ("double", "single", "bare") if match[name] is not None), None)
                start, end = match.span(group) if group else (match.end(), match.end())
                value = html.unescape(self.text[start:end])
                attributes.append((match["name"].lower(), value, self.start + start, self.start + end))
        return attributes

    def get(self, name: str) -> str | None:
        return next((value for key, value, _, _ in self.attributes() if key == name), None)

    @property
    def closes_itself(self) -> bool:
        """True for a tag that ends in `/>`; in `<a href=/x/>` the last stroke is one of the address."""
        if not self.text.endswith("/>"):
            return False
        values = _ATTRIBUTES.finditer(self.text, len(self.name) + 1, len(self.text) - 1)
        return not any(match["bare"] and match.end() == len(self.text) - 1 for match in values)

    @property
    def is_code(self) -> bool:
        """True for code of a template (Jinja, PHP, ASP, ERB, Angular ...)."""
        return not self.name and self.text.startswith(("{", "<%", "<?", "@", "}")) and not self.text.startswith("<?xml")


def scan(text: str, tree: "_Tree | None" = None) -> Iterator[Tag | tuple[int, int]]:
    """Tags, and (start, end) of what is text between them, in linear time.

    `tree`: has taken each tag before the next one is asked for, and knows where a `<title>` is none.
    """
    opened: list[bool] = []  # of each brace around: whether it is that of a block of Angular
    for piece in _scan(text, tree):
        if isinstance(piece, Tag):
            if piece.text.startswith("@") and piece.text.endswith("{"):
                opened.append(True)
            yield piece
            continue
        done = piece[0]
        for brace in _BRACE.finditer(text, *piece) if opened else ():
            if brace[0] == "{":
                opened.append(False)
            elif opened and opened.pop():
                if done < brace.start():
                    yield done, brace.start()
                yield Tag(*brace.span(), "}")
                done = brace.end()
        if done < piece[1]:
            yield done, piece[1]


_BRACE = re.compile("[{}]")


def _scan(text: str, tree: "_Tree | None") -> Iterator[Tag | tuple[int, int]]:
    """The pieces without the ends of Angular's blocks, which are text there."""
    done = at = 0
    is_xml = is_xhtml(text)
    last = {mark: text.rfind(mark) for mark in _CLOSED_BY.values()}
    while match := _PIECE.search(text, at):
        tag = _tag_of(text, match, last, is_xml or (tree is not None and tree.is_foreign()))
        if tag is None:
            at = match.start() + 1
            continue
        if tag.start > done:
            yield done, tag.start
        yield (tag.start, tag.end) if is_xml and tag.text.startswith(CDATA) else tag
        at = done = tag.end
        is_raw = tag.opens and tag.name in RAW and not (is_xml and tag.text.endswith("/>"))
        if is_raw and (tree is None or tree.is_raw()):
            close = re.compile(rf"</{tag.name}[{_S}/>]", re.IGNORECASE).search(text, at)
            end = len(text) if close is None or tag.name == "plaintext" else close.start()
            if end > at:
                yield (at, end) if tag.name in ("title", "plaintext") else Tag(at, end, "")
            at = done = end
    if done < len(text):
        yield done, len(text)


def text_of(raw: str) -> str:
    """The text that a piece of a page says; a CDATA section says what it holds.

    >>> text_of("a &lt; b"), text_of("<![CDATA[a < b]]>")
    ('a < b', 'a < b')
    """
    return raw.removeprefix(CDATA).removesuffix("]]>") if raw.startswith(CDATA) else html.unescape(raw)


def is_xhtml(text: str) -> bool:
    """True for XHTML, where a tag may close itself."""
    return re.match(r"\s*<\?xml\s", text) is not None or re.search(r"<html\s[^<>]*\bxmlns\s*=", text[:8192]) is not None


def _tag_of(text: str, match: re.Match[str], last: dict[str, int], has_sections: bool) -> Tag | None:
    """The piece that begins at a place; None for what is text. `has_sections`: CDATA sections may stand there."""
    start, end = match.span()
    if match["block"]:
        return Tag(start, end, match["block"])
    if match["code"]:
        mark = match["code"] if match["code"] in _CLOSED_BY else match["code"][:2]
        close, longest = _CLOSED_BY[mark], _LONGEST.get(mark, len(text))
        end = text.find(close, match.end(), match.end() + longest) if match.end() <= last[close] else -1
        inside = text[match.end() : end]
        end += len(close)
        if end < len(close) and mark == "<?":  # PHP to the end of the file
            end = len(text)
        if end < len(close) or (mark == "{{{" and "}" in inside):  # `{n, plural, other {{{n}} files}}`
            return None
        if mark in ("{{", "{{{", "{!!") and ("\n" in inside or _TAG_INSIDE.search(inside)):
            return None
        if mark == "{%" and _TAG_INSIDE.search(_STRING.sub("", inside)):
            return None
        return Tag(start, end, text[start:end])
    if match["tag"]:
        name = _NAME.match(match["tag"])
        assert name is not None
        return Tag(start, end, match["tag"], name[1].lower(), match["tag"][1] != "/")
    if has_sections and text.startswith(CDATA, start):
        end = text.find("]]>", start) + 3
        end = len(text) if end < 3 else end
    return Tag(start, end, "" if match["comment"] else text[start:end])


@dataclass(slots=True)
class Piece:
    """A tag, or text, and the elements around it."""

    start: int
    end: int
    tag: Tag | None
    """None: text."""
    is_translated: bool
    """True unless an element around it forbids the translation."""
    is_embedded: bool
    """True inside of an element of `EMBEDDED`, and for its tags."""
    is_labelled: bool = False
    """True for the tag of an element whose attributes are translated while its content is not (`textarea`)."""

    @property
    def name(self) -> str:
        return self.tag.name if self.tag else ""

    def moved(self, by: int) -> "Piece":
        """The piece with its places counted from further in front."""
        tag = self.tag and replace(self.tag, start=self.tag.start + by, end=self.tag.end + by)
        return replace(self, start=self.start + by, end=self.end + by, tag=tag)


def pieces(text: str) -> list[Piece]:
    """The pieces of a page, in order; together they cover it."""
    tree = _Tree()
    page: list[Piece] = []
    is_xml = is_xhtml(text)

    def tokens() -> Iterator[dict[str, Any]]:
        for tag in scan(text, tree):
            if isinstance(tag, tuple):
                content = text[slice(*tag)]
                blank = content[: len(content) - len(content.lstrip(_S))]
                if blank:
                    yield {"type": Token.SPACE_CHARACTERS, "data": blank}
                if len(blank) < len(content):
                    yield {"type": Token.CHARACTERS, "data": content[len(blank) :]}
                page.append(Piece(*tag, None, *tree.says(is_text=len(blank) < len(content))))
            elif not tag.name:
                if doctype := _DOCTYPE.match(tag.text):
                    yield _doctype(doctype)
                page.append(Piece(tag.start, tag.end, tag, *tree.says()))
            elif tag.opens:
                is_closed = is_xml and tag.text.endswith("/>")
                is_labelled = tag.name in NOT_TRANSLATED and tree.says()[0] and _own("", _values(tag)) is not False
                tree.tokenizer.state = None
                if tag.name in ("a", "nobr"):
                    tree.moves(tag.name)
                if len(tree.tree.open_elements) < MAX_DEPTH or tag.name in VOID:
                    yield _start(tag)
                says = tree.says(tag)
                if is_closed and tag.name not in VOID:
                    yield {"type": Token.END_TAG, "name": tag.name, "data": {}, "selfClosing": False}
                page.append(Piece(tag.start, tag.end, tag, *says, is_labelled))
            else:
                says = tree.says_of_closed(tag.name)
                tree.moves(tag.name)
                yield {"type": Token.END_TAG, "name": tag.name, "data": {}, "selfClosing": False}
                page.append(Piece(tag.start, tag.end, tag, *says))

    tree.read(tokens())
    return page


def _values(tag: Tag) -> dict[str, str]:
    """The values of a tag's attributes; the first value counts if an attribute is repeated."""
    values: dict[str, str] = {}
    for name, value, _, _ in tag.attributes():
        values.setdefault(name, value)
    return values


def _start(tag: Tag) -> dict[str, Any]:
    return {
        "type": Token.START_TAG, "name": tag.name, "data": _values(tag),
        "selfClosing": tag.closes_itself, "selfClosingAcknowledged": False,
    }  # fmt: skip


def _doctype(match: re.Match[str]) -> dict[str, Any]:
    name, public, system = match.groups()
    ids = {"publicId": public and public[1:-1], "systemId": system and system[1:-1]}
    return {"type": Token.DOCTYPE, "name": name.lower(), **ids, "correct": True}


class _Tree(HTMLParser):
    """tinyhtml5's tree of a page whose pieces come from elsewhere."""

    def __init__(self) -> None:
        super().__init__(namespace_html_elements=False)
        self.moved = 0

    def read(self, tokens: Iterator[dict[str, Any]]) -> None:
        """Take tokens, of which each is in the tree before the next one is asked for."""
        self.container, self.scripting = None, False
        states = ("rcdata_state", "rawtext_state", "script_data_state", "plaintext_state")
        stream = SimpleNamespace(encoding=(None, "certain"))
        self.tokenizer = _Tokens(tokens, stream=stream, state=None, **{name: name for name in states})
        self.reset()
        self.main_loop()

    def parse_error(self, errorcode: str, datavars: dict[str, Any] | None = None) -> None:
        """Take no note of it."""

    def is_foreign(self) -> bool:
        """True inside of SVG and MathML."""
        return bool(self.tree.open_elements) and self.tree.open_elements[-1].namespace != self.tree.default_namespace

    def is_raw(self) -> bool:
        """True if what follows the tag that came last is no markup."""
        state, self.tokenizer.state = self.tokenizer.state, None
        return state is not None

    def says(self, tag: Tag | None = None, *, is_text: bool = False) -> tuple[bool, bool]:
        """(is translated, is embedded) of what came last."""
        if not self.tree.open_elements:
            return tag is None or tag.name not in NOT_TRANSLATED, False
        if is_text and self.phase is self.phases["in table text"]:
            self.phase.flush_characters()
        element = self.tree.open_elements[-1]
        if is_text and element.name in table_insert_mode_elements and not self.is_foreign():
            element = self.tree.get_table_misnested_node_position()[0]  # text in a table goes before it
        translated, embedded = self._says(element)
        if tag is not None and element.name != tag.name:  # it has no content
            own = _own(tag.name, _values(tag))
            translated = translated if own is None else own
        return translated, embedded

    def says_of_closed(self, name: str) -> tuple[bool, bool]:
        """As `says`, of the element that an end tag closes."""
        for element in reversed(self.tree.open_elements):
            if element.name == name:
                return self._says(element)
        return self.says()

    def moves(self, name: str) -> None:
        """Take note that a tag may close a misnested element, and so move others."""
        if self.tree.open_elements and self.tree.open_elements[-1].name != name:
            self.moved += 1

    def _says(self, element: Element | None) -> tuple[bool, bool]:
        """(is translated, is embedded) of what stands in an element; kept there until elements are moved."""
        path: list[Element] = []
        while element is not None and getattr(element, "says", (-1,))[0] != self.moved:
            path.append(element)
            element = element.parent
        translated, embedded = (True, False) if element is None else element.says[1]
        for one in reversed(path):
            own = _own(one.name, one.attributes)
            translated = translated if own is None else own
            embedded = embedded or one.name in EMBEDDED
            one.says = (self.moved, (translated, embedded))
        return translated, embedded


class _Tokens(SimpleNamespace):
    """A stand-in for a tokenizer, which has the states of `scan`."""

    def __init__(self, tokens: Iterator[dict[str, Any]], **states: Any) -> None:
        super().__init__(**states)
        self._tokens = tokens

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self._tokens


def _own(name: str, attributes: dict[str, str]) -> bool | None:
    """True or False for an element with a declaration about its translation; None: as the element around it."""
    says = attributes.get("translate", "").strip().lower()
    if says == "no" or "notranslate" in attributes.get("class", "").split():
        return False
    if says == "yes" or ("translate" in attributes and not says):
        return True
    return False if name in NOT_TRANSLATED else None
