"""Office's packages: parts by relationship and media type, what else a reader sees of them, and the target language."""

import codecs
import io
import re
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

import pytest
from tests.errors import raises_error

from dragoman.errors import Error
from dragoman.formats.base import ASIDES, Code, Item, Options, Unit, asides_of, plain
from dragoman.formats.document import FORMATS, Document, format_of

LANGUAGES = ("de", "en")
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
P = f'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" {A}'
SAID = "texts in the instructions of fields"
DELETED = "tracked deletions (`with`: changes)"
TYPE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def rotated(units: Sequence[Unit]) -> Iterator[tuple[Item, ...] | None]:
    """A translation of which no word is one of the source's."""
    for unit in units:
        items = tuple(item if isinstance(item, Code) else codecs.encode(item, "rot13") for item in unit.items)
        yield None if unit.kept else items


def relationships(targets: dict[str, str]) -> str:
    """The relationships of a part: the kind of each target."""
    rows = (
        f'<Relationship Id="r{number}" Type="{TYPE}/{kind}" Target="{target}"/>'
        for number, (target, kind) in enumerate(targets.items())
    )
    return f"<Relationships>{''.join(rows)}</Relationships>"


def package(
    main: str, parts: Mapping[str, str | bytes], targets: dict[str, str] | None = None, types: str = ""
) -> bytes:
    """An Office file: its main part, which leads to `targets`."""
    folder, _, base = main.rpartition("/")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("[Content_Types].xml", f"<Types>{types}</Types>")
        file.writestr("_rels/.rels", relationships({main: "officeDocument"}))
        if targets:
            file.writestr(f"{folder}/_rels/{base}.rels", relationships(targets))
        for name, content in parts.items():
            file.writestr(name, content)
    return out.getvalue()


def document(name: str, data: bytes, asides: frozenset[str] | None = None) -> Document:
    options = Options(name, LANGUAGES)
    if asides is not None:
        options = Options(name, LANGUAGES, asides=asides)
    return Document(data, format_of(Path(name), data), options)


def after(name: str, data: bytes, asides: frozenset[str] | None = None) -> dict[str, str]:
    """The parts of a file when it has been translated."""
    with zipfile.ZipFile(io.BytesIO(document(name, data, asides).translated(rotated))) as file:
        return {part: file.read(part).decode() for part in file.namelist()}


def texts(name: str, data: bytes, asides: frozenset[str] | None = None) -> list[str]:
    return [plain(unit.items) for unit in document(name, data, asides).texts() if not unit.kept]


def kept(name: str, data: bytes, asides: frozenset[str] | None = None) -> Counter[str]:
    return Counter(unit.kept for unit in document(name, data, asides).texts() if unit.kept)


def paragraph(text: str, properties: str = "") -> str:
    return f"<w:p><w:r>{properties}<w:t>{text}</w:t></w:r></w:p>"


def word(body: str, parts: dict[str, str] | None = None, targets: dict[str, str] | None = None) -> bytes:
    main = {"word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>"}
    return package("word/document.xml", main | (parts or {}), targets)


# -- parts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("main", ["word/document2.xml", "word/Dokument.XML", "content/a b.xml", "main.xml"])
@pytest.mark.parametrize("header", ["header1.xml", "Kopf.xml", "../other/top.xml", "/word/kopf%201.xml"])
def test_the_parts_of_a_document_may_have_any_names(main: str, header: str) -> None:
    folder = main.rpartition("/")[0]
    place = header.removeprefix("/").replace("%20", " ") if header.startswith("/") else ""
    place = place or (header.replace("../", "") if "../" in header else f"{folder}/{header}".removeprefix("/"))
    parts = {
        main: f"<w:document {W}><w:body>{paragraph('Hemd')}</w:body></w:document>",
        place: f"<w:hdr {W}>{paragraph('Jacke')}</w:hdr>",
    }
    data = package(main.replace("a b", "a b"), parts, {header: "header"})
    assert texts("a.docx", data) == ["Hemd", "Jacke"]
    assert ">Wnpxr<" in after("a.docx", data)[place]


def test_names_of_parts_are_compared_without_case_and_backslashes_are_slashes() -> None:
    parts = {
        "xl\\Workbook.xml": "<workbook/>",
        "xl/worksheets/Blatt.xml": "<worksheet><is><t>Hemd</t></is></worksheet>",
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("_rels/.rels", relationships({"/xl/workbook.xml": "officeDocument"}))
        file.writestr("xl/_rels/workbook.xml.rels", relationships({"Worksheets\\blatt.xml": "worksheet"}))
        for name, content in parts.items():
            file.writestr(name, content)
    assert texts("a.xlsx", out.getvalue()) == ["Hemd"]


def test_a_media_type_tells_a_part_that_no_relationship_leads_to() -> None:
    types = (
        '<Override PartName="/word/odd.bin" '
        'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.footer+xml"/>'
    )
    main = f"<w:document {W}>{paragraph('Hemd')}</w:document>"
    data = package(
        "word/d.xml", {"word/d.xml": main, "word/odd.bin": f"<w:ftr {W}>{paragraph('Jacke')}</w:ftr>"}, types=types
    )
    assert texts("a.docx", data) == ["Hemd", "Jacke"]


def unmarked(data: bytes) -> bytes:
    """A zip file whose names are in UTF-8, which no longer says so."""
    out = bytearray(data)
    for sign, place in ((b"PK\x03\x04", 7), (b"PK\x01\x02", 9)):
        for found in re.finditer(re.escape(sign), data):
            out[found.start() + place] &= ~8
    return bytes(out)


@pytest.mark.parametrize("name", ["Übung.xhtml", "U\u0308bung.xhtml", "%C3%9Cbung.xhtml"])
def test_names_of_parts_in_utf_8_need_no_mark(name: str) -> None:
    page = ("application/xhtml+xml", "<html><body><p>Hemd</p></body></html>")
    data = unmarked(book({name: page, "Bild Ä.svg": ("image/svg+xml", "<svg/>")}))
    assert texts("a.epub", data) == ["Hemd"]
    out = after("a.epub", data)
    assert "<p>Urzq</p>" in out["OPS/Übung.xhtml"]
    assert "OPS/Bild Ä.svg" in out


def test_names_of_parts_in_the_encoding_of_dos_stay_what_they_are() -> None:
    data = unmarked(package("w.xml", {"w.xml": f"<w:document {W}>{paragraph('Hemd')}</w:document>", "\xe9.png": ""}))
    data = data.replace("\xe9.png".encode(), b"\x82.pnga")  # as long as before
    assert "\xe9.pnga" in after("a.docx", data)


@pytest.mark.parametrize(
    ("type", "suffix", "kind"),
    [
        ("application/vnd.ms-word.document.macroEnabled.main+xml", ".docm", "docx"),
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.template.main+xml", ".dotx", "docx"),
        ("application/vnd.openxmlformats-officedocument.presentationml.slideshow.main+xml", ".ppsx", "pptx"),
        ("application/vnd.ms-powerpoint.presentation.macroEnabled.main+xml", ".pptm", "pptx"),
        ("application/vnd.ms-excel.sheet.macroEnabled.main+xml", ".xlsm", "xlsx"),
        ("application/vnd.ms-excel.sheet.binary.macroEnabled.main", ".xlsx", ""),
        ("application/vnd.ms-visio.drawing.main+xml", ".docx", ""),
    ],
)
def test_the_media_type_of_the_main_part_tells_the_format(type: str, suffix: str, kind: str) -> None:
    data = package("x/y.bin", {"x/y.bin": "<any/>"}, types=f'<Override PartName="/X/Y.bin" ContentType="{type}"/>')
    if kind:
        assert format_of(Path("a" + suffix), data) is FORMATS[kind]
    else:
        with raises_error(Error.WRONG_FILE_TYPE):
            format_of(Path("a" + suffix), data)


def test_a_workbook_in_a_document_is_translated_and_what_is_no_file_stays() -> None:
    inner = package(
        "w.xml", {"w.xml": "<workbook/>", "s.xml": "<sst><si><t>Hemd</t></si></sst>"}, {"s.xml": "sharedStrings"}
    )
    outer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(word(paragraph("Jacke"), {}, {"e/a.xlsx": "package", "e/b.bin": "package"}))) as old,
        zipfile.ZipFile(outer, "w") as new,
    ):
        for name in old.namelist():
            new.writestr(name, old.read(name))
        new.writestr("word/e/a.xlsx", inner)
        new.writestr("word/e/b.bin", b"\0\1")
    assert texts("a.docx", outer.getvalue()) == ["Jacke", "Hemd"]
    assert kept("a.docx", outer.getvalue()) == {"the file b.bin inside": 1}
    counted: list[str] = []

    def counting(units: Sequence[Unit]) -> Iterator[tuple[Item, ...] | None]:
        counted.extend(unit.kept for unit in units if unit.kept)
        return rotated(units)

    document("a.docx", outer.getvalue()).translated(counting)
    assert counted == ["the file b.bin inside"]
    out = document("a.docx", outer.getvalue()).translated(rotated)
    with zipfile.ZipFile(io.BytesIO(out)) as file, zipfile.ZipFile(io.BytesIO(file.read("word/e/a.xlsx"))) as book:
        assert b"<t>Urzq</t>" in book.read("s.xml")
        assert file.read("word/e/b.bin") == b"\0\1"


def test_a_page_in_a_document_is_translated() -> None:
    parts = {"word/a.html": "<p>Hemd</p>", "word/b.mht": "MIME-Version: 1.0", "word/c.txt": "Rot"}
    targets = {"a.html": "aFChunk", "b.mht": "aFChunk", "c.txt": "aFChunk"}
    data = word(paragraph("Jacke"), parts, targets)
    assert sorted(texts("a.docx", data)) == ["Hemd", "Jacke", "Rot"]
    assert kept("a.docx", data) == {"the file b.mht inside": 1}
    assert after("a.docx", data)["word/a.html"] == "<p>Urzq</p>"


# -- what a reader sees --------------------------------------------------------------------------------------------


