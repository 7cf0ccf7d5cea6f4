"""Paired tests: p-values are sacreBLEU's own, a system is not better than itself, and large differences are seen."""

import random

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

from dragoman.quality.metrics import metric
from dragoman.quality.significance import bootstrap, holm, paired_test, randomised
from dragoman.quality.test_set import TestSet

WORDS = [
    "the",
    "a",
    "dog",
    "cat",
    "man",
    "woman",
    "runs",
    "sees",
    "old",
    "red",
    "small",
    "house",
    "street",
    "in",
    "on",
    "with",
    "and",
    "green",
    "ball",
]
NAMES = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"}


def sentences(count, seed):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(4, 14))) + "." for _ in range(count)]


def spoilt(lines, seed, share):
    """The lines with a share of their words left out or exchanged."""
    rng = random.Random(seed)
    return [
        " ".join(rng.choice(WORDS) if rng.random() < share else word for word in line.split() if rng.random() > share)
        for line in lines
    ]


@pytest.mark.parametrize("number", range(20))
def test_p_values_are_those_of_sacrebleu(number, monkeypatch):
    monkeypatch.setenv("SACREBLEU_SEED", "12345")
    references = sentences(37, number)
    first, second = spoilt(references, 100 + number, 0.2), spoilt(references, 200 + number, 0.2 + 0.01 * (number % 5))
    test = TestSet(references, [references])
    theirs = {}
    for kind, samples in (("bs", 300), ("ar", 700)):
        metrics = {"BLEU": BLEU(force=True), "chrF2": CHRF(), "TER": TER(case_sensitive=True)}
        _, found = PairedTest([("a", first), ("b", second)], metrics, [references], kind, n_samples=samples)()
        theirs[kind] = found
    for name, title in NAMES.items():
        each = metric(name)
        one, other = (each.statistics(test, lines) for lines in (first, second))
        found = paired_test(each, one, other, resamples=300, trials=700)
        assert found.p_bootstrap == theirs["bs"][title][1].p_value
        assert found.p_randomised == theirs["ar"][title][1].p_value
        assert found.first == theirs["bs"][title][0].score
        assert found.second == theirs["bs"][title][1].score


def test_a_system_is_not_better_than_itself():
    references = sentences(30, 1)
    each = metric("chrf")
    lines = each.statistics(TestSet(references, [references]), spoilt(references, 2, 0.3))
    found = paired_test(each, lines, lines, resamples=100, trials=100)
    assert (found.difference, found.wins, found.losses, found.effect) == (0.0, 0, 0, 0.0)
    assert (found.p, found.p_corrected) == (1.0, 1.0)
    assert found.verdict == "undecided"


def test_ties_count():
    """Edits are whole numbers, and many exchanges change nothing: each is as large a difference as the one seen."""
    references = sentences(12, 1)
    first = [("x " if row < 4 else "") + line for row, line in enumerate(references)]
    test = TestSet(references, [references])
    each = metric("ter")
    found = paired_test(each, *(each.statistics(test, lines) for lines in (first, references)), trials=1000)
    assert found.p_randomised < 0.01
    assert found.p == pytest.approx(2 / 2**4, abs=0.03)  # all four exchanged, or none of them
    assert found.verdict == "undecided"


@pytest.mark.parametrize("name", ["bleu", "ter"])
def test_a_large_difference_is_seen_whichever_way_the_metric_points(name):
    references = sentences(60, 3)
    each = metric(name)
    test = TestSet(references, [references])
    good, bad = (each.statistics(test, spoilt(references, 4, share)) for share in (0.05, 0.5))
    better, worse = (paired_test(each, *pair, resamples=200, trials=200) for pair in ((bad, good), (good, bad)))
    assert (better.verdict, worse.verdict) == ("better", "worse")
    assert better.difference == pytest.approx(-worse.difference)
    assert better.low > 0 > worse.high
    assert better.wins > better.losses


def test_trials_are_the_same_in_blocks(monkeypatch):
    references = sentences(50, 5)
    each = metric("bleu")
    test = TestSet(references, [references])
    one, other = (each.statistics(test, spoilt(references, seed, 0.3)) for seed in (6, 7))
    at_once = randomised(each, one, other, 200)
    monkeypatch.setattr("dragoman.quality.significance._VALUES_AT_ONCE", 1)
    assert np.array_equal(randomised(each, one, other, 200), at_once)


def test_both_systems_are_drawn_on_the_same_sentences():
    references = sentences(20, 8)
    each = metric("chrf")
    lines = each.statistics(TestSet(references, [references]), spoilt(references, 9, 0.3))
    one, other = bootstrap(each, [lines, lines], 50)
    assert np.array_equal(one, other)
    assert one.std() > 0


def test_holm_corrects_less_from_the_smallest_on():
    assert holm([0.04]) == [0.04]
    assert holm([0.01, 0.02, 0.03]) == pytest.approx([0.03, 0.04, 0.04])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
