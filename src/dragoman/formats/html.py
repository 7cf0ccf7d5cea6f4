"""HTML (and XHTML): a page is never written anew, its texts are.

Elements that stand in lines (`<b>`, `<a>`, `<img>`, elements of a page's own ...) are codes inside of a text; all
others, and `<br>`, part texts. Scripts, styles, code and what says `translate="no"` stay as they are, and so does the
code of templates. Attributes that people read are texts by themselves.
"""

import functools
import html
import html.entities
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import regex

from dragoman.formats.base import NO_TAGS, NOTE_MARK, Item, Options, Tags, Unit, has_letters, line_of
from dragoman.formats.bilingual_html import NO_MARKUP, Surroundings
from dragoman.formats.html_pieces import CDATA, CODE, EMBEDDED, VOID, Piece, is_xhtml, pieces, text_of
from dragoman.formats.inline import BLANKS, Kind, Token, as_attribute, units_of
from dragoman.formats.messages import with_arms

BLOCK = frozenset({
    "address", "article", "aside", "base", "blockquote", "body", "br", "caption", "center", "col", "colgroup", "dd",
    "details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "frame",
    "frameset", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hgroup", "hr", "html", "legend", "li", "link",
    "listing", "main", "menu", "meta", "nav", "noframes", "noscript", "ol", "optgroup", "option", "p", "plaintext",
    "pre", "search", "section", "summary", "table", "tbody", "td", "template", "tfoot", "th", "thead", "title", "tr",
    "ul", "xmp", "svg", "g", "text", "desc", "marquee",
})  # fmt: skip
"""Elements that part texts."""
READING = frozenset({"rp", "rt", "rtc"})
"""Elements that say how the word before them is read: no words of the sentence."""
LEFT = "not to be translated (`translate`, code, `pre` ...)"
REPEATS = frozenset({"b", "big", "em", "font", "i", "mark", "s", "small", "strike", "strong", "sub", "sup", "tt", "u"})
"""Elements that may be closed and opened again, if they have no id."""
CHANGES = frozenset({"del", "ins", "s", "strike"})
"""Elements of what was struck out or added."""
NO_WORD = frozenset({"script", "style", "textarea", "metadata"})
"""Elements that are not translated and stand for no word in a sentence."""
READ = frozenset({
    "title", "alt", "placeholder", "aria-label", "aria-description", "aria-placeholder", "aria-roledescription",
    "aria-valuetext", "label", "summary", "abbr",
})  # fmt: skip
"""Attributes that people read."""
READ_IN_META = frozenset({
    "description", "keywords", "title", "og:title", "og:description", "og:site_name", "og:image:alt", "twitter:title",
    "twitter:description", "twitter:image:alt", "application-name", "apple-mobile-web-app-title", "dc.title",
    "dc.description", "dcterms.title", "dcterms.description", "headline",
})  # fmt: skip

_NOTE = re.compile(
    r"(?:<(?:sup|small)\b[^<>]*>\s*)?<a\b[^<>]*>\s*(?:<(?:sup|small)\b[^<>]*>\s*)?"
    r"[\[(]?(?:\d{1,3}|[a-z]|[*†‡§¶]{1,3}|[↩↑^]\ufe0e?)[\])]?\s*(?:</(?:sup|small)>\s*)?</a>(?:\s*</(?:sup|small)>)?"
    r"|(?:(?<=[^\W\d_]{3})|(?<=[.,;:!?)\]\"”»>]))<sup\b[^<>]*>\s*" + NOTE_MARK + r"\s*</sup>(?![^\W_])",
    re.IGNORECASE,
)
"""The mark of a note: a link whose text is such a mark, or a raised mark behind a word that is no unit (`m²`). It is a
code, and no part of the word."""

_CODE = re.compile(CODE, re.DOTALL)
_LETTER = regex.compile(r"[\p{L}\p{M}]")
_ENTITY = re.compile(r"&[A-Za-z][\w.-]*;")
_STATEMENT = re.compile(r"(\{%|<%|<\?(?:php\b)?|\{\{)[-+~]?\s*([#^/}]?)\s*([A-Za-z]*)")
"""Code of a template: what it begins with, a mark, a word."""
_OTHERWISE = frozenset({"else", "elif", "elsif", "elseif", "empty", "when", "case", "default", "plural", "pluralize"})
_BEGINS = {
    "{%": frozenset({
        "if", "unless", "for", "case", "block", "with", "macro", "call", "filter", "autoescape", "trans", "blocktrans",
        "blocktranslate", "raw", "verbatim", "comment", "capture", "cache", "spaceless", "ifchanged", "apply", "embed",
        "tablerow", "switch", "language",
    }),
    "{{": frozenset({"if", "range", "with", "block", "define", "unless"}),
    "<%": frozenset({"if", "unless", "for", "while", "case", "switch"}),
    "<?": frozenset({"if", "for", "foreach", "while", "switch"}),
}  # fmt: skip
"""Words that a statement begins with that has an end further on."""


