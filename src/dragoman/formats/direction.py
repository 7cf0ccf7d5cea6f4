"""The direction in which a file is written, changed to the target language's when the file has been translated.

Nothing changes where both languages are written in the same one. What stays in a third language keeps its own: its
letters show it. HTML's `dir` is changed with its `lang` (`html.py`).
"""

import re
from collections.abc import Callable

import regex

from dragoman.formats.base import Options
from dragoman.languages.codes import direction_of


def turned(options: Options) -> str:
    """The direction in which the target language is written (`rtl`, `ltr`), where the source's is another; else ""."""
    src, tgt = map(direction_of, options.languages)
    return tgt if options.languages[1] and src != tgt else ""


def opposite(direction: str) -> str:
    """The other direction."""
    return "ltr" if direction == "rtl" else "rtl"


def of_letters(text: str) -> str:
    """The direction of the letters of a text; "" for letters of both directions, and for a text without letters.

    >>> of_letters("Rot 7"), of_letters("أحمر 7"), of_letters("أحمر (Rot)"), of_letters("7")
    ('ltr', 'rtl', '', '')
    """
    kinds = {kind for kind, letter in _LETTERS.items() if letter.search(text)}
    return kinds.pop() if len(kinds) == 1 else ""


_LETTERS = {
    "rtl": regex.compile(r"[\p{Bidi_Class=R}\p{Bidi_Class=AL}]"),
    "ltr": regex.compile(r"\p{Bidi_Class=L}"),
}


def _with_attribute(text: str, tag: str, name: str, value: str) -> str:
    """XML with an attribute in every element that `tag`, a pattern, finds the beginning of; as it is for no value."""

    def written(match: re.Match[str]) -> str:
        is_there = re.subn(rf'(\s{name}=)("|\')[^"\']*\2', rf"\1\g<2>{value}\2", match.group())
        return is_there[0] if is_there[1] else f'{match[1]} {name}="{value}"{match[2]}'

    return re.sub(rf"({tag})(?=[\s/>])([^<>]*>)", written, text) if value else text


def of_sheet(text: str, options: Options) -> str:
    """A sheet of Excel whose first column stands where the target language begins to write."""
    flag = _FLAGS[turned(options)]
    if flag == "1" and "sheetView" not in text:
        text = _WITHOUT_VIEW.sub(r"\1<\2sheetViews><\2sheetView workbookViewId='0'/></\2sheetViews>", text, count=1)
    return _with_attribute(text, r"<(?:\w+:)?sheetView", "rightToLeft", flag)


_WITHOUT_VIEW = re.compile(r"(<((?:\w+:)?)worksheet\b[^<>]*>\s*(?:<\2sheetPr\b(?:[^<>]*/>|.*?</\2sheetPr>)\s*)?"
                           r"(?:<\2dimension\b[^<>]*/>\s*)?)", re.S)  # fmt: skip


def of_cell_styles(text: str, options: Options) -> str:
    """The styles of a workbook: in cells left and right change places, and so does the order of reading."""
    if not (direction := turned(options)):
        return text
    order = "2" if direction == "rtl" else "1"
    text = re.sub(r'(<(?:\w+:)?alignment\s[^<>]*\breadingOrder=")[12]"', rf'\g<1>{order}"', text)
    return _mirrored(text, r'<(?:\w+:)?alignment\s[^<>]*\bhorizontal="')


def of_spine(text: str, options: Options) -> str:
    """The package file of a book, with the side on which its next page stands; EPUB 2 has no word for that."""
    if re.search(r"<(?:\w+:)?package\b[^<>]*\sversion=[\"']2", text) and "page-progression-direction" not in text:
        return text
    if direction := turned(options):
        text = re.sub(r"(<(?:\w+:)?package\b[^<>]*\sdir=[\"'])(?:ltr|rtl)\b", rf"\g<1>{direction}", text)
    return _with_attribute(text, r"<(?:\w+:)?spine", "page-progression-direction", direction)


def of_css(text: str, options: Options) -> str:
    """Declarations of CSS: `direction`, and the sides to which text and boxes stand; left and right change places."""
    if not (direction := turned(options)):
        return text
    text = _CSS_DIRECTION.sub(rf"\g<1>{direction}", text)
    return _CSS_SIDE.sub(lambda match: match[1] + SIDES[match[2].lower()], text)


