"""Documents of many programs: an identity gives their bytes back, and reversed words change their texts alone.

Files are made by python-docx, python-pptx, openpyxl, odfdo and polib, and were made by LibreOffice 7.4 and pandoc 2.17
(tests/fixtures/documents); what is in them is read back by these libraries, which are not ours.
"""

import io
import random
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import docx
import odfdo
import openpyxl
import polib
import pptx
import pysubs2
import pytest
import webvtt

from dragoman.formats.base import Code, Item, Options, Unit, plain
from dragoman.formats.document import Document

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures" / "documents").iterdir())
WORDS = [
    "The", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "while", "Mary", "reads", "3", "old", "books",
    "about", "München", "&", "Zürich", "<b>", "北京",
]  # fmt: skip
OPTIONS = Options(languages=("en", "de"))
SEEDS = range(20)


def sentence(rng: random.Random) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(2, 9))).capitalize() + rng.choice(".?!")


def word(rng: random.Random, path: Path) -> None:
    file = docx.Document()
    file.add_heading(sentence(rng), 1)
    for _ in range(rng.randint(2, 8)):
        paragraph = file.add_paragraph(style=rng.choice([None, "List Bullet", "Quote"]))
        for _ in range(rng.randint(1, 5)):
            run = paragraph.add_run(sentence(rng) + rng.choice(["", " ", "\t", "\n"]))
            run.bold, run.italic = rng.choice([None, True]), rng.choice([None, None, True])
    table = file.add_table(2, 2)
    for cell in (*table.rows[0].cells, *table.rows[1].cells):
        cell.text = sentence(rng)
    file.sections[0].header.paragraphs[0].text = sentence(rng)
    file.save(str(path))


def slides(rng: random.Random, path: Path) -> None:
    file = pptx.Presentation()
    for _ in range(rng.randint(1, 3)):
        slide = file.slides.add_slide(file.slide_layouts[1])
        slide.shapes.title.text = sentence(rng)
        frame = slide.placeholders[1].text_frame
        frame.text = sentence(rng)
        for _ in range(3):
            paragraph = frame.add_paragraph()
            for _ in range(rng.randint(1, 3)):
                run = paragraph.add_run()
                run.text, run.font.bold = sentence(rng) + " ", rng.choice([None, True])
        slide.notes_slide.notes_text_frame.text = sentence(rng)
    file.save(str(path))


def workbook(rng: random.Random, path: Path) -> None:
    file = openpyxl.Workbook()
    sheet = file.active
    for _ in range(rng.randint(2, 6)):
        sheet.append([sentence(rng), rng.randrange(100), "=B1*2", f"{sentence(rng)} {sentence(rng)}", None])
    sheet["A1"].comment = openpyxl.comments.Comment(sentence(rng), "author")
    file.save(str(path))


def opendocument(rng: random.Random, path: Path) -> None:
    file = odfdo.Document("text")
    file.body.clear()
    file.body.append(odfdo.Header(1, sentence(rng)))
    for _ in range(rng.randint(2, 8)):
        paragraph = odfdo.Paragraph(f"{sentence(rng)}  two spaces\tand a tab ")
        paragraph.append(odfdo.Span(sentence(rng), style="Strong"))
        paragraph.append(" " + sentence(rng))
        file.body.append(paragraph)
    file.save(str(path))


def catalogue(rng: random.Random, path: Path) -> None:
    file = polib.POFile()
    file.metadata = {"Content-Type": "text/plain; charset=utf-8"}
    for number in range(rng.randint(3, 9)):
        entry = polib.POEntry(msgid=f"{number} {sentence(rng)}", msgstr=rng.choice(["", "done"]), comment=sentence(rng))
        if rng.random() < 0.3:
            entry = polib.POEntry(msgid=f"one {number}", msgid_plural=f"%d of {number}", msgstr_plural={0: "", 1: ""})
            entry.flags.append("c-format")
        file.append(entry)
    file.save(str(path))


