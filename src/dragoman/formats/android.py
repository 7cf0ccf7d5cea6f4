"""Android's string resources (strings.xml): strings, arrays and plurals that are to be translated."""

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from dragoman.formats.base import Code, Item, Options, Unit, refuse
from dragoman.formats.html import BLOCK
from dragoman.formats.html_pieces import VOID, scan
from dragoman.formats.inline import Kind, Token, escaped, units_of
from dragoman.formats.messages import whole_characters, with_numbered_arguments
from dragoman.formats.plural_forms import Form, blanks_before, forms_in
from dragoman.formats.xml import Event, attribute, children, events, local, tokens

_SIMPLE = {"n": "\n", "t": "\t", "@": "@", "?": "?", "'": "'", '"': '"', "\\": "\\"}
_SECTION = re.compile(r"\s*<!\[CDATA\[(?P<inner>(?:(?!\]\]>).)*)\]\]>\s*", re.DOTALL)
_MARKUP = re.compile(r"</?[A-Za-z][^<>]*>|&(?:[A-Za-z]{2,8}|#\d{1,7});")
_QUOTE = re.compile(
    r"(?<!\\)(?:\\\\)*(?P<quote>\"|&quot;|&#34;|\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])"
    r"|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]..)"
)
"""A quote, or half of a surrogate pair, which is no character."""


def units(text: str, options: Options) -> Iterator[Unit]:
    """The strings, without strings with translatable="false" and without references."""
    held: list[Event] = []
    depth = 0
    for event in events(text, options):
        tag = local(event.name)
        if event.kind == "start" and not depth:
            if tag != "resources":
                raise refuse(
                    options, text, event.start, f"<{tag}>, not <resources>: of XML, Android's strings alone are known"
                )
            depth = 1
            continue
        if event.kind == "start" or held:
            held.append(event)
        depth += {"start": 1, "end": -1}.get(event.kind, 0)
        if event.kind == "end" and depth == 1 and held:
            yield from _resource(text, held, options)
            held = []


def _resource(text: str, element: Sequence[Event], options: Options) -> Iterator[Unit]:
    """The units of a resource: a string, a list, or the plural forms of one."""
    tag, name = local(element[0].name), attribute(element[0], "name")
    reason = 'translatable="false"' if attribute(element[0], "translatable") == "false" else ""
    if tag == "string" or (tag == "item" and attribute(element[0], "type") == "string"):
        yield from _string(text, element, name, reason)
    elif tag in ("string-array", "plurals"):
        items = [item for item in children(element) if local(item[0].name) == "item"]
        if tag == "plurals" and items:
            forms = [_form(text, item, name, reason) for item in items]
            yield from forms_in(text, forms, options.languages[1], blanks_before(text, forms[-1].start))
        for item in items if tag == "string-array" else ():
            yield from _string(text, item, name, reason)


def _form(text: str, item: Sequence[Event], name: str, reason: str) -> Form:
    """The form that an item of plurals is."""
    quantity = attribute(item[0], "quantity")
    begin = re.search(r"\squantity\s*=\s*[\"']", text[item[0].start : item[0].end])
    at = item[0].start + (begin.end() if begin else 0)
    unit = next(_string(text, item, f"{name}[{quantity}]", reason), None)
    return Form(quantity, at, item[0].start, item[-1].end, unit)


def _string(text: str, element: Sequence[Event], where: str, reason: str) -> Iterator[Unit]:
    """The unit of a string."""
    start, end = element[0].end, element[-1].start
    content = text[start:end]
    if content.lstrip().startswith(("@", "?")):
        return
    section = _SECTION.fullmatch(text, start, end)
    if section:
        inside = list(_of_section(text, *section.span("inner")))
        says_amp = _MARKUP.search(section["inner"]) is not None and re.search(r"&(?!amp;)", section["inner"]) is None
        render = partial(_written, escaped if says_amp else str)
    else:
        inside = [
            piece
            for token in _whole_texts(text, tokens(text, element[1:-1], _whole, ("b", "i", "u")))
            for piece in (_quotes(text, token) if token.kind == "text" else (token,))
        ]
        render = partial(_written, escaped)
    for unit in units_of(inside, where, render, source=text, collapse=False):
        yield replace(with_numbered_arguments(unit), kept=reason)


