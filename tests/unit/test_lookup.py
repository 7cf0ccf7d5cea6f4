"""Glossaries, memories, test sets and whatever recognises a term find what a reader takes for the same."""

import unicodedata

import pytest

from dragoman.pipeline.memory import TranslationMemory
from dragoman.quality.leakage import Leakage, key
from dragoman.text.glossary import Glossary
from dragoman.text.lookup import lookup_form, words_like


def rows(text: str) -> list[tuple[str, str]]:
    """Pairs of a term and a text."""
    first, last = zip(*(line.split(" | ") for line in text.strip().splitlines()), strict=True)
    return [(term.strip(), found) for term, found in zip(first, last, strict=True)]


FOUND = rows(
    """
    서울 | 서울에서 만나요
    서울 | 서울까지는
    서울 | 서울로 갑니다
    파일 | 파일을 엽니다
    학교 | 학교는
    집 | 집에서
    집 | 집을
    책 | 책은 책
    PDF | PDF로 저장
    서울 | 서울에서
    كتاب | هذا كتابٌ جيد
    كتابٌ | هذا كتاب جيد
    كتاب | هذا كتـــاب
    كتاب | ﻛﺘﺎﺏ
    שלום | שָׁלוֹם
    οδός | ΟΔΟΣ
    ΟΔΟΣ | ΟΔΟΣ
    ρολόι | ΡΟΛΟΪ
    straße | STRASSE
    straße | Straße
    strasse | STRAßE
    PDF | ＰＤＦを開く
    ＰＤＦ | PDFを開く
    ファイル | ﾌｧｲﾙを開く
    データ | ﾃﾞｰﾀを開く
    ﾃﾞｰﾀ | データを開く
    데이터 | ﾃﾞ 데이터는
    Đóng | Đo\u0301ng te\u0323\u0302p
    क\u093cलम | क\u093cलम है
    замок | за\u0301мок
    waschmaschine | Wasch\u00admaschine
    roter Hund | roter\u00a0Hund
    ﬁle | File
    ışık | IŞIK
    istanbul | İSTANBUL
    กา | กาเครื่องหมาย
    มา | มาจาก
    แฟ้ม | เปิดแฟ้มข้อมูล
    ไฟล์ | เปิดไฟล์นี้
    បើក | បើកឯកសារ
    ファイル | ファイルサーバー
    中国 | 我在中国
    name | \u200ename\u200f
    Ω | Ω 5
    Å | Å
    """
)
NOT_FOUND = rows(
    """
    กา | การทำงาน
    กา | เกา
    ก | กา
    กา | อาการ
    កា | ការងារ
    ກາ | ການ
    က | ကန်
    က | ကား
    มา | มาก
    가 | 가을
    나 | 나이
    국 | 국가
    회 | 회의
    서울 | 서울시청
    사 | 사과
    서울 | 서울를
    ή | η
    γέρος | γερός
    PDF | pdf
    hund | Hunde
    ソ | ソー
    caf | café
    cafe | café
    كتاب | كتابة
    ß | sss
    """
)


@pytest.mark.parametrize(("term", "text"), FOUND)
def test_what_reads_the_same_is_found(term: str, text: str) -> None:
    assert Glossary({term: "X"}).find(text)
    assert words_like(term, text)
    assert Glossary({"x": term}).target_places("x", text)
    memory = TranslationMemory([(text, "X")])
    turned = next(text.replace(text[slice(*place)], term) for place in words_like(term, text))
    assert memory.exact(turned) == "X" or memory.like(turned)[0].similarity > 0.99


@pytest.mark.parametrize(("term", "text"), NOT_FOUND)
def test_what_is_another_word_is_not_found(term: str, text: str) -> None:
    assert not Glossary({term: "X"}).find(text)


@pytest.mark.parametrize(
    "text", ["Đóng tệp.", "गेहूँ क़लम", "각", "Name is empty.", "ファイルを開く", "هذا كتاب", "замок", "3 файла", "ﾌｧｲﾙ 3"]
)
def test_a_memory_knows_a_text_in_each_spelling(text: str) -> None:
    spellings = {unicodedata.normalize(form, text) for form in ("NFC", "NFD")} | {
        f"\u200e{text}\u200f",
        text[:2] + "\xad" + text[2:],
    }
    for entry in spellings:
        memory = TranslationMemory([(entry, "X 3")])
        for spelling in spellings:
            assert memory.exact(spelling) == "X 3"
            assert memory.like(spelling)[0].similarity == 1
        memory.remove(entry)
        assert all(memory.exact(spelling) is None for spelling in spellings)


def test_of_two_spellings_in_a_memory_each_keeps_its_own_translation() -> None:
    memory = TranslationMemory([("كتب", "books"), ("كَتَبَ", "he wrote")])
    assert (memory.exact("كَتَبَ"), memory.exact("كتب"), memory.exact("كُتُب")) == ("he wrote", "books", "books")


def test_a_line_in_capitals_is_the_line() -> None:
    memory = TranslationMemory([("Die Straße ist lang.", "The street is long."), ("οδός", "street"), ("us", "uns")])
    assert memory.exact("DIE STRASSE IST LANG.") == "THE STREET IS LONG."
    assert (memory.exact("ΟΔΟΣ"), memory.exact("US"), memory.exact("Die straße ist lang.")) == ("STREET", None, None)


@pytest.mark.parametrize("text", ["Đóng tệp này đi nhé.", "ファイルを開く", "هذا كتاب", "Die Straße ist lang"])
def test_a_test_sentence_is_known_in_each_spelling(text: str) -> None:
    leakage = Leakage([text])
    for spelling in (unicodedata.normalize("NFD", text), f"\u200e{text}\u200f", text.upper()):
        assert leakage.exactly(key(spelling))


def test_the_form_of_a_form_is_itself() -> None:
    for pair in FOUND:
        for text in pair:
            for cased in (True, False):
                form = lookup_form(text, cased=cased)
                assert lookup_form(form, cased=cased) == form
