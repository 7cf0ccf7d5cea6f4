"""Bilingual documents: every translation below its source, and a file that is as valid as it was.

Rebuilt: yihong0618/bilingual_book_maker#552 (ids twice, captions and entries of contents that allow no sibling), #554
(stacked entries), #218 (items of lists left out), immersive-translate#1750 (cues twice instead of two lines),
#1986 (no language), bookfere/Ebook-Translator-Calibre-Plugin#236 (numbered paragraphs), AiNiee#968 (links of notes),
jawordpressorg/community-handbook#64 (a list in pieces), SRTranslator#57 (limits of lines), stella/folio#578 (numbers).
"""

import io
import re
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import docx
import html5lib
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from markdown_it import MarkdownIt
from tests.errors import raises_error
from tests.unit.test_kinds import ROWS, packed, unpacked

from dragoman.errors import Error
from dragoman.formats.base import Code, Item, Options, Unit
from dragoman.formats.document import FORMATS, Document


def shouted(units: Sequence[Unit]) -> Iterator[tuple[Item, ...] | None]:
    for unit in units:
        yield None if unit.kept else tuple(item if isinstance(item, Code) else item.upper() for item in unit.items)


def bilingual(name: str, source: str | bytes, languages: tuple[str, str] = ("de", "en")) -> bytes:
    data = source.encode() if isinstance(source, str) else source
    return Document(data, FORMATS[name], Options("a", languages, bilingual=True)).translated(shouted)


def written(name: str, source: str) -> str:
    return bilingual(name, source).decode()


def test_plain_text() -> None:
    assert written("txt", "Titel\n\n- ein Punkt\n> Zitat\n\n12 %\n") == (
        "Titel\nTITEL\n\n- ein Punkt\n  EIN PUNKT\n> Zitat\n> ZITAT\n\n12 %\n"
    )
    broken = "Ein langer Absatz ist das, der hier umbrochen wird, und\nder in der nächsten Zeile noch weitergeht.\n"
    assert written("txt", broken) == f"{broken}\n{broken.upper()}"
    assert written("txt", "Eins\r\nzwei\r\n") == "Eins\r\nEINS\r\nzwei\r\nZWEI\r\n"


TIMES, MORE = "1\n00:00:01,000 --> 00:00:02,000\n", "2\n00:00:02,000 --> 00:00:03,000\n"