@functools.lru_cache(maxsize=1)  # two passes look at a page, one after the other
def page_of(text: str, tags: Tags = NO_TAGS) -> list[Piece]:
    """The pieces of a page; pieces in ignored elements are not translated."""
    page = pieces(text)
    return list(_without(page, tags.ignored)) if tags.ignored else page


def _without(page: Sequence[Piece], names: Collection[str]) -> Iterator[Piece]:
    """The pieces of a page; those in elements of some names are not translated."""
    names = {name.lower() for name in names}
    depth = 0
    for piece in page:
        tag = piece.tag if piece.name in names else None
        if tag is not None and tag.opens:
            depth += tag.name not in VOID and not tag.closes_itself
        yield replace(piece, is_translated=False) if depth or tag else piece
        if tag is not None and not tag.opens:
            depth = max(0, depth - 1)


def attribute_units(text: str, options: Options) -> Iterator[Unit]:
    """The attributes that people read."""
    yield from _attributes_of(text, page_of(text, options.tags))


def attribute_units_within(text: str, start: int, end: int) -> Iterator[Unit]:
    """The attributes that people read in a piece of HTML in a file of another kind."""
    yield from _attributes_of(text, [piece.moved(start) for piece in pieces(text[start:end])])


def _attributes_of(text: str, page: Sequence[Piece]) -> Iterator[Unit]:
    for piece in page:
        is_read = piece.is_translated or piece.is_labelled
        if piece.tag is None or not is_read or not piece.tag.opens or not piece.name:
            continue
        attributes = piece.tag.attributes()
        names = _read_in(piece.name, {name: value for name, value, _, _ in attributes})
        for name, _, start, end in attributes:
            if name in names and start < end:
                written = functools.partial(_quoted, is_bare=text[start - 1] not in "\"'")
                where = f"line {line_of(text, start)}, {name}"
                yield from units_of(list(_attribute_tokens(text, start, end)), where, written)


def _read_in(name: str, values: dict[str, str]) -> frozenset[str]:
    """The names of the attributes of a tag that people read."""
    if name == "input" and values.get("type", "").lower() in ("submit", "button", "reset"):
        return READ | {"value"}
    if name.startswith("asp:"):
        return READ | {"text", "tooltip", "headertext", "errormessage"}
    says = (values.get(key, "").lower() for key in ("name", "property", "itemprop"))
    if name == "meta" and not READ_IN_META.isdisjoint(says):
        return READ | {"content"}
    return READ


def _attribute_tokens(text: str, start: int, end: int) -> Iterator[Token]:
    """The text of an attribute, and code of templates in it."""
    done = start
    for match in [*_CODE.finditer(text, start, end), None]:
        stop = match.start() if match else end
        if stop > done:
            yield Token("text", done, stop, html.unescape(text[done:stop]))
        if match:
            yield Token("protected", *match.span(), match.group())
            done = match.end()


def _quoted(items: Sequence[Item], is_bare: bool) -> str:
    written = as_attribute(items)
    return f'"{written}"' if is_bare else written


def text_units(text: str, options: Options) -> Iterator[Unit]:
    """The texts between the elements that part them."""
    yield from _units(text, page_of(text, options.tags), options, embedded=False)


def embedded_units(text: str, options: Options) -> Iterator[Unit]:
    """The texts inside of elements that are one code of the text around them: the choices of a form ..."""
    yield from _units(text, page_of(text, options.tags), options, embedded=True)


def units_within(text: str, start: int, end: int, options: Options) -> Iterator[Unit]:
    """The texts of a piece of HTML in a file of another kind."""
    yield from _units(text, [piece.moved(start) for piece in pieces(text[start:end])], options, embedded=False)


def _units(text: str, page: Sequence[Piece], options: Options, *, embedded: bool) -> Iterator[Unit]:
    block: list[Piece] = []
    before: Piece | None = None
    is_xml = options.bilingual and is_xhtml(text)
    for piece in [*page, None]:
        if piece is not None and (
            (piece.is_embedded == embedded or not embedded) and not _parts(piece, embedded, options.tags)
        ):
            block.append(piece)
        elif block:
            tokens = _apart(_changes_apart(list(_tokens(text, block, embedded))))
            around = Surroundings(text, before, piece, options, is_xml)
            where = f"line {line_of(text, block[0].start)}"
            unit = None
            for unit in units_of(tokens, where, source=text):
                is_alone = before is not None and before.name in NO_MARKUP
                is_beside = options.bilingual and (not embedded or is_alone)
                unit = replace(unit, items=with_arms(unit.items))
                yield replace(unit, beside=around.beside) if is_beside else unit
            if unit is None and (left := _left(text, block)):
                yield Unit((left,), block[0].start, block[-1].end, str, where, kept=LEFT)
            block = []
        before = before if block else piece


