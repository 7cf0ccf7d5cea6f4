"""Characters that nobody sees are not read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.inference.translation import Translation
from dragoman.pipeline.invisible import as_it_looks, visible

INVISIBLE = "\xad\u200b\u200c\u200d\u2060\ufeff"


@pytest.mark.parametrize("mark", INVISIBLE)
@pytest.mark.parametrize("text", ["Hemd", "рубашка", "πουκάμισο", "Das Hemd. Die Jacke", "é", "1.5", "Việt", "a—b"])
def test_they_are_left_out_wherever_they_stand(text: str, mark: str) -> None:
    for place in range(len(text) + 1):
        assert visible(text[:place] + mark + text[place:]) == text
        assert visible(text[:place] + mark * 3 + text[place:]) == text


@pytest.mark.parametrize(
    "text", ["می\u200cخواهم", "क\u094d\u200dष", "👩\u200d👩\u200d👧", "👩🏽\u200d🚀 Hemd", "សួស្តី\u200bលោក", "❤️\u200d🔥"]
)
def test_scripts_and_emoji_that_need_them_keep_them(text: str) -> None:
    assert visible(text) == text


@given(st.text(st.characters(max_codepoint=0x58F)))
def test_all_else_stays(text: str) -> None:
    assert visible(text) == "".join(char for char in text if char not in INVISIBLE)


def test_the_model_reads_a_text_as_it_looks() -> None:
    def n_best(sentences: list[str]) -> list[list[Translation]]:
        return [[Translation(text, 0.0, 0.0)] for text in sentences]

    assert [items[0].text for items in as_it_looks(n_best, ["Wasch\xadma\u200bschine"])] == ["Waschmaschine"]
