"""Texts are read as they look."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.inference.translation import Translation
from dragoman.languages.invisible import as_seen, in_usual_width, visible
from dragoman.pipeline.invisible import as_it_looks, read_as
from dragoman.text.tokenizers.base import Tokenizer

INVISIBLE = "\xad\u200b\u200c\u200d\u2060\ufeff"
DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


class Characters:
    """A tokenizer that knows some characters; others are of three tokens."""

    def __init__(self, known: str) -> None:
        self.known = known

    def encode(self, text: str) -> list[int]:
        return [1 for letter in text for _ in range(1 if letter in self.known else 3)]


@pytest.mark.parametrize("mark", INVISIBLE + DIRECTIONS)
@pytest.mark.parametrize("text", ["Hemd", "рубашка", "πουκάμισο", "Das Hemd. Die Jacke", "é", "1.5", "Việt", "a—b"])
def test_they_are_left_out_wherever_they_stand(text: str, mark: str) -> None:
    for place in range(len(text) + 1):
        assert visible(text[:place] + mark + text[place:]) == text
        assert visible(text[:place] + mark * 3 + text[place:]) == text


@pytest.mark.parametrize("mark", DIRECTIONS + "\xad\u2060\ufeff")
@pytest.mark.parametrize("text", ["שלום PDF", "كتاب PDF", "ទំព័រ", "我们", "हिन्दी", "หน้า", "한국어"])
def test_marks_of_direction_are_left_out_in_every_script(text: str, mark: str) -> None:
    assert all(visible(text[:place] + mark + text[place:]) == text for place in range(len(text) + 1))


@pytest.mark.parametrize(
    "text",
    [
        "می\u200cخواهم", "क\u094d\u200dष", "👩\u200d👩\u200d👧", "👩🏽\u200d🚀 Hemd", "❤️\u200d🔥",
        "សួស្តី\u200bលោក", "หน้า\u200bแรก", "ໜ້າ\u200bທຳອິດ", "စာ\u200bမျက်နှာ", "ᨲᩣ\u200bᨾ", "PDF\u200bហើយ",
        "ហើយ\u200b\u200b\u200b PDF", " \u200b\u200bហើយ",
    ],
)  # fmt: skip
def test_scripts_and_emoji_that_need_them_keep_them(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize("text", ["我们去", "שלום", "كتاب", "हिन्दी", "한국어"])
def test_a_zero_width_space_parts_no_words_elsewhere(text: str) -> None:
    assert visible(f"{text[:2]}\u200b{text[2:]}") == text


@given(st.text(st.characters(max_codepoint=0x58F)))
def test_all_else_stays(text: str) -> None:
    assert visible(text) == "".join(char for char in text if char not in INVISIBLE)


@given(st.text())
def test_what_is_seen_looks_the_same_again(text: str) -> None:
    assert visible(visible(text)) == visible(text)
    assert in_usual_width(in_usual_width(text)) == in_usual_width(text)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("Ｎａｍｅ　ｉｓ　ｅｍｐｔｙ．", "Name\u3000is\u3000empty."),
        ("ＰＤＦ（２０）を、開く！", "PDF（20）を、開く！"),
        ("ﾌｧｲﾙを｢開く｣｡", "ファイルを「開く」。"), ("名称（必填）：", "名称（必填）："), ("각", "각"), ("Café", "Café"),
        ("x² ½ ™ ﬁ", "x² ½ ™ ﬁ"), ("\u200eName is em\xadpty.\u200f", "Name is empty."),
    ],
)  # fmt: skip
def test_letters_in_their_usual_form(text: str, seen: str) -> None:
    assert as_seen(unicodedata.normalize("NFD", text)) == seen


def test_a_model_that_knows_a_spelling_better_reads_it() -> None:
    usual: Tokenizer = Characters("Name 20")  # type: ignore[assignment]
    wide: Tokenizer = Characters("Ｎａｍｅ２０ ")  # type: ignore[assignment]
    assert read_as("Ｎａｍｅ ２０", usual) == "Name 20"
    assert read_as("Ｎａｍｅ ２０", wide) == "Ｎａｍｅ ２０"


def test_the_model_reads_a_text_as_it_looks() -> None:
    def n_best(sentences: list[str]) -> list[list[Translation]]:
        return [[Translation(text, 0.0, 0.0)] for text in sentences]

    tokenizer: Tokenizer = Characters("")  # type: ignore[assignment]
    assert [items[0].text for items in as_it_looks(n_best, tokenizer, ["\u200eＷasch\xadma\u200bschine\u200f"])] == [
        "Waschmaschine"
    ]
