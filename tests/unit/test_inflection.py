"""Forms of a word by the dictionaries of simplemma."""

import pytest

from dragoman.text.inflection import Inflection


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("Druck", "Drucker", False),
        ("Druck", "Drucke", True),
        ("Druck", "Drucks", True),
        ("Testdruck", "Testdrucker", False),
        ("Testdrucker", "Testdruckern", True),
        ("Tabellendruck", "Tabellendrucks", True),
        ("Speicherort", "speichern", False),
        ("gleicher", "Gleichung", False),
        ("gesetzt", "gesetzten", True),
        ("weiteren", "weiterhin", False),
    ],
)
def test_two_words_of_a_dictionary_are_no_forms(one: str, other: str, expected: bool) -> None:
    pytest.importorskip("simplemma")
    assert Inflection("de").are_forms(one, other) == Inflection("de").are_forms(other, one) == expected