def field(instructions: str, result: str) -> str:
    def mark(kind: str) -> str:
        return f"<w:r><w:fldChar w:fldCharType='{kind}'/></w:r>"

    code = f"<w:r><w:instrText> {instructions} </w:instrText></w:r>"
    return f"{mark('begin')}{code}{mark('separate')}<w:r><w:t>{result}</w:t></w:r>{mark('end')}"


@pytest.mark.parametrize(
    ("body", "shown", "left"),
    [
        (f"<w:p>{field('TITLE', 'Hemd')}</w:p>", ["Hemd"], []),
        ("<w:p><w:fldSimple w:instr=' TITLE '><w:r><w:t>Hemd</w:t></w:r></w:fldSimple></w:p>", ["Hemd"], []),
        ("<w:p><w:fldSimple w:instr=' DATE '><w:r><w:t>3. Mai</w:t></w:r></w:fldSimple></w:p>", [], ["fields"]),
        (f"<w:p>{field('IF 1 = 1 &quot;Jacke&quot; &quot;Rot&quot;', 'Jacke')}</w:p>", ["Jacke"], [SAID] * 2),
        ("<w:p>" + field('HYPERLINK "http://ab.cd" \\o "Ein Tipp"', "Hemd") + "</w:p>", ["Hemd"], [SAID]),
        ("<w:p>" + field('DATE \\@ "dddd, MMMM"', "7") + "</w:p>", [], []),
        ("<w:p><w:r><w:ruby><w:rt><w:r><w:t>a</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>Hemd</w:t></w:r></w:rubyBase>"
         "</w:ruby></w:r><w:r><w:t> rot</w:t></w:r></w:p>", ["Hemd rot"], []),
        ("<w:p><AlternateContent><Choice><w:r><w:t>Hemd</w:t></w:r></Choice></AlternateContent></w:p>", ["Hemd"], []),
        ("<w:lvlText w:val='Kapitel'/><x:del xmlns:x='x'><x:r><x:delText>Rot</x:delText></x:r></x:del>", [], [DELETED]),
        (f"<w:p><w:r><w:t>von </w:t></w:r>{field('AUTHOR', 'Anna Meyer')}</w:p>", ["von "], ["fields"]),
        ("<w:p><w:fldSimple w:instr=' PAGE '><w:r><w:t>7</w:t></w:r></w:fldSimple></w:p>", [], []),
        ("<w:p><w:del><w:r><w:delText>Rot</w:delText></w:r></w:del></w:p>", [], [DELETED]),
        ("<w:p><w:moveFrom><w:r><w:t>Hemd</w:t></w:r></w:moveFrom></w:p>", [], [DELETED]),
        ("<w:p><m:oMath xmlns:m='m'><m:r><m:t>Hemden</m:t></m:r></m:oMath></w:p>", [], ["formulas"]),
        ("<w:p><m:oMath xmlns:m='m'><m:r><m:t>x</m:t></m:r></m:oMath></w:p>", [], []),
        ("<w:alias w:val='Hemd'/><w:listItem w:displayText='Rot' w:value='r'/>", ["Hemd", "Rot"], []),
        ("<w:ddList><w:listEntry w:val='Rot'/></w:ddList>", ["Rot"], []),
        ("<w:tblPr><w:tblCaption w:val='Hemd'/></w:tblPr><w:hyperlink w:tooltip='Rot'/>", ["Hemd", "Rot"], []),
        ("<wp:docPr xmlns:wp='w' descr='Ein Hemd' title='Rot' name='Bild 1'/>", ["Ein Hemd", "Rot"], []),
        ("<wp:docPr xmlns:wp='w' descr='bild.png'/>", [], []),
        ("<v:textpath xmlns:v='v' string='ENTWURF'/>", ["ENTWURF"], []),
    ],
)  # fmt: skip
def test_what_a_reader_sees_of_a_document_is_read_or_counted(body: str, shown: list[str], left: list[str]) -> None:
    data = word(body)
    assert texts("a.docx", data) == shown
    assert sorted(kept("a.docx", data).elements()) == left
    out = after("a.docx", data)["word/document.xml"]
    for text in shown:
        for said in text.split():
            assert f">{said}<" not in out
            assert codecs.encode(said, "rot13") in out


def swapped(units: Sequence[Unit]) -> Iterator[tuple[Item, ...] | None]:
    """A translation in which what a pair is around comes first."""
    for unit in units:
        places = [place for place, item in enumerate(unit.items) if isinstance(item, Code) and item.pair >= 0]
        begin, end = (places[0], places[1] + 1) if places else (0, 0)
        yield unit.items[begin:end] + unit.items[:begin] + unit.items[end:]


@pytest.mark.parametrize(
    ("name", "begin", "end"),
    [
        ("a.docx", "<w:bookmarkStart w:id='1' w:name='x'/>", "<w:bookmarkEnd w:id='1'/>"),
        ("a.docx", "<w:commentRangeStart w:id='1'/>", "<w:commentRangeEnd w:id='1'/>"),
        ("a.docx", "<w:permStart w:id='1' w:edGrp='everyone'/>", "<w:permEnd w:id='1'/>"),
        ("a.odt", "<text:bookmark-start text:name='x'/>", "<text:bookmark-end text:name='x'/>"),
        ("a.odt", "<text:reference-mark-start text:name='x'/>", "<text:reference-mark-end text:name='x'/>"),
        ("a.odt", "<text:toc-mark-start text:id='x'/>", "<text:toc-mark-end text:id='x'/>"),
        ("a.odt", "<text:change-start text:change-id='x'/>", "<text:change-end text:change-id='x'/>"),
        ("a.odt", "<office:annotation office:name='x'/>", "<office:annotation-end office:name='x'/>"),
    ],
)
def test_the_ends_of_a_range_are_a_pair_around_its_words(name: str, begin: str, end: str) -> None:
    part, data = "content.xml", odf(f"<text:p>Das {begin}Hemd{end} da</text:p>")
    if name == "a.docx":
        part, data = "word/document.xml", word(f"<w:p>{run_of('Das ')}{begin}{run_of('Hemd')}{end}{run_of('da')}</w:p>")
    with zipfile.ZipFile(io.BytesIO(document(name, data).translated(swapped))) as file:
        out = file.read(part).decode()
    assert out.index(begin) < out.index("Hemd") < out.index(end) < out.index("Das")


def test_boxes_in_boxes_are_read_however_many() -> None:
    in_word = paragraph("Hemd")
    in_writer = "<text:p>Hemd</text:p>"
    for _ in range(4):
        in_word = f"<w:p><w:r><w:pict><w:txbxContent>{in_word}</w:txbxContent></w:pict></w:r>{run_of('Rot')}</w:p>"
        in_writer = f"<text:p>Rot <draw:text-box>{in_writer}</draw:text-box></text:p>"
    assert Counter(texts("a.docx", word(in_word))) == {"Hemd": 1, "Rot": 4}
    out = after("a.odt", odf(in_writer))["content.xml"]
    assert out.count("Urzq") == 1
    assert out.count("Ebg ") == 4


def test_a_signed_file_is_translated_with_a_line_that_its_signature_does_not_fit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert after("a.odt", odf("<text:p>Hemd</text:p>", more={"META-INF/documentsignatures.xml": "<s/>"}))
    assert after("a.docx", word(paragraph("Hemd"), {"_xmlsignatures/sig1.xml": "<s/>"}))
    assert capsys.readouterr().err.count("signed") == 2
    assert after("a.docx", word(paragraph("Hemd")))
    assert "signed" not in capsys.readouterr().err


def test_a_range_with_one_end_in_a_paragraph_is_a_code_that_stands_alone() -> None:
    ends = ("<w:bookmarkStart w:id='1' w:name='x'/>", "<w:bookmarkEnd w:id='2'/>")
    data = word(f"<w:p>{run_of('Das ')}{ends[0]}{run_of('Hemd ')}{ends[1]}{run_of('da')}</w:p>")
    [unit] = document("a.docx", data).texts()
    assert [item.kind for item in unit.items if isinstance(item, Code)] == ["alone", "alone"]


def run_of(text: str) -> str:
    space = ' xml:space="preserve"' if text != text.strip() else ""
    return f"<w:r><w:t{space}>{text}</w:t></w:r>"


@pytest.mark.parametrize(
    "properties",
    [
        '<w:rFonts w:hint="eastAsia"/>', '<w:lang w:val="de-DE"/>', "<w:noProof/>",
        "<w:rPrChange w:id='5' w:author='x'><w:rPr><w:b/></w:rPr></w:rPrChange>",
    ],
)  # fmt: skip
def test_runs_that_look_the_same_are_one_text(properties: str) -> None:
    changed = f"<w:r><w:rPr>{properties}</w:rPr><w:t>Hemd</w:t></w:r>"
    assert [unit.items for unit in document("a.docx", word(f"<w:p>{run_of('Das ')}{changed}</w:p>")).texts()] == [
        ("Das Hemd",)
    ]


def test_runs_of_two_languages_on_a_slide_are_one_text() -> None:
    own, other = '<a:rPr lang="ja-JP" altLang="en-US"/>', '<a:rPr kumimoji="1" lang="en-US" altLang="ja-JP" dirty="0"/>'
    both = f"<a:p><a:r>{own}<a:t>Das </a:t></a:r><a:r>{other}<a:t>Hemd</a:t></a:r></a:p>"
    data = slides({"s.xml": f"<p:sld {P}><p:sp>{both}</p:sp></p:sld>"}, {"s.xml": "slide"})
    assert [unit.items for unit in document("a.pptx", data).texts()] == [("Das Hemd",)]


def test_entries_of_an_index_are_texts_though_word_cuts_them_into_runs() -> None:
    def code(text: str) -> str:
        return f"<w:r><w:instrText>{text}</w:instrText></w:r>"

    data = word(f"<w:p>{code(' XE &quot;')}{code('Hemd:blau')}{code('&quot; ')}</w:p>")
    assert texts("a.docx", data) == ["Hemdblau"]
    assert "<w:instrText>Urzq:oynh</w:instrText>" in after("a.docx", data)["word/document.xml"]