@pytest.mark.parametrize(
    ("name", "before", "source", "expected"),
    [
        ("srt", TIMES, "Hallo.\n", "Hallo.\nHALLO.\n"),
        ("srt", TIMES, "<i>- Ja, du.</i>\n", "<i>- Ja, du.\n- JA, DU.</i>\n"),
        ("srt", TIMES.replace("\n", "\r\n"), "- Ja.\r\n- Nein.\r\n", "- Ja.\r\n- JA.\r\n- Nein.\r\n- NEIN.\r\n"),
        ("srt", TIMES, f"{{\\an8}}ich gehe\n\n{MORE}nach hause.\n",
         f"{{\\an8}}ich gehe\nICH GEHE\n\n{MORE}nach hause.\nNACH HAUSE.\n"),
        ("vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\n", "<v Anna>Hallo.</v>\n", "<v Anna>Hallo.\nHALLO.</v>\n"),
        ("ass", "[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,D,,0,0,0,,", "Hallo.\n", "Hallo.\\NHALLO.\n"),
    ],
)  # fmt: skip
def test_subtitles_have_both_in_their_cue(name: str, before: str, source: str, expected: str) -> None:
    assert written(name, before + source) == before + expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("Ein Satz\nhier.\n", "Ein Satz\nhier.\n\nEIN SATZ HIER.\n"),
        ("# Über **uns** {#a}\n", "# Über **uns**<br>ÜBER **UNS** {#a}\n"),
        ("Titel\n=====\n", "Titel<br>TITEL\n=====\n"),
        ("- Eins\n- [ ] Zwei\n", "- Eins<br>EINS\n- [ ] Zwei<br>ZWEI\n"),
        ("1. Eins\n\n   Mehr\n\n2. Zwei\n", "1. Eins\n\n   EINS\n\n   Mehr\n\n   MEHR\n\n2. Zwei\n\n   ZWEI\n"),
        ("- > Eins\n  > zwei\n", "- > Eins\n  > zwei\n  >\n  > EINS ZWEI\n"),
        ("> [!NOTE]\n> Eins\n", "> [!NOTE]\n> Eins\n>\n> EINS\n"),
        ("| a | b |\n|---|---|\n| Ja | 5 |\n", "| a<br>A | b<br>B |\n|---|---|\n| Ja<br>JA | 5 |\n"),
        ("**Wichtig**\n", "**Wichtig**\n\n**WICHTIG**\n"),
        ("![Ein Bild](a.png)\n", "![EIN BILD](a.png)\n"),
        ("[![Bild](a.png)](https://a.b/cd)\n", "[![BILD](a.png)](https://a.b/cd)\n"),
        ("Das ![Bild](a.png) hier[^1].\n\n[^1]: Note\n",
         "Das ![Bild](a.png) hier[^1].\n\nDAS HIER[^1].\n\n[^1]: Note<br>NOTE\n"),
        (":::tip\nRat\n:::\n", ":::tip\nRat\n\nRAT\n:::\n"),
        ("---\ntitle: Titel\n---\nJa\n", "---\ntitle: TITEL\n---\nJa\n\nJA\n"),
        ("<p id='a'>Ja</p>\n", "<p id='a' lang=\"de\">Ja</p>\n<p lang=\"en\">JA</p>\n"),
        ("Zeile  \nzwei\r\n", "Zeile  \nzwei\r\n\r\nZEILE  \nZWEI\r\n"),
        ('<a name="x"></a>Text\n', '<a name="x"></a>Text\n\n<a></a>TEXT\n'),
    ],
)  # fmt: skip
def test_markdown(source: str, expected: str) -> None:
    assert written("md", source) == expected


def test_markdown_has_the_same_blocks_as_before() -> None:
    source = (
        "# Eins\n\nText\n\n* a b\n* c d\n\n  mehr\n\n1. e f\n2. g h\n   1. i j\n\n| k | l |\n|---|---|\n| m | n |\n"
    )
    kinds = (
        "heading_open",
        "list_item_open",
        "bullet_list_open",
        "ordered_list_open",
        "tr_open",
        "td_open",
        "code_block",
    )

    def blocks(text: str) -> list[str]:
        return [token.type for token in MarkdownIt().enable("table").parse(text) if token.type in kinds]

    assert blocks(written("md", source)) == blocks(source)


def test_choices_and_pages_inside_say_their_language() -> None:
    choices = '<select><option>Ja<option lang="de-AT">Nein</select>'
    assert written("html", choices) == '<select><option lang="en">JA<option lang="en">NEIN</select>'
    assert written("html", "<iframe srcdoc='<p>Ja</p>'></iframe>") == (
        "<iframe srcdoc='<p lang=&quot;de&quot;>Ja</p>\n&lt;p lang=&quot;en&quot;&gt;JA&lt;/p&gt;'></iframe>"
    )


PAGE = """<!doctype html><html lang="de"><head><title>Titel</title></head><body><h1 id="a">Über <b>uns</b></h1>
<nav><ol><li><a href="x.html">Start</a></li></ol></nav>
<p class="x" id="p1">Ein <a id="z" name="q" href="#n1">Satz</a> mit <img src="a" alt="Bild"/> hier.<!-- note --></p>
<p>Eins<br/>zwei</p><figure><img src="b"/><figcaption>Unter dem Bild</figcaption></figure>
<table><tr><td>Zelle</td><td>5</td></tr></table><form><select name="s"><option>Wahl</option></select></form>
<p translate="no">nicht</p><p lang="de" dir="ltr">Noch einer</p></body></html>"""