def _whole_texts(text: str, tokens: Iterable[Token]) -> Iterator[Token]:
    """Tokens in which a text of several lines is one, so that the blanks at its line ends count as one."""
    held: Token | None = None
    for token in tokens:
        is_text = token.kind == "text" and not text.startswith("<![CDATA[", token.start)
        if held and is_text:
            held = held._replace(end=token.end)
            continue
        if held:
            yield held
        held = token if is_text else None
        if not is_text:
            yield token
    if held:
        yield held


def _whole(element: Sequence[Event]) -> tuple[Kind, str] | None:
    return ("protected", "") if local(element[0].name) == "g" else None


def _of_section(text: str, start: int, end: int) -> Iterator[Token]:
    """The tokens of a CDATA section, in which HTML may stand."""
    is_markup = _MARKUP.search(text, start, end) is not None
    for piece in scan(text[start:end]) if is_markup else [(0, end - start)]:
        if isinstance(piece, tuple):
            begin, stop = start + piece[0], start + piece[1]
            content = text[begin:stop]
            yield Token("text", begin, stop, _read(html.unescape(content) if is_markup else content))
        else:
            kind: Kind = "open" if piece.opens else "close"
            is_alone = not piece.name or piece.name in VOID or piece.closes_itself
            kind = "break" if piece.name in BLOCK else "alone" if is_alone else kind
            yield Token(
                kind, start + piece.start, start + piece.end, text[start + piece.start : start + piece.end], piece.name
            )


def _of_part_section(text: str, start: int, end: int) -> Iterator[Token]:
    """The tokens of a CDATA section beside other text: each tag has a section of its own, and the text none."""
    begin, stop = start + len("<![CDATA["), end - len("]]>")
    yield Token("alone", start, begin, "", fixed=True)
    for token in _of_section(text, begin, stop):
        if token.kind == "text":
            yield token._replace(fixed=True)
        else:
            yield token._replace(text=f"<![CDATA[{token.text}]]>", fixed=True)
    yield Token("alone", stop, end, "", fixed=True)


def _quotes(text: str, token: Token) -> Iterator[Token]:
    """A text parted at its quotes, which say that blanks count between them."""
    raw = text[token.start : token.end]
    if raw.startswith("<![CDATA["):
        yield from _of_part_section(text, token.start, token.end)
        return
    done = 0
    for match in [*_QUOTE.finditer(raw), None]:
        stop = match.start("quote") if match else len(raw)
        if done < stop:
            yield Token("text", token.start + done, token.start + stop, _read(html.unescape(raw[done:stop])))
        if match:
            done = match.end("quote")
            yield Token("alone", token.start + stop, token.start + done, match["quote"])


def _read(text: str) -> str:
    text = re.sub(r"\s+", " ", text)  # white space that counts is written with a backslash
    text = re.sub(r"\\u([0-9A-Fa-f]{4})", lambda match: chr(int(match.group(1), 16)), text)
    return whole_characters(re.sub(r"\\(.)", lambda match: _SIMPLE.get(match.group(1), match.group(1)), text))


def _written(escape: Callable[[str], str], items: Sequence[Item]) -> str:
    """Items as Android reads them. `escape`: what is done to text so that it is no markup."""
    out = ""
    for number, item in enumerate(items):
        if isinstance(item, Code):
            out += item.raw
            continue
        text = item.replace("\\", "\\\\").replace("'", "\\'").replace('"', '\\"')
        text = re.sub(r"[\n\t]", lambda char: "\\n" if char[0] == "\n" else "\\t", text)
        text = text if number else re.sub(r"^([@?])", r"\\\1", text)
        edges = rf"{'^ +|' if not number else ''}{' +$|' if number == len(items) - 1 else ''}(?<= ) |\u00a0"
        out += re.sub(edges, lambda blanks: "".join(f"\\u{ord(blank):04X}" for blank in blanks[0]), escape(text))
    return out
