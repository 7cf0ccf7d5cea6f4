"""Files to translate from strangers: whatever stands in them, they are read and written in linear time."""

import io
import re
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from tests.steps import calls_of

from dragoman.errors import DragomanError
from dragoman.formats.base import Item, Options, Unit
from dragoman.formats.document import FORMATS, Document

SRT, VTT = "1\n00:00:01,000 --> 00:00:02,000\n", "WEBVTT\n\n00:01.000 --> 00:02.000\n"
XLIFF = '<xliff version="1.2"><file source-language="de" target-language="en"><body><trans-unit id="1"><source>'
ASS = "[Events]\nFormat: Start, End, Text\nDialogue: 0:00:01.00,0:00:02.00,"

PATTERNS: list[tuple[str, str, str, str]] = [
    ("md", "", "![", ""),
    ("md", "", "[", ""),
    ("md", "", "[a", "]" * 30),
    ("md", "", "](", ""),
    ("md", "", "*a", ""),
    ("md", "", "`a", ""),
    ("md", "", "a  \n", ""),
    ("md", "a | b\n--- | ---\n", "a\\|b | ", "\n"),
    ("md", "[", "a\n", "]"),
    ("md", "", "^[a", ""),
    ("asciidoc", "", "|===\n", ""),
    ("asciidoc", "", "----\na", ""),
    ("asciidoc", "|===\n", "a|a\n", "|==="),
    ("asciidoc", "", "[a]\n", ""),
    ("asciidoc", "", "*a* b ", ""),
    ("asciidoc", "", "// a\nimage:a[b]", ""),
    ("rest", "", "*a* b ", ""),
    ("rest", "", "+--+\n", ""),
    ("srt", SRT, "a\n", ""),
    ("srt", SRT, "a ", ""),
    ("srt", SRT, "<i>", "a"),
    ("srt", SRT, "</i>", "a"),
    ("srt", SRT, "a<br>", ""),
    ("srt", SRT, "\n<i>", "a"),
    ("srt", SRT, "a\n\n", ""),
    ("vtt", VTT, "<00:01.000>a", ""),
    ("vtt", VTT, "a\n", ""),
    ("ass", ASS, "\\Na", ""),
    ("xliff", XLIFF, "<mrk mtype='seg'>a</mrk>", "</source></trans-unit></body></file></xliff>"),
    ("ass", ASS, "{\\i1}a", ""),
]  # fmt: skip
"""Format, what stands before, what comes again and again, what stands behind."""

REGEX: list[tuple[str, str, str, str]] = [
    ("md", "", "**", ""),
    ("md", "", "> ", "a"),
    ("md", "", "- ", "a"),
    ("md", "a\n", "-- ", ""),
    ("asciidoc", "", "a", ""),
    ("asciidoc", "", "\n", "="),
    ("srt", SRT, " ", "a"),
    ("srt", SRT, "\n ", "a"),
    ("ass", ASS + "{", "\\p1", ""),
]
"""Patterns that regular expressions alone see."""

