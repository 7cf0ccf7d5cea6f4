"""Scores of labels against the definitions, written as loops."""

import random

import pytest
from tests.errors import raises_error

from dragoman.errors import Error
from dragoman.quality.classification import score_labels

LABELS = ["ant", "bee", "cat", "never"]


def test_figures_are_the_definitions() -> None:
    rng = random.Random(1)
    right = rng.choices(LABELS[:3], weights=[6, 3, 1], k=200)
    predicted = [label if rng.random() < 0.7 else rng.choice(LABELS[:3]) for label in right]
    scores = score_labels(predicted, right, LABELS)
    pairs = list(zip(right, predicted, strict=True))
    assert scores.accuracy == pytest.approx(100 * sum(a == b for a, b in pairs) / 200)
    f1s = []
    for row, label in enumerate(LABELS[:3]):
        true_positives = sum(a == b == label for a, b in pairs)
        precision = true_positives / sum(b == label for _, b in pairs)
        recall = true_positives / sum(a == label for a, _ in pairs)
        f1s.append(2 * precision * recall / (precision + recall))
        found = scores.per_label[label]
        assert (found.precision, found.recall) == pytest.approx((100 * precision, 100 * recall))
        assert found.f1 == pytest.approx(100 * f1s[-1])
        assert found.examples == right.count(label)
        for column, other in enumerate(LABELS):
            assert scores.confusion[row, column] == pairs.count((label, other))
    assert scores.macro_f1 == pytest.approx(100 * sum(f1s) / 3)  # of the labels that occur
    assert scores.figures() == {
        "examples": "200",
        "accuracy": f"{scores.accuracy:.2f}",
        "macro F1": f"{scores.macro_f1:.2f}",
    }


def test_a_label_that_is_never_said_has_no_precision() -> None:
    scores = score_labels(["ant", "ant"], ["ant", "bee"], LABELS)
    assert scores.per_label["bee"].precision == scores.per_label["bee"].f1 == 0
    assert scores.macro_f1 == pytest.approx((200 / 3) / 2)


def test_a_label_that_is_said_without_cause_counts_as_0() -> None:
    scores = score_labels(["cat", "ant"], ["ant", "ant"], LABELS)
    assert scores.per_label["cat"].recall == scores.per_label["cat"].f1 == 0
    assert scores.macro_f1 == pytest.approx((200 / 3) / 2)


def test_notes_show_the_confusion() -> None:
    notes = score_labels(["ant", "bee", "bee"], ["ant", "ant", "bee"], LABELS[:2]).notes()
    assert notes[0].split() == ["label", "precision", "recall", "F1", "|", "said", "to", "be:", "ant", "bee"]
    assert notes[1].split() == ["ant", "100.00", "50.00", "66.67", "|", "1", "1"]
    assert notes[2].split() == ["bee", "50.00", "100.00", "66.67", "|", "0", "1"]
    assert len({len(note) for note in notes}) == 1


def test_what_cannot_be_scored_is_refused() -> None:
    with raises_error(Error.UNEQUAL_COUNTS):
        score_labels(["ant"], ["ant", "bee"], LABELS)
    with raises_error(Error.EMPTY):
        score_labels([], [], LABELS)
    with raises_error(Error.UNKNOWN_NAME):
        score_labels(["ant"], ["dog"], LABELS)
