"""Sentences of every script behind the segmenter: joined again, in subtitles, and where the guards count them."""

import itertools

import pytest

from dragoman.formats.base import Options
from dragoman.formats.subtitles import Syntax, _wrapped, units
from dragoman.languages.line_breaks import line_breaks
from dragoman.pipeline.splitter import Splitter
from dragoman.quality.faults import Line, questions_lost, sentences_lost
from dragoman.quality.output_checks import check_output
from dragoman.quality.test_set import TestSet
from dragoman.serve.apis.deepl import with_edges_of
from dragoman.text.augment import without_final_mark
from dragoman.text.words import borders


@pytest.mark.parametrize(
    ("language", "between"), [("th", " "), ("lo", " "), ("km", " "), ("my", " "), ("bo", " "), ("zh", ""), ("ja", "")]
)
def test_sentences_are_joined_as_the_language_writes(language: str, between: str) -> None:
    splitter = Splitter(("en", language))
    text = "One is here. Two is there."
    pieces = splitter.pieces(text)
    joined = splitter.joined(text, pieces, {"One is here.": "กก", "Two is there.": "ขข"})
    assert joined.text == f"กก{between}ขข"


def srt(*texts: str) -> str:
    cues = (f"{at}\n00:00:{at:02},000 --> 00:00:{at:02},900\n{text}\n" for at, text in enumerate(texts, 1))
    return "\n".join(cues)


@pytest.mark.parametrize(
    ("language", "texts", "count"),
    [
        ("th", ["อรุณสวัสดิ์ทุกคน", "เปิดไฟล์", "การตั้งค่า", "วันนี้คุณเป็นอย่างไรบ้าง", "ชื่อเรื่อง"], 5),
        ("lo", ["ສະບາຍດີ", "ເປີດໄຟລ໌"], 2),
        ("zh", ["我们走吧", "他在哪里", "我不知道"], 3),
        ("zh", ["我们走吧，", "因为很晚了"], 1),
        ("zh", ["我们今天一起", "去公园。", "好。"], 2),
        ("hi", ["वह आया।", "वह गया।", "उसने खाया।"], 3),
        ("hi", ["वह", "आया।"], 1),
        ("hi", ["वह आया", "वह गया", "उसने खाया"], 3),
        ("ar", ["كيف حالك اليوم؟", "صباح الخير جميعًا."], 2),
        ("am", ["ሰላም ነው፡፡", "ደህና ነህ።"], 2),
        ("el", ["Πώς είσαι;", "Είμαι καλά."], 2),
        ("ka", ["დღეს კარგი", "ამინდია."], 1),
        ("en", ["He goes on", "in the next cue"], 1),
    ],
)
def test_cues_without_marks_are_not_glued(language: str, texts: list[str], count: int) -> None:
    assert len(list(units(srt(*texts), Options(languages=(language, "en"))))) == count


@pytest.mark.parametrize(
    ("translation", "lines"),
    [
        ("これは字幕の二行にわたって続くとても長い文です。", ["これは字幕の二行にわたって", "続くとても長い文です。"]),
        ("นี่คือประโยคที่ยาวมากซึ่งต่อเนื่องกันสองบรรทัดของคำบรรยาย", ["นี่คือประโยคที่ยาวมาก", "ซึ่งต่อเนื่องกันสองบรรทัดของคำบรรยาย"]),
        ("这是一个很长的句子，它延续到字幕的两行。", ["这是一个很长的句子，", "它延续到字幕的两行。"]),
        ("ນີ້ແມ່ນປະໂຫຍກທີ່ຍາວຫຼາຍທີ່ຕໍ່ເນື່ອງກັນສອງແຖວ", ["ນີ້ແມ່ນປະໂຫຍກທີ່ຍາວຫຼາຍ", "ທີ່ຕໍ່ເນື່ອງກັນສອງແຖວ"]),
        ("នេះគឺជាប្រយោគដ៏វែងមួយដែលបន្តលើពីរបន្ទាត់", ["នេះគឺជាប្រយោគដ៏វែងមួយ", "ដែលបន្តលើពីរបន្ទាត់"]),
        ("価格は1,234.56ドルです。YouTubeで見てください", ["価格は1,234.56ドルです。", "YouTubeで見てください"]),
        ("<i>二行にわたって</i>続く長い文です。", ["<i>二行にわたって</i>", "続く長い文です。"]),
        ("Tom &amp; 太郎は学校へ行きました", ["Tom &amp; 太郎は", "学校へ行きました"]),
        ("はい。", ["はい。"]),
        ("One and two are here.", ["One and two", "are here."]),
        ("하나와 둘이 여기 있습니다.", ["하나와 둘이", "여기 있습니다."]),
    ],
)  # fmt: skip
def test_two_lines_stay_two_in_every_script(translation: str, lines: list[str]) -> None:
    assert _wrapped(translation, "one\ntwo", 42, Syntax()).split("\n") == lines


def test_a_line_ends_in_no_letter_number_or_latin_word_and_where_a_mark_may() -> None:
    text = "「값」กำลัง๑๒๓ที่นี่หมายເຮືອນກັນကြောင်းနှစ်ស្រុកལ་རིང３．５%二〇二六年Abc12ぁーっ、々。“引”100％¥20——（中）"
    places = {place for place, _ in line_breaks(text)}
    parts = [text[start:end] for start, end in itertools.pairwise([0, *sorted(places), len(text)])]
    assert places <= {*filter(borders(text).__contains__, range(len(text)))}
    for whole in (
        "「값」",
        "๑๒๓",
        "３．５%",
        "二〇二六",
        "Abc12",
        "ぁーっ、々。",
        "“引”",
        "100％",
        "¥20",
        "——",
        "（中）",
        "ကြောင်း",
        "རིང",
    ):
        assert any(whole in part for part in parts), whole
    assert not any(part[-1] in "เแโใไເແໂໃໄ「（“¥" or part[0] in "ะาๆຽ」、。々ーっ％" for part in parts)


def test_lines_that_stop_early_are_seen_in_every_script() -> None:
    for mark in "।۔។။።։؟":
        refs = [f"{'क' * 30}{mark}" for _ in range(40)]
        hyps = [ref if number % 4 else ref[:12] for number, ref in enumerate(refs)]
        test = TestSet([f"source number {number}" for number in range(40)], [refs], ("en", "hi"), "test")
        assert "truncated" in {finding.kind for finding in check_output(test, hyps)}, mark


def test_guards_see_sentences_and_questions_of_every_script() -> None:
    assert sentences_lost(Line("He came. He left. He ate.", "वह आया।", ("en", "hi"))) == "3 in the source, 1 here"
    assert sentences_lost(Line("He came. He left.", "वह आया।वह गया।", ("en", "hi"))) is None
    assert questions_lost(Line("Where is he? He is here.", "أين هو؟ هو هنا.", ("en", "ar"))) is None
    assert questions_lost(Line("Where is he? He is here.", "Πού είναι; Είναι εδώ.", ("en", "el"))) is None
    assert questions_lost(Line("أين هو؟ هو هنا.", "He is here.", ("ar", "en"))) == "1 in the source, 0 here"


def test_final_marks_of_every_script_are_marks() -> None:
    assert without_final_mark("वह आया।") == "वह आया"
    assert without_final_mark("Wait…") == "Wait…"
    assert with_edges_of("he came", "वह आया।", "hi") == "वह आया"
    assert with_edges_of("istanbul", "Istanbul.", "tr") == "ıstanbul"
