"""Paragraphs of a page in two languages, for pages that were translated paragraph by paragraph: manuals in roff,
help in XML (Mallard, DocBook), handbooks in HTML.

Such a page has the same structure in every language: the kinds of its blocks (headings, paragraphs, terms ...) are
compared. Where all of them are the same, the blocks translate each other one by one; else each section for itself,
if both pages have equally many; a section with a block more on one side is left out.
"""

import html
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from dragoman.formats.html_pieces import scan
from dragoman.languages.invisible import in_one_line

HEADING = "heading"


class Block(NamedTuple):
    """A piece of text of a page. What is not to be read (text with markup left over) has the text ""."""

    kind: str
    text: str


def pairs(source: list[Block], target: list[Block]) -> Iterator[tuple[str, str]]:
    """The texts that translate each other; identical ones are left out."""
    sections = [(source, target)]
    if _kinds(source) != _kinds(target):
        sides = _sections(source), _sections(target)
        own_last = len(sides[1]) - len(sides[0]) == 1  # a section at the end that says who translated the page
        sections = list(zip(*sides, strict=False)) if own_last or len(sides[0]) == len(sides[1]) else []
    for own, others in sections:
        if _kinds(own) == _kinds(others):
            for one, other in zip(own, others, strict=True):
                if one.text and other.text and one.text != other.text:
                    yield one.text, other.text


def _kinds(blocks: list[Block]) -> list[str]:
    return [block.kind for block in blocks]


def _sections(blocks: list[Block]) -> list[list[Block]]:
    sections: list[list[Block]] = [[]]
    for block in blocks:
        if block.kind == HEADING:
            sections.append([])
        sections[-1].append(block)
    return sections


# -- roff ----------------------------------------------------------------------------------------------------------

_FONTS = {"B", "I", "BR", "RB", "IR", "RI", "BI", "IB", "SM", "SB"}
_BREAKS = {"PP", "P", "LP", "HP", "br", "sp", "RS", "RE", "in", "ti", "ad", "na", "hy", "ne", "nh", "PD", "fi", "EE"}
_VERBATIM = {"nf": "fi", "EX": "EE", "TS": "TE", "SY": "YS", "EQ": "EN", "de": ".", "ig": "."}
_TRUE = re.compile(r"\.\s*if\s+(?:n|!'po4a'hide')\s+(?!\\\{)")
"""A condition that holds: po4a writes the second, around what is not to be translated."""
_SYMBOLS = {
    "aq": "'", "cq": "’", "oq": "‘", "dq": '"', "lq": "“", "rq": "”", "Fo": "«", "Fc": "»", "em": "—", "en": "–",
    "hy": "-", "bu": "•", "co": "©", "rg": "®", "tm": "™", "->": "→", "<-": "←", "mu": "×", "+-": "±", "de": "°",
    "ga": "`", "ha": "^", "ti": "~", "rs": "\\", "mc": "µ", "<=": "≤", ">=": "≥", "!=": "≠", "12": "½", "sc": "§",
    ":a": "ä", ":o": "ö", ":u": "ü", ":A": "Ä", ":O": "Ö", ":U": "Ü", "ss": "ß", "'e": "é", "`e": "è", "at": "@",
    "pl": "+", "mi": "−", "eq": "=", "if": "∞", "Po": "£", "Eu": "€", "ct": "¢", "bv": "|", "ba": "|", "sl": "/",
    "lB": "[", "rB": "]", "lC": "{", "rC": "}", "la": "⟨", "ra": "⟩", "bq": "‚", "Bq": "„", "char46": ".",
}  # fmt: skip
_ROFF = re.compile(
    r"""\\(?:
        f(?:\[[^\]]*\]|\(..|.) | s(?:[-+]?\d{1,2}|\[[^\]]*\]) | m\[[^\]]*\] | [hv]'[^']*'  # fonts, sizes, moves
        | (?P<none>[&,/|^%:c)]) | (?P<space>[\ ~0]) | (?P<dash>-) | (?P<back>[e\\]) | (?P<dot>\.) | (?P<quote>['`])
        | (?:\(|\*\()(?P<two>..) | \*?\[(?P<long>[^\]]+)\] | \*(?P<one>\w)
    )""",
    re.VERBOSE,
)


def roff(text: str) -> list[Block]:
    """The blocks of a manual page with the macros `man`; no blocks for a page with the macros `mdoc`."""
    reader = _Roff()
    if not re.search(r"^\.(?:Dd|Sh)\b", text, re.MULTILINE):
        for line in re.sub(r"\\\n", "", text).split("\n"):
            reader.line(line)
        reader.flush()
    return reader.blocks


