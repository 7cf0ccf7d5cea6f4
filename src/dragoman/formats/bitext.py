"""Sentence pairs of files that hold both languages: TMX, XLIFF and PO, for training, memories and glossaries (TBX).

Inline codes are left out; beside the texts they stand in them as numbered tags (`Entry.coded`), those of a unit with
the same number on both sides: `<1>Open</1> the file<2/>`. What stands in formatting (`<hi>`, `<g>`) is text. Large
files are read in a stream.
"""

import re
import xml.parsers.expat
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple
from xml.sax.saxutils import quoteattr

from dragoman.errors import Error
from dragoman.formats import po
from dragoman.formats.base import Entry, Options, State
from dragoman.formats.encoding import decoded
from dragoman.formats.inline import escaped
from dragoman.languages.scripts import SAME_STANDARD, best_variant, written_in
from dragoman.version import __version__

CHUNK_BYTES = 1 << 20
_LANGUAGES = (("source-language", "srcLang"), ("target-language", "trgLang"))
"""Attributes that name the languages, of XLIFF 1.2 and 2.x."""
_SKIPPED = frozenset({"bpt", "ept", "ph", "it", "ut", "x", "bx", "ex", "sc", "ec", "cp", "alt-trans"})
"""Inline codes, and other translations on offer."""
_STANDING = frozenset({"ph", "x"})
"""Codes that stand for something by themselves: the words around them do not become one."""
_BEGIN, _END = frozenset({"bpt", "bx", "sc"}), frozenset({"ept", "ex", "ec"})
_AROUND = frozenset({"hi", "g", "pc", "mrk"})
"""Elements that are pairs of codes with text in them."""
_NUMBERS = ("rid", "startRef", "i", "id", "x")
"""Attributes that identify a code of a unit; both halves of a pair have the same value."""
_GAP = "\ufffc"
_LETTER = r"[^\W\u3040-\u9fff]"
_BETWEEN_WORDS = re.compile(rf"(?<={_LETTER}){_GAP}+(?={_LETTER})|(?<={_LETTER}){_GAP}(?=<\d+/>{_LETTER})")


class Texts(NamedTuple):
    """The texts of a unit by language, the line that it begins in, and what is said about it."""

    line: int
    texts: dict[str, str]
    coded: dict[str, str]
    """The texts with inline codes, with their codes."""
    state: State
    changed: str
    languages: tuple[str, str] | None
    context: str


def tmx_entries(stream: BinaryIO, name: str, languages: tuple[str, str], least: int = SAME_STANDARD) -> Iterator[Entry]:
    """The units of a TMX that have both languages, of several regions the nearest; a translation is as near as `least`
    (`codes.nearness`)."""
    yield from _entries(_Reader(("tu",), ("tuv",), ("seg",)), stream, name, languages, least)


def tbx_entries(stream: BinaryIO, name: str, languages: tuple[str, str]) -> Iterator[Entry]:
    """The terms of a TBX (versions 2 and 3) that have both languages."""
    reader = _Reader(("termEntry", "conceptEntry"), ("langSet", "langSec"), ("term",))
    yield from _entries(reader, stream, name, languages)


def xliff_entries(stream: BinaryIO, name: str) -> Iterator[Entry]:
    """The units of an XLIFF, 1.2 or 2.x, those without a translation too."""
    reader = _Reader(("trans-unit", "segment"), (), ("source", "target"))
    yield from _entries(reader, stream, name, ("source", "target"))


def po_entries(data: bytes, name: str) -> Iterator[Entry]:
    """The messages of a PO file, including fuzzy and untranslated messages."""
    text, _ = decoded(data, name, "po")
    yield from po.entries(text, Options(name))


def tmx_of(pairs: Sequence[tuple[str, str]], src: str, tgt: str) -> bytes:
    """A translation memory (TMX 1.4) of pairs in two languages."""
    units = "".join(
        f"<tu><tuv xml:lang={quoteattr(src)}><seg>{escaped(one)}</seg></tuv>"
        f"<tuv xml:lang={quoteattr(tgt)}><seg>{escaped(other)}</seg></tuv></tu>\n"
        for one, other in ((_xml_text(one), _xml_text(other)) for one, other in pairs)
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4"><header creationtool="dragoman" '
        f'creationtoolversion="{__version__}" segtype="sentence" o-tmf="none" adminlang="en" '
        f'srclang={quoteattr(src)} datatype="plaintext"/><body>\n{units}</body></tmx>\n'
    ).encode()