def test_words_before_the_numbers_of_lists() -> None:
    levels = (
        '<w:lvlText w:val=\'Teil "%1"\'/><w:lvlText w:val="Artikel %1."/><w:lvlText w:val="%1)"/><w:lvlText w:val="o"/>'
    )
    data = word(paragraph("Hemd"), {"word/n.xml": f"<w:numbering {W}>{levels}</w:numbering>"}, {"n.xml": "numbering"})
    assert texts("a.docx", data) == ["Hemd", 'Teil "%1"', "Artikel %1."]
    assert 'w:val="Negvxry %1."' in after("a.docx", data)["word/n.xml"]


def test_raised_marks_are_no_part_of_the_word_before_them() -> None:
    raised = '<w:rPr><w:vertAlign w:val="superscript"/></w:rPr>'
    run = "<w:r>{}<w:t xml:space='preserve'>{}</w:t></w:r>".format
    pieces = [
        ("", "Ein Hemd"),
        (raised, "1"),
        ("", " hat 5 m"),
        (raised, "2"),
        ("", " Stoff,"),
        (raised, "[3]"),
        ("", " oder"),
    ]
    data = word(f"<w:p>{''.join(run(*piece) for piece in pieces)}</w:p>")
    assert texts("a.docx", data) == ["Ein Hemd hat 5 m2 Stoff, oder"]
    out = after("a.docx", data)["word/document.xml"]
    assert f"Urzq</w:t></w:r><w:r>{raised}<w:t>1</w:t></w:r>" in out
    assert f"Fgbss,</w:t></w:r><w:r>{raised}<w:t>[3]</w:t></w:r>" in out


def test_deletions_are_translated_on_demand() -> None:
    data = word(
        "<w:p><w:r><w:t>Rot</w:t></w:r><w:del><w:r><w:rPr><w:b/></w:rPr><w:delText>Hemd</w:delText></w:r></w:del></w:p>"
    )
    out = after("a.docx", data, asides_of(["changes"], []))["word/document.xml"]
    assert "<w:del><w:r><w:rPr><w:b/></w:rPr><w:delText>Urzq</w:delText></w:r></w:del>" in out
    assert "<w:t>Ebg</w:t>" in out


def test_hidden_text_is_left_on_demand() -> None:
    data = word(
        paragraph("Rot")
        + paragraph("Hemd", "<w:rPr><w:vanish/></w:rPr>")
        + paragraph("Blau", "<w:rPr><w:vanish w:val='0'/></w:rPr>")
    )
    assert texts("a.docx", data) == ["Rot", "Hemd", "Blau"]
    without = asides_of([], ["hidden"])
    assert texts("a.docx", data, without) == ["Rot", "Blau"]
    assert kept("a.docx", data, without) == {"hidden text (`with`: hidden)": 1}
    assert "<w:vanish/></w:rPr><w:t>Hemd</w:t>" in after("a.docx", data, without)["word/document.xml"]


@pytest.mark.parametrize(
    ("kind", "root", "aside"), [("comments", "comments", "comments"), ("footnotes", "footnotes", "notes")]
)
def test_comments_and_notes_are_left_on_demand(kind: str, root: str, aside: str) -> None:
    data = word(paragraph("Rot"), {"word/x.xml": f"<w:{root} {W}>{paragraph('Hemd')}</w:{root}>"}, {"x.xml": kind})
    assert texts("a.docx", data) == ["Rot", "Hemd"]
    assert texts("a.docx", data, asides_of([], [aside])) == ["Rot"]
    assert sum(kept("a.docx", data, asides_of([], [aside])).values()) == 1


def test_names_of_asides() -> None:
    assert asides_of([], []) == frozenset(ASIDES) - {"changes"}
    with raises_error(Error.UNKNOWN_NAME, "coments"):
        asides_of([], ["coments"])
    with raises_error(Error.CONFLICT, "notes"):
        asides_of(["notes"], ["notes"])


def test_the_data_that_a_control_shows_is_translated_with_it() -> None:
    control = "<w:sdt><w:sdtPr><w:dataBinding w:xpath='/a/b'/></w:sdtPr><w:sdtContent>{}</w:sdtContent></w:sdt>"
    body = f"<w:p>{control.format('<w:r><w:t>Hemd </w:t></w:r><w:r><w:t>&amp; Rot</w:t></w:r>')}</w:p>"
    data = word(body, {"c/i.xml": "<a><b>Hemd &amp; Rot</b><c>Hemd</c></a>"}, {"../c/i.xml": "customXml"})
    assert after("a.docx", data)["c/i.xml"] == "<a><b>Urzq &amp; Ebg</b><c>Hemd</c></a>"


def test_parts_in_utf_16_are_read_and_written_so() -> None:
    main = f'<?xml version="1.0" encoding="UTF-16"?><w:document {W}>{paragraph("Hemd")}</w:document>'
    data = package("w.xml", {"w.xml": main.encode("utf-16")})
    with zipfile.ZipFile(io.BytesIO(document("a.docx", data).translated(rotated))) as file:
        assert file.read("w.xml").decode("utf-16") == main.replace("Hemd", "Urzq")


def test_metadata() -> None:
    facts = "<dc:title>Hemd</dc:title><dc:creator>Anna</dc:creator><dc:language>de-DE</dc:language>"
    core = f"<cp:coreProperties xmlns:cp='c' xmlns:dc='d'>{facts}</cp:coreProperties>"
    data = package(
        "w.xml",
        {"w.xml": f"<w:document {W}>{paragraph('Rot')}</w:document>", "p.xml": core},
        {"p.xml": "metadata/core-properties"},
    )
    out = after("a.docx", data)["p.xml"]
    assert "<dc:title>Urzq</dc:title><dc:creator>Anna</dc:creator><dc:language>en-US</dc:language>" in out
    assert "Hemd" in after("a.docx", data, asides_of([], ["metadata"]))["p.xml"]


def run(text: str) -> str:
    return f"<a:p><a:r><a:rPr lang='de-DE'/><a:t>{text}</a:t></a:r></a:p>"


def shape(text: str, placeholder: bool = False) -> str:
    mark = "<p:nvPr><p:ph type='title'/></p:nvPr>" if placeholder else "<p:nvPr/>"
    return f"<p:sp><p:nvSpPr>{mark}</p:nvSpPr><p:txBody>{run(text)}</p:txBody></p:sp>"


def slides(parts: dict[str, str], targets: dict[str, str]) -> bytes:
    return package("p.xml", {"p.xml": f"<p:presentation {P}/>", **parts}, targets)


def test_masters_are_read_but_for_prompts_and_hidden_slides_are_left_on_demand() -> None:
    parts = {
        "m.xml": f"<p:sldMaster {P}>{shape('Titel eingeben', True)}{shape('Firma')}{shape('Mehr', True)}</p:sldMaster>",
        "s.xml": f"<p:sld {P} show='1'>{shape('Hemd', True)}</p:sld>".replace("'1'", '"0"'),
    }
    data = slides(parts, {"m.xml": "slideMaster", "s.xml": "slide"})
    assert texts("a.pptx", data) == ["Firma", "Hemd"]
    assert kept("a.pptx", data) == {"prompts of a layout, which no reader sees": 2}
    assert texts("a.pptx", data, asides_of([], ["hidden"])) == ["Firma"]
    out = after("a.pptx", data)
    assert "lang='en-US'/><a:t>Urzq" in out["s.xml"]


def test_what_fields_of_a_slide_show_is_counted() -> None:
    date = '<a:fld id="x" type="datetime1"><a:rPr/><a:t>3. Mai</a:t></a:fld>'
    data = slides({"s.xml": f"<p:sld {P}><a:p><a:r><a:t>Rot </a:t></a:r>{date}</a:p></p:sld>"}, {"s.xml": "slide"})
    assert texts("a.pptx", data) == ["Rot "]
    assert kept("a.pptx", data) == {"fields": 1}


def test_names_of_sections_of_slides() -> None:
    section = "<p14:section xmlns:p14='x' name='Hemd' id='{1}'/>"
    data = slides({"p.xml": f"<p:presentation {P}>{section}</p:presentation>"}, {})
    assert texts("a.pptx", data) == ["Hemd"]


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        ("comments", f"<p:cmLst {P}><p:cm><p:text>Hemd</p:text></p:cm></p:cmLst>"),
        ("comments", f"<p188:cmLst xmlns:p188='x' {A}><p188:txBody>{run('Hemd')}</p188:txBody></p188:cmLst>"),
        ("diagramData", f"<dgm:dataModel xmlns:dgm='d' {A}><dgm:t>{run('Hemd')}</dgm:t></dgm:dataModel>"),
        ("diagramDrawing", f"<dsp:drawing xmlns:dsp='d' {A}><dsp:txBody>{run('Hemd')}</dsp:txBody></dsp:drawing>"),
        ("chart", "<c:chartSpace xmlns:c='c'><c:strCache><c:pt><c:v>Hemd</c:v></c:pt></c:strCache></c:chartSpace>"),
        ("chart", "<c:chartSpace xmlns:c='c'><c:multiLvlStrCache><c:v>Hemd</c:v></c:multiLvlStrCache></c:chartSpace>"),
        ("chart", "<c:chartSpace xmlns:c='c'><c:ser><c:tx><c:v>Hemd</c:v></c:tx></c:ser></c:chartSpace>"),
        ("chart", "<c:chartSpace xmlns:c='c'><c:trendline><c:name>Hemd</c:name></c:trendline></c:chartSpace>"),
        ("chart", f"<c:chartSpace xmlns:c='c' {A}><c:rich>{run('Hemd')}</c:rich></c:chartSpace>"),
        ("chartEx", "<cx:chartSpace xmlns:cx='c'><cx:strDim><cx:pt idx='0'>Hemd</cx:pt></cx:strDim></cx:chartSpace>"),
        ("notesSlide", f"<p:notes {P}>{shape('Hemd')}</p:notes>"),
        ("slideLayout", f"<p:sldLayout {P}>{shape('Hemd')}</p:sldLayout>"),
        ("handoutMaster", f"<p:handoutMaster {P}>{shape('Hemd')}</p:handoutMaster>"),
    ],
)  # fmt: skip
def test_each_kind_of_part_of_a_presentation(kind: str, part: str) -> None:
    data = slides({"any/x.part": part}, {"any/x.part": kind})
    assert texts("a.pptx", data) == ["Hemd"]
    assert re.sub("Hemd", "Urzq", part.replace("de-DE", "en-US")) == after("a.pptx", data)["any/x.part"]


