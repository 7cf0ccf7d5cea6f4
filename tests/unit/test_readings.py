"""Readings above words: no part of a sentence, and none above a translation."""

import io
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.test_office import book, odf, word

from dragoman.formats.base import Options, plain
from dragoman.formats.document import Document, format_of

OPTIONS = Options(languages=("ja", "en"))
RUBY = "<ruby>漢字<rp>(</rp><rt>かんじ</rt><rp>)</rp></ruby>"
EMPTY = "<ruby>KANJI<rp></rp><rt></rt><rp></rp></ruby>"


def translated(name: str, data: bytes, options: Options = OPTIONS) -> tuple[list[str], bytes]:
    """(the texts of a file, the file with KANJI for 漢字)."""
    document = Document(data, format_of(Path(name), data), replace(options, name=name))
    out = document.translated(
        lambda units: [
            tuple(item.replace("漢字", "KANJI") if isinstance(item, str) else item for item in unit.items)
            for unit in units
        ]
    )
    return [plain(unit.items) for unit in document.texts()], out


def part(data: bytes, name: str) -> str:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return file.read(name).decode()


@pytest.mark.parametrize(
    ("name", "around"),
    [
        ("a.html", lambda text: f"<html><body><p>{text}を読む。</p><p>{text}</p></body></html>"),
        ("a.md", lambda text: f"{text}を読む。\n\n- {text}\n"),
        (
            "a.vtt",
            lambda text: f"WEBVTT\n\n00:01.000 --> 00:02.000\n{text}を読む。\n\n00:04.000 --> 00:05.000\n{text}\n",
        ),
    ],
)
def test_a_reading_is_no_part_of_the_sentence(name: str, around: Callable[[str], str]) -> None:
    ruby, empty = (
        (RUBY, EMPTY) if name != "a.vtt" else ("<ruby>漢字<rt>かんじ</rt></ruby>", "<ruby>KANJI<rt></rt></ruby>")
    )
    found, out = translated(name, around(ruby).encode())
    assert found == ["漢字を読む。", "漢字"]
    assert out.decode() == around(empty)


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ("<ruby>漢字<rt>かんじ</ruby>", "<ruby>KANJI<rt></ruby>", "漢字"),  # end tags left out
        ("<ruby>漢<rt>かん</rt>字<rt>じ</rt></ruby>", "<ruby>漢<rt>かん</rt>字<rt>じ</rt></ruby>", "漢字"),  # as it is
        ("<ruby><rb>漢字</rb><rt><b>か</b>んじ</rt></ruby>", "<ruby><rb>KANJI</rb><rt><b></b></rt></ruby>", "漢字"),
        ('<ruby>漢字<rt class="a>b">かんじ</rt></ruby>', '<ruby>KANJI<rt class="a>b"></rt></ruby>', "漢字"),
    ],
)
def test_readings_of_pages(before: str, after: str, text: str) -> None:
    found, out = translated("a.html", f"<p>{before}</p>".encode())
    assert found == [text]
    assert out.decode() == f"<p>{after}</p>"
    chapter = "<html xmlns='http://www.w3.org/1999/xhtml'><body><p>{}</p></body></html>"
    _, out = translated("a.epub", book({"a.xhtml": ("application/xhtml+xml", chapter.format(before))}))
    assert f"<p>{after}</p>" in part(out, "OPS/a.xhtml")


def test_a_source_that_stays_above_its_translation_keeps_its_readings() -> None:
    _, out = translated("a.html", f"<p>{RUBY}を読む。</p>".encode(), replace(OPTIONS, bilingual=True))
    assert f"{RUBY}を読む。</p>" in out.decode()
    assert "KANJI<rp></rp><rt></rt>" in out.decode()


def test_readings_of_word_and_opendocument() -> None:
    ruby = (
        "<w:r><w:ruby><w:rubyPr/><w:rt><w:r><w:t{}</w:t></w:r></w:rt>"
        "<w:rubyBase><w:r><w:t>{}</w:t></w:r></w:rubyBase></w:ruby></w:r>"
    )
    for rest, text in (("<w:r><w:t>を読む</w:t></w:r>", "漢字を読む"), ("", "漢字")):
        found, out = translated("a.docx", word(f"<w:p>{ruby.format('>かんじ', '漢字')}{rest}</w:p>"))
        assert found == [text]
        assert f"<w:p>{ruby.format('>', 'KANJI')}{rest}</w:p>" in part(out, "word/document.xml")
    ruby = "<text:ruby><text:ruby-base>{}</text:ruby-base><text:ruby-text>{}</text:ruby-text></text:ruby>"
    for rest, text in (("を読む", "漢字を読む"), ("", "漢字")):
        found, out = translated("a.odt", odf(f"<text:p>{ruby.format('漢字', 'かんじ')}{rest}</text:p>"))
        assert found == [text]
        assert f"<text:p>{ruby.format('KANJI', '')}{rest}</text:p>" in part(out, "content.xml")