OFFICE = "application/vnd.openxmlformats-officedocument."
MAIN = {
    "docx": ("word/document.xml", "wordprocessingml.document.main", '<w:document xmlns:w="w" xmlns:v="v">'),
    "pptx": ("ppt/slides/slide1.xml", "presentationml.slide", '<p:sld xmlns:p="p" xmlns:a="a">'),
    "master": ("ppt/slideMasters/m.xml", "presentationml.slideMaster", '<p:sldMaster xmlns:p="p" xmlns:a="a">'),
    "xlsx": ("xl/worksheets/sheet1.xml", "spreadsheetml.worksheet", "<worksheet>"),
    "strings": ("xl/sharedStrings.xml", "spreadsheetml.sharedStrings", "<sst>"),
    "drawing": ("word/drawing.xml", "drawingml.vmlDrawing", '<xml xmlns:v="v">'),
    "comments": ("word/comments.xml", "wordprocessingml.comments", '<w:comments xmlns:w="w">'),
    "footnotes": ("word/footnotes.xml", "wordprocessingml.footnotes", '<w:footnotes xmlns:w="w">'),
}
"""Parts of Office's packages: name, end of the media type, and how they begin."""
RUN, BOLD = "<w:r><w:t>a</w:t></w:r>", "<w:r><w:rPr><w:b/></w:rPr><w:t>b</w:t></w:r>"
P, END = "<w:p>", "<w:r><w:t>Ein Hund</w:t></w:r></w:p>"
CODE = '<w:r><w:instrText>REF "x"</w:instrText></w:r>'
BEGIN, PARTED, ENDED = (f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end"))
ODT, ODT_END = "<office:body><office:text><text:p>", "Ein Hund</text:p></office:text></office:body>"
PACKAGES: list[tuple[str, str, str, str]] = [
    ("docx", P, "<w:r/>", END),
    ("docx", P, RUN + BOLD, END),
    ("docx", P, BEGIN, END),
    ("docx", P, BEGIN + ENDED, END),
    ("docx", P, BEGIN + CODE, END),
    ("docx", P, BEGIN + CODE + PARTED + RUN + ENDED, END),
    ("docx", P, f'<w:fldSimple w:instr="REF a">{RUN}</w:fldSimple>', END),
    ("docx", P, f"<w:hyperlink>{RUN}</w:hyperlink>", END),
    ("docx", P, '<w:bookmarkStart w:id="1"/>', END),
    ("docx", P, f"<w:sdt><w:sdtContent>{RUN}</w:sdtContent></w:sdt>", END),
    ("docx", P, "<w:del><w:r><w:delText>abc</w:delText></w:r></w:del>", END),
    ("docx", P + "<w:sdt><w:sdtContent>" * 50, RUN, "</w:sdtContent></w:sdt>" * 50 + END),
    ("docx", f"{P}<w:r>", "<w:t>a</w:t><w:tab/>", "</w:r></w:p>"),
    ("docx", "", f"{P}{END}", ""),
    ("comments", "", f'<w:comment w:id="1">{P}{END}</w:comment>', ""),
    ("footnotes", "", f'<w:footnote w:id="1">{P}{END}</w:footnote>', ""),
    ("pptx", "<a:p>", "<a:r><a:rPr/><a:t>a</a:t></a:r><a:br/>", "</a:p>"),
    ("master", "", "<p:sp><p:ph/><a:p><a:r><a:t>abc</a:t></a:r></a:p></p:sp>", ""),
    ("strings", "", "<si><t>abc</t></si>", ""),
    ("strings", "<si>", "<r><rPr><b/></rPr><t>abc</t></r><r><t>a</t></r>", "</si>"),
    ("strings", "<si><t>abc</t>", "<rPh><t>a</t></rPh>", "</si>"),
    ("xlsx", "", '<c t="str"><f>A1</f><v>abc</v></c>', ""),
    ("xlsx", "", '<dataValidation type="list" prompt="abc"><formula1>"abc,def"</formula1></dataValidation>', ""),
    ("xlsx", "<c><f>", '"abc"&amp;', "</f></c>"),
    ("odt", ODT, "<text:span>a</text:span>", ODT_END),
    ("odt", ODT, "<text:s/>", ODT_END),
    ("odt", ODT, "<office:annotation><text:p>abc</text:p></office:annotation>", ODT_END),
    ("odt", f"<!--{'<office:annotation>' * 99}-->{ODT}", "a</text:p><text:p>", f"{ODT_END}<!--</office:annotation>-->"),
    ("epub", "", "<p>abc <i>a</i></p>", ""),
    ("epub", "<p>", "<span></span>", "abc</p>"),
]  # fmt: skip
"""The same of parts of packages."""
REGEX_PACKAGES: list[tuple[str, str, str, str]] = [
    ("docx", f"{P}<w:r><w:rPr>", '<w:rPrChange a="1"/>', "</w:rPr><w:t>a</w:t></w:r></w:p>"),
    ("docx", f'{P}<w:r><w:instrText>XE "a', "</w:instrText></w:r><w:r><w:instrText>", f"</w:instrText></w:r>{END}"),
    ("docx", f"{P}<w:r><w:instrText>XE", " ", f"</w:instrText></w:r>{END}"),
    ("docx", P, "<w:r><w:instrText>XE „a</w:instrText></w:r>", END),
    ("docx", f"{P}<w:fldSimple w:instr='QUOTE ", "„", f"'>{RUN}</w:fldSimple>{END}"),
    ("docx", f"{P}<w:hyperlink>{RUN * 20_000}</w:hyperlink>", "<w:hyperlink></w:hyperlink>", "</w:p>"),
    ("drawing", "", "<v:textbox/>", ""),
    ("master", "<!--", "<p:sp>", "-->"),
    ("xlsx", "", '<c t="str"/>', ""),
    ("xlsx", "<!--", '<c t="str">', "-->"),
    ("xlsx", "<c x='", ' t="str"', "'><is/></c>"),
    ("xlsx", "<dataValidation x='", ' type="list"', "'></dataValidation>"),
    ("xlsx", "<c><f>", "(", "</f></c>"),
    ("xlsx", "<c><f>", "a", "</f></c>"),
    ("odt", "<!--", "<office:annotation>", f"-->{ODT}{ODT_END}"),
    ("odt", "<style:style x='", ' style:name="a"', f"'></style:style>{ODT}{ODT_END}"),
    ("odt", "<svg:desc>", ".A1111111", f"!abc</svg:desc>{ODT}{ODT_END}"),
    ("odt", "<dc:title>abc</dc:title><dc:language>", " ", "<dc:title/></dc:language>"),
]
"""The same of parts of packages."""

BLANK = [(kind, "", "\n", "") for kind, made in FORMATS.items() if made.passes and kind != "pdf"]


def document(kind: str, before: str, piece: str, behind: str, size: int) -> Document:
    text = before + piece * (size // len(piece)) + behind
    return Document(text.encode(), FORMATS[kind], Options("the file", ("de", "en")))


def package(kind: str, before: str, piece: str, behind: str, size: int) -> Document:
    """A package one of whose parts holds a piece again and again."""
    inside = before + piece * (size // len(piece)) + behind
    names = " ".join(f'xmlns:{name}="{name}"' for name in ("office", "text", "table", "style", "svg", "dc"))
    if kind == "odt":
        part = "meta.xml" if "<dc:language>" in before else "content.xml"
        parts = {"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": f"<office:d {names}/>"}
        parts[part] = f"<office:d {names}>{inside}</office:d>"
        name = "odt"
    elif kind == "epub":
        book = '<package><item href="c.xhtml" media-type="application/xhtml+xml"/></package>'
        chapter = f"<html><body>{inside}</body></html>"
        container = '<container><rootfile full-path="a.opf"/></container>'
        parts, name = {"META-INF/container.xml": container, "a.opf": book, "c.xhtml": chapter}, "epub"
    else:
        part, type, begin = MAIN[kind]
        end = re.sub(r"<([\w:]+).*", r"</\1>", begin)
        name = {"word": "docx", "ppt": "pptx", "xl": "xlsx"}[part.partition("/")[0]]
        override = f'<Override PartName="/{part}" ContentType="{OFFICE}{type}+xml"/>'
        parts = {"[Content_Types].xml": f"<Types>{override}</Types>", part: begin + inside + end}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for path, text in parts.items():
            file.writestr(path, text)
    return Document(out.getvalue(), FORMATS[name], Options("the file", ("de", "en")))


def loud(units: Sequence[Unit]) -> list[tuple[Item, ...] | None]:
    """A translation of every text by a longer one."""
    return [
        None if unit.kept else tuple(f"{item.upper()} x" if isinstance(item, str) else item for item in unit.items)
        for unit in units
    ]


def work(document: Document) -> None:
    """All that is done with a file; one that is refused is well read, too."""
    try:
        list(document.texts())
        document.translated(loud)
    except DragomanError:
        pass


@pytest.mark.parametrize("pattern", [*PATTERNS, *BLANK], ids=lambda one: f"{one[0]} {one[2][:20]!r}")
def test_twice_the_file_is_twice_the_work(pattern: tuple[str, str, str, str]) -> None:
    work(document(*pattern, 100))  # what is made once and kept
    once, twice = (calls_of(partial(work, document(*pattern, size))) for size in (1500, 3000))
    assert twice < 2.5 * once + 1000


@pytest.mark.parametrize("pattern", PACKAGES, ids=lambda one: f"{one[0]} {one[2][:30]!r}")
@pytest.mark.parametrize("options", [{}, {"bilingual": True}, {"asides": frozenset()}], ids=lambda one: "".join(one))
def test_twice_the_part_is_twice_the_work(pattern: tuple[str, str, str, str], options: dict[str, Any]) -> None:
    def made(size: int) -> Document:
        document = package(*pattern, size)
        document.options = replace(document.options, **options)
        return document

    size = 60 * len(pattern[2])
    list(made(size).texts())  # which is not refused
    work(made(size // 2))  # what is made once and kept
    once, twice = (calls_of(partial(work, made(size * times))) for times in (1, 2))
    assert twice < 2.3 * once + 1000


@pytest.mark.timeout(120)  # they take half a second; a step for each pair of characters would take many minutes
@pytest.mark.parametrize("pattern", [*REGEX, *REGEX_PACKAGES], ids=lambda one: f"{one[0]} {one[2][:20]!r}")
def test_regular_expressions_take_linear_time(pattern: tuple[str, ...]) -> None:
    """Their steps are not seen from outside."""
    make = package if pattern in REGEX_PACKAGES else document
    work(make(*pattern, 150_000))