def _left(text: str, block: Sequence[Piece]) -> str:
    """The text of a block in which nothing is translated; "" for one without words."""
    content = "".join(text_of(text[piece.start : piece.end]) for piece in block if piece.tag is None)
    return content if has_letters(content) else ""


def _parts(piece: Piece, embedded: bool, tags: Tags) -> bool:
    """True for a tag that parts texts."""
    if piece.name in tags.splitting or piece.name in tags.non_splitting:
        return piece.name in tags.splitting
    if piece.is_embedded and not embedded:
        return False
    if piece.tag is not None and piece.tag.text.startswith(("@", "}")):  # Angular
        return True
    if piece.tag is not None and piece.name == "input":
        return (piece.tag.get("type") or "").lower() in ("radio", "checkbox")
    if piece.tag is not None and piece.name == "tspan":  # one with a place of its own is a line
        return any(name in ("x", "y", "dy") for name, *_ in piece.tag.attributes())
    return piece.name in BLOCK or (embedded and piece.name in EMBEDDED)


def _tokens(text: str, block: Sequence[Piece], embedded: bool) -> Iterator[Token]:
    """The tokens of the pieces between two tags that part texts."""
    at = 0
    while at < len(block):
        piece = block[at]
        if piece.is_embedded and not embedded:
            end = next((place for place in range(at, len(block)) if not block[place].is_embedded), len(block))
            yield Token("alone", piece.start, block[end - 1].end, text[piece.start : block[end - 1].end])
        elif not piece.is_translated:
            end, kind = _kept(block, at)
            if kind is None:
                for one in block[at:end]:
                    yield from _kept_text(text, one) if one.tag is None else [_token(text, one)]
            else:
                yield Token(kind, piece.start, block[end - 1].end, text[piece.start : block[end - 1].end])
        elif piece.name in READING:
            end = _end_of_reading(text, block, at)
            tags = "".join(text[one.start : one.end] for one in block[at:end] if one.tag is not None)
            yield Token("alone", piece.start, block[end - 1].end, tags, fixed=True)  # reads the source's words
        elif piece.tag is not None and (note := _NOTE.match(text, piece.start)):
            end = next((place for place in range(at, len(block)) if block[place].start >= note.end()), len(block))
            yield Token("alone", *note.span(), note.group())
        elif piece.tag is None:
            end = at + 1
            yield from _text_tokens(text, piece.start, piece.end)
        else:
            end = at + 1
            yield _token(text, piece)
        at = end


def _kept(block: Sequence[Piece], at: int) -> tuple[int, Kind | None]:
    """Where the element that begins at a piece and is not translated ends, and the kind of its token; None for an
    element with something in it that is translated."""
    name, depth = block[at].name, 0
    for place in range(at, len(block)):
        piece = block[place]
        if piece.is_translated:
            return place, None
        if piece.tag is None or piece.name != name or name in VOID:
            continue
        depth += 1 if piece.tag.opens else -1
        if depth <= 0:
            return place + 1, "alone" if name in NO_WORD else "protected"
    return len(block), "alone" if name in NO_WORD else "protected"


def _text_tokens(text: str, start: int, end: int) -> Iterator[Token]:
    """The tokens of a text: names of characters that are a page's own (`&brandName;`) stay as they are."""
    is_section = text.startswith(CDATA, start)
    own = (
        []
        if is_section
        else [one for one in _ENTITY.finditer(text, start, end) if one[0][1:] not in html.entities.html5]
    )
    for match in own:
        if match.start() > start:
            yield Token("text", start, match.start(), html.unescape(text[start : match.start()]))
        yield Token("protected", *match.span(), match[0])
        start = match.end()
    if start < end:
        yield Token("text", start, end, text_of(text[start:end]))


def _kept_text(text: str, piece: Piece) -> Iterator[Token]:
    """The tokens of a text that is not translated: the blanks at its edges part it from its neighbours."""
    for match in re.compile(rf"[{BLANKS}]+|[^{BLANKS}](?:.*[^{BLANKS}])?", re.DOTALL).finditer(
        text, piece.start, piece.end
    ):
        yield Token("protected" if match[0].strip(BLANKS) else "text", *match.span(), match[0])