class _Roff:
    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.kind, self.parts = "paragraph", list[str]()
        self.until = ""  # the request that ends what is not read
        self.tag_next = False  # the next line is the term of a list

    def line(self, line: str) -> None:
        line = _TRUE.sub("", re.sub(r'\\["#].*', "", line))
        match = re.match(r"[.']\s*(\S*)\s*(.*)", line) if line[:1] in (".", "'") else None
        name, rest = (match[1], match[2]) if match else ("", line)
        if self.until:
            if name == self.until:
                self.until = ""
        elif match is None or name in _FONTS:
            text = _with_fonts(name, rest) if name else line
            if not text.strip() and not self.tag_next:
                self.flush()
                return
            if line[:1] == " ":  # roff breaks the line before it
                self.flush()
            self.parts.append(text)
            if self.tag_next:
                self.tag_next = False
                self.flush("term")
        elif name in ("SH", "SS"):
            self.flush()
            self.parts, self.kind, self.tag_next = _arguments(rest), HEADING, False
            if rest:
                self.flush()
        elif name == "TH":
            self.flush()
        elif name in ("TP", "TQ"):
            self.flush()
            self.tag_next = True
        elif name == "IP":
            self.flush()
            self.parts = _arguments(rest)[:1]
            self.flush("term")
        elif name in _VERBATIM:
            self.flush()
            self.until, self.tag_next = _VERBATIM[name], False
        elif name in _BREAKS:
            self.flush()
        elif name and name not in ("UR", "UE", "MT", "ME", "YS", "OP"):  # a macro of the page's own, a condition
            self.parts.append("\\?")

    def flush(self, kind: str = "") -> None:
        text = _plain(" ".join(self.parts))
        if self.parts and text != "":
            self.blocks.append(Block(kind or self.kind, text.strip()))
        self.parts, self.kind = [], "paragraph"


def _with_fonts(name: str, rest: str) -> str:
    return ("" if len(name) == 2 and name[0] != "S" else " ").join(_arguments(rest))


def _arguments(rest: str) -> list[str]:
    """The arguments of a request: words, or texts in double quotes."""
    return [(quoted[1:-1] if quoted[:1] == '"' else quoted).replace('""', '"')
            for quoted in re.findall(r'"(?:[^"]|"")*"|(?:\\ |[^ ])+', rest)]  # fmt: skip


def _plain(text: str) -> str:
    """A text without escapes; a single blank for a text with unknown escapes, which is not to be used."""
    unknown = False

    def char(match: re.Match[str]) -> str:
        nonlocal unknown
        if match["space"]:
            return " "
        if match["dash"]:
            return "-"
        if match["back"]:
            return "\0"
        if match["dot"]:
            return "."
        if match["quote"]:
            return "´" if match["quote"] == "'" else "`"
        name = match["two"] or match["long"] or match["one"]
        if name is not None:
            unknown = unknown or (name not in _SYMBOLS and name not in ("R", "Tm"))
            return _SYMBOLS.get(name, "")
        return ""

    text = _ROFF.sub(char, text)
    if "\\" in text or unknown:
        return " "
    return in_one_line(text.replace("\0", "\\"))


# -- XML and HTML --------------------------------------------------------------------------------------------------

