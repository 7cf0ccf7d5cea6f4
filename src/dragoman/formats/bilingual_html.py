"""Bilingual HTML: a paragraph below its paragraph, other texts below their sources in the same element.

A paragraph that is one text gets a copy in the other language. Elsewhere (headings, items, cells, captions, entries of
a table of contents) no second element may stand: there the two texts stand in one, with a line break between.
What has a name or is seen, an id, a picture, a field of a form, comes once.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dragoman.formats.base import Code, Edit, Item, Options, Unit, plain
from dragoman.formats.html_pieces import EMBEDDED, RAW, VOID, Piece, Tag, scan
from dragoman.languages.codes import direction_of, language_of, tag_of

ONCE = (
    EMBEDDED | RAW | {"img", "image", "input", "svg", "math", "template", "area", "embed", "param", "source", "track"}
)
"""Elements that come once."""
NO_MARKUP = frozenset({"title", "option", "optgroup"})
"""Elements that hold text alone: they have the translation in the place of their text."""
_NAMED = re.compile(r"""\s(?:id|xml:id|lang|xml:lang|dir)\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+)""", re.IGNORECASE)
_NAME = re.compile(r"""\sname\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+)""", re.IGNORECASE)


class Surroundings(NamedTuple):
    """A page, and the tags before and after a text in it."""

    text: str
    before: Piece | None
    after: Piece | None
    options: Options
    is_xml: bool

    def beside(self, unit: Unit, items: Sequence[Item]) -> Iterator[Edit]:
        """The edits that put a translation below its source."""
        written = copied(unit.render(items))
        opening, closing = self.before, self.after
        has_directions = "rtl" in map(direction_of, self.options.languages)
        src, tgt = (_attributes(code, self.is_xml, has_directions) for code in self.options.languages)
        is_cut = any(isinstance(item, Code) and item.kind == "alone" and _is_half(item.raw) for item in unit.items)
        is_alone = opening is not None and opening.name in NO_MARKUP
        if is_cut or is_alone or not plain(items).strip():
            if is_alone and opening and opening.tag and opening.tag.opens:
                yield from _in_target(opening.tag, self.options.languages, tgt)
            yield Edit(unit.start, unit.end, unit.render(items))
            return
        if opening is None or closing is None or not _is_paragraph(opening, closing):
            br = "<br/>" if self.is_xml else "<br>"
            yield Edit(unit.start, unit.start, f"<span{src}>")
            yield Edit(unit.end, unit.end, f"</span>{br}<span{tgt}>{written}</span>")
            return
        assert opening.tag is not None
        if opening.tag.get("lang") is None and opening.tag.get("xml:lang") is None:
            yield Edit(opening.end - 1, opening.end - 1, src)
        before, after = self.text[opening.end : unit.start], self.text[unit.end : closing.start]
        tag = f"{_NAMED.sub('', opening.tag.text)[:-1]}{tgt}>"
        yield Edit(closing.end, closing.end, f"\n{tag}{copied(before)}{written}{copied(after)}</p>")


def _in_target(tag: Tag, languages: tuple[str, str], attributes: str) -> Iterator[Edit]:
    """The edits by which an element says that it is in the target's language."""
    named = [one for one in tag.attributes() if one[0] in ("lang", "xml:lang")]
    if not named:
        yield Edit(tag.end - 1, tag.end - 1, attributes)
    for _, value, start, end in named:
        if value and languages[1] and language_of(value) == language_of(languages[0]):
            yield Edit(start, end, tag_of(languages[1]))


def _is_half(raw: str) -> bool:
    """True for a tag whose other half is not in the text."""
    match = re.match(r"<(/?)([A-Za-z][^\s/>]*)[^<>]*>\Z", raw)
    return match is not None and (bool(match[1]) or (match[2].lower() not in VOID and not raw.endswith("/>")))


def _is_paragraph(opening: Piece, closing: Piece) -> bool:
    """True for the two tags of a paragraph."""
    tags = (opening.tag, closing.tag)
    return all(tag is not None and tag.name == "p" for tag in tags) and [tag.opens for tag in tags if tag] == [1, 0]


def _attributes(language: str, is_xml: bool, has_direction: bool) -> str:
    """The attributes for the language and the direction of an element; no attributes where the language is unknown."""
    if not language:
        return ""
    tag = tag_of(language)
    attributes = f' lang="{tag}"' + (f' xml:lang="{tag}"' if is_xml else "")
    return f'{attributes} dir="{direction_of(language)}"' if has_direction else attributes


def copied(markup: str) -> str:
    """A piece of a page as it comes a second time: without what comes once."""
    out: list[str] = []
    inside: list[str] = []
    for one in scan(markup):
        if not isinstance(one, Tag):
            out += [] if inside else [markup[slice(*one)]]
            continue
        is_once = one.name in ONCE
        if is_once and one.opens and one.name not in VOID and not one.text.endswith("/>"):
            inside.append(one.name)
        elif is_once and not one.opens and one.name in inside:
            del inside[inside.index(one.name) :]
        elif not (inside or is_once or markup.startswith("<!--", one.start)):
            out.append(_NAME.sub("", _NAMED.sub("", one.text)) if one.name == "a" else _NAMED.sub("", one.text))
    return "".join(out)
