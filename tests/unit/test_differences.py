"""Faults by class: each is told where it is, and not where the reference has it too."""

import numpy as np
import pytest

from dragoman.alignment.lexicon import Lexicon
from dragoman.quality.differences import CLASSES, TranslatedSentence, fault_counts, faults_of, top_examples
from dragoman.quality.test_set import TestSet
from dragoman.text.glossary import Glossary

PAIRS = [
    ("der hund läuft", "the dog runs"),
    ("die katze schläft", "the kitten sleeps"),
    ("der hund schläft", "the dog sleeps"),
    ("die katze läuft", "the kitten runs"),
    ("der vogel singt", "the bird sings"),
    ("der vogel schläft", "the bird sleeps"),
]


def said(kind, src, hyp, ref, **more):
    return CLASSES[kind](TranslatedSentence(src, hyp, (ref,), ("de", "en"), **more))


@pytest.mark.parametrize(
    ("kind", "src", "hyp", "ref", "expected"),
    [
        ("length", "ein hund läuft durch den garten", "a dog", "a dog runs through the garden", "too short"),
        ("length", "ein hund", "a dog runs through the old garden", "a small dog", "too long"),
        ("negation", "er schläft nicht", "he sleeps", "he does not sleep", "negation lost"),
        ("negation", "er schläft", "he never sleeps", "he sleeps", "negation added"),
        ("numbers", "12 hunde", "13 dogs", "12 dogs", "numbers lost: 12"),
        ("names", "heute sah Maria den hund", "she saw the dog", "today Maria saw the dog", "names lost: Maria"),
        ("word order", "x", "runs the dog the fast in park", "the dog runs in the fast park", "other order of words"),
        ("repetition", "x", "a man in a hat in a hat in a hat", "a man in a hat", "repeats 'in a hat'"),
        ("repetition", "x", "the red red house", "the red house", "repeats 'red red'"),
        ("untranslated", "der geldbeutel", "the geldbeutel", "the purse", "left as in the source: geldbeutel"),
    ],
)  # fmt: skip
def test_each_class_is_told_and_not_of_the_reference(kind, src, hyp, ref, expected):
    assert said(kind, src, hyp, ref) == expected
    assert said(kind, src, ref, ref) == ""


def test_words_that_the_source_does_not_account_for():
    lexicon = Lexicon(PAIRS)
    found = said("hallucinated", "der vogel singt", "the kitten sings", "the bird sings", lexicon=lexicon)
    assert found == "not in the source: kitten"
    assert said("hallucinated", "die katze läuft", "the kitten runs", "a cat moves", lexicon=lexicon) == ""
    assert said("hallucinated", "die katze läuft", "the xylophone", "a cat moves", lexicon=lexicon) == ""


def test_terms_that_a_reference_has():
    terms = Glossary({"hund": "hound"})
    assert said("terms", "der hund", "the dog", "the hound", terms=terms) == "terms lost: hound"
    assert said("terms", "der hund", "the Hound", "the hound", terms=terms) == ""
    assert said("terms", "der hund", "the dog", "the dog", terms=terms) == ""


def test_the_best_of_several_references_counts():
    several = TranslatedSentence("er schläft nicht", "he sleeps", ("he does not sleep", "he sleeps"), ("de", "en"))
    assert CLASSES["negation"](several) == ""


def test_classes_are_counted_for_both_and_alone():
    test = TestSet(["er schläft nicht"] * 3, [["he does not sleep"] * 3], ("de", "en"))
    first = faults_of(test, ["he does not sleep", "he sleeps here", "he sleeps now"])
    second = faults_of(test, ["he sleeps now", "he sleeps here", "he does not sleep"])
    row = fault_counts(first, second)["negation"]
    assert (row.first, row.second, row.first_alone, row.second_alone) == (2, 2, 1, 1)
    assert row.p_value == 1.0
    assert fault_counts(first[:1], first[:1]) == {}


def test_the_most_telling_are_wins_and_losses_in_turn():
    differences = np.array([50.0, 40.0, -30.0, 0.0, 0.0, 1.0])
    none = [{} for _ in differences]
    faults = [{}, {}, {}, {"negation": "negation lost"}, {}, {}]
    chosen = top_examples(differences, none, faults, 4)
    assert set(chosen) == {0, 1, 2, 5}
    assert set(top_examples(differences, none, faults, 10)) == {0, 1, 2, 3, 5}
    assert chosen[0] == 0