def _xml_text(text: str) -> str:
    """A text without the control characters that XML cannot hold."""
    return re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "", text)


class _Reader:
    """Collects the texts of units by language. Texts without variants around them go by the names of their elements."""

    def __init__(self, units: Sequence[str], variants: Sequence[str], texts: Sequence[str]) -> None:
        self.units, self.variants, self.texts = units, variants, texts
        self.numbers: dict[str, int] = {}
        """Of the codes of a unit, by what its file calls them."""
        self.opened: list[int] = []
        self.unnamed = 0
        """Codes of a text that its file does not name: they are told by their order."""
        self.done: list[Texts] = []
        self.line = 0
        self.state: State = ""
        self.changed = ""
        self.languages: tuple[str, str] | None = None
        self.context = ""
        self.attributes: dict[str, str] = {}
        """Attributes of a unit and its parts."""
        self.current: dict[str, str] = {}
        self.coded: dict[str, str] = {}
        self.code = ""
        self.collected: list[str] | None = None
        self.tagged: list[str] = []
        """As `collected`, with tags for codes."""
        self.skipped = 0

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        if name in self.units:
            self.current, self.coded, self.line, self.changed = {}, {}, line, ""
            self.numbers.clear()
            self.attributes, self.context = attributes, attributes.get("id", "")
            self.state = _state(attributes)
        if name in (*self.units, *self.variants):
            self.changed = max(self.changed, attributes.get("changedate") or attributes.get("creationdate") or "")
        if name in ("file", "xliff"):
            codes = [attributes.get(old) or attributes.get(new) or "" for old, new in _LANGUAGES]
            self.languages = (codes[0], codes[1]) if all(codes) else self.languages
        elif name in self.variants:
            self.code = attributes.get("xml:lang") or attributes.get("lang") or ""
        elif name in _SKIPPED:
            self.skipped += 1
            if self.collected is not None and self.skipped == 1:
                gap = [_GAP] if name in _STANDING else []
                self.collected += gap
                self.tagged += [*gap, *self._tag(name, attributes)]
        elif name in _AROUND and self.collected is not None and not self.skipped:
            self.tagged += self._tag(name, attributes)
        elif name in self.texts and not self.skipped:
            self.code = self.code if self.variants else name
            self.collected, self.tagged, self.unnamed = [], [], 0
            self._note(attributes)
        elif name == "seg" and "conf" in attributes:  # of Trados, after the texts
            self._note(attributes)

    def _tag(self, name: str, attributes: dict[str, str]) -> list[str]:
        """The numbered tag of a code; none for another translation on offer."""
        if name == "alt-trans":
            return []
        own = next((attributes[key] for key in _NUMBERS if key in attributes), "")
        if not own:
            self.unnamed += 1
            own = f"unnamed {self.unnamed}"
        kind = "mrk" if name == "mrk" else "alone" if name not in _BEGIN | _END | _AROUND else "pair"
        number = self.numbers.setdefault(f"{kind} {own}", len(self.numbers) + 1)
        if name in _AROUND:
            self.opened.append(number)
        return [f"</{number}>" if name in _END else f"<{number}>" if kind != "alone" else f"<{number}/>"]

    def _note(self, attributes: dict[str, str]) -> None:
        """Keep what a part of a unit says of its state; a guess stays one."""
        self.attributes = {**self.attributes, **attributes}
        self.state = "fuzzy" if self.state == "fuzzy" else _state(self.attributes)

    def end(self, name: str) -> None:
        if name in _SKIPPED:
            self.skipped -= 1
        elif name in _AROUND and self.collected is not None and not self.skipped:
            self.tagged.append(f"</{self.opened.pop()}>")
        elif name in self.texts and self.collected is not None and not self.skipped:
            text, tagged = (_one_line("".join(parts)) for parts in (self.collected, self.tagged))
            if self.code not in self.current and tagged != text:
                self.coded[self.code] = tagged
            self.current.setdefault(self.code, text)
            self.collected = None
        elif name in self.units:
            if not self.variants and not self.current.get("target"):
                self.current["target"], self.state = "", "untranslated"
            properties = self.state, self.changed, self.languages, self.context
            self.done.append(Texts(self.line, self.current, self.coded, *properties))

    def chars(self, text: str) -> None:
        if self.collected is not None and not self.skipped:
            self.collected.append(text)
            self.tagged.append(text)


