"""Spaces that hold punctuation, and quotation marks, by language."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.typography import typeset


@pytest.mark.parametrize(
    ("language", "text", "typography"),
    [
        ("fr", "Vraiment ? Oui ; non !", "Vraiment\u202f? Oui\u202f; non\u202f!"),
        ("fr_FR", "Il dit : « oui ».", "Il dit\xa0: «\xa0oui\xa0»."),
        ("fr-CA", "Vraiment ? Il dit : « oui ».", "Vraiment ? Il dit\xa0: «\xa0oui\xa0»."),
        ("fr", "Voir https://example.org/ ?q=1 et a ?b", "Voir https://example.org/ ?q=1 et a ?b"),
        ("fr", "ouvert {name ?} :-)", "ouvert {name ?}\xa0:-)"),
        ("de", 'Das "Haus", z. B. 5 %', "Das „Haus“, z.\u202fB. 5\u202f%"),
        ("de", 'Ein 5" Rohr und <a href="x">"Haus"</a>', 'Ein 5" Rohr und <a href="x">„Haus“</a>'),
        ("ru", 'Это — "дом", № 5', "Это\xa0— «дом», №\xa05"),
        ("en", 'It is "here" ?', 'It is "here" ?'),
        ("ja", "何 ?", "何 ?"),
    ],
)
def test_a_text_as_its_language_has_it(language: str, text: str, typography: str) -> None:
    assert typeset(text, language) == typography
    assert typeset(typography, language) == typography


@given(st.text('ab ;!?:«»—"z.B5%№{}<>', max_size=30), st.sampled_from(["fr", "de", "ru"]))
def test_nothing_moves(text: str, language: str) -> None:
    assert len(typeset(text, language)) == len(text)