def subtitles(rng: random.Random, path: Path) -> None:
    file = pysubs2.SSAFile()
    for number in range(rng.randint(2, 8)):
        text = rng.choice(["", r"{\an8}"]) + sentence(rng) + rng.choice(["", r"\N" + sentence(rng)])
        file.append(pysubs2.SSAEvent(start=number * 2000, end=number * 2000 + 1500, text=text.replace("<b>", "b")))
    file.save(str(path))


MAKERS: dict[str, Callable[[random.Random, Path], None]] = {
    ".docx": word, ".pptx": slides, ".xlsx": workbook, ".odt": opendocument, ".po": catalogue, ".srt": subtitles,
}  # fmt: skip


def texts_of_word(data: bytes) -> list[str]:
    file = docx.Document(io.BytesIO(data))
    cells = [cell for table in file.tables for row in table.rows for cell in row.cells]
    paragraphs = [
        *file.paragraphs,
        *file.sections[0].header.paragraphs,
        *(p for cell in cells for p in cell.paragraphs),
    ]
    return [paragraph.text for paragraph in paragraphs]


def texts_of_slides(data: bytes) -> list[str]:
    file = pptx.Presentation(io.BytesIO(data))
    shapes = [shape for slide in file.slides for shape in (*slide.shapes, *slide.notes_slide.shapes)]
    return [paragraph.text for shape in shapes if shape.has_text_frame for paragraph in shape.text_frame.paragraphs]


def texts_of_workbook(data: bytes) -> list[str]:
    sheet = openpyxl.load_workbook(io.BytesIO(data)).active
    values = [str(cell.value) for row in sheet.iter_rows() for cell in row if cell.value is not None]
    return [*values, sheet["A1"].comment.text]


def texts_of_opendocument(data: bytes) -> list[str]:
    body = odfdo.Document(io.BytesIO(data)).body
    return [part.inner_text for part in (*body.headers, *body.paragraphs)]


def texts_of_catalogue(data: bytes) -> list[str]:
    return [
        text for entry in polib.pofile(data.decode()) for text in (entry.msgstr, *entry.msgstr_plural.values()) if text
    ]


def texts_of_subtitles(data: bytes) -> list[str]:
    return [event.plaintext for event in pysubs2.SSAFile.from_string(data.decode())]


ORACLES: dict[str, Callable[[bytes], list[str]]] = {
    ".docx": texts_of_word, ".pptx": texts_of_slides, ".xlsx": texts_of_workbook, ".odt": texts_of_opendocument,
    ".po": texts_of_catalogue, ".srt": texts_of_subtitles,
}  # fmt: skip


def reversed_words(units: Sequence[Unit]) -> Iterator[tuple[Item, ...] | None]:
    for unit in units:
        yield None if unit.kept else tuple(backwards(item) if isinstance(item, str) else item for item in unit.items)


def backwards(text: str) -> str:
    return re.sub(r"\w+", lambda match: match.group()[::-1], text)


def unchanged(units: Sequence[Unit]) -> list[tuple[Item, ...] | None]:
    return [None if unit.kept or unit.bilingual else unit.items for unit in units]


class Anew(tuple):  # type: ignore[type-arg]
    """Items that differ from themselves, so that they are written again."""

    __hash__ = tuple.__hash__

    def __eq__(self, other: object) -> bool:
        return False

    def __ne__(self, other: object) -> bool:
        return True


def written_anew(units: Sequence[Unit]) -> list[Any]:
    return [None if unit.kept else Anew(unit.items) for unit in units]


