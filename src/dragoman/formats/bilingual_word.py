"""Bilingual Word documents: a paragraph below its paragraph, with the same style.

A heading and an item of a list have one number, and one entry in the table of contents: their translation stands in the
same paragraph, after a line break. What has a name or comes once (bookmarks, comments, notes, pictures) is not copied.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

from dragoman.formats.base import Edit, Item, Options, Unit, spliced
from dragoman.formats.language import of_office
from dragoman.formats.xml import Event, after, events, local
from dragoman.languages.codes import tag_of

ONCE = frozenset({
    "bookmarkStart", "bookmarkEnd", "commentRangeStart", "commentRangeEnd", "commentReference", "annotationRef",
    "footnoteReference", "endnoteReference", "footnoteRef", "endnoteRef", "drawing", "pict", "object",
    "AlternateContent", "permStart", "permEnd", "moveFromRangeStart", "moveFromRangeEnd", "moveToRangeStart",
    "moveToRangeEnd", "del", "moveFrom", "proofErr", "lastRenderedPageBreak", "pageBreakBefore", "sectPr",
    "dataBinding", "id",
})  # fmt: skip
_ID = re.compile(r"\s\w+:(?:paraId|textId|rsid\w*)=\"[^\"]*\"")
_INSIDE = r"(?:(?!</w:rPr>|<w:lang\b).)*"
_LANGUAGE = re.compile(
    rf"(<w:rPr>{_INSIDE}?)(?=(?:<w:(?:eastAsianLayout|specVanish|oMath|rPrChange)\b{_INSIDE})?</w:rPr>)", re.DOTALL
)
"""The properties of a run that name no language, up to the place of the language among them."""

Place = Literal["below", "within", "instead"]
"""Where the translation of a paragraph goes: below it, in it, in the place of its text."""


def places_by_style(styles: str) -> dict[str, Place]:
    """Where translations go by the style of their paragraph, for the styles with a place of their own.

    `styles`: the part that defines them. Styles that are numbered or are headings have it within; those of tables of
    contents, which Word writes anew, instead.
    """
    places: dict[str, Place] = {}
    basis: dict[str, str] = {}
    for style in re.findall(r"<w:style\b.*?</w:style>", styles, re.DOTALL):
        name = "".join(re.findall(r'\sw:styleId="([^"]*)"', style)[:1])
        basis[name] = "".join(re.findall(r'<w:basedOn\s+w:val="([^"]*)"', style)[:1])
        if re.search(r'<w:name\s+w:val="(?:toc \d|table of figures|index \d)', style, re.IGNORECASE):
            places[name] = "instead"
        elif _is_numbered(style):
            places[name] = "within"
    for name in basis:
        path = [name]
        while path[-1] not in places and basis.get(path[-1]) and basis[path[-1]] not in path:
            path.append(basis[path[-1]])
        if path[-1] in places:
            places.setdefault(name, places[path[-1]])
    return places


def _is_numbered(properties: str) -> bool:
    """True for properties with a number, or a level of the outline."""
    number = re.search(r'<w:numId\s+w:val="(\d+)"', properties)
    level = re.search(r'<w:outlineLvl\s+w:val="(\d)"', properties)
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
    opening, closing = paragraph[0], paragraph[-1]
    has_properties = len(paragraph) > 2 and local(paragraph[1].name) == "pPr"
    begin = paragraph[after(paragraph, 1) - 1].end if has_properties else opening.end
    properties = text[opening.end : begin]
    style = re.search(r'<w:pStyle\s+w:val="([^"]*)"', properties)
    place = styles.get(style[1], "below") if style else "below"
    raw = f"{text[begin : unit.start]}{unit.render(items)}{text[unit.end : closing.start]}"
    if place == "instead" or raw.count('w:fldCharType="begin"') != raw.count('w:fldCharType="end"'):
        yield Edit(unit.start, unit.end, _in_language(unit.render(items), options))
        return
    copied = _in_language(_copied(raw), options)
    if _is_numbered(properties) or place == "within":
        yield Edit(closing.start, closing.start, f"<w:r><w:br/></w:r>{copied}")
        return
    for section in re.finditer(r"<w:sectPr\b.*?</w:sectPr>|<w:sectPr\b[^<>]*/>", properties, re.DOTALL):
        yield Edit(opening.end + section.start(), opening.end + section.end(), "")  # it ends with the translation
    own = _copied(properties, ONCE - {"sectPr"})
    yield Edit(closing.end, closing.end, f"{_ID.sub('', text[opening.start : opening.end])}{own}{copied}</w:p>")


def _copied(markup: str, once: Collection[str] = ONCE) -> str:
    """A piece of a part as it comes a second time."""
    shift = len("<_>")
    page = list(events(f"<_>{markup}</_>", Options()))
    edits = []
    at = 1
    while at < len(page):
        event = page[at]
        is_page = local(event.name) == "br" and event.attributes.get("w:type") in ("page", "column")
        end = after(page, at) if event.kind == "start" and (local(event.name) in once or is_page) else at + 1
        if end > at + 1:
            edits.append(Edit(event.start - shift, page[end - 1].end - shift, "<w:br/>" if is_page else ""))
        at = end
    return _ID.sub("", spliced(markup, edits))


def _in_language(runs: str, options: Options) -> str:
    """Runs that say that they are in the target language."""
    if not options.languages[1]:
        return runs
    language = f'<w:lang w:val="{tag_of(options.languages[1], "de-DE")}"/>'
    runs = re.sub(r"(<w:r(?:\s[^<>]*)?>)(?!<w:rPr\b|\s*<w:fldChar)", r"\1<w:rPr></w:rPr>", runs)
    runs = re.sub(r"<w:rPr\s*/>", "<w:rPr></w:rPr>", runs)
    return of_office(_LANGUAGE.sub(rf"\1{language}", runs), options)