def _one_line(text: str) -> str:
    return " ".join(_BETWEEN_WORDS.sub(" ", text).replace(_GAP, "").split())


_GUESSES = frozenset({
    "fuzzy-match", "leveraged-mt", "mt-suggestion", "draft", "machinetranslated", "pretranslated", "rejected",
    "rejectedtranslation", "rejectedsignoff", "rejected-grammar", "rejected-inaccurate", "rejected-length",
    "rejected-spelling",
})  # fmt: skip
_UNTRANSLATED = ("new", "needs-translation", "initial", "notstarted")
_APPROVED = frozenset({"final", "signed-off", "reviewed", "approvedtranslation", "approvedsignoff", "proofread"})


def _state(attributes: dict[str, str]) -> State:
    """The state of a unit by the words of XLIFF 1.2 and 2.x, and of Trados, Memsource and memoQ."""
    names = ("state", "state-qualifier", "conf", "mq:status")
    words = [attributes[name].lower() for name in names if name in attributes]
    if any(word.startswith(_UNTRANSLATED) for word in words):
        return "untranslated"
    is_approved = attributes.get("approved") == "yes" or not _APPROVED.isdisjoint(words)
    is_guess = attributes.get("m:confirmed") == "0" or not _GUESSES.isdisjoint(words)
    if any(word.startswith("needs") for word in words) or (is_guess and not is_approved):
        return "fuzzy"
    return "approved" if is_approved else ""


def _entries(
    reader: _Reader, stream: BinaryIO, name: str, languages: tuple[str, str], least: int = SAME_STANDARD
) -> Iterator[Entry]:
    """The entries of a stream of XML. Raises DragomanError, with the line, for what is broken or defines a DTD; and for
    a file that has variants, of which no unit has both languages."""
    src, tgt = languages
    seen: dict[str, None] = {}
    is_empty = True
    parser = xml.parsers.expat.ParserCreate()
    parser.buffer_text = True

    def doctype(doctype_name: str, system: str | None, public: str | None, defines: bool) -> None:
        if defines:
            raise Error.UNSAFE(
                "a DTD, which may define anything", "remove it", file=name, line=parser.CurrentLineNumber
            )

    def start(tag: str, attributes: dict[str, Any]) -> None:
        reader.start(tag.rpartition(":")[2], attributes, parser.CurrentLineNumber)

    parser.StartDoctypeDeclHandler = doctype
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: reader.end(tag.rpartition(":")[2])
    parser.CharacterDataHandler = reader.chars
    try:
        while True:
            chunk = stream.read(CHUNK_BYTES)
            parser.Parse(chunk, not chunk)
            for unit in reader.done:
                seen.update(dict.fromkeys(unit.texts))
                codes = best_variant(unit.texts, src), best_variant(unit.texts, tgt, least)
                if codes[0] is not None and codes[1] is not None and codes[0] != codes[1]:
                    texts = unit.texts[codes[0]], unit.texts[codes[1]]
                    own = written_in(codes[0], texts[0], src), written_in(codes[1], texts[1], tgt)
                    named = own if reader.variants else unit.languages
                    is_empty = False
                    tagged = unit.coded.get(codes[0], texts[0]), unit.coded.get(codes[1], texts[1])
                    coded = tagged if unit.coded.keys() & set(codes) else None
                    yield Entry(unit.line, *texts, unit.state, unit.changed, named, unit.context, coded)
            reader.done.clear()
            if not chunk:
                break
    except xml.parsers.expat.ExpatError as error:
        reason = xml.parsers.expat.ErrorString(error.code)
        raise Error.BAD_SYNTAX(f"broken XML: {reason}", file=name, line=error.lineno) from error
    if is_empty and reader.variants:
        raise Error.EMPTY(f"no unit with both {src} and {tgt}", f"it has {', '.join(seen) or 'none'}", file=name)