def skeleton(data: bytes) -> dict[str, Any]:
    """The parts of a package without text: those that are no XML as they are, of others the names of tags but runs'.

    A blank of OpenDocument between two words may be written as one.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    out: dict[str, Any] = {"order": list(parts)}
    for name, content in parts.items():
        tags = (
            re.findall(rb"<(/?[\w:]+)", content.replace(b"<text:s/>", b" "))
            if name.endswith((".xml", ".xhtml", ".html", ".ncx", ".opf"))
            else [content]
        )
        out[name] = [tag for tag in tags if tag.strip(b"/") not in RUN_TAGS]
    return out


RUN_TAGS = {
    b"w:r",
    b"w:t",
    b"w:rPr",
    b"a:r",
    b"a:t",
    b"a:rPr",
    b"r",
    b"t",
    b"w:lang",
    b"w:proofErr",
    b"w:lastRenderedPageBreak",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("documents")
    paths = []
    for suffix, make in MAKERS.items():
        for seed in SEEDS:
            paths.append(folder / f"{seed}{suffix}")
            make(random.Random(seed), paths[-1])
    return paths


def test_an_identity_gives_every_byte_back(made: list[Path]) -> None:
    for path in [*made, *FIXTURES]:
        document = Document.load(path, OPTIONS)
        assert document.translated(unchanged) == path.read_bytes(), path


def test_what_is_written_anew_says_the_same(made: list[Path]) -> None:
    for path in [*made, *FIXTURES]:
        document = Document.load(path, OPTIONS)
        again = document.translated(written_anew)
        before, after = (
            [plain(unit.items) for unit in file.texts()]
            for file in (document, Document(again, document.format, OPTIONS))
        )
        assert before == after, path
        if path.suffix in ORACLES and path.suffix != ".po" and path not in FIXTURES:
            said, wanted = ORACLES[path.suffix](again), ORACLES[path.suffix](path.read_bytes())
            if path.suffix == ".srt":  # lines of a cue are about equally long
                said, wanted = ([" ".join(text.split()) for text in texts] for texts in (said, wanted))
            assert said == wanted, path


def test_reversed_words_change_texts_alone_as_other_libraries_read_them(made: list[Path]) -> None:
    for path in [*made, *FIXTURES]:
        document = Document.load(path, OPTIONS)
        out = document.translated(reversed_words)
        if zipfile.is_zipfile(io.BytesIO(out)):
            lost = {name for name, tags in skeleton(path.read_bytes()).items() if skeleton(out)[name] != tags}
            assert not lost or path.suffix in (".docx", ".pptx"), (path, lost)
        if path.suffix not in ORACLES or path in FIXTURES:
            continue
        before, after = ORACLES[path.suffix](path.read_bytes()), ORACLES[path.suffix](out)
        if path.suffix == ".po":
            before = [text if text == "done" else backwards(text) for text in _sources(path)]
            assert sorted(after) == sorted(before)
            continue
        assert len(before) == len(after)
        for old, new in zip(before, after, strict=True):
            wanted = (
                old
                if (path.suffix == ".xlsx" and not re.search("[^\\W\\d_]", old.lstrip("="))) or old[:1] == "="
                else backwards(old)
            )
            assert new.split() == wanted.split(), path


def _sources(path: Path) -> list[str]:
    out = []
    for entry in polib.pofile(str(path)):
        if entry.msgid_plural:
            out += [entry.msgid, entry.msgid_plural]
        else:
            out.append(entry.msgstr or entry.msgid)
    return out


def test_webvtt_keeps_its_times() -> None:
    text = "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\none and\n\n00:00:03.000 --> 00:00:04.000\ntwo of them.\n"
    from dragoman.formats.document import FORMATS

    out = Document(text.encode(), FORMATS["vtt"], OPTIONS).translated(reversed_words).decode()
    captions = webvtt.from_string(out)
    assert [(caption.start, caption.end) for caption in captions] == [
        ("00:00:01.000", "00:00:02.000"),
        ("00:00:03.000", "00:00:04.000"),
    ]
    assert " ".join(caption.text for caption in captions) == "eno dna owt fo meht."


def test_codes_are_all_there(made: list[Path]) -> None:
    count = 0
    for path in made:
        for unit in Document.load(path, OPTIONS).texts():
            pairs = [item.pair for item in unit.items if isinstance(item, Code) and item.kind in ("open", "close")]
            assert all(pairs.count(pair) == 2 for pair in pairs)
            count += len(pairs)
    assert count > 200