# -- workbooks -----------------------------------------------------------------------------------------------------

STRINGS = "<sst><si><t>Ja</t></si><si><t>Nein</t></si><si><t>Das Hemd</t></si></sst>"


def sheet(body: str, strings: str = STRINGS, more: dict[str, tuple[str, str]] | None = None) -> bytes:
    parts = {
        "x/w.xml": "<workbook><sheet name='Blatt'/></workbook>",
        "x/s.xml": strings,
        "x/b.xml": f"<worksheet>{body}</worksheet>",
    }
    targets = {"s.xml": "sharedStrings", "b.xml": "worksheet"}
    for name, (kind, content) in (more or {}).items():
        parts[f"x/{name}"], targets[name] = content, kind
    return package("x/w.xml", parts, targets)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ('<f>COUNTIF(A1:A2,"Ja")</f>', '<f>COUNTIF(A1:A2,"Wn")</f>'),
        ('<f>COUNTIF(A1:A2,"JA")</f>', '<f>COUNTIF(A1:A2,"Wn")</f>'),
        ("<f>IF(A1=&quot;Ja&quot;,1,0)</f>", "<f>IF(A1=&quot;Wn&quot;,1,0)</f>"),
        ('<f>IF(A1="Ja","Gewinn","Verlust")</f>', '<f>IF(A1="Wn","Gewinn","Verlust")</f>'),
        ("<f>'Ja \"Ja\"'!A1&amp;\"Ja\"</f>", "<f>'Ja \"Ja\"'!A1&amp;\"Wn\"</f>"),
        ('<f>INDIRECT("Ja")</f>', '<f>INDIRECT("Ja")</f>'),
        ('<f>TEXT(IF(A1="Ja",1,2),"Nein")</f>', '<f>TEXT(IF(A1="Wn",1,2),"Nein")</f>'),
        ('<f t="shared" ref="A1">A1="Ja"</f>', '<f t="shared" ref="A1">A1="Wn"</f>'),
        ('<formula>$A1="Ja"</formula>', '<formula>$A1="Wn"</formula>'),
        ('<x14:cfRule><xm:f>"Ja"</xm:f></x14:cfRule>', '<x14:cfRule><xm:f>"Wn"</xm:f></x14:cfRule>'),
        ('<filters><filter val="ja"/></filters>', '<filters><filter val="Wn"/></filters>'),
        ('<c t="str"><f>A1</f><v>Ja</v></c>', '<c t="str"><f>A1</f><v>Wn</v></c>'),
        ('<c t="str"><f>A1</f><v>Ja oder</v></c>', '<c t="str"><f>A1</f><v>Ja oder</v></c>'),
        ('<dataValidation type="list"><formula1>"Ja,Nein, Rot"</formula1></dataValidation>',
         '<dataValidation type="list"><formula1>"Wn,Arva, Ebg"</formula1></dataValidation>'),
        ('<f>COUNTIF(A1:A2,"&lt;&gt;Ja")+COUNTIF(A1:A2,"&lt;>ja")</f>',
         '<f>COUNTIF(A1:A2,"&lt;&gt;Wn")+COUNTIF(A1:A2,"&lt;>Wn")</f>'),
        ('<f>COUNTIF(A1:A2,"=Ja")</f>', '<f>COUNTIF(A1:A2,"=Wn")</f>'),
        ('<c t="str"><v>Blau &amp;lt</v></c><f>A1="blau &amp;lt"</f>',
         '<c t="str"><v>Oynh &amp;yg</v></c><f>A1="Oynh &amp;yg"</f>'),
        ('<x14:dataValidation type="list"><x14:formula1><xm:f>"Rot,Ja"</xm:f></x14:formula1></x14:dataValidation>',
         '<x14:dataValidation type="list"><x14:formula1><xm:f>"Ebg,Wn"</xm:f></x14:formula1></x14:dataValidation>'),
        ('<x14:formula1><xm:f>A1="Ja"</xm:f></x14:formula1>', '<x14:formula1><xm:f>A1="Wn"</xm:f></x14:formula1>'),
        ("<is><t>Rot </t><r><t>Blau</t></r></is>", "<is><t>Ebg </t><r><t>Oynh</t></r></is>"),
        ('<dataValidation prompt="Ein Wort&#10;zwei"/>', '<dataValidation prompt="Rva Jbeg&#10;mjrv"/>'),
        ('<dataValidation prompt="Ein Wort\nzwei"/>', '<dataValidation prompt="Rva Jbeg mjrv"/>'),
        ("<oddHeader>&amp;LBlau &amp;P&amp;C&amp;\"Arial,Fett\"Rot&amp;RR&amp;&amp;D</oddHeader>",
         "<oddHeader>&amp;LOynh &amp;P&amp;C&amp;\"Arial,Fett\"Ebg&amp;RE&amp;&amp;Q</oddHeader>"),
    ],
)  # fmt: skip
def test_texts_of_a_sheet_change_together(before: str, expected: str) -> None:
    root = "<worksheet xmlns:xm='m' xmlns:x14='x'>"
    data = package(
        "x/w.xml",
        {"x/w.xml": "<workbook/>", "x/s.xml": STRINGS, "x/b.xml": f"{root}{before}</worksheet>"},
        {"s.xml": "sharedStrings", "b.xml": "worksheet"},
    )
    assert after("a.xlsx", data)["x/b.xml"] == f"{root}{expected}</worksheet>"


def test_a_file_holds_no_more_than_excel_takes(capsys: pytest.CaptureFixture[str]) -> None:
    def doubled(units: Sequence[Unit]) -> Iterator[tuple[Item, ...] | None]:
        for unit in units:
            yield None if unit.kept else tuple(i if isinstance(i, Code) else "sehr, " * 60 + i for i in unit.items)

    body = (
        '<f>A1="Ja"</f><dataValidation type="list" promptTitle="Titel"><formula1>"Ja,Nein"</formula1></dataValidation>'
    )
    with zipfile.ZipFile(io.BytesIO(document("a.xlsx", sheet(body)).translated(doubled))) as file:
        out = file.read("x/b.xml").decode()
    assert '<f>A1="Ja"</f>' in out
    assert '"Ja,Nein"' in out
    assert 'promptTitle="sehr, sehr, sehr, sehr, sehr,…"' in out
    err = capsys.readouterr().err
    assert err.count("stays as it is") == 2
    assert "sehr, sehr, sehr, sehr, sehr,…" in err


def test_a_choice_has_no_comma_of_its_own() -> None:
    def with_comma(units: Sequence[Unit]) -> Iterator[tuple[Item, ...]]:
        for unit in units:
            yield tuple(item if isinstance(item, Code) else item + ', "so"' for item in unit.items)

    body = '<dataValidation type="list"><formula1>"Ja,Nein"</formula1></dataValidation>'
    with zipfile.ZipFile(io.BytesIO(document("a.xlsx", sheet(body)).translated(with_comma))) as file:
        assert '"Ja‚ ”so”,Nein‚ ”so”"' in file.read("x/b.xml").decode()


def test_texts_in_formulas_that_are_in_no_cell_are_counted() -> None:
    choices = '<dataValidation type="list"><formula1>"Ja,Nein"</formula1></dataValidation>'
    data = sheet(f'<f>IF(A1="Ja","Gewinn",TEXT(1,"TT"))</f><c t="str"><f/><v>Rot und</v></c>{choices}')
    assert kept("a.xlsx", data) == {
        "texts in formulas": 1, "results of formulas": 1, "names of sheets, which formulas name": 1,
    }  # fmt: skip


def test_hidden_sheets_are_left_on_demand() -> None:
    strings = "<sst><si><t>Rot</t></si><si><t>Blau</t></si><si><t>Hemd</t></si></sst>"
    parts = {
        "w.xml": '<b xmlns:r="r"><sheet name="A" r:id="r1"/><sheet name="B" state="hidden" r:id="r2"/></b>',
        "s.xml": strings,
        "a.xml": '<worksheet><c r="A1" t="s"><v>0</v></c><c r="A2" t="s"><f>B1</f><v>2</v></c></worksheet>',
        "b.xml": '<worksheet><c r="A1" t="s"><v>1</v></c><c r="A2" t="s"><v>2</v></c><is><t>Jacke</t></is></worksheet>',
    }
    kind = "application/vnd.ms-excel.sheet.macroEnabled.main+xml"
    types = f'<Override PartName="/w.xml" ContentType="{kind}"/>'
    data = package("w.xml", parts, {"s.xml": "sharedStrings", "a.xml": "worksheet", "b.xml": "worksheet"}, types)
    assert texts("a.xlsx", data) == ["Rot", "Blau", "Hemd", "Jacke"]
    assert texts("a.xlsx", data, asides_of([], ["hidden"])) == ["Rot", "Hemd"]


def test_pivot_tables_and_comments_and_headings() -> None:
    more = {
        "p.xml": ("pivotCacheDefinition", '<p><cacheField name="Das Hemd"><sharedItems><s v="Ja"/></sharedItems></p>'),
        "t.xml": ("table", '<table><tableColumn name="Nein" totalsRowLabel="Ja"/></table>'),
        "c.xml": ("comments", "<comments><comment><text><r><t>Rot</t></r></text></comment></comments>"),
        "d.xml": ("threadedComment", "<x:ThreadedComments xmlns:x='x'><x:text>Blau</x:text></x:ThreadedComments>"),
    }  # fmt: skip
    data = sheet('<f>COUNTIF(A:A,"Nein")</f>', more=more)
    out = after("a.xlsx", data)
    assert 'name="Qnf Urzq"><sharedItems><s v="Wn"/>' in out["x/p.xml"]
    assert '<tableColumn name="Nein" totalsRowLabel="Wn"/>' in out["x/t.xml"]
    assert "<t>Nein</t>" in out["x/s.xml"]
    assert '"Nein"' in out["x/b.xml"]
    assert "<t>Ebg</t>" in out["x/c.xml"]
    assert "<x:text>Oynh</x:text>" in out["x/d.xml"]