def test_html() -> None:
    out = written("html", PAGE)
    assert '<title lang="en">TITEL</title>' in out
    assert '<h1 id="a"><span lang="de">Über <b>uns</b></span><br><span lang="en">ÜBER <b>UNS</b></span></h1>' in out
    assert '<a href="x.html"><span lang="de">Start</span><br><span lang="en">START</span></a>' in out
    assert '\n<p class="x" lang="en">EIN <a href="#n1">SATZ</a> MIT  HIER.</p>' in out
    assert '<p class="x" id="p1" lang="de">Ein <a id="z" name="q" href="#n1">Satz</a>' in out
    assert '<figcaption><span lang="de">Unter dem Bild</span><br><span lang="en">UNTER' in out
    assert '<option lang="en">WAHL</option>' in out
    assert '<p translate="no">nicht</p><p lang="de" dir="ltr">Noch einer</p>\n<p lang="en">NOCH EINER</p>' in out
    parser = html5lib.HTMLParser(namespaceHTMLElements=False)
    tree = parser.parse(out)
    before = html5lib.HTMLParser(namespaceHTMLElements=False)
    before.parse(PAGE)
    assert len(parser.errors) == len(before.errors)
    ids = [one.get("id") for one in tree.iter() if one.get("id")]
    assert len(ids) == len(set(ids)) == 3
    for name, count in {"img": 2, "select": 1, "h1": 1, "li": 1, "td": 2, "figcaption": 1}.items():
        assert len(list(tree.iter(name))) == count


def test_right_to_left_is_said() -> None:
    out = bilingual("html", "<p>Ja</p><h1>Nein</h1>", ("en", "ar")).decode()
    assert '<p lang="ar" dir="rtl">JA</p>' in out
    assert '<span lang="ar" dir="rtl">NEIN</span>' in out
    out = bilingual("html", '<html dir="rtl"><p>Ja</p><h1>Nein</h1>', ("ar", "en")).decode()
    assert '<p lang="ar" dir="rtl">Ja</p>\n<p lang="en" dir="ltr">JA</p>' in out
    assert '<span lang="ar" dir="rtl">Nein</span><br><span lang="en" dir="ltr">NEIN</span>' in out


def test_a_paragraph_of_word_in_arabic_is_written_from_the_right() -> None:
    file, out = docx.Document(), io.BytesIO()
    file.add_paragraph("Ja").runs[0].bold = True
    file.save(out)
    made = Document(out.getvalue(), FORMATS["docx"], Options("a.docx", ("de", "ar"), bilingual=True))
    data = made.translated(lambda units: [None if unit.kept else ("\u0646\u0639\u0645",) for unit in units])
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        body = package.read("word/document.xml").decode()
    assert "<w:p><w:r><w:rPr><w:b/></w:rPr><w:t>Ja</w:t></w:r></w:p><w:p><w:pPr><w:bidi/>" in body
    assert "<w:b/><w:bCs/><w:rtl/>" in body


@pytest.mark.parametrize(
    "page", ["<b>fett <p>Absatz</p></b>", "<p>ohne <p>Ende", "<a href=x>eins<div>zwei</div></a>", "<li>eins<li>zwei"]
)
def test_tags_that_are_left_out_or_cut(page: str) -> None:
    tree = html5lib.parse(written("html", page), namespaceHTMLElements=False)
    words = " ".join(tree.itertext()).split()
    assert {word for word in words if word.islower()} == {
        word
        for word in " ".join(html5lib.parse(page, namespaceHTMLElements=False).itertext()).split()
        if word.islower()
    }
    assert [word for word in words if word.isupper()] == [
        word.upper() for word in " ".join(html5lib.parse(page, namespaceHTMLElements=False).itertext()).split()
    ]


