"""Bilingual Word documents: a paragraph below its paragraph, with the same style.

A heading and an item of a list have one number, and one entry in the table of contents: their translation stands in the
same paragraph, after a line break. What has a name or comes once (bookmarks, comments, notes, pictures) is not copied.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Literal

from dragoman.formats.base import Edit, Item, Options, Unit, spliced
from dragoman.formats.language import of_office
from dragoman.formats.office import prefix_of
from dragoman.formats.xml import Event, after, attribute, events, local
from dragoman.languages.codes import tag_of

ONCE = frozenset({
    "bookmarkStart", "bookmarkEnd", "commentRangeStart", "commentRangeEnd", "commentReference", "annotationRef",
    "footnoteReference", "endnoteReference", "footnoteRef", "endnoteRef", "drawing", "pict", "object",
    "AlternateContent", "permStart", "permEnd", "moveFromRangeStart", "moveFromRangeEnd", "moveToRangeStart",
    "moveToRangeEnd", "del", "moveFrom", "proofErr", "lastRenderedPageBreak", "pageBreakBefore", "sectPr",
    "dataBinding", "id",
})  # fmt: skip
_ID = re.compile(r"\s\w+:(?:paraId|textId|rsid\w*)=\"[^\"]*\"")
_NAMESPACE = re.compile(
    r"xmlns:(\w+)=[\"']http://(?:schemas\.openxmlformats\.org|purl\.oclc\.org/ooxml)/wordprocessingml/\S*main[\"']"
)
"""The prefix of Word's attributes, which have one where its elements have none."""

Place = Literal["below", "within", "instead"]
"""Where the translation of a paragraph goes: below it, in it, in the place of its text."""


def places_by_style(styles: str) -> dict[str, Place]:
    """Where translations go by the style of their paragraph, for the styles with a place of their own.

    `styles`: the part that defines them. Styles that are numbered or are headings have it within; those of tables of
    contents, which Word writes anew, instead.
    """
    places: dict[str, Place] = {}
    basis: dict[str, str] = {}
    for _, style in re.findall(
        r"<((?:\w+:)?)style(?=\s)([^<>]*+(?<!/)>(?:(?!<\1style\s).)*?)</\1style>", styles, re.DOTALL
    ):
        name = "".join(re.findall(r'\s\w+:styleId="([^"]*)"', style)[:1])
        basis[name] = "".join(re.findall(r'[<:]basedOn\s+\w+:val="([^"]*)"', style)[:1])
        if re.search(r'[<:]name\s+\w+:val="(?:toc \d|table of figures|index \d)', style, re.IGNORECASE):
            places[name] = "instead"
        elif _is_numbered(style):
            places[name] = "within"
    usual: set[str] = set()  # styles that have no place of their own, nor has what they are based on
    for style in basis:
        path: dict[str, None] = {}
        name = style
        while name and name not in places and name not in usual and name not in path:
            path[name] = None
            name = basis.get(name, "")
        if name in places:
            places.update(dict.fromkeys(path, places[name]))
        else:
            usual.update(path)
    return places


def _is_numbered(properties: str) -> bool:
    """True for properties with a number, or a level of the outline."""
    number = re.search(r'[<:]numId\s+\w+:val="(\d+)"', properties)
    level = re.search(r'[<:]outlineLvl\s+\w+:val="(\d)"', properties)
    return (number is not None and number[1] != "0") or (level is not None and level[1] != "9")


def beside(
    text: str,
    paragraph: Sequence[Event],
    styles: Mapping[str, Place],
    options: Options,
    unit: Unit,
    items: Sequence[Item],
) -> Iterator[Edit]:
    """The edits that put the translation of a paragraph below its source."""
    opening, closing, prefix = paragraph[0], paragraph[-1], prefix_of(paragraph)
    has_properties = len(paragraph) > 2 and local(paragraph[1].name) == "pPr"
    begin = paragraph[after(paragraph, 1) - 1].end if has_properties else opening.end
    properties = text[opening.end : begin]
    style = re.search(r'[<:]pStyle\s+\w+:val="([^"]*)"', properties)
    place = styles.get(style[1], "below") if style else "below"
    raw = f"{text[begin : unit.start]}{unit.render(items)}{text[unit.end : closing.start]}"
    in_language = partial(_in_language, prefix, prefix or _prefix_of_attributes(text), options)
    if place == "instead" or raw.count(':fldCharType="begin"') != raw.count(':fldCharType="end"'):
        yield Edit(unit.start, unit.end, in_language(unit.render(items)))
        return
    if _is_numbered(properties) or place == "within":
        yield Edit(closing.start, closing.start, f"<{prefix}r><{prefix}br/></{prefix}r>{in_language(_copied(raw))}")
        return
    for section in re.finditer(rf"<{prefix}sectPr\b(?:[^<>]*/>|.*?</{prefix}sectPr>)", properties, re.DOTALL):
        yield Edit(opening.end + section.start(), opening.end + section.end(), "")  # it ends with the translation
    begin_tag, own = _ID.sub("", text[opening.start : opening.end]), _copied(properties, ONCE - {"sectPr"})
    yield Edit(closing.end, closing.end, in_language(f"{begin_tag}{own}{_copied(raw)}</{prefix}p>"))


def _copied(markup: str, once: Collection[str] = ONCE) -> str:
    """A piece of a part as it comes a second time."""
    shift = len("<_>")
    page = list(events(f"<_>{markup}</_>", Options()))
    edits = []
    at = 1
    while at < len(page):
        event = page[at]
        is_page = local(event.name) == "br" and attribute(event, "type") in ("page", "column")
        end = after(page, at) if event.kind == "start" and (local(event.name) in once or is_page) else at + 1
        if end > at + 1:
            edits.append(Edit(event.start - shift, page[end - 1].end - shift, f"<{event.name}/>" if is_page else ""))
        at = end
    return _ID.sub("", spliced(markup, edits))


@lru_cache(maxsize=1)
def _prefix_of_attributes(text: str) -> str:
    declaration = _NAMESPACE.search(text)
    return f"{declaration[1]}:" if declaration else ""


def _in_language(prefix: str, attributes: str, options: Options, runs: str) -> str:
    """Runs marked as text in the target language. `prefix`: the prefix of elements; `attributes`: the prefix of
    attributes."""
    if not options.languages[1] or not attributes:
        return runs
    runs = re.sub(
        rf"(<{prefix}r(?:\s[^<>]*)?>)(?!<{prefix}rPr\b|\s*<{prefix}fldChar)", rf"\1<{prefix}rPr></{prefix}rPr>", runs
    )
    runs = re.sub(rf"<{prefix}rPr\s*/>", f"<{prefix}rPr></{prefix}rPr>", runs)
    language = f'<{prefix}lang {attributes}val="{tag_of(options.languages[1], "de-DE")}"/>'
    return of_office(_without_language(prefix).sub(rf"\1\2{language}", runs), options)


@lru_cache
def _without_language(prefix: str) -> re.Pattern[str]:
    """The properties of a run that name no language, up to the place of the language among them."""
    end = f"</{prefix}rPr>"
    none = rf"(?=(?:(?!{end}|<{prefix}lang\b).)*+{end})"
    behind = rf"<{prefix}(?:eastAsianLayout|specVanish|oMath|rPrChange)\b"
    return re.compile(rf"(<{prefix}rPr>){none}((?:(?!{end}|{behind}).)*+)", re.DOTALL)