def test_fields_that_formulas_name_keep_their_names() -> None:
    cache = '<p><cacheField name="Das Hemd"/><cacheField name="Summe" formula="\'Das Hemd\' * 2"/></p>'
    data = sheet('<f>GETPIVOTDATA("Das Hemd",A1,"Ja","Nein")</f>', more={"p.xml": ("pivotCacheDefinition", cache)})
    assert "<t>Das Hemd</t>" in after("a.xlsx", data)["x/s.xml"]
    assert '("Das Hemd",A1,"Wn","Arva")' in after("a.xlsx", data)["x/b.xml"]
    assert kept("a.xlsx", data)["headings of tables, which formulas name"] == 1


def test_readings_of_a_cell_go_with_the_characters_that_they_count() -> None:
    reading = "<rPh sb='0' eb='4'><t>ヘムド</t></rPh><phoneticPr fontId='1'/>"
    cells = f"<si><t>Hemd</t>{reading}</si><si><r><t>Rot</t></r>{reading}</si><si><t>7</t>{reading}</si>"
    out = after("a.xlsx", sheet("", f"<sst>{cells}</sst>"))["x/s.xml"]
    changed = cells.replace(reading, "<phoneticPr fontId='1'/>", 2).replace("Hemd", "Urzq").replace("Rot", "Ebg")
    assert out == f"<sst>{changed}</sst>"


def test_lists_of_form_controls_and_records_of_pivot_tables() -> None:
    more = {
        "c.xml": ("ctrlProp", '<formControlPr><itemLst><item val="Rot"/></itemLst></formControlPr>'),
        "r.xml": ("pivotCacheRecords", '<pivotCacheRecords><r><s v="Ja"/></r></pivotCacheRecords>'),
    }
    out = after("a.xlsx", sheet("", more=more))
    assert '<item val="Ebg"/>' in out["x/c.xml"]
    assert '<s v="Wn"/>' in out["x/r.xml"]


def test_slicers_follow_the_cells() -> None:
    more = {
        "p.xml": ("pivotCacheDefinition", '<p><cacheField name="Das Hemd"/></p>'),
        "c.xml": ("slicerCache", '<slicerCacheDefinition name="Datenschnitt_Das_Hemd" sourceName="Das Hemd"/>'),
        "s2.xml": ("slicer", '<slicers><slicer name="Das Hemd" caption="Das Hemd"/></slicers>'),
        "t.xml": ("pivotTable", '<t><filter stringValue1="Ja"/><dataField name="Nein"/></t>'),
    }  # fmt: skip
    out = after("a.xlsx", sheet("", more=more))
    assert 'name="Datenschnitt_Das_Hemd" sourceName="Qnf Urzq"' in out["x/c.xml"]
    assert '<slicer name="Das Hemd" caption="Qnf Urzq"/>' in out["x/s2.xml"]
    assert 'stringValue1="Wn"/><dataField name="Arva"' in out["x/t.xml"]


def test_excels_own_escapes_are_no_words() -> None:
    data = sheet("", "<sst><si><t>Das Hemd_x000D_\nblau _x005F_x000D_</t></si><si><r><t>Rot_x0007_</t></r></si></sst>")
    assert texts("a.xlsx", data) == ["Das Hemd\r\nblau _x000D_", "Rot\x07"]
    assert "<t>Qnf Urzq_x000D_\noynh _k000Q_</t>" in after("a.xlsx", data)["x/s.xml"]
    assert "<t>Ebg_x0007_</t>" in after("a.xlsx", data)["x/s.xml"]


# -- language ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tgt", "before", "expected"),
    [
        ("en", '<w:lang w:val="de-DE" w:eastAsia="ja-JP"/>', '<w:lang w:val="en-US" w:eastAsia="ja-JP"/>'),
        ("pt_BR", '<w:lang w:val="de-DE"/>', '<w:lang w:val="pt-BR"/>'),
        ("eng_Latn", '<w:lang w:val="de"/>', '<w:lang w:val="en"/>'),
        ("en", '<w:lang w:val="x-none"/>', '<w:lang w:val="x-none"/>'),
        ("zh_Hans", '<w:lang w:val="de-DE" w:eastAsia="ja-JP"/>', '<w:lang w:val="zh-CN" w:eastAsia="zh-CN"/>'),
        ("ar", '<w:lang w:val="de-DE"/>', '<w:lang w:val="ar-EG" w:bidi="ar-EG"/>'),
        ("ar", '<w:lang w:val="de-DE" w:bidi="ar-SA"/>', '<w:lang w:val="ar-EG" w:bidi="ar-SA"/>'),
        ("ja", '<w:themeFontLang w:val="de-DE"/>', '<w:themeFontLang w:val="ja-JP" w:eastAsia="ja-JP"/>'),
    ],
)
def test_the_target_language_stands_in_runs_and_styles(tgt: str, before: str, expected: str) -> None:
    styles = f"<w:styles {W}><w:rPr>{before}</w:rPr></w:styles>"
    kinds = {"s.xml": "styles", "t.xml": "stylesWithEffects"}
    data = word(paragraph("Hemd", f"<w:rPr>{before}</w:rPr>"), {f"word/{name}": styles for name in kinds}, kinds)
    out = Document(data, FORMATS["docx"], Options("a.docx", ("de", tgt))).translated(rotated)
    with zipfile.ZipFile(io.BytesIO(out)) as file:
        assert expected in file.read("word/document.xml").decode()
        assert {file.read(f"word/{name}").decode() for name in kinds} == {styles.replace(before, expected)}


def test_a_document_of_which_nothing_changes_keeps_its_language() -> None:
    data = word("<w:p><w:r><w:rPr><w:lang w:val='de-DE'/></w:rPr><w:t>7</w:t></w:r></w:p>")
    assert document("a.docx", data).translated(rotated) == data


DEFAULTS = "<w:docDefaults><w:rPrDefault>{}</w:rPrDefault><w:pPrDefault>{}</w:pPrDefault></w:docDefaults>"
LEVELS = "".join(f'<a:lvl{level}pPr algn="r" rtl="1"/>' for level in range(1, 10))
MASTER = "".join(f"<p:{name}Style>{LEVELS}</p:{name}Style>" for name in ("title", "body", "other"))
LATIN, ARABIC = ("de", "en", "ltr"), ("de", "ar", "rtl")
BACK = ("he", "en", "ltr")


@pytest.mark.parametrize(
    ("name", "languages", "before", "expected"),
    [
        ("a.html", ARABIC, "<html><p>Rot", '<html dir="rtl"><p>Ebg'),
        ("a.html", ARABIC, '<html lang="de" DIR=ltr><p dir="ltr">Rot<p dir="auto">7',
         '<html lang="ar" DIR=rtl><p dir="rtl">Ebg<p dir="auto">7'),
        ("a.html", ARABIC, '<html><p translate="no" dir="ltr">Rot</p>Rot',
         '<html dir="rtl"><p translate="no" dir="ltr">Rot</p>Ebg'),
        ("a.html", LATIN, '<html><p dir="ltr">Rot', '<html><p dir="ltr">Ebg'),
        ("a.html", BACK, '<html dir="rtl"><p dir="ltr">Rot', '<html dir="ltr"><p dir="ltr">Ebg'),
        ("a.fodt", ARABIC, '<a style:writing-mode="lr-tb"/><style:page-layout-properties x="1"/><text:p>Rot</text:p>',
         '<a style:writing-mode="rl-tb"/><style:page-layout-properties style:writing-mode="rl-tb" x="1"/>'
         "<text:p>Ebg</text:p>"),
        ("a.fodt", ARABIC, '<a fo:text-align="start"/><a fo:text-align="center"/><text:p>Rot</text:p>',
         '<a fo:text-align="right"/><a fo:text-align="center"/><text:p>Ebg</text:p>'),
        ("a.fodt", ARABIC, '<office:styles/><text:p>Rot</text:p>',
         '<office:styles><style:default-style style:family="paragraph"><style:paragraph-properties '
         'style:writing-mode="rl-tb"/></style:default-style></office:styles><text:p>Ebg</text:p>'),
        ("a.fodt", ARABIC, '<a xmlns:fo="f"/><style:default-style style:family="graphic"><style:paragraph-properties/>'
         '</style:default-style><style:table-properties x="1"/><text:p>Rot</text:p>',
         '<a xmlns:fo="f"/><style:default-style style:family="graphic"><style:paragraph-properties '
         'fo:text-align="right" style:writing-mode="rl-tb"/></style:default-style>'
         '<style:table-properties style:writing-mode="rl-tb" x="1"/>'
         "<text:p>Ebg</text:p>"),
        ("a.fodt", ARABIC, '<style:text-properties fo:language="de" fo:country="DE" fo:font-size="9pt"/>'
         '<style:default-style><style:text-properties style:language-complex="zxx"/></style:default-style>'
         "<text:p>Rot</text:p>",
         '<style:text-properties fo:language="ar" fo:country="EG" fo:font-size="9pt" style:font-size-complex="9pt"/>'
         '<style:default-style><style:text-properties style:language-complex="ar" style:country-complex="EG"/>'
         "</style:default-style><text:p>Ebg</text:p>"),
        ("a.fodt", ("de", "ja", "ltr"),
         '<style:text-properties fo:font-weight="bold" style:font-weight-asian="normal"/>'
         '<style:default-style><style:text-properties fo:font-style="italic"/></style:default-style>'
         "<text:p>Rot</text:p>",
         '<style:text-properties fo:font-weight="bold" style:font-weight-asian="normal"/><style:default-style>'
         '<style:text-properties style:language-asian="ja" style:country-asian="JP" fo:font-style="italic" '
         'style:font-style-asian="italic"/></style:default-style><text:p>Ebg</text:p>'),
        ("a.fodt", BACK, '<a style:writing-mode="rl-tb"/><text:p>Rot</text:p>',
         '<a style:writing-mode="lr-tb"/><text:p>Ebg</text:p>'),
    ],
)  # fmt: skip
def test_the_direction_of_writing_of_text_files(
    name: str, languages: tuple[str, str, str], before: str, expected: str
) -> None:
    if name == "a.fodt":
        before, expected = (f"<office:document>{text}</office:document>" for text in (before, expected))
    made = Document(before.encode(), format_of(Path(name), before.encode()), Options(name, languages[:2]))
    assert made.translated(rotated).decode() == expected


