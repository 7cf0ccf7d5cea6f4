"""HTML (and XHTML) by a scanner of its own, as parsers write a page anew. It survives whatever browsers do.

Elements of lines (`<b>`, `<a>`, `<img>` ...) are codes inside of a text; all others, and `<br>`, part texts. Scripts,
styles, code and what says `translate="no"` stay as they are. Attributes that people read are texts by themselves.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dragoman.formats.base import Edit, Options, Unit, line_of, spliced
from dragoman.formats.inline import Token, as_attribute, units_of
from dragoman.languages.codes import language_of, tag_of

INLINE = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "img",
    "ins", "kbd", "label", "mark", "math", "q", "ruby", "rt", "rp", "s", "samp", "small", "span", "strike", "strong",
    "sub", "sup", "svg", "time", "tt", "u", "var", "wbr", "x", "g",
})  # fmt: skip
REPEATS = frozenset({"b", "big", "em", "font", "i", "mark", "s", "small", "strike", "strong", "sub", "sup", "tt", "u"})
"""Elements that may be closed and opened again, if they have no id."""
NOT_TRANSLATED = frozenset(
    {"code", "samp", "var", "tt", "pre", "script", "style", "svg", "math", "textarea", "template"}
)
RAW = ("script", "style", "textarea", "xmp", "iframe", "noembed", "noframes", "plaintext")
"""Elements whose content is no markup."""
VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"})
READ = ("title", "alt", "placeholder", "aria-label", "aria-description", "label", "summary")
"""Attributes that people read."""

_NOTE = re.compile(
    r"(?:<(?:sup|small)\b[^<>]*>\s*)?<a\b[^<>]*>\s*(?:<(?:sup|small)\b[^<>]*>\s*)?"
    r"[\[(]?(?:\d{1,3}|[a-z]|[*†‡§¶]{1,3}|[↩↑^]\ufe0e?)[\])]?\s*(?:</(?:sup|small)>\s*)?</a>(?:\s*</(?:sup|small)>)?",
    re.IGNORECASE,
)
"""A link whose text is the mark of a note: a code, and no word."""
_NAME = re.compile(r"[A-Za-z][^\s/>]*")
_ATTRIBUTE = re.compile(r"""([^\s"'>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?""")


@dataclass(slots=True)
class Tag:
    """A piece of markup: `name` is "" for comments, declarations and the like."""

    start: int
    end: int
    text: str
    name: str = ""
    opens: bool = True
    kept: bool = False
    """True for a whole element that is not translated."""

    def attributes(self) -> list[tuple[str, str, int, int]]:
        """(name, value, and where that begins and ends in the file) of each attribute."""
        found = []
        for match in _ATTRIBUTE.finditer(self.text, len(self.name) + 1):
            start, end = match.span(match.lastindex or 0) if match.lastindex != 1 else (match.end(), match.end())
            value = html.unescape(self.text[start:end])
            found.append((match[1].lower(), value, self.start + start, self.start + end))
        return found

    def get(self, name: str) -> str | None:
        return next((value for key, value, _, _ in self.attributes() if key == name), None)


def scan(text: str) -> Iterator[Tag | tuple[int, int]]:
    """Tags, and (start, end) of what is text between them, in linear time."""
    done = at = 0
    last_end = text.rfind(">")
    no_more: set[str] = set()

    def find(mark: str, begin: int) -> int:
        if mark in no_more:
            return -1
        place = text.find(mark, begin)
        if place < 0:
            no_more.add(mark)
        return place

    while 0 <= (at := text.find("<", at)) <= last_end:
        tag = None
        if text.startswith(("<!--", "<![CDATA["), at):
            end = find("-->", at + 4) if text.startswith("<!--", at) else find("]]>", at)
            tag = Tag(at, end + 3, "") if end >= 0 else None
        elif text.startswith(("<!", "<?"), at):
            tag = Tag(at, text.index(">", at) + 1, "")
        elif match := _NAME.match(text, at + (2 if text.startswith("</", at) else 1)):
            end = _tag_end(text, match.end())
            name = match.group().lower()
            tag = Tag(at, end, text[at:end], name, not text.startswith("</", at))
        if tag is None:
            at += 1
            continue
        if tag.start > done:
            yield done, tag.start
        yield tag
        at = done = tag.end
        if tag.opens and tag.name in RAW and not tag.text.endswith("/>"):
            close = (
                re.compile(rf"</{tag.name}[\s/>]", re.IGNORECASE).search(text, at) if tag.name not in no_more else None
            )
            if close is None:
                no_more.add(tag.name)
                continue
            if close.start() > at:
                yield Tag(at, close.start(), "")
            at = done = close.start()
    if done < len(text):
        yield done, len(text)


def _tag_end(text: str, at: int) -> int:
    """The end of a tag whose name ends at `at`: the next `>` that is not in quotes, or else just the next."""
    first = text.index(">", at)
    place = at
    while True:
        match = re.compile("[>\"']").search(text, place)
        if match is None:
            return first + 1
        if match.group() == ">":
            return match.end()
        if text[match.start() - 1] not in "= \t\n\r\f":  # a quote in the middle of a value
            place = match.end()
            continue
        place = text.find(match.group(), match.end()) + 1
        if place == 0:
            return first + 1


def attribute_units(text: str, options: Options) -> Iterator[Unit]:
    """The attributes that people read."""
    for tag in _pieces(text):
        if isinstance(tag, tuple) or tag.kept or not tag.opens or not tag.name:
            continue
        found = tag.attributes()
        values = {name: value for name, value, _, _ in found}
        names: tuple[str, ...] = READ
        if tag.name == "input" and values.get("type", "").lower() in ("submit", "button", "reset"):
            names = (*READ, "value")
        if tag.name == "meta" and values.get("name", "").lower() in ("description", "keywords", "title"):
            names = (*READ, "content")
        for name, value, start, end in found:
            if name in names and start < end:
                token = Token("text", start, end, value)
                yield from units_of([token], f"line {line_of(text, start)}, {name}", as_attribute)


def _pieces(text: str) -> Iterator[Tag | tuple[int, int]]:
    """The pieces of `scan`; an element that is not translated is one tag, and nothing where it is not closed."""
    kept, depth, note_end = None, 0, 0
    for piece in scan(text):
        start = piece.start if isinstance(piece, Tag) else piece[0]
        if start < note_end:
            continue
        if kept is not None:
            if isinstance(piece, Tag) and piece.name == kept.name and not piece.text.endswith("/>"):
                depth += 1 if piece.opens else -1
                if not depth:
                    yield Tag(kept.start, piece.end, text[kept.start : piece.end], kept.name, kept=True)
                    kept = None
        elif isinstance(piece, Tag) and piece.opens and piece.name and piece.name not in VOID and _is_kept(piece):
            kept, depth = piece, 1
        elif text[start] == "<" and (note := _NOTE.match(text, start)):
            note_end = note.end()
            yield Tag(start, note_end, note.group())
        else:
            yield piece


def _is_kept(tag: Tag) -> bool:
    """True for an element whose content is not to be translated."""
    if tag.text.endswith("/>"):
        return False
    if tag.name in NOT_TRANSLATED:
        return tag.get("translate") != "yes"
    lowered = tag.text.lower()
    if "translate" not in lowered:
        return False
    return tag.get("translate") == "no" or "notranslate" in (tag.get("class") or "").split()


def text_units(text: str, options: Options) -> Iterator[Unit]:
    """The texts between the elements that part them."""
    tokens: list[Token] = []
    line = 1
    counted = 0

    def flush() -> Iterator[Unit]:
        nonlocal line, counted
        if tokens:
            line += text.count("\n", counted, tokens[0].start)
            counted = tokens[0].start
            yield from units_of(tokens, f"line {line}", source=text)
            tokens.clear()

    for tag in _pieces(text):
        if isinstance(tag, tuple):
            tokens.append(Token("text", *tag, html.unescape(text[slice(*tag)])))
        elif tag.kept and tag.name in INLINE:
            tokens.append(Token("protected", tag.start, tag.end, tag.text))
        elif not tag.name:
            tokens.append(Token("alone", tag.start, tag.end, text[tag.start : tag.end]))
        elif tag.kept or tag.name not in INLINE:
            yield from flush()
        elif tag.name in VOID or tag.text.endswith("/>"):
            tokens.append(Token("alone", tag.start, tag.end, tag.text))
        else:
            repeats = tag.name in REPEATS and "id=" not in tag.text.lower()
            tokens.append(Token("open" if tag.opens else "close", tag.start, tag.end, tag.text, tag.name, repeats))
    yield from flush()


def with_language(text: str, options: Options) -> str:
    """The page with its language changed to the target's, where it says one; so are elements in the source's."""
    src, tgt = options.languages
    edits = []
    for tag in _pieces(text) if tgt else ():
        if isinstance(tag, tuple) or tag.kept or not tag.opens or not _LANGUAGE.search(tag.text):
            continue
        found = tag.attributes()
        values = {name: value for name, value, _, _ in found}
        is_said = values.get("property", values.get("http-equiv", values.get("name", ""))).lower() in _SAYING_LANGUAGE
        for name, value, start, end in found:
            is_language = name in ("lang", "xml:lang") or (tag.name == "meta" and name == "content" and is_said)
            if is_language and value and (tag.name == "html" or language_of(value) == language_of(src)):
                said = tag_of(tgt, value if "_" in value else "")
                edits.append(Edit(start, end, said.replace("-", "_") if "_" in value else said))
    return spliced(text, edits)


_LANGUAGE = re.compile(r"\b(?:lang\s*=|locale|language)", re.IGNORECASE)
_SAYING_LANGUAGE = ("og:locale", "content-language", "language", "dc.language", "dcterms.language")
