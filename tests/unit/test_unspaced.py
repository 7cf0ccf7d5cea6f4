"""Words in scripts without spaces: with ICU's dictionaries, and without them."""

import itertools

import pytest

from dragoman.languages import unspaced
from dragoman.languages.line_breaks import line_breaks
from dragoman.text.glossary import Glossary
from dragoman.text.lookup import words_like
from dragoman.text.words import split_words

TERMS = [
    ("กา", "การทำงาน", False),
    ("การ", "การทำงาน", True),
    ("កា", "ការងារ", False),
    ("ファイル", "ファイルを開く", True),
    ("東京", "東京都に住む", True),
    ("设置", "保存设置", True),
]


@pytest.fixture(params=["dictionaries", "syllables"])
def parted_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "syllables":
        monkeypatch.setattr(unspaced, "_dictionaries", lambda: None)
    else:
        pytest.importorskip("icu4py.breakers")
    return str(request.param)


@pytest.mark.parametrize(("term", "text", "is_there"), TERMS)
def test_a_term_is_no_part_of_a_syllable(term: str, text: str, is_there: bool, parted_by: str) -> None:
    assert bool(words_like(term, text)) is is_there
    assert bool(Glossary({term: "x"}).find(text)) is is_there


@pytest.mark.parametrize(
    ("term", "text"), [("ポート", "エクスポート"), ("タイ", "スタイル"), ("รัก", "เพื่อรักษา"), ("หา", "เนื้อหา")]
)
def test_a_term_is_no_part_of_a_word_where_the_dictionaries_are(term: str, text: str, parted_by: str) -> None:
    if parted_by == "dictionaries":
        assert not words_like(term, text)


def test_a_word_of_words_is_one_to_the_dictionaries(parted_by: str) -> None:
    assert bool(words_like("งาน", "การทำงาน")) is (parted_by == "syllables")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("การทำงานของ PDF ดี", ["การ", "ทำงาน", "ของ", "PDF", "ดี"]),
        ("请打开PDF文件。", ["请", "打开", "PDF", "文件", "。"]),
        ("ខ្ញុំចូលចិត្ត!", ["ខ្ញុំ", "ចូលចិត្ត", "!"]),
        ("설정을 保存", ["설정을", "保存"]),
    ],
)
def test_the_words_of_a_text(text: str, words: list[str], parted_by: str) -> None:
    if parted_by == "dictionaries":
        assert split_words(text) == words
    else:
        assert len(split_words(text)) > len(words)


def test_words_are_made_of_whole_letters(parted_by: str) -> None:
    assert "".join(split_words("ที่นี้กำลังเปิดไฟล์อยู่")) == "ที่นี้กำลังเปิดไฟล์อยู่"
    assert all(word[0] not in "ิีึืุู่้๊๋์" for word in split_words("ที่นี้กำลังเปิดไฟล์อยู่"))


def test_a_line_ends_between_words(parted_by: str) -> None:
    text = "คุณต้องการลบตัวกรองนี้หรือไม่เพราะเพื่อรักษาเนื้อหา"
    cheap = [0, *(place for place, price in line_breaks(text) if price < 0.7), len(text)]
    parts = [text[start:end] for start, end in itertools.pairwise(cheap)]
    if parted_by == "dictionaries":
        assert parts == ["คุณ", "ต้องการ", "ลบ", "ตัว", "กรอง", "นี้", "หรือ", "ไม่", "เพราะ", "เพื่อรักษา", "เนื้อหา"]
    assert "".join(parts) == text
    assert all(part[0] not in "ะาำๆฯ" for part in parts)