@pytest.mark.parametrize(
    ("languages", "before", "expected"),
    [
        (ARABIC, DEFAULTS.format("<w:rPr/>", "<w:pPr/>"),
         DEFAULTS.format("<w:rPr/>", "<w:pPr><w:bidi/></w:pPr>")),
        (ARABIC, "<w:rPrDefault/><w:pPrDefault/>",
         "<w:rPrDefault/><w:pPrDefault><w:pPr><w:bidi/></w:pPr></w:pPrDefault>"),
        (ARABIC, DEFAULTS.format("<w:rPr><w:em w:val='dot'/></w:rPr>",
                                 "<w:pPr><w:tabs/><w:spacing w:after='0'/><w:jc w:val='left'/></w:pPr>"),
         DEFAULTS.format("<w:rPr><w:em w:val='dot'/></w:rPr>",
                         "<w:pPr><w:tabs/><w:bidi/><w:spacing w:after='0'/><w:jc w:val='left'/></w:pPr>")),
        (ARABIC, DEFAULTS.format('<w:rPr/>', '<w:pPr><w:keepNext/><w:bidi w:val="0"/></w:pPr>'),
         DEFAULTS.format("<w:rPr/>", "<w:pPr><w:keepNext/><w:bidi/></w:pPr>")),
        (ARABIC, "<w:tblPr><w:tblStyle w:val='x'/><w:tblW w:w='0'/></w:tblPr><w:tblPr/>",
         "<w:tblPr><w:tblStyle w:val='x'/><w:bidiVisual/><w:tblW w:w='0'/></w:tblPr><w:tblPr/>"),
        (BACK, DEFAULTS.format("<w:rPr><w:rtl/></w:rPr>", "<w:pPr><w:bidi/></w:pPr>"),
         DEFAULTS.format("<w:rPr></w:rPr>", "<w:pPr></w:pPr>")),
        (LATIN, DEFAULTS.format("<w:rPr/>", "<w:pPr/>"), DEFAULTS.format("<w:rPr/>", "<w:pPr/>")),
        (ARABIC, '<a:lvl1pPr algn="l" rtl="0"/><a:pPr/><a:pPr algn="ctr"/><a:tblPr firstRow="1"/>',
         '<a:lvl1pPr algn="r" rtl="1"/><a:pPr rtl="1"/><a:pPr rtl="1" algn="ctr"/><a:tblPr rtl="1" firstRow="1"/>'),
        (BACK, '<a:lvl1pPr algn="r" rtl="1"/>', '<a:lvl1pPr algn="l" rtl="0"/>'),
        (ARABIC, '<a:p><a:r><a:t>\u0627</a:t></a:r></a:p><a:p/><a:bodyPr wrap="none" rtlCol="0"/>',
         '<a:p><a:pPr rtl="1"/><a:r><a:t>\u0627</a:t></a:r></a:p><a:p/><a:bodyPr wrap="none" rtlCol="1"/>'),
        (ARABIC, '<p:txStyles><a:lvl1pPr/><a:lvl2pPr algn="ctr"/></p:txStyles><a:lvl1pPr/>',
         '<p:txStyles><a:lvl1pPr algn="r" rtl="1"/><a:lvl2pPr rtl="1" algn="ctr"/></p:txStyles><a:lvl1pPr rtl="1"/>'),
        (ARABIC, "<p:sldMaster><p:extLst/><p:extLst><p:ext/></p:extLst></p:sldMaster><p:presentation></p:presentation>",
         f"<p:sldMaster><p:extLst/><p:txStyles>{MASTER}</p:txStyles><p:extLst><p:ext/></p:extLst></p:sldMaster>"
         f'<p:presentation rtl="1"><p:defaultTextStyle>{LEVELS}</p:defaultTextStyle></p:presentation>'),
        (BACK, '<a:p><a:pPr algn="r" rtl="1"/><a:r><a:t>\u05d0</a:t></a:r></a:p><a:p><a:pPr rtl="1"/></a:p>',
         '<a:p><a:pPr algn="r" rtl="1"/><a:r><a:t>\u05d0</a:t></a:r></a:p><a:p><a:pPr rtl="0"/></a:p>'),
        (ARABIC, "<w:sectPr><w:cols/><w:docGrid/></w:sectPr><w:sectPr/>",
         "<w:sectPr><w:cols/><w:bidi/><w:docGrid/></w:sectPr><w:sectPr/>"),
        (BACK, "<w:sectPr><w:bidi/><w:rtlGutter/></w:sectPr><w:tblPr><w:bidiVisual/></w:tblPr>",
         "<w:sectPr></w:sectPr><w:tblPr></w:tblPr>"),
    ],
)  # fmt: skip
def test_the_direction_of_writing_of_office(languages: tuple[str, str, str], before: str, expected: str) -> None:
    data = word(paragraph("Hemd"), {"word/s.xml": f"<w:styles {W} {P}>{before}</w:styles>"}, {"s.xml": "styles"})
    out = Document(data, FORMATS["docx"], Options("a.docx", languages[:2])).translated(rotated)
    with zipfile.ZipFile(io.BytesIO(out)) as file:
        assert file.read("word/s.xml").decode() == f"<w:styles {W} {P}>{expected}</w:styles>"


def in_words(words: Mapping[str, str], languages: tuple[str, str], name: str, data: bytes) -> dict[str, str]:
    """The parts of a file when the texts in `words` have been translated so, and all others are left."""

    def translate(units: Sequence[Unit]) -> Iterator[tuple[Item, ...] | None]:
        for unit in units:
            yield tuple(words.get(item, item) if isinstance(item, str) else item for item in unit.items)

    out = Document(data, format_of(Path(name), data), Options(name, languages)).translated(translate)
    with zipfile.ZipFile(io.BytesIO(out)) as file:
        return {part: file.read(part).decode() for part in file.namelist()}


INTO = {"Hemd": "\u0642\u0645\u064a\u0635", "7": "7"}
FROM_RIGHT = "<w:bidi/><w:rPr><w:rtl/></w:rPr>"


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("<w:p><w:r><w:t>Hemd</w:t></w:r></w:p>",
         f"<w:p><w:pPr>{FROM_RIGHT}</w:pPr><w:r><w:rPr><w:rtl/></w:rPr><w:t>{INTO['Hemd']}</w:t></w:r></w:p>"),
        ("<w:p><w:pPr><w:pStyle w:val='x'/><w:jc w:val='left'/></w:pPr><w:r><w:rPr/><w:t>Hemd</w:t></w:r></w:p>",
         "<w:p><w:pPr><w:pStyle w:val='x'/><w:bidi/><w:jc w:val='left'/><w:rPr><w:rtl/></w:rPr></w:pPr>"
         f"<w:r><w:rPr><w:rtl/></w:rPr><w:t>{INTO['Hemd']}</w:t></w:r></w:p>"),
        ("<w:p><w:pPr><w:bidi w:val='0'/><w:rPr><w:lang w:val='x-none'/></w:rPr><w:pPrChange><w:pPr/></w:pPrChange>"
         "</w:pPr><w:r><w:t>Hemd</w:t></w:r></w:p>",
         "<w:p><w:pPr><w:bidi/><w:rPr><w:rtl/><w:lang w:val='x-none' w:bidi=\"ar-EG\"/></w:rPr>"
         "<w:pPrChange><w:pPr/></w:pPrChange>"
         f"</w:pPr><w:r><w:rPr><w:rtl/></w:rPr><w:t>{INTO['Hemd']}</w:t></w:r></w:p>"),
        ("<w:p><w:r><w:rPr><w:b/><w:i w:val='0'/><w:sz w:val='40'/></w:rPr><w:t>Hemd</w:t></w:r></w:p>",
         f"<w:p><w:pPr>{FROM_RIGHT}</w:pPr><w:r><w:rPr><w:b/><w:bCs/><w:i w:val='0'/><w:iCs w:val='0'/>"
         f"<w:sz w:val='40'/><w:szCs w:val='40'/><w:rtl/></w:rPr><w:t>{INTO['Hemd']}</w:t></w:r></w:p>"),
        ("<w:p><w:r><w:rPr><w:rtl w:val='0'/><w:sz w:val='1'/><w:szCs w:val='2'/><w:rPrChange><w:rPr><w:b/></w:rPr>"
         "</w:rPrChange></w:rPr><w:t>Hemd</w:t></w:r></w:p>",
         f"<w:p><w:pPr>{FROM_RIGHT}</w:pPr><w:r><w:rPr><w:sz w:val='1'/><w:szCs w:val='2'/><w:rtl/>"
         f"<w:rPrChange><w:rPr><w:b/><w:bCs/></w:rPr></w:rPrChange></w:rPr><w:t>{INTO['Hemd']}</w:t></w:r></w:p>"),
    ],
)  # fmt: skip
def test_paragraphs_and_runs_of_word_are_marked_as_written_from_the_right(before: str, expected: str) -> None:
    assert expected in in_words(INTO, ("de", "ar"), "a.docx", word(before))["word/document.xml"]


def test_a_run_of_word_that_stays_in_latin_letters_is_not_marked() -> None:
    code = "<w:r><w:rPr><w:noProof/></w:rPr><w:t>x = 7</w:t></w:r>"
    out = in_words(INTO, ("de", "ar"), "a.docx", word(f"<w:p>{code}</w:p>{paragraph('Hemd')}"))["word/document.xml"]
    assert f"</w:pPr>{code}</w:p>" in out


@pytest.mark.parametrize(
    ("tgt", "before", "expected"),
    [
        ("ar", 'w:ascii="Arial" w:hAnsi="Arial"', 'w:ascii="Arial" w:hAnsi="Arial" w:cs="Arial"'),
        ("th", 'w:asciiTheme="majorHAnsi"', 'w:asciiTheme="majorHAnsi" w:cstheme="majorBidi"'),
        ("ar", 'w:ascii="Arial" w:cstheme="minorBidi"', 'w:ascii="Arial" w:cstheme="minorBidi"'),
        ("en", 'w:ascii="Arial"', 'w:ascii="Arial"'),
        ("ja", 'w:ascii="Arial"', 'w:ascii="Arial"'),
    ],
)
def test_complex_scripts_have_a_font_of_their_own_in_word(tgt: str, before: str, expected: str) -> None:
    data = word(paragraph("Hemd", f"<w:rPr><w:rFonts {before}/></w:rPr>"))
    assert f"<w:rFonts {expected}/>" in in_words(INTO, ("de", tgt), "a.docx", data)["word/document.xml"]