_CSS_DIRECTION = re.compile(r"((?<![\w-])direction\s*:\s*)(?:ltr|rtl)\b", re.IGNORECASE)
_CSS_SIDE = re.compile(
    r"((?<![\w-])(?:(?:text-align(?:-last)?|float|clear)\s*:\s*|(?:margin|padding|border)-(?=\w+(?:-\w+)?\s*:)))"
    r"(left|right)\b",
    re.IGNORECASE,
)
SIDES = {"left": "right", "right": "left"}


def of_xml(text: str, options: Options) -> str:
    """XML (DITA, DocBook) with the direction changed that its elements name."""
    direction = turned(options)
    return re.sub(rf"(\sdir=[\"']){opposite(direction)}(?=[\"'])", rf"\g<1>{direction}", text) if direction else text


def of_ttml(text: str, options: Options) -> str:
    """Subtitles of TTML, whose body says that they are written from the right."""
    direction, styling = turned(options), re.search(r"\sxmlns:(\w+)=[\"'][^\"']*#styl(?:ing|e)[\"']", text)
    if not direction or styling is None:
        return text
    name = f"{styling[1]}:direction"
    text = re.sub(rf"(\s{name}=[\"'])(?:ltr|rtl)\b", rf"\g<1>{direction}", text)
    return _with_attribute(text, r"<(?:\w+:)?body", name, direction) if direction == "rtl" else text


def of_front_matter(text: str, options: Options) -> str:
    """Markdown whose front matter says `dir`, as pandoc has it."""
    return _FRONT_MATTER.sub(rf"\g<1>{direction}", text) if (direction := turned(options)) else text


_FRONT_MATTER = re.compile(
    r"(\A(?:---|\+\+\+)\r?\n(?:(?!---|\+\+\+)[^\n]*\n)*?(?:dir|direction)[ \t]*[:=][ \t]*[\"']?)(?:ltr|rtl)\b"
)


def of_office(text: str, options: Options) -> str:
    """A part of a Word file or of a presentation. In slides left and right change; Word's `left` is where it begins."""
    direction = turned(options)
    if direction == "rtl":
        text = _slides_from_right(_with_direction(text, "rtl"))
        text = _RUN.sub(_run_from_right, _NO_PROPERTIES.sub(r"\1<\2pPr></\2pPr>", text))
        text = re.sub(rf"<({_W})(bidi|bidiVisual)\s[^<>]*/>", r"<\1\2/>", text)
        for pattern, written in _WITHOUT_DIRECTION:
            text = pattern.sub(written, text)
    elif direction:
        text = _but_for_rtl(text, lambda text: _with_direction(text, "ltr"), _PARAGRAPH_OF_SLIDE)
        text = _but_for_rtl(text, lambda text: _MARK.sub("", text), _PARAGRAPH, _RUN)
    return text


def _but_for_rtl(text: str, change: Callable[[str], str], *elements: re.Pattern[str]) -> str:
    """Markup with a change, but for elements all of whose letters are written from the right: they are no translation.

    `elements`: find elements, and elements in those.
    """
    if not elements:
        return change(text)
    out, done = [], 0
    for element in elements[0].finditer(text):
        is_kept = of_letters(_texts(element[0])) == "rtl"
        out.append(_but_for_rtl(text[done : element.start()], change, *elements[1:]))
        out.append(element[0] if is_kept else _but_for_rtl(element[0], change, *elements[1:]))
        done = element.end()
    return "".join([*out, _but_for_rtl(text[done:], change, *elements[1:])])


def _texts(markup: str) -> str:
    return "".join(re.findall(r"<\w+:(?:t|delText)(?:\s[^<>]*)?>([^<]*)", markup))


def _with_direction(text: str, direction: str) -> str:
    """Paragraphs and tables of slides, and the styles of paragraphs, in a direction; left and right change places."""
    text = _with_attribute(text, r"<(?:a:(?:pPr|lvl\dpPr|defPPr|tblPr)|p:presentation)", "rtl", _FLAGS[direction])
    text = re.sub(r'(<a:bodyPr\s[^<>]*\brtlCol=")[01]"', rf'\g<1>{_FLAGS[direction]}"', text)
    return re.sub(r'(<a:(?:p|lvl\dp|defP)Pr\s[^<>]*\balgn=")([lr])"', lambda tag: f'{tag[1]}{_OTHER[tag[2]]}"', text)


