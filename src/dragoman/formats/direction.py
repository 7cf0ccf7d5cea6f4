"""The direction in which a file is written, changed to the target language's when the file has been translated.

Nothing changes where both languages are written in the same one. HTML's `dir` is changed with its `lang` (`html.py`).
"""

import re

from dragoman.formats.base import Options
from dragoman.languages.codes import direction_of


def turned(options: Options) -> str:
    """The direction in which the target language is written (`rtl`, `ltr`), where the source's is another; else ""."""
    src, tgt = map(direction_of, options.languages)
    return tgt if options.languages[1] and src != tgt else ""


def _with_attribute(text: str, tag: str, name: str, value: str) -> str:
    """XML with an attribute in every element that `tag`, a pattern, finds the beginning of; as it is for no value."""

    def written(found: re.Match[str]) -> str:
        is_there = re.subn(rf'(\s{name}=)("|\')[^"\']*\2', rf"\1\g<2>{value}\2", found.group())
        return is_there[0] if is_there[1] else f'{found[1]} {name}="{value}"{found[2]}'

    return re.sub(rf"({tag})(?=[\s/>])([^<>]*>)", written, text) if value else text


def of_sheet(text: str, options: Options) -> str:
    """A sheet of Excel whose first column stands where the target language begins to write."""
    return _with_attribute(text, r"<(?:\w+:)?sheetView", "rightToLeft", _FLAGS[turned(options)])


def of_spine(text: str, options: Options) -> str:
    """The package file of a book, with the side on which its next page stands."""
    return _with_attribute(text, r"<(?:\w+:)?spine", "page-progression-direction", turned(options))


def of_office(text: str, options: Options) -> str:
    """A part of a Word file or of a presentation; in the second one left and right change places."""
    direction = turned(options)
    if not direction:
        return text
    text = _with_attribute(text, r"<a:(?:pPr|lvl\dpPr|defPPr|tblPr)", "rtl", _FLAGS[direction])
    text = re.sub(r'(<a:(?:p|lvl\dp|defP)Pr\s[^<>]*\balgn=")([lr])"', lambda tag: f'{tag[1]}{_OTHER[tag[2]]}"', text)
    text = re.sub(
        r"<(\w+:)(bidi|rtl|bidiVisual)(?:\s[^<>]*)?/>",
        lambda tag: f"<{tag[1]}{tag[2]}/>" if direction == "rtl" else f'<{tag[1]}{tag[2]} {tag[1]}val="0"/>',
        text,
    )
    if direction == "rtl":
        for pattern, written in _WITHOUT_DIRECTION:
            text = pattern.sub(written, text)
    return text


_FLAGS = {"rtl": "1", "ltr": "0", "": ""}
_OTHER = {"l": "r", "r": "l", "start": "right", "left": "right", "end": "left", "right": "left"}
"""The other side. LibreOffice reads `start` as left, whatever the direction is."""
_BEHIND_BIDI = (
    "adjustRightInd|snapToGrid|spacing|ind|contextualSpacing|mirrorIndents|suppressOverlap|jc|textDirection|"
    "textAlignment|textboxTightWrap|outlineLvl|divId|cnfStyle|rPr|sectPr|pPrChange"
)
_WITHOUT_DIRECTION = (
    (re.compile(r"(<(\w+:)(p|r)PrDefault)\s*/>"), r"\1><\2\3Pr></\2\3Pr></\2\3PrDefault>"),
    (re.compile(r"(<\w+:[pr]PrDefault>\s*<(\w+:)([pr])Pr)\s*/>"), r"\1></\2\3Pr>"),
    (re.compile(rf"(<\w+:pPrDefault>\s*<(\w+:)pPr>(?:(?!<\2(?:bidi|{_BEHIND_BIDI})\b|</?\2pPr>).)*+)"
                r"(?!<\2bidi/)", re.S), r"\1<\2bidi/>"),
    (re.compile(r"(<\w+:rPrDefault>\s*<(\w+:)rPr>(?:(?!<\2(?:rtl|cs|em|lang|eastAsianLayout|oMath)\b|</?\2rPr>).)*+)"
                r"(?!<\2rtl/)", re.S), r"\1<\2rtl/>"),
    (re.compile(r"(<(\w+:)tblPr>\s*+(?:<\2(?:tblStyle|tblpPr|tblOverlap)\b[^<>]*>\s*)*+)(?!<\2bidiVisual)"),
     r"\1<\2bidiVisual/>"),
)  # fmt: skip
"""Marks that Word's defaults and tables lack to be written from the right, each at the place where Word expects it."""


def of_opendocument(text: str, options: Options) -> str:
    """A part of an OpenDocument file; left and right change places."""
    if not (direction := turned(options)):
        return text
    mode = f"{direction[::2]}-tb"
    text = re.sub(r'(\sstyle:writing-mode=")(?:(?:lr|rl)-tb|page)"', rf'\g<1>{mode}"', text)
    text = _with_attribute(text, _LAYOUTS, "style:writing-mode", mode)
    return re.sub(r'(\sfo:text-align=")(start|left|end|right)"', lambda tag: f'{tag[1]}{_OTHER[tag[2]]}"', text)


_LAYOUTS = (
    r'<style:page-layout-properties|<style:default-style\b(?=[^<>]*family="paragraph")[^<>]*+>\s*'
    r"<style:paragraph-properties"
)
"""Elements that say how a page and its paragraphs are written, if nothing else does."""