def test_what_stays_in_hebrew_in_a_document_of_word_keeps_its_direction() -> None:
    marked = "<w:p><w:pPr><w:bidi/></w:pPr><w:r><w:rPr><w:bCs/><w:rtl/></w:rPr><w:t>{}</w:t></w:r></w:p>"
    mixed = marked.replace("</w:p>", "<w:r><w:rPr><w:rtl/></w:rPr><w:t>\u05d0</w:t></w:r></w:p>")
    source = "\u0642\u0645\u064a\u0635"
    data = word(marked.format("\u05d0") + marked.format(source) + mixed.format(source))
    out = in_words({source: "shirt"}, ("ar", "en"), "a.docx", data)["word/document.xml"]
    assert marked.format("\u05d0").replace("<w:bCs/>", "<w:b/><w:bCs/>") in out
    run = "<w:p><w:pPr></w:pPr><w:r><w:rPr><w:b/><w:bCs/></w:rPr><w:t>shirt</w:t></w:r>"
    assert f"{run}</w:p>{run}<w:r><w:rPr><w:rtl/></w:rPr><w:t>\u05d0</w:t></w:r></w:p>" in out


def test_a_document_into_hebrew_and_back_has_the_marks_that_it_had() -> None:
    body = f"{paragraph('Hemd', '<w:rPr><w:b/><w:bCs/></w:rPr>')}<w:tbl><w:tblPr></w:tblPr></w:tbl>"
    into, back = {"Hemd": "\u05d0"}, {"\u05d0": "Hemd"}
    there = in_words(into, ("de", "he"), "a.docx", word(body))["word/document.xml"]
    assert there.count("<w:rtl/>") == 2
    assert there.count("bidi") == 2
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(word(body))) as source, zipfile.ZipFile(out, "w") as file:
        for name in source.namelist():
            file.writestr(name, there if name == "word/document.xml" else source.read(name))
    end = in_words(back, ("he", "de"), "a.docx", out.getvalue())["word/document.xml"]
    assert body in end.replace("<w:pPr><w:rPr></w:rPr></w:pPr>", "")


@pytest.mark.parametrize(
    ("languages", "before", "expected"),
    [
        (ARABIC, '<sheetView workbookViewId="0"/>', '<sheetView rightToLeft="1" workbookViewId="0"/>'),
        (BACK, "<sheetView rightToLeft='1'/>", "<sheetView rightToLeft='0'/>"),
        (LATIN, "<sheetView/>", "<sheetView/>"),
        (
            ARABIC,
            "<sheetPr><tabColor/></sheetPr><dimension ref='A1'/><sheetData/>",
            "<sheetPr><tabColor/></sheetPr><dimension ref='A1'/>"
            "<sheetViews><sheetView rightToLeft=\"1\" workbookViewId='0'/></sheetViews><sheetData/>",
        ),
        (BACK, "<sheetData/>", "<sheetData/>"),
    ],
)
def test_the_side_on_which_the_first_column_stands(languages: tuple[str, str, str], before: str, expected: str) -> None:
    out = Document(sheet(before), FORMATS["xlsx"], Options("a.xlsx", languages[:2])).translated(rotated)
    with zipfile.ZipFile(io.BytesIO(out)) as file:
        assert file.read("x/b.xml").decode() == f"<worksheet>{expected}</worksheet>"


def test_cells_of_excel_are_aligned_to_the_other_side() -> None:
    styles = '<styleSheet><alignment horizontal="left" readingOrder="1"/><alignment horizontal="center"/></styleSheet>'
    data = sheet("", more={"y.xml": ("styles", styles)})
    out = Document(data, FORMATS["xlsx"], Options("a.xlsx", ARABIC[:2])).translated(rotated)
    with zipfile.ZipFile(io.BytesIO(out)) as file:
        assert file.read("x/y.xml").decode() == (
            '<styleSheet><alignment horizontal="right" readingOrder="2"/><alignment horizontal="center"/></styleSheet>'
        )


def test_the_side_on_which_the_next_page_of_a_book_stands() -> None:
    data = book({"a.xhtml": ("application/xhtml+xml", "<html><p>Rot</p></html>")}, "<spine toc='n'/>")
    out = Document(data, FORMATS["epub"], Options("a.epub", ARABIC[:2])).translated(rotated)
    with zipfile.ZipFile(io.BytesIO(out)) as file:
        assert "<spine page-progression-direction=\"rtl\" toc='n'/>" in file.read("OPS/b.opf").decode()
        assert file.read("OPS/a.xhtml").decode() == '<html dir="rtl"><p>Ebg</p></html>'


# -- OpenDocument and books ----------------------------------------------------------------------------------------


def odf(content: str, kind: str = "text", more: dict[str, str] | None = None, manifest: str = "") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("mimetype", f"application/vnd.oasis.opendocument.{kind}")
        file.writestr("META-INF/manifest.xml", f"<manifest>{manifest}</manifest>")
        for name, text in {"content.xml": f"<office:text>{content}</office:text>", **(more or {})}.items():
            file.writestr(name, text)
    return out.getvalue()


CELL = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ('<table:table-cell office:string-value="Ja"><text:p>Ja</text:p></table:table-cell>',
         '<table:table-cell office:string-value="Wn"><text:p>Wn</text:p></table:table-cell>'),
        ('<table:table-cell office:string-value="Das"><text:p>Das!</text:p></table:table-cell>',
         '<table:table-cell office:string-value="Qnf"><text:p>Qnf!</text:p></table:table-cell>'),
        ('<table:table-cell table:formula="of:=IF([.A1]=&quot;ja&quot;;&quot;Rot&quot;)"/>',
         '<table:table-cell table:formula="of:=IF([.A1]=&quot;Wn&quot;;&quot;Rot&quot;)"/>'),
        ('<table:table-cell table:formula="of:=[.A1]" office:string-value="Ja"><text:p>Ja</text:p></table:table-cell>',
         '<table:table-cell table:formula="of:=[.A1]" office:string-value="Wn"><text:p>Wn</text:p></table:table-cell>'),
        ('<table:table-cell table:formula="of:=[.B1]"><text:p>Ja so</text:p></table:table-cell>',
         '<table:table-cell table:formula="of:=[.B1]"><text:p>Ja so</text:p></table:table-cell>'),
        ('<table:content-validation table:condition="of:cell-content-is-in-list(&quot;Ja&quot;;&quot;Rot&quot;)"/>',
         '<table:content-validation table:condition="of:cell-content-is-in-list(&quot;Wn&quot;;&quot;Ebg&quot;)"/>'),
        ('<style:map style:condition="cell-content()=&quot;Ja&quot;"/>',
         '<style:map style:condition="cell-content()=&quot;Wn&quot;"/>'),
        ('<table:filter-condition table:value="Ja"/>', '<table:filter-condition table:value="Wn"/>'),
        ('<text:p>Rot <text:title>Hemd</text:title> <text:page-number>1</text:page-number> oder</text:p>',
         '<text:p>Ebg <text:title>Urzq</text:title> <text:page-number>1</text:page-number> bqre</text:p>'),
        ('<text:drop-down><text:label text:value="Rot"/></text:drop-down>',
         '<text:drop-down><text:label text:value="Ebg"/></text:drop-down>'),
        ('<table:table-cell table:formula="of:=COUNTIF([.A1];&quot;&lt;&gt;Ja&quot;)"/>',
         '<table:table-cell table:formula="of:=COUNTIF([.A1];&quot;&lt;&gt;Wn&quot;)"/>'),
        ('<ns0:p>Rot <ns0:s/>Hemd</ns0:p>', '<ns0:p>Ebg <ns0:s/>Urzq</ns0:p>'),
        ('<text:alphabetical-index-mark-start text:id="i" text:key1="Rot"/>',
         '<text:alphabetical-index-mark-start text:id="i" text:key1="Ebg"/>'),
        ('<form:text form:value="Rot" form:current-value="Blau"/>',
         '<form:text form:value="Ebg" form:current-value="Oynh"/>'),
        ('<form:button form:label="Rot"/>', '<form:button form:label="Ebg"/>'),
        ('<svg:title>Rot</svg:title><svg:desc>Blau</svg:desc>', '<svg:title>Ebg</svg:title><svg:desc>Oynh</svg:desc>'),
        ('<presentation:footer-decl presentation:name="f">Rot</presentation:footer-decl>',
         '<presentation:footer-decl presentation:name="f">Ebg</presentation:footer-decl>'),
        ('<text:list-level-style-number style:num-prefix="Artikel " style:num-suffix=")"/>',
         '<text:list-level-style-number style:num-prefix="Negvxry " style:num-suffix=")"/>'),
        ('<style:text-properties fo:language="de" fo:country="DE"/>',
         '<style:text-properties fo:language="en" fo:country="US"/>'),
    ],
)  # fmt: skip
def test_texts_of_opendocument_change_together(before: str, expected: str) -> None:
    cell = CELL.format("Ja")
    out = after("a.ods", odf(cell + before, "spreadsheet"))["content.xml"]
    assert out == f"<office:text>{cell.replace('Ja', 'Wn')}{expected}</office:text>"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("<svg:desc>'Daten hier'.$A$1:'Daten hier'.$A$2</svg:desc>", "ranges of cells"),
        ("<svg:desc>Tabelle1.B1</svg:desc>", "ranges of cells"),
        ('<table:table-cell office:value-type="boolean"><text:p>WAHR</text:p></table:table-cell>', "numbers, dates"),
        ('<table:table-cell office:value-type="date"><text:p>3. Mai</text:p></table:table-cell>', "numbers, dates"),
        ("<text:p><text:date>3. Mai</text:date></text:p>", "fields"),
    ],
)  # fmt: skip
def test_what_is_left_of_opendocument_is_counted(content: str, reason: str) -> None:
    data = odf(content)
    assert [kind.startswith(reason) for kind in kept("a.odt", data)] == [True]
    assert texts("a.odt", data) == []
    assert document("a.odt", data).translated(rotated) == data


