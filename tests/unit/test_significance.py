"""Paired tests: exact p-values, sacreBLEU's beside them, no system is better than itself, large differences count."""

import importlib
import random
import sys
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

from dragoman.quality.metrics import Metric, metric
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
        metrics = {"BLEU": BLEU(force=True), "chrF2": CHRF(), "TER": TER()}
        _, found = PairedTest([("a", first), ("b", second)], metrics, [references], kind, n_samples=samples)()
        theirs[kind] = found
    for name, title in NAMES.items():
        each = metric(name)
        one, other = (each.statistics(test, lines) for lines in (first, second))
        found = paired_test(each, one, other, resamples=300, trials=700)
        assert found.p_sacrebleu_bs == theirs["bs"][title][1].p_value
        assert found.p_sacrebleu_ar == theirs["ar"][title][1].p_value
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


@pytest.mark.parametrize("name", ["bleu", "chrf", "ter"])
@pytest.mark.parametrize("changed", range(7))
def test_few_changes_have_an_exact_p_value(name, changed):
    """Against a count over texts (multeval 3 and 5: equal outputs had p = 0.0001)."""
    references = sentences(24, 1)
    first = spoilt(references, 100, 0.2)
    second = first[:-changed] + spoilt(references, 200 + changed, 0.4)[-changed:] if changed else first
    test, each = TestSet(references, [references]), metric(name)
    found = paired_test(each, *(each.statistics(test, lines) for lines in (first, second)), resamples=100, trials=100)

    def difference(swapped):
        one = [b if row in swapped else a for row, (a, b) in enumerate(zip(first, second, strict=True))]
        other = [a if row in swapped else b for row, (a, b) in enumerate(zip(first, second, strict=True))]
        return abs(*(np.diff([each.score(each.statistics(test, lines).sum(axis=0)) for lines in (one, other)])))

    rows = [row for row in range(len(first)) if first[row] != second[row]]
    exchanges = [
        difference([row for place, row in enumerate(rows) if number >> place & 1]) for number in range(2 ** len(rows))
    ]
    assert found.exact
    assert found.p == sum(value >= exchanges[0] - 1e-9 for value in exchanges) / len(exchanges)


def test_four_of_sixty_changed_sentences_are_no_sure_difference():
    references = sentences(60, 1)
    worse = [line.replace(".", " x x.") if row < 4 else line for row, line in enumerate(references)]
    test, each = TestSet(references, [references]), metric("bleu")
    found = paired_test(each, *(each.statistics(test, lines) for lines in (references, worse)), trials=1000)
    assert (found.p, found.exchanges, found.verdict) == (0.125, 16, "undecided")
    assert found.p_sacrebleu_ar < 0.01


def test_many_changes_are_sampled_and_the_observed_difference_is_one_of_the_sample():
    """Edits are whole numbers, and many exchanges have as large a difference as the observed one: ties count."""
    references = sentences(40, 1)
    first = [("x " if row < 17 else "") + line for row, line in enumerate(references)]
    second = [("x " if 17 <= row < 34 else "") + line for row, line in enumerate(references)]
    test, each = TestSet(references, [references]), metric("ter")
    found = paired_test(each, *(each.statistics(test, lines) for lines in (first, second)), trials=500)
    assert (found.p, found.exchanges, found.exact) == (1.0, 501, False)


def test_scores_of_any_size_have_the_same_p_value():
    class Mean(Metric):
        name = title = "mean"

        def statistics(self, test, hypotheses):
            raise NotImplementedError

        def score(self, sums):
            return sums[0] / sums[1]

        def signature(self):
            return ""

    rng = np.random.default_rng(1)
    one, other = rng.normal(0, 1, (2, 12))
    found = [
        paired_test(Mean(), *(np.stack([size * x, np.ones(12)], axis=1) for x in (one, other)), trials=100)
        for size in (1e-12, 1.0, 1e12)
    ]
    assert len({test.p for test in found}) == 1
    assert 0 < found[0].p < 1


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


def test_the_benchmark_counts_and_draws():
    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    try:
        benchmark = importlib.import_module("significance")
    finally:
        sys.path.pop(0)
    pool = sentences(40, 1)
    pairs = list(benchmark.exact(pool, 10, 1))
    assert all(ours == theirs for ours, theirs in pairs)
    assert len({ours for ours, _ in pairs}) > 3
    shares = benchmark.errors(pool, draws=6, changed=4, lines=12, seed=1)
    assert shares["p"] == 0  # 2 of 16 exchanges are as large at least
