"""The declared language and direction of a page, changed to the target's after the translation. Elements in a third
language keep theirs, and so do elements with code.
"""

import re
from collections.abc import Iterator, Sequence

from dragoman.formats import direction
from dragoman.formats.base import Edit, Options, spliced
from dragoman.formats.html import page_of
from dragoman.formats.html_pieces import VOID, Piece, text_of
from dragoman.formats.language import tag_like
from dragoman.languages.codes import direction_of, is_known, language_of

_SAYING_LANGUAGE = ("og:locale", "content-language", "language", "dc.language", "dcterms.language")
_LANGUAGE = re.compile(r"\b(?:lang\s*=|locale|language)", re.IGNORECASE)
_DIRECTION = re.compile(r"\b(?:lang|dir|align|style)\s*=", re.IGNORECASE)
_OF_CODE = frozenset({"code", "kbd", "listing", "pre", "samp", "tt"})


def with_language(text: str, options: Options) -> str:
    """The page with its language changed to the target's, where it says one, and with its direction; so are elements
    in the source's."""
    if not options.languages[1]:
        return text
    page = page_of(text)
    edits = [edit for piece in page for edit in _language_edits(piece, options.languages)]
    if tgt := direction.turned(options):
        edits += _direction_edits(text, page, tgt, options)
    return spliced(text, edits)


def in_markdown(text: str, options: Options) -> str:
    """Markdown whose tags (`<div dir="rtl">`) say the target's language and direction; code stays."""
    if not options.languages[1]:
        return text
    return _OF_MARKDOWN.sub(lambda match: with_language(match[0], options) if match["tag"] else match[0], text)


_OF_MARKDOWN = re.compile(
    r"^ {0,3}(?P<fence>`{3,}|~{3,}).*?(?:^ {0,3}(?P=fence)|\Z)|(?P<code>`+)[^`\n]+(?P=code)"
    r"|(?P<tag><[A-Za-z][\w-]*\s(?:[^<>]*\s)?(?:lang|dir|align|style)\s*=[^<>]*>)",
    re.DOTALL | re.MULTILINE,
)


def _language_edits(piece: Piece, languages: tuple[str, str]) -> Iterator[Edit]:
    if piece.tag is None or not piece.tag.opens or not _LANGUAGE.search(piece.tag.text):
        return
    src, tgt = languages
    attributes = piece.tag.attributes()
    values = {name: value for name, value, _, _ in attributes}
    is_said = values.get("property", values.get("http-equiv", values.get("name", ""))).lower() in _SAYING_LANGUAGE
    for name, value, start, end in attributes:
        is_language = name in ("lang", "xml:lang") or (piece.name == "meta" and name == "content" and is_said)
        is_source = piece.is_translated and language_of(value) == language_of(src)
        if is_language and value and (piece.name == "html" or is_source):
            yield Edit(start, end, tag_like(tgt, value if "_" in value else ""))


def _direction_edits(text: str, page: Sequence[Piece], tgt: str, options: Options) -> Iterator[Edit]:
    """The edits by which a page is written in another direction, and its left and right change places."""
    root = next((name for name in ("html", "body") if any(piece.name == name for piece in page)), "")
    kept = 0  # place up to which an element keeps its direction
    for number, piece in enumerate(page):
        tag = piece.tag
        if tag is not None and number and page[number - 1].name == "style" and not tag.name:
            yield Edit(tag.start, tag.end, direction.of_css(text[tag.start : tag.end], options))
        is_root = piece.name == root and tgt == "rtl"
        if tag is None or not tag.name or not tag.opens or tag.start < kept:
            continue
        if not (is_root or piece.name in _OF_CODE or _DIRECTION.search(tag.text)):
            continue
        attributes = {name: (value, start, end) for name, value, start, end in tag.attributes()}
        language = next((attributes[name][0] for name in ("lang", "xml:lang") if name in attributes), "")
        is_other = piece.name in _OF_CODE or (
            is_known(language) and language_of(language) not in map(language_of, options.languages)
        )
        if is_other and piece.name != root and (end := _end_of_kept(text, page, number, tgt)):
            kept = end
            own = direction_of(language) if language else direction.opposite(tgt)
            if "dir" not in attributes and own != tgt:
                yield _added(piece, f' dir="{own}"')
            continue
        if is_root and "dir" not in attributes:
            yield _added(piece, f' dir="{tgt}"')
        yield from _turned(piece, attributes, tgt, options)


def _turned(piece: Piece, attributes: dict[str, tuple[str, int, int]], tgt: str, options: Options) -> Iterator[Edit]:
    """The edits that turn a tag to the direction `tgt`: its `dir`, `align` and `style`."""
    for name, (value, start, end) in attributes.items() if piece.is_translated else ():
        if name == "dir" and value.lower() == direction.opposite(tgt):
            yield Edit(start, end, tgt)
        elif name == "align" and value.lower() in direction.SIDES:
            yield Edit(start, end, direction.SIDES[value.lower()])
        elif name == "style" and start < end and "&" not in value:
            yield Edit(start, end, direction.of_css(value, options))


def _added(piece: Piece, attribute: str) -> Edit:
    assert piece.tag is not None
    place = piece.end - (2 if piece.tag.closes_itself else 1)
    return Edit(place, place, attribute)


def _end_of_kept(text: str, page: Sequence[Piece], number: int, tgt: str) -> int:
    """The place where an element ends none of whose letters are in the target's direction; 0 for another one."""
    name, depth, content = page[number].name, 0, ""
    for piece in page[number:]:
        if piece.tag is None:
            content += text_of(text[piece.start : piece.end])
        elif piece.name == name and name not in VOID:
            depth += 1 if piece.tag.opens else -1
        if depth <= 0:
            return piece.end if direction.of_letters(content) not in (tgt, "") else 0
    return 0