def _slides_from_right(text: str) -> str:
    """Slides whose paragraphs all say their direction; where styles name no side it was the left one."""
    text = _PARAGRAPH_OF_SLIDE.sub(
        lambda match: (
            re.sub(r"(?<=<a:p>)(?!\s*<a:pPr)", '<a:pPr rtl="1"/>', match[0]) if _texts(match[0]) else match[0]
        ),
        text,
    )
    for name, place, made in _STYLES:
        if f"<p:{name}" not in text:
            text = place.sub(made, text, count=1)
        styles = re.compile(rf"<p:{name}>(?:[^<]++|<(?!/?p:{name}>))*+")
        text = styles.sub(lambda match: re.sub(_UNALIGNED_LEVEL, r'\1 algn="r"', match[0]), text)
    return text


_LEVELS = "".join(f'<a:lvl{level}pPr algn="r" rtl="1"/>' for level in range(1, 10))
_MASTER = "".join(f"<p:{name}Style>{_LEVELS}</p:{name}Style>" for name in ("title", "body", "other"))
_LAST = r"(?=(?:<p:modifyVerifier\b[^<>]*/>\s*)?(?:<p:extLst>(?:[^<]++|<(?!/?p:extLst>))*+</p:extLst>\s*)?</p:{}>)"
_STYLES = (
    ("txStyles", re.compile(_LAST.format("sldMaster")), f"<p:txStyles>{_MASTER}</p:txStyles>"),
    (
        "defaultTextStyle",
        re.compile(_LAST.format("presentation")),
        f"<p:defaultTextStyle>{_LEVELS}</p:defaultTextStyle>",
    ),
)
"""Styles of masters and of presentations, from which paragraphs have their side: the names, and their place and
content in a file (LibreOffice's) that has none."""
_UNALIGNED_LEVEL = r"(<a:lvl\dpPr)(?=[\s/>])(?![^<>]*\salgn=)"


def _run_from_right(run: re.Match[str]) -> str:
    """A run of Word with its mark, unless all of its letters are written from the left."""
    begin, prefix, _, content = run.groups()
    text = _texts(content)
    if not text or of_letters(text) == "ltr":
        return run[0]
    if not content.startswith(f"<{prefix}rPr>"):
        content = f"<{prefix}rPr></{prefix}rPr>{content}"
    return begin + _PLACE_OF_RTL.sub(r"\1<\2rtl/>", _MARKED_LTR.sub("", content), count=1)


_FLAGS = {"rtl": "1", "ltr": "0", "": ""}
_OTHER = {"l": "r", "r": "l", "start": "right", "left": "right", "end": "left", "right": "left"}
"""The other side. LibreOffice reads `start` as left, whatever the direction is."""
_W = r"(?!a:|m:|p:)\w+:"
"""The prefix of Word's elements. Drawings, formulas and slides have paragraphs and runs of their own."""
_PARAGRAPH_OF_SLIDE = re.compile(r"<a:p>(?:[^<]++|<(?!/?a:p>))*+</a:p>")
_PARAGRAPH = re.compile(rf"<({_W})p(?:\s[^<>]*)?(?<!/)>(?:[^<]++|<(?!/?\1p[\s>]))*+")
"""A paragraph of Word, up to one inside of it."""
_RUN = re.compile(rf"(<({_W})r(?:\s[^<>]*)?(?<!/)>\s*)(<\2rPr\s*/>)?((?:[^<]++|<(?!/?\2r[\s>]))*+)")
_MARK = re.compile(rf"<{_W}(?:bidi|bidiVisual|rtl|rtlGutter|cs)(?:\s[^<>]*)?/>")
_MARKED_LTR = re.compile(rf"<{_W}rtl\s[^<>]*/>")
_NO_PROPERTIES = re.compile(rf"(<({_W})p(?:\s[^<>]*)?(?<!/)>)(?:\s*<\2pPr\s*/>|(?!\s*<\2pPr>))")
_BEHIND_BIDI = (
    "adjustRightInd|snapToGrid|spacing|ind|contextualSpacing|mirrorIndents|suppressOverlap|jc|textDirection|"
    "textAlignment|textboxTightWrap|outlineLvl|divId|cnfStyle|rPr|sectPr|pPrChange"
)
_BEHIND_RTL = "cs|em|lang|eastAsianLayout|specVanish|oMath|rPrChange"


def _missing(mark: str, begin: str, end: str, behind: str) -> re.Pattern[str]:
    """The part of the properties that stands before a missing mark. `behind`: the part behind that mark."""
    return re.compile(rf"({begin}(?:[^<]++|<(?!\2(?:{mark}|{behind})\b|/\2{end}>))*+)(?!<\2{mark}\b)")


