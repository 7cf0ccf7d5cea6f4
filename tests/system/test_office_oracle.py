"""LibreOffice shows a translated file: each word of the source that is left in it is among those that are counted."""

import codecs
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import docx
import openpyxl
import pptx
import pypdf
import pytest
from docx.oxml import parse_xml
from openpyxl.comments import Comment
from openpyxl.worksheet.datavalidation import DataValidation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from dragoman.formats.base import Code, Item, Options, Unit, plain
from dragoman.formats.document import Document

FIXTURES = Path(__file__).parents[1] / "fixtures" / "documents"
SOFFICE = shutil.which("soffice") or ""
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def rotated(units: Sequence[Unit]) -> Iterator[tuple[Item, ...] | None]:
    for unit in units:
        items = tuple(item if isinstance(item, Code) else codecs.encode(item, "rot13") for item in unit.items)
        yield None if unit.kept else items


def words(text: str) -> set[str]:
    return set(re.findall(r"[^\W\d_]{4,}", text))


def field(instructions: str, result: str) -> str:
    return (
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
        f'<w:r><w:instrText xml:space="preserve"> {instructions} </w:instrText></w:r>'
        f'<w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>{result}</w:t></w:r>'
        '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )


def run(text: str, properties: str = "") -> str:
    return f'<w:r>{properties}<w:t xml:space="preserve">{text} </w:t></w:r>'


def word(path: Path) -> None:
    file = docx.Document()
    file.core_properties.title = "Schlagzeile"
    file.add_paragraph("Absatz eins")
    file.add_paragraph("Listenpunkt", style="List Number")
    file.sections[0].header.paragraphs[0].text = "Kopfzeile"
    file.add_table(1, 1).rows[0].cells[0].text = "Tabelle"
    choice = '<w:sdtPr><w:dropDownList><w:listItem w:displayText="Auswahl" w:value="1"/></w:dropDownList></w:sdtPr>'
    for inside in (
        run("Vorne") + field("TITLE", "Schlagzeile") + run("hinten") + field("AUTHOR", "Mustermann"),
        f'<w:fldSimple w:instr=" TITLE ">{run("Schlagzeile")}</w:fldSimple>' + run("danach"),
        run("Behalten") + '<w:del w:id="1" w:author="x"><w:r><w:delText>Getilgt</w:delText></w:r></w:del>',
        run("Sichtbar") + run("Versteckt", "<w:rPr><w:vanish/></w:rPr>"),
        f"<w:sdt>{choice}<w:sdtContent>{run('Auswahl')}</w:sdtContent></w:sdt>",
        "<w:r><w:pict><v:shape xmlns:v='urn:schemas-microsoft-com:vml' style='width:200pt;height:50pt'><v:textbox>"
        f"<w:txbxContent><w:p>{run('Kasten')}</w:p></w:txbxContent></v:textbox></v:shape></w:pict></w:r>"
        + run("Daneben"),
    ):
        file.element.body.insert(1, parse_xml(f"<w:p {W}>{inside}</w:p>"))
    numbering = file.part.numbering_part.element
    for level in numbering.iter(f"{{{W[9:-1]}}}lvlText"):
        name = f"{{{W[9:-1]}}}val"
        level.set(name, level.get(name, "").replace("%1", "Ziffer %1"))
    file.save(str(path))


def slides(path: Path) -> None:
    file = pptx.Presentation()
    slide = file.slides.add_slide(file.slide_layouts[1])
    slide.shapes.title.text, slide.placeholders[1].text_frame.text = "Folie", "Aufzählung"
    data = CategoryChartData()
    data.categories = ["Hemden", "Jacken"]
    data.add_series("Verkauf", (1, 2))
    where = (Inches(1), Inches(1), Inches(4), Inches(3))
    chart = slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *where, data).chart
    chart.has_title = True
    chart.chart_title.text_frame.text = "Schaubild"
    slide.shapes.add_table(1, 1, *where).table.cell(0, 0).text = "Tabelle"
    file.slide_masters[0].shapes._spTree.append(_text_box(slide))
    file.save(str(path))


def _text_box(slide: pptx.slide.Slide) -> object:
    """A box of text that stands on a master."""
    box = slide.shapes.add_textbox(Inches(1), Inches(1), Inches(3), Inches(1))
    box.text_frame.text = "Firmenname"
    return box._element


def workbook(path: Path) -> None:
    file = openpyxl.Workbook()
    sheet = file.active
    sheet.append(["Hemd", "Jacke", '=COUNTIF(A1:B1,"Hemd")', '=IF(A1="hemd","Treffer","Niete")'])
    sheet.append([7])
    sheet["A2"].number_format = '0 "Stück"'
    choices = DataValidation(type="list", formula1='"Hemd,Jacke"', promptTitle="Eingabe", prompt="Bitte wählen")
    sheet.add_data_validation(choices)
    choices.add("A1")
    sheet.oddHeader.left.text = "Kopfzeile &P"
    sheet["B1"].comment = Comment("Anmerkung", "x")
    file.save(str(path))


def shown(path: Path, folder: Path) -> str:
    """The text of a file as LibreOffice prints it."""
    command = [SOFFICE, f"-env:UserInstallation=file://{folder}/profile", "--headless", "--convert-to", "pdf"]
    subprocess.run([*command, "--outdir", str(folder), str(path)], check=True, capture_output=True, timeout=300)
    return "\n".join(page.extract_text() for page in pypdf.PdfReader(folder / f"{path.stem}.pdf").pages)


@pytest.mark.skipif(not SOFFICE, reason="LibreOffice is not installed")
@pytest.mark.parametrize("name", ["word.docx", "slides.pptx", "workbook.xlsx", *(
    f"libreoffice.{suffix}" for suffix in ("docx", "odt", "ods", "xlsx")
)])  # fmt: skip
def test_each_word_that_is_left_is_counted(name: str, tmp_path: Path) -> None:
    makers = {"word.docx": word, "slides.pptx": slides, "workbook.xlsx": workbook}
    source, target = tmp_path / f"a{name}", tmp_path / f"b{name}"
    if name in makers:
        makers[name](source)
    else:
        shutil.copy(FIXTURES / name, source)
    document = Document.load(source, Options(languages=("de", "en")))
    target.write_bytes(document.translated(rotated))
    counted = words(" ".join(plain(unit.items) for unit in document.texts() if unit.kept))
    before, after = words(shown(source, tmp_path)), words(shown(target, tmp_path))
    assert before
    assert before & after <= counted
    assert len({codecs.encode(word, "rot13") for word in before} & after) > len(before) / 2


@pytest.mark.skipif(not SOFFICE, reason="LibreOffice is not installed")
@pytest.mark.parametrize("name", ["word.docx", "libreoffice.docx", "pandoc.docx"])
def test_a_bilingual_document_shows_both(name: str, tmp_path: Path) -> None:
    source, target = tmp_path / f"a{name}", tmp_path / f"b{name}"
    word(source) if name == "word.docx" else shutil.copy(FIXTURES / name, source)
    document = Document.load(source, Options(languages=("de", "en"), bilingual=True))
    target.write_bytes(document.translated(rotated))
    before, after = words(shown(source, tmp_path)), words(shown(target, tmp_path))
    in_place = words(" ".join(plain(unit.items) for unit in document.texts() if unit.beside is None))
    assert {one for one in before if not any(word in one for word in in_place)} <= after
    assert len({codecs.encode(word, "rot13") for word in before} & after) > len(before) / 2
