"""Other words at a place of a translation."""

from pathlib import Path

import pytest
from tests.errors import raises_error

from dragoman.errors import Error
from dragoman.inference.next_words import next_words
from dragoman.inference.search_translator import SearchTranslator

RUN = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"


@pytest.fixture(scope="module")
def translator() -> SearchTranslator:
    return SearchTranslator.load(RUN, device="cpu")


def test_they_begin_alike_go_on_differently_and_the_most_probable_comes_first(translator: SearchTranslator) -> None:
    src = "the dog sees a man today"
    found = next_words(translator, src, "der hund", 4)
    assert len(found) == 4
    assert all(item.text.startswith("der hund ") for item in found)
    following = [item.text.split()[2] for item in found]
    assert len(set(following)) == 4
    assert translator.n_best([src], ["der hund"])[0][0].text.split()[2] == following[0]


def test_a_beginning_of_nothing_asks_for_the_first_word(translator: SearchTranslator) -> None:
    found = next_words(translator, "the dog sees a man today", "", 3)
    assert len({item.text.split()[0] for item in found}) == 3
    assert found[0].text.split()[0] == translator.translate(["the dog sees a man today"])[0].split()[0]
    assert next_words(translator, "  ", "", 3) == []


def test_what_cannot_be_asked_for_is_told(translator: SearchTranslator) -> None:
    with raises_error(Error.UNSUPPORTED):
        next_words(translator, "the dog sees a man. " * 100, "", 3)
    with raises_error(Error.UNKNOWN_TOKEN):
        next_words(translator, "the dog", "汉字", 3)