_PLACE_OF_RTL = _missing("rtl", rf"<({_W})rPr>", "rPr", _BEHIND_RTL)
_WITHOUT_DIRECTION = (
    (re.compile(rf"(<({_W})pPrDefault)\s*/>"), r"\1><\2pPr></\2pPr></\2pPrDefault>"),
    (re.compile(rf"(<({_W})pPrDefault>\s*<\2pPr)\s*/>"), r"\1></\2pPr>"),
    (_missing("bidi", rf"<({_W})(?:pPrDefault|p(?:\s[^<>]*)?)>\s*<\2pPr>", "pPr", _BEHIND_BIDI), r"\1<\2bidi/>"),
    (_missing("rPr", rf"<({_W})p(?:\s[^<>]*)?>\s*<\2pPr>", "pPr", "sectPr|pPrChange"), r"\1<\2rPr></\2rPr>"),
    (_missing("rtl", rf"<({_W})pPr>(?:[^<]++|<(?!\2rPr>|/\2pPr>))*+<\2rPr>", "rPr", _BEHIND_RTL), r"\1<\2rtl/>"),
    (_missing("bidi", rf"<({_W})sectPr\b[^<>]*(?<!/)>", "sectPr", "rtlGutter|docGrid|printerSettings|sectPrChange"),
     r"\1<\2bidi/>"),
    (re.compile(rf"(<({_W})tblPr>\s*+(?:<\2(?:tblStyle|tblpPr|tblOverlap)\b[^<>]*>\s*)*+)(?!<\2bidiVisual)"),
     r"\1<\2bidiVisual/>"),
)  # fmt: skip
"""Marks that paragraphs (a document's default, each with the mark at its end), sections and tables lack to be written
from the right, each at the place where Word expects it."""


def of_opendocument(text: str, options: Options) -> str:
    """A part of an OpenDocument file; left and right change places."""
    if not (direction := turned(options)):
        return text
    mode = f"{direction[::2]}-tb"
    text = re.sub(r'(\sstyle:writing-mode=")(?:(?:lr|rl)-tb|page)"', rf'\g<1>{mode}"', text)
    text = _with_default(text) if direction == "rtl" else text
    text = _mirrored(_with_attribute(text, _LAYOUTS, "style:writing-mode", mode), r'\sfo:text-align="')
    return _UNALIGNED.sub(r'\1 fo:text-align="right"', text) if direction == "rtl" and "xmlns:fo=" in text else text


def _with_default(text: str) -> str:
    """A part of an OpenDocument file whose default for paragraphs has properties."""
    properties = "<style:paragraph-properties/>"
    if (default := re.search(_DEFAULT, text)) is None:
        made = f'<style:default-style style:family="paragraph">{properties}</style:default-style>'
        written = {"/>": f"<office:styles>{made}</office:styles>", ">": f"<office:styles>{made}"}
        return re.sub(r"<office:styles\s*(/?>)", lambda match: written[match[1]], text, count=1)
    if default[1] == "/>":
        return f"{text[: default.start(1)]}>{properties}</style:default-style>{text[default.end() :]}"
    has_any = re.compile(r"\s*<style:paragraph-properties\b").match(text, default.end())
    return text if has_any else f"{text[: default.end()]}{properties}{text[default.end() :]}"


def _mirrored(text: str, before: str) -> str:
    """Markup with the other side behind what a pattern finds."""
    return re.sub(rf'({before})(start|left|end|right)"', lambda tag: f'{tag[1]}{_OTHER[tag[2]]}"', text)


_LAYOUTS = (
    r"<style:page-layout-properties|<style:default-style\b[^<>]*+>\s*<style:paragraph-properties"
    r"|<style:table-properties"
)
"""Elements that say how a page, a table and paragraphs are written, if nothing else does."""
_UNALIGNED = re.compile(
    r'(<style:default-style\b(?=[^<>]*family="(?:paragraph|graphic)")[^<>]*+>\s*<style:paragraph-properties)(?=[\s/>])'
    r"(?![^<>]*\sfo:text-align=)"
)
"""Defaults of paragraphs that name no side: LibreOffice takes the left one."""
_DEFAULT = r'<style:default-style(?=\s)(?=[^<>]*\sstyle:family="paragraph")[^<>]*?(/?>)'
