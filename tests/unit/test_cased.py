"""Capitals as tokens: what is lower-cased comes back, whatever the script; what cannot come back stays as it is."""

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.test_job import job
from tests.unit.test_job import recipe as recipe  # a fixture

from dragoman.export import argos, ctranslate2, huggingface_tokenizer, marian
from dragoman.tasks.translation.task import TranslationTask
from dragoman.text.tokenizers.cased import CAPITAL, END, MARKS, UPPER, CasedConfig, CasedTokenizer, marked
from dragoman.text.tokenizers.language_tags import bare
from dragoman.text.tokenizers.pair import load_tokenizers

LINES = ["ein hund und eine katze spielen im garten mit dem ball", "die frau (hier) sieht den mann-ohne hut",
         "ο δρόμος οδός οδος", "straße, der und die das"] * 20  # fmt: skip
KEEP = CasedTokenizer.train(CasedConfig(vocab_size=420, byte_fallback=True, white_space="keep"), iter(LINES))
CASED = [chr(code) for code in range(0x30000) if chr(code).lower() != chr(code) or chr(code).upper() != chr(code)]
"""Every letter of Unicode that has another case."""
ODD = list("aBσςΣΑİıßẞǅᲐა1 .,-’'\u0301\u0345你ⒶⓐⅧK")


def pieces(text: str, tokenizer: CasedTokenizer = KEEP) -> list[str]:
    return [piece.removeprefix("▁") or "▁" for piece in tokenizer.pieces(tokenizer.encode(text))]


@pytest.mark.parametrize(
    ("text", "lowered", "marks"),
    [
        ("Ein Hund", "ein hund", [(0, CAPITAL), (3, CAPITAL)]),
        ("EIN HUND bellt", "ein hund bellt", [(0, UPPER), (7, END)]),
        ("DIE FRAU, 3 MÄNNER!", "die frau, 3 männer!", [(0, UPPER), (15, END)]),
        ("Was I am", "was i am", [(0, CAPITAL), (3, CAPITAL)]),
        ("iPhone McDonald GmbH", "iPhone McDonald GmbH", []),
        ("ΟΔΟΣ ΣΟΦΟΣ", "οδος σοφος", [(0, UPPER), (9, END)]),
        ("Σ", "σ", [(0, CAPITAL)]),
        ("İSTANBUL", "İstanbul", [(0, UPPER), (8, END)]),
        ("İstanbul ısı", "İstanbul ısı", []),
        ("STRASSE STRAẞE straße", "strasse straẞe straße", [(0, UPPER), (13, END)]),
        ("ǅungla", "ǅungla", []),
        ("ᲡᲐᲥᲐ საქა", "საქა საქა", [(0, UPPER), (4, END)]),
        ("A\u0301C e\u0301", "a\u0301c e\u0301", [(0, UPPER), (3, END)]),
        ("\u212a \u212b", "\u212a \u212b", []),  # the Kelvin and the Ångström sign
        ("ALLE ⓐ UHR", "alle ⓐ uhr", [(0, UPPER), (4, END), (5, UPPER), (8, END)]),
    ],
)
def test_marks(text: str, lowered: str, marks: list[tuple[int, str]]) -> None:
    assert marked(text) == (lowered, marks)


def test_a_word_has_the_same_pieces_whatever_its_case() -> None:
    small = pieces("hund")
    assert pieces("Hund") == [CAPITAL, *small]
    assert pieces("HUND") == [UPPER, *small, END]
    assert pieces("HUND HUND") == [UPPER, *small, *small, END]
    with_mark = KEEP.encode("(Hund)")
    assert [index for index in with_mark if index != KEEP.id_of(CAPITAL)] == KEEP.encode("(hund)")
    assert len(with_mark) == len(KEEP.encode("(hund)")) + 1


@settings(max_examples=400)
@given(st.lists(st.sampled_from(CASED) | st.sampled_from(ODD), max_size=12).map("".join))
def test_any_case_comes_back(text: str) -> None:
    ids = KEEP.encode(text)
    assert KEEP.decode(ids) == KEEP.inner.decode(KEEP.inner.encode(text))
    assert sum(KEEP.letters(text)) == sum(not char.isspace() for char in text)
    assert len(KEEP.letters(text)) == len(ids)


@settings(max_examples=200)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="▁"), max_size=30))
def test_any_text_comes_back(text: str) -> None:
    assert KEEP.decode(KEEP.encode(text)) == KEEP.inner.decode(KEEP.inner.encode(text))


def test_every_letter_with_a_case_comes_back_alone_and_in_a_word() -> None:
    for letter in CASED:
        for text in (letter, f"{letter}a", f"a{letter}", f"AB{letter}", f"{letter}AB"):
            lowered, marks = marked(text)
            assert len(lowered) == len(text)
            assert KEEP.decode(KEEP.encode(text)) == text, ascii(text)
            assert marks == sorted(marks)


def test_a_text_that_spells_marks_is_text() -> None:
    for text in (*MARKS, " ".join(MARKS), "<capital>hund", "<upper> hund </upper>"):
        assert KEEP.decode(KEEP.encode(text)) == text


def test_marks_that_a_model_put_anywhere_are_borne() -> None:
    capital, upper, end = map(KEEP.id_of, MARKS)
    hund, katze = KEEP.encode("hund"), KEEP.encode("katze")
    assert KEEP.decode([capital]) == KEEP.decode([upper, end, end]) == ""
    assert KEEP.decode([capital, capital, *hund, capital]) == "Hund"
    assert KEEP.decode([end, upper, *hund, upper, *katze]) == "HUND KATZE"
    assert KEEP.decode([upper, capital, *hund, end, *katze, end]) == "HUND katze"
    assert KEEP.decode([*hund, capital, *KEEP.encode("!")[1:], *katze]) == "hund! katze"
    dealt = itertools.islice(itertools.product([capital, upper, end, *hund, *katze], repeat=4), 500)
    assert all(KEEP.decode(ids).lower() for ids in dealt if {*hund, *katze} & set(ids))


def test_a_run_with_several_languages_has_tags_beside_marks(recipe: dict[str, Any]) -> None:
    recipe["tokenizer"] = {"type": "cased", "vocab_size": 60, "languages": ["de", "en"]}
    made = job(recipe)
    made.prepare()
    inner = bare(load_tokenizers(made.run_dir / "tokenizer").src)
    assert isinstance(inner, CasedTokenizer)
    assert inner.decode(inner.encode("Eins ZWEI")) == "Eins ZWEI"
    assert made.tokenizers.src.before == [inner.id_of("<2en>")]


def test_programs_that_cut_text_by_themselves_refuse_it_by_name(recipe: dict[str, Any]) -> None:
    recipe["tokenizer"] = {"type": "cased", "vocab_size": 60}
    made = job(recipe)
    made.prepare()
    _, task = made.start()
    assert isinstance(task, TranslationTask)
    translator = task.translator
    for reasons in (huggingface_tokenizer.problems(translator.tokenizers), argos.problems(translator)):
        assert any("{type: cased}" in reason for reason in reasons)
    assert not any(side.cut for side in marian.vocabularies(translator))  # it gets pieces
    assert not [reason for reason in ctranslate2.problems(translator) if "tokenizer" in reason]