def _end_of_reading(text: str, block: Sequence[Piece], at: int) -> int:
    """The place where the elements that say how a word is read end, with end tags or without."""
    is_open = False
    for place in range(at, len(block)):
        piece = block[place]
        if piece.name in READING and piece.tag is not None:
            is_open = piece.tag.opens
        elif piece.name in ("ruby", "rb") or (not is_open and not text[piece.start : piece.end].isspace()):
            return place
    return len(block)


def statement(code: str) -> tuple[Kind, str]:
    """The kind of the token of a template's code, and its name: what is true or comes again stands between two."""
    match = _STATEMENT.match(code)
    family, mark, word = (match[1][:2], match[2], match[3]) if match else ("", "", "")
    is_open = family in ("<%", "<?") and re.search(r"(?:\bdo(?:\s*\|[^|]*\|)?|\{|:)\s*-?[%?]>$", code) is not None
    if word in _OTHERWISE or (mark == "^" and not word) or (mark == "}" and is_open):
        return "break", ""
    if mark in ("#", "^") and family == "{{":
        return "open", family + word
    if mark == "/" and family == "{{":
        return "close", family + word
    if word.startswith("end") and family in _BEGINS:
        return "close", family + word.removeprefix("end") * (family == "{%")
    if mark == "}" and family in ("<%", "<?"):
        return "close", family
    if not mark and (is_open or word in _BEGINS.get(family, ())):
        is_text = family == "{%" and word == "trans" and re.search(r"[\"']", code)  # {% trans "a text" %}
        return ("alone", "") if is_text else ("open", family + word * (family == "{%"))
    is_word = code.startswith(("{{", "{!!", "<%=", "<?=")) and not code.startswith(("{{!", "{{--", "{{<", "{{%"))
    return "protected" if is_word else "alone", ""


def _token(text: str, piece: Piece) -> Token:
    """The token of a piece of markup."""
    start, end, raw, tag = piece.start, piece.end, text[piece.start : piece.end], piece.tag
    assert tag is not None
    if tag.is_code:
        kind, name = statement(tag.text)
        return Token(kind, start, end, raw, name)
    if not tag.name:
        return Token("alone", start, end, raw)
    if tag.name in VOID or tag.closes_itself:
        return Token("alone", start, end, raw)
    repeats = tag.name in REPEATS and "id=" not in raw.lower()
    return Token("open" if tag.opens else "close", start, end, raw, tag.name, repeats)


def _changes_apart(tokens: Sequence[Token]) -> list[Token]:
    """The tokens with a blank between what was struck out and what stands in its place: `<del>one</del><ins>two</ins>`
    are two words, unless more letters stand beside them."""
    out: list[Token] = []
    for place, token in enumerate(tokens):
        last = out[-1] if out else None
        if last and last.kind == "close" and token.kind == "open" and not CHANGES.isdisjoint((last.name, token.name)):
            begin = next((at for at in range(place - 1, -1, -1) if tokens[at][0::4] == ("open", last.name)), 0)
            end = next((at for at in range(place, len(tokens)) if tokens[at][0::4] == ("close", token.name)), place)
            before, after = (tokens[at].text if 0 <= at < len(tokens) else "" for at in (begin - 1, end + 1))
            if not (_LETTER.match(before[-1:]) or _LETTER.match(after)):
                out.append(Token("text", token.start, token.start, " "))
        out.append(token)
    return out


def _apart(tokens: Sequence[Token]) -> list[Token]:
    """The tokens with breaks between links, buttons and the like that stand side by side: each is a text by itself.

    They do so where nothing is between them, or if there are no words but in them.
    """
    depth = 0
    only = True
    for token in tokens:
        depth += _step(token)
        only = only and (depth > 0 or token.kind != "text" or not has_letters(token.text))
    out: list[Token] = []
    closed = -1
    """Number of tokens up to the last one that was closed, if no word came since."""
    depth = 0
    for token in tokens:
        step = _step(token)
        is_near = only or closed == len(out) or token.name.startswith(tuple(_BEGINS))
        if step > 0 and depth == 0 and closed >= 0 and is_near:
            if closed < len(out):
                out.insert(closed, Token("break", out[closed].start, out[closed].start, ""))
            out.append(Token("break", token.start, token.start, ""))
        depth = max(0, depth + step)
        out.append(token)
        if step < 0 and depth == 0:
            closed = len(out)
        elif depth == 0 and token.kind in ("text", "protected") and has_letters(token.text):
            closed = -1
    return out


def _step(token: Token) -> int:
    """1 for the begin of a link, a button or an element of the page's own, -1 for its end."""
    if (
        token.name not in ("a", "button", "label")
        and "-" not in token.name
        and not token.name.startswith(tuple(_BEGINS))
    ):
        return 0
    return {"open": 1, "close": -1}.get(token.kind, 0)
