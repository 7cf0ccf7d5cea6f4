"""Simplified and traditional Chinese made of each other around a model."""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.errors import raises_error

from dragoman.errors import Error
from dragoman.inference.translation import Translation
from dragoman.pipeline.chinese import conversion
from dragoman.pipeline.options import TranslateOptions


def n_best(sentences: Sequence[str]) -> list[list[Translation]]:
    """A model that writes simplified Chinese, and reads it."""
    known = {"Software": "软件", "USB drive": "U盘", "软件": "software"}
    return [[Translation(known[text], 0.0, 0.0, words=((0, 2, 1.0),))] for text in sentences]


def test_what_a_model_writes_is_in_the_script_that_is_wanted() -> None:
    pytest.importorskip("opencc")
    made = conversion(("en", "zh-TW"), ("en", "zh")).converted(n_best, ["Software", "USB drive"])
    assert [items[0].text for items in made] == ["軟體", "隨身碟"]
    assert [len(items[0].words) for items in made] == [1, 0]  # of another length: where is no longer known
    made = conversion(("eng", "zho_Hant"), ("en", "zh-Hans")).converted(n_best, ["Software"])
    assert made[0][0].text == "軟件"


def test_what_a_model_reads_is_in_its_own_script() -> None:
    pytest.importorskip("opencc")
    made = conversion(("zh-HK", "en"), ("zh", "en"))
    assert made.converted(n_best, ["軟件"])[0][0].text == "software"
    assert made.languages == ("zh-HK", "en")


@pytest.mark.parametrize(
    ("asked", "own"),
    [
        (("en", "zh"), ("en", "zh")),
        (("en", "zh-SG"), ("en", "zh-CN")),
        (("en", "ja"), ("en", "zh")),
        (("en", "sr-Latn"), ("en", "sr")),
        (("zh-TW", "de"), ("zh", "en")),
    ],
)
def test_nothing_but_the_two_scripts_of_chinese_is_converted(asked: tuple[str, str], own: tuple[str, str]) -> None:
    with raises_error(Error.CONFLICT, "convert_han"):
        conversion(asked, own)


def test_without_opencc_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opencc", None)
    with raises_error(Error.NOT_INSTALLED, "dragoman[opencc]"):
        conversion(("en", "zh-TW"), ("en", "zh"))


def test_terms_and_beginnings_are_of_the_models_own_script() -> None:
    for changed in ({"glossary": Path("g.csv")}, {"prefix": Path("p")}, {"avoid": Path("a")}):
        with raises_error(Error.CONFLICT, "convert_han"):
            TranslateOptions(Path("run"), convert_han=True, **changed)