def test_properties_that_a_file_has_of_its_own_are_counted() -> None:
    meta = "<office:meta><meta:user-defined meta:name='x'>Einkauf</meta:user-defined></office:meta>"
    custom = "<Properties><property name='x'><vt:lpwstr xmlns:vt='v'>Einkauf</vt:lpwstr></property></Properties>"
    for name, data in (
        ("a.odt", odf("", more={"meta.xml": meta})),
        ("a.docx", word("", {"word/c.xml": custom}, {"c.xml": "custom-properties"})),
    ):
        assert kept(name, data).total() == 1
        assert texts(name, data) == []


def test_asides_of_opendocument() -> None:
    changes = "<text:tracked-changes><text:deletion><text:p>Weg</text:p></text:deletion></text:tracked-changes>"
    style = '<style:style style:name="h"><style:table-properties table:display="false"/></style:style>'
    data = odf(
        f"{changes}{style}<text:p>Eins<office:annotation><text:p>Zwei</text:p></office:annotation>"
        "<text:note><text:note-body><text:p>Drei</text:p></text:note-body></text:note></text:p>"
        f'<table:table table:style-name="h">{CELL.format("Vier")}</table:table>'
        '<text:section text:display="none"><text:p>Fünf</text:p></text:section><text:p>Sechs</text:p>'
    )
    assert sorted(texts("a.odt", data)) == ["Drei", "Eins", "Fünf", "Sechs", "Vier", "Zwei"]
    assert kept("a.odt", data) == {"tracked deletions (`with`: changes)": 1}
    assert texts("a.odt", data, asides_of(["changes"], ["comments", "notes", "hidden"])) == ["Weg", "Eins", "Sechs"]
    assert "<text:p>Jrt</text:p>" in after("a.odt", data, asides_of(["changes"], []))["content.xml"]


def test_a_document_in_one_file_is_read_as_one_of_several_parts_is() -> None:
    picture = "<draw:image><office:binary-data>aGVtZA==\nHemd</office:binary-data></draw:image>"
    paragraph = f"<text:p>Das <draw:frame>{picture}</draw:frame> da</text:p>"
    meta = "<office:meta><dc:title>Hemd</dc:title><dc:language>de-DE</dc:language></office:meta>"
    formula = '<table:table-cell table:formula="of:=[.A1]=&quot;ja&quot;"/>'
    language = '<style:text-properties fo:language="de" fo:country="DE"/>'
    whole = f"<office:document>{meta}{language}{paragraph}{CELL.format('Ja')}{formula}</office:document>"
    changed = {
        "Das ": "Qnf ", " da<": " qn<", ">Hemd<": ">Urzq<", "p>Ja<": "p>Wn<", ";ja&": ";Wn&", "de-DE": "en-US",
        '"de"': '"en"', '"DE"': '"US"',
    }  # fmt: skip
    expected = whole
    for before, new in changed.items():
        expected = expected.replace(before, new)
    assert document("a.fods", whole.encode()).translated(rotated).decode() == expected
    with raises_error(Error.WRONG_FILE_TYPE):
        format_of(Path("a.fodt"), odf(""))


def test_charts_inside_of_opendocument_are_parts_of_it() -> None:
    manifest = '<file-entry full-path="Object 1/" media-type="application/vnd.oasis.opendocument.chart"/>'
    data = odf("<text:p>Rot</text:p>", more={"Object 1/content.xml": "<c><text:p>Hemd</text:p></c>"}, manifest=manifest)
    assert after("a.odt", data)["Object 1/content.xml"] == "<c><text:p>Urzq</text:p></c>"


def test_the_manifest_says_what_a_package_is_if_nothing_else_does() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr(
            "META-INF/manifest.xml",
            '<m><file-entry full-path="/" media-type="application/vnd.oasis.opendocument.text"/></m>',
        )
        file.writestr("content.xml", "<t><text:p>Hemd</text:p></t>")
    assert texts("a.odt", out.getvalue()) == ["Hemd"]


def book(
    items: dict[str, tuple[str, str]], metadata: str = "", mimetype: bool = True, place: str = "OPS/b.opf"
) -> bytes:
    out = io.BytesIO()
    rows = "".join(f'<item href="{name}" media-type="{type}"/>' for name, (type, _) in items.items())
    with zipfile.ZipFile(out, "w") as file:
        if mimetype:
            file.writestr("mimetype", "application/epub+zip")
        file.writestr("META-INF/container.xml", f'<container><rootfile full-path="{place}"/></container>')
        file.writestr(place, f'<package xml:lang="de"><metadata>{metadata}</metadata>{rows}</package>')
        for name, (_, text) in items.items():
            folder = place.rpartition("/")[0]
            file.writestr(unicodedata.normalize("NFC", unquote(f"{folder}/{name}".removeprefix("/"))), text)
    return out.getvalue()


@pytest.mark.parametrize("name", ["a.xhtm", "b.xml", "c.XHTML", "d", "text/e%20f.htm"])
@pytest.mark.parametrize("place", ["OPS/b.opf", "b.opf", "x/package.xml"])
def test_chapters_are_found_by_their_media_type(name: str, place: str) -> None:
    page = '<html xml:lang="de" lang="de"><body><p>Hemd</p></body></html>'
    plain_text = ("text/plain", "<p>Rot</p>")
    data = book({name: ("application/xhtml+xml", page), "x.html": plain_text}, place=place, mimetype=name != "d")
    assert texts("a.epub", data) == ["Hemd"]
    folder = place.rpartition("/")[0]
    out = after("a.epub", data)
    assert (
        page.replace("Hemd", "Urzq").replace('"de"', '"en"')
        == out[f"{folder}/{name}".removeprefix("/").replace("%20", " ")]
    )


LOCK = "<encryption><e:CipherData xmlns:e='x'><e:CipherReference URI='{}'/></e:CipherData></encryption>"


def test_a_book_whose_chapters_are_encrypted_is_refused_and_one_with_encrypted_fonts_is_not() -> None:
    page = ("application/xhtml+xml", "<html><body><p>Hemd</p></body></html>")
    font = ("font/otf", "")
    locked = {"META-INF/encryption.xml": ("", LOCK.format("a%20b.xhtml"))}
    with raises_error(Error.LOCKED, "a b.xhtml"):
        texts("a.epub", book({"a%20b.xhtml": page, **locked}, place="b.opf"))
    fonts = {"META-INF/encryption.xml": ("", LOCK.format("f.otf"))}
    assert texts("a.epub", book({"a.xhtml": page, "f.otf": font, **fonts}, place="b.opf")) == ["Hemd"]


def test_opendocument_with_a_password_is_refused() -> None:
    entry = '<file-entry full-path="content.xml" media-type="text/xml"><encryption-data checksum="x"/></file-entry>'
    with raises_error(Error.LOCKED, "password"):
        texts("a.odt", odf("", manifest=entry))


def test_the_title_and_the_language_of_a_book() -> None:
    ncx = "<ncx xml:lang='de'><docTitle><text>Hemd</text></docTitle><docAuthor><text>Jo Rot</text></docAuthor></ncx>"
    facts = "<dc:title>Hemd</dc:title><dc:creator>Anna</dc:creator><dc:language>de-DE</dc:language>"
    out = after("a.epub", book({"t.ncx": ("application/x-dtbncx+xml", ncx)}, facts))
    expected = "<dc:title>Urzq</dc:title><dc:creator>Anna</dc:creator><dc:language>en-US</dc:language>"
    assert f'<package xml:lang="en"><metadata>{expected}</metadata>' in out["OPS/b.opf"]
    assert out["OPS/t.ncx"] == ncx.replace("'de'", "'en'").replace("Hemd", "Urzq")


@pytest.mark.parametrize(
    ("name", "before", "expected"),
    [
        ("a.html", '<html lang="de"><p lang="de-DE">Rot</p><p lang="fr">Rot</p>',
         '<html lang="en"><p lang="en">Ebg</p><p lang="fr">Ebg</p>'),
        ("a.html", '<meta name="og:locale" content="de_DE"><p>Rot', '<meta name="og:locale" content="en_US"><p>Ebg'),
        ("a.html", '<p>Rot</p><p lang="de" translate="no">Rot</p>', '<p>Ebg</p><p lang="de" translate="no">Rot</p>'),
        ("a.po", 'msgid ""\nmsgstr ""\n"Language: \\n"\n\nmsgid "Rot"\nmsgstr ""\n',
         'msgid ""\nmsgstr ""\n"Language: en\\n"\n\n#, fuzzy\nmsgid "Rot"\nmsgstr "Ebg"\n'),
        ("a.po", 'msgid ""\nmsgstr ""\n"A: b\\n"\n\nmsgid "Rot"\nmsgstr ""\n',
         'msgid ""\nmsgstr ""\n"A: b\\n"\n"Language: en\\n"\n\n#, fuzzy\nmsgid "Rot"\nmsgstr "Ebg"\n'),
        ("a.po", 'msgid ""\nmsgstr ""\n"Language: en_GB\\n"\n\nmsgid "Rot"\nmsgstr ""\n',
         'msgid ""\nmsgstr ""\n"Language: en_GB\\n"\n\n#, fuzzy\nmsgid "Rot"\nmsgstr "Ebg"\n'),
        ("a.arb", '{"@@locale": "de", "a": "Rot"}', '{"@@locale": "en", "a": "Ebg"}'),
        ("a.md", "---\nlang: de-DE\n---\n\nRot\n", "---\nlang: en-US\n---\n\nEbg\n"),
        ("a.vtt", "WEBVTT\nLanguage: de\n\n00:00.000 --> 00:01.000\nRot\n",
         "WEBVTT\nLanguage: en\n\n00:00.000 --> 00:01.000\nEbg\n"),
    ],
)  # fmt: skip
def test_the_target_language_is_written_where_a_file_names_one(name: str, before: str, expected: str) -> None:
    assert document(name, before.encode()).translated(rotated).decode() == expected
    unchanged = before.replace("Rot", "7")
    if not name.endswith(".po"):  # where a number is its own translation
        assert document(name, unchanged.encode()).translated(rotated).decode() == unchanged
