"""BLEU by length: buckets and scores equal to sacreBLEU's own on the sentences of each bucket."""

from typing import Any

import pytest
import sacrebleu
from tests.errors import raises_error

from dragoman.analysis.lengths import FEW_SENTENCES, Result, bleu_by_length, lengths_figure, lengths_table
from dragoman.errors import Error

REFERENCES = [f"the {'very ' * n}small dog number {n} runs through the grass ." for n in range(40)]
LENGTHS = [1 + n for n in range(40)]


def results() -> dict[str, list[Result]]:
    good = [(length, ref, ref) for length, ref in zip(LENGTHS, REFERENCES, strict=True)]
    worse = [(length, ref.replace("small", "big"), ref) for length, ref in zip(LENGTHS, REFERENCES, strict=True)]
    return {"good": good, "worse": worse}


def test_buckets_against_sacrebleu() -> None:
    buckets = bleu_by_length(results(), [5, 10, 30])
    assert [(bucket.title, bucket.sentences) for bucket in buckets] == [
        ("1–5", 5),
        ("6–10", 5),
        ("11–30", 20),
        ("31+", 10),
    ]
    for bucket, (low, high) in zip(buckets, [(0, 5), (5, 10), (10, 30), (30, 40)], strict=True):
        rows = results()["worse"][low:high]
        expected = sacrebleu.corpus_bleu([hyp for _, hyp, _ in rows], [[ref for _, _, ref in rows]], force=True).score
        assert bucket.bleu["worse"] == pytest.approx(expected)
        assert bucket.bleu["good"] == pytest.approx(100)


def test_empty_buckets_are_left_out() -> None:
    buckets = bleu_by_length({"a": [(2, "x y", "x y"), (99, "x", "x")]}, [5, 10, 50])
    assert [bucket.title for bucket in buckets] == ["1–5", "51+"]


def test_a_blank_source_counts_as_shortest() -> None:
    assert bleu_by_length({"a": [(0, "", "x")]})[0].title == "1–5"


@pytest.mark.parametrize(
    ("found", "edges", "error"),
    [
        ({}, [5], (Error.EMPTY,)),
        ({"a": []}, [5], (Error.EMPTY,)),
        ({"a": [(1, "x", "y")], "b": [(1, "x", "z")]}, [5], (Error.UNEQUAL_COUNTS,)),
        ({"a": [(1, "x", "y")]}, [5, 5], (Error.WRONG_OPTION, "rise")),
        ({"a": [(1, "x", "y")]}, [0, 5], (Error.WRONG_OPTION, "positive")),
    ],
)
def test_what_cannot_be_compared(found: dict[str, list[Result]], edges: list[int], error: tuple[Any, ...]) -> None:
    with raises_error(*error):
        bleu_by_length(found, edges)


def test_table_and_figure() -> None:
    buckets = bleu_by_length(results(), [10])
    lines = lengths_table(buckets).splitlines()
    assert lines[0].split() == ["words", "sentences", "good", "worse"]
    assert lines[2].split() == ["11+", "30", "100.00", f"{buckets[1].bleu['worse']:.2f}"]
    figure = lengths_figure(buckets)
    above, below = figure.axes
    assert [text.get_text() for text in above.get_legend().get_texts()] == ["good", "worse"]
    curve = next(line for line in above.get_lines() if line.get_label() == "worse")
    assert list(curve.get_ydata()) == [bucket.bleu["worse"] for bucket in buckets]
    assert [bar.get_height() for bar in below.patches] == [10, 30]
    assert [tick.get_text() for tick in below.get_xticklabels()] == ["1–10", "11+"]
    hollow = [line.get_markerfacecolor() == "white" for line in above.get_lines() if len(line.get_xdata()) == 1]
    assert hollow == [True, False] * 2
    assert str(FEW_SENTENCES) in above.get_title(loc="right")