_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6", "title", "subtitle", "bridgehead"}
_TEXTS = _HEADINGS | {
    "p", "li", "td", "th", "dt", "dd", "caption", "figcaption", "blockquote", "summary",  # HTML
    "desc",  # Mallard
    "para", "simpara", "term", "entry", "seg", "member", "question", "answer", "refpurpose",  # DocBook
}  # fmt: skip
_FRAMES = frozenset({
    "div", "section", "article", "header", "footer", "main", "body", "table", "thead", "tbody", "tr", "ul", "ol", "dl",
    "hr", "br", "form", "figure", "page", "info", "list", "steps", "terms", "item", "media", "links", "note",
    "chapter", "sect1", "sect2", "sect3", "sect4", "sect5", "appendix", "preface", "part", "book", "itemizedlist",
    "orderedlist", "variablelist", "varlistentry", "listitem", "simplelist", "procedure", "step", "substeps", "row",
    "tgroup", "informaltable", "tip", "warning", "caution", "important", "example", "informalexample", "screenshot",
    "imageobject", "textobject", "qandaset", "qandaentry", "refsect1", "refsect2", "refentry", "refnamediv",
    "abstract", "glossary", "glossentry", "glossdef", "formalpara",
})  # fmt: skip
"""Elements around texts."""
_UNREAD = frozenset({
    "head", "script", "style", "pre", "screen", "programlisting", "synopsis", "cmdsynopsis", "funcsynopsis",
    "literallayout", "credit", "mal:credit", "authorgroup", "author", "othercredit", "revhistory", "address",
    "copyright", "keywordset", "indexterm", "textarea", "svg", "math", "nav", "footnote", "legalnotice", "date",
    "releaseinfo", "shortcut", "media", "mediaobject", "inlinemediaobject",
})  # fmt: skip
_JOINED = {"guiseq": " ▸ ", "menuchoice": " ▸ ", "keyseq": "+", "keycombo": "+"}
"""Elements whose children follow each other with a mark between them."""
_NO_TEXT = frozenset({"xref", "link", "ulink"})
"""Elements for which a program writes a text where they have none: without it the sentence has a gap."""
_NAVIGATION = re.compile(r"""\sclass=["'](?:doc)?(?:nav|toc)""")
"""Links to other pages, whose texts are those pages' headings."""
_MARK = re.compile(r"""<(?:a|sup)\s[^>]*class=["'](?:footnote|headerlink|permalink|para["'])""")
"""A link to a note, or to the place itself, whose text is `[4]` or `¶`."""
_NUMBER = re.compile(r"^(?:\d+|[A-Z])(?:\.\d+)*\.\s+(?=\S)")
"""The number that a program puts before a heading."""
_GAP = "\0"
_ENTITY = re.compile(r"""<!ENTITY\s+([\w.-]+)\s+(?:"([^"]*)"|'([^']*)')\s*>""")
_REFERENCE = re.compile(r"&([A-Za-z][\w.-]*);")
_NO_ENTITIES: Mapping[str, str] = {}


def entities(text: str) -> dict[str, str]:
    """The entities that a page, or a file of entities, defines by a text."""
    return {name: double or single for name, double, single in _ENTITY.findall(text)}


def markup(text: str, defined: Mapping[str, str] = _NO_ENTITIES) -> list[Block]:
    """The blocks of a page in HTML, Mallard or DocBook. Entities are those `defined` and the page's own."""
    known = {**defined, **entities(text)}
    blocks: list[Block] = []
    stack: list[str] = []
    parts: list[str] = []
    unread = ""  # the element that is being left out
    depth = 0
    joint = ""  # the mark between the children of an element
    first = True

    def flush() -> None:
        if parts and stack and stack[-1] in _TEXTS and (joined := "".join(parts)).strip():
            kind = HEADING if stack[-1] in _HEADINGS else stack[-1]
            resolved = _resolved(joined, known)
            blocks.append(Block(kind, _NUMBER.sub("", resolved) if kind == HEADING else resolved))
        parts.clear()

    for piece in scan(text):
        if isinstance(piece, tuple):
            if not unread:
                parts.append(text[slice(*piece)])
                first = first and text[slice(*piece)].isspace()
            continue
        name, empty = piece.name, piece.text.endswith("/>")
        if unread:
            depth += 0 if name != unread or empty else 1 if piece.opens else -1
            unread = unread if depth else ""
        elif piece.opens and (name in _UNREAD or _is_beside_the_text(name, piece.text)):
            if not empty:
                unread, depth = name, 1
        elif name in _TEXTS or name in _FRAMES:
            flush()
            if not piece.opens:
                while name in stack and stack.pop() != name:
                    pass
            elif not empty and name not in ("br", "hr"):
                stack.append(name)
        elif name in _JOINED:
            joint, first = _JOINED[name] if piece.opens else "", True
        elif joint and piece.opens:
            parts.append("" if first else joint)
            first = False
        elif name in _NO_TEXT and (empty or (piece.opens and text.startswith(f"</{name}>", piece.end))):
            parts.append(_GAP)
    flush()
    return blocks


def _is_beside_the_text(name: str, tag: str) -> bool:
    return bool(_MARK.match(tag) or (name in _FRAMES and _NAVIGATION.search(tag)))


def _resolved(text: str, known: Mapping[str, str]) -> str:
    """A text with its entities; "" where one is not known, or the text has a gap."""
    for _ in range(4):  # the text of an entity may have tags and entities
        resolved = _REFERENCE.sub(lambda match: known.get(match[1], match[0]), text)
        resolved = re.sub(r"<[^<>]*>", "", resolved)
        if resolved == text:
            break
        text = resolved
    text = html.unescape(text)
    return "" if _GAP in text or _REFERENCE.search(text) else in_one_line(text)