def book(chapter: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("mimetype", "application/epub+zip")
        file.writestr(
            "META-INF/container.xml", '<container><rootfiles><rootfile full-path="a.opf"/></rootfiles></container>'
        )
        file.writestr("a.opf", '<package xmlns:dc="d"><metadata><dc:language>de</dc:language></metadata><manifest>'
                      '<item href="a.xhtml" media-type="application/xhtml+xml"/>'
                      '<item href="t.ncx" media-type="application/x-dtbncx+xml"/></manifest></package>')  # fmt: skip
        file.writestr("a.xhtml", chapter)
        file.writestr("t.ncx", "<ncx><navLabel><text>Kapitel</text></navLabel></ncx>")
    return out.getvalue()


def test_books_are_well_formed() -> None:
    chapter = PAGE.replace("<!doctype html>", '<?xml version="1.0"?>').replace(
        "<html", '<html xmlns="http://www.w3.org/1999/xhtml"'
    )
    with zipfile.ZipFile(io.BytesIO(bilingual("epub", book(chapter)))) as file:
        text = file.read("a.xhtml").decode()
        assert b"<text>KAPITEL</text>" in file.read("t.ncx")
        assert b"<dc:language>de</dc:language>\n<dc:language>en</dc:language>" in file.read("a.opf")
    tree = ET.fromstring(text)
    names = [one.tag.rpartition("}")[2] for one in tree.iter()]
    assert names.count("p") == 6
    assert '<span lang="de" xml:lang="de">Start</span><br/><span lang="en" xml:lang="en">START</span></a></li>' in text
    ids = re.findall(r'\sid="(\w+)"', text)
    assert len(ids) == len(set(ids))


def word_file(tmp_path: Path) -> bytes:
    made = docx.Document()
    made.add_heading("Überschrift", 1)
    mixed = made.add_paragraph("Ein Satz mit ")
    mixed.add_run("fetten").bold = True
    mixed.add_run(" Wörtern.")
    for text in ("Erstens", "Zweitens"):
        made.add_paragraph(text, style="List Number")
    made.add_table(1, 2).cell(0, 0).text = "Zelle"
    marked = made.add_paragraph()
    marked._p.append(parse_xml(f'<w:bookmarkStart {nsdecls("w")} w:id="1" w:name="m"/>'))
    marked.add_run("Marke")
    marked._p.append(parse_xml(f'<w:bookmarkEnd {nsdecls("w")} w:id="1"/>'))
    broken = made.add_paragraph("vorher")
    broken.add_run().add_break(docx.enum.text.WD_BREAK.PAGE)
    broken.add_run("nachher")
    last = made.add_paragraph("Ende des Abschnitts")
    last._p.get_or_add_pPr().append(parse_xml(f'<w:sectPr {nsdecls("w")}><w:cols w:num="2"/></w:sectPr>'))
    made.sections[0].header.paragraphs[0].text = "Kopfzeile"
    made.save(tmp_path / "a.docx")
    return (tmp_path / "a.docx").read_bytes()


def test_word(tmp_path: Path) -> None:
    out = bilingual("docx", word_file(tmp_path))
    made = docx.Document(io.BytesIO(out))
    assert [(one.style.name, one.text) for one in made.paragraphs] == [
        ("Heading 1", "Überschrift\nÜBERSCHRIFT"),
        ("Normal", "Ein Satz mit fetten Wörtern."),
        ("Normal", "EIN SATZ MIT FETTEN WÖRTERN."),
        ("List Number", "Erstens\nERSTENS"),
        ("List Number", "Zweitens\nZWEITENS"),
        ("Normal", "Marke"),
        ("Normal", "MARKE"),
        ("Normal", "vorhernachher"),
        ("Normal", "VORHER\nNACHHER"),
        ("Normal", "Ende des Abschnitts"),
        ("Normal", "ENDE DES ABSCHNITTS"),
    ]
    assert [run.text for run in made.paragraphs[2].runs if run.bold] == ["FETTEN"]
    assert [one.text for one in made.tables[0].cell(0, 0).paragraphs] == ["Zelle", "ZELLE"]
    assert [one.text for one in made.sections[0].header.paragraphs] == ["Kopfzeile", "KOPFZEILE"]
    assert len(made.sections) == 2
    assert made.paragraphs[10]._p.pPr.sectPr is not None
    body = made.element.xml
    assert body.count("bookmarkStart") == 1
    assert body.count('w:type="page"') == 1
    tagged = [run for run in made.paragraphs[2].runs if run._r.xpath("w:rPr/w:lang[@w:val='en-US']")]
    assert len(tagged) == len(made.paragraphs[2].runs)


def other_prefix(data: bytes, elements: str, attributes: str, namespace: str = "") -> bytes:
    """A Word file with other prefixes than `w:`, and, it may be, in another namespace."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if b"wordprocessingml/2006/main" in text and name.endswith(".xml"):
                text = re.sub(rb"(</?)w:", rb"\1" + elements.encode(), text)
                text = re.sub(rb"(\s)w:(?=\w+=)", rb"\1" + attributes.encode(), text)
                both = dict.fromkeys((elements, attributes))
                names = "".join(f'xmlns{":" * bool(one)}{one.rstrip(":")}="{WORD}" ' for one in both)
                text = text.replace(f'xmlns:w="{WORD}"'.encode(), names.encode())
                text = text.replace(WORD.encode(), namespace.encode()) if namespace else text
            new.writestr(name, text)
    return out.getvalue()


WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


@pytest.mark.parametrize(
    ("elements", "attributes", "namespace"),
    [("ns0:", "ns0:", ""), ("", "wd:", ""), ("w:", "w:", "http://purl.oclc.org/ooxml/wordprocessingml/main")],
)
def test_word_with_any_prefix_and_in_the_strict_namespace(
    tmp_path: Path, elements: str, attributes: str, namespace: str
) -> None:
    usual = word_file(tmp_path)
    expected = other_prefix(bilingual("docx", usual), elements, attributes, namespace)
    out = bilingual("docx", other_prefix(usual, elements, attributes, namespace))
    with zipfile.ZipFile(io.BytesIO(out)) as made, zipfile.ZipFile(io.BytesIO(expected)) as like:
        for name in like.namelist():
            assert made.read(name) == like.read(name), name


def test_contents_and_text_boxes_of_word() -> None:
    w = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    row = ROWS["docx"]

    def field(kind: str) -> str:
        return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'

    content = (
        f"<w:document {w}><w:body><w:p>{field('begin')}<w:r><w:instrText>TOC</w:instrText></w:r>{field('separate')}"
        f"<w:r><w:t>Kapitel</w:t></w:r></w:p><w:p>{field('end')}</w:p>"
        '<w:p w14:paraId="1A"><w:pPr><w:numPr><w:numId w:val="3"/></w:numPr></w:pPr><w:r><w:t>Punkt</w:t></w:r></w:p>'
        "<w:p><w:r><w:pict><w:txbxContent><w:p><w:r><w:t>Kasten</w:t></w:r></w:p></w:txbxContent></w:pict></w:r>"
        "<w:r><w:t>Neben</w:t></w:r></w:p></w:body></w:document>"
    )
    out = unpacked(row, bilingual("docx", packed(row, content)))
    texts = re.findall(r"<w:t>(\w+)</w:t>|<w:(br)/>|<(/w:p)>", out)
    assert ["".join(one) for one in texts] == [
        "KAPITEL", "/w:p", "/w:p", "Punkt", "br", "PUNKT", "/w:p",
        "Kasten", "/w:p", "KASTEN", "/w:p", "Neben", "/w:p", "NEBEN", "/w:p",
    ]  # fmt: skip
    ET.fromstring(out.replace("w14:", "w:"))


@pytest.mark.parametrize("name", ["a.po", "a.json", "a.xlf", "a.csv"])
def test_other_formats_are_refused_in_a_line(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text('msgid "a"\nmsgstr ""\n')
    with raises_error(Error.UNSUPPORTED, name, "bilingual"):
        Document.load(tmp_path / name, Options(bilingual=True))
