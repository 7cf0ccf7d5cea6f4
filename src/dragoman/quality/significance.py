"""A paired test of the difference between two systems on one test set.

Randomisation test (Riezler and Maxwell 2005): were the two systems one, their outputs of a sentence could be exchanged.
The p-value is the share of exchanges with a difference at least as large as the observed one. Sentences with equal
statistics do not matter, so all exchanges of the others are counted where they are few (Fisher 1935); else a random
sample of them, the observed one included (Phipson and Smyth 2010). Paired bootstrap resampling (Koehn 2004) gives the
interval of the difference. The p-values of sacreBLEU's `PairedTest` stand beside under its name: it leaves ties out, so
that two equal outputs have p = 1 / (n + 1) (multeval 3 and 5, from which it has the rule).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dragoman.quality.metrics import FloatArray, Metric

SEED = 12345
"""sacreBLEU's."""
RESAMPLES = 1000
TRIALS = 10_000
SIGNIFICANCE_LEVEL = 0.05
"""The level of significance: a difference with a smaller p-value counts."""
MAX_EXACT_SENTENCES = 16
"""Sentences with different statistics up to which all 2^n exchanges are counted."""
_VALUES_AT_ONCE = 2**22
ROUNDING_SHARE = 1e-9
"""Figures of the same sentences, added up in another order, differ by less, as a share of the figure."""


@dataclass(frozen=True)
class Test:
    """Two systems by one metric. A difference above zero means that the second system is better."""

    __test__ = False  # pytest: this is no test

    metric: str
    first: float
    """The figure of the first system, and of the second."""
    second: float
    difference: float
    low: float
    """The 95 % interval of the difference, by the bootstrap's percentiles."""
    high: float
    effect: float
    """The mean difference of a sentence by the standard deviation of that (Cohen's d of paired samples)."""
    wins: int
    """Sentences that the second translates better, by themselves."""
    losses: int
    p: float
    """Of the randomisation test, two-sided, with ties counted."""
    exchanges: int
    """The number of exchanges that `p` is a share of."""
    exact: bool
    """True if these are all exchanges."""
    p_sacrebleu_bs: float
    """sacreBLEU's p-value by paired bootstrap resampling, which leaves ties out."""
    p_sacrebleu_ar: float
    """sacreBLEU's p-value by approximate randomisation, which leaves ties out."""
    p_corrected: float
    """`p` after Holm's correction, where several systems are compared."""

    @property
    def verdict(self) -> str:
        """Better, worse or undecided: of the second by the first."""
        if self.p_corrected >= SIGNIFICANCE_LEVEL or not self.difference:
            return "undecided"
        return "better" if self.difference > 0 else "worse"


def paired_test(
    metric: Metric,
    first: FloatArray,
    second: FloatArray,
    *,
    resamples: int = RESAMPLES,
    trials: int = TRIALS,
    seed: int = SEED,
) -> Test:
    """The test on the statistics of two systems, (sentences, statistics) each.

    resamples: of the bootstrap. trials: exchanges that are drawn where there are too many to count them all.
    """
    scores = metric.score(first.sum(axis=0)), metric.score(second.sum(axis=0))
    observed = abs(scores[0] - scores[1])
    one, other = bootstrap(metric, [first, second], resamples, seed)
    drawn = np.array([metric.better(b, a) for a, b in zip(one, other, strict=True)])
    low, high = np.percentile(drawn, [2.5, 97.5])
    spread = np.abs(other - one)
    by_line = sentence_differences(metric, first, second)
    deviation = float(by_line.std(ddof=1)) if len(by_line) > 1 else 0.0
    exchanged = randomised(metric, first, second, trials, seed)
    every = all_exchanges(metric, first, second)
    counted, itself = (exchanged, 1) if every is None else (every, 0)
    as_large = counted >= observed - ROUNDING_SHARE * max(map(abs, scores))
    p = (int(as_large.sum()) + itself) / (len(counted) + itself)
    return Test(
        metric=metric.name,
        first=scores[0],
        second=scores[1],
        difference=metric.better(scores[1], scores[0]),
        low=float(low),
        high=float(high),
        effect=float(by_line.mean()) / deviation if deviation else 0.0,
        wins=int((by_line > 0).sum()),
        losses=int((by_line < 0).sum()),
        p=p,
        exchanges=len(counted) + itself,
        exact=every is not None,
        p_sacrebleu_bs=_sacrebleus(spread - spread.mean(), observed),
        p_sacrebleu_ar=_sacrebleus(exchanged, observed),
        p_corrected=p,
    )


def bootstrap(
    metric: Metric, systems: Sequence[FloatArray], resamples: int = RESAMPLES, seed: int = SEED
) -> list[FloatArray]:
    """The scores of each system on test sets drawn from the sentences, the same ones for all systems."""
    rng = np.random.default_rng(seed)
    count = len(systems[0])
    # In single precision, as sacreBLEU adds up. It draws all rows at once; row by row they are the same.
    statistics = [system.astype(np.float32) for system in systems]
    scores: list[list[float]] = [[] for _ in systems]
    for _ in range(resamples):
        rows = rng.choice(count, size=count, replace=True)
        for system, system_scores in zip(statistics, scores, strict=True):
            system_scores.append(metric.score(system[rows].sum(0)))
    return [np.array(system_scores) for system_scores in scores]


def interval(
    metric: Metric, statistics: FloatArray, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[float, float]:
    """(mean, half the width) of the 95 % interval of a system's score by the bootstrap (Koehn 2004), as sacreBLEU."""
    drawn = np.sort(bootstrap(metric, [statistics], resamples, seed)[0])
    cut = resamples // 40
    return float(drawn.mean()), float(drawn[resamples - cut - 1] - drawn[cut]) / 2


def randomised(metric: Metric, first: FloatArray, second: FloatArray, trials: int, seed: int = SEED) -> FloatArray:
    """The absolute differences of pairs of systems made by exchanging the outputs of random sentences."""
    rng = np.random.default_rng(seed)
    count, differences = len(first), []
    at_once = 32 * max(1, _VALUES_AT_ONCE // (32 * count))  # the generator hands out 32 truth values at a time
    for begin in range(0, trials, at_once):
        chosen = rng.integers(2, size=(min(at_once, trials - begin), count), dtype=bool)
        mine, others = chosen.astype(np.float64), (~chosen).astype(np.float64)
        for a, b in zip(mine @ first + others @ second, others @ first + mine @ second, strict=True):
            differences.append(abs(metric.score(a) - metric.score(b)))
    return np.array(differences)


def all_exchanges(metric: Metric, first: FloatArray, second: FloatArray) -> FloatArray | None:
    """The absolute differences of all 2^n exchanges of the n sentences with different statistics; None: too many."""
    changes = (second - first)[(first != second).any(axis=1)]
    if len(changes) > MAX_EXACT_SENTENCES:
        return None
    chosen = (np.arange(2 ** len(changes))[:, None] >> np.arange(len(changes))) & 1
    moved = chosen @ changes
    # The last half exchanges what the first half keeps: the same differences again.
    moved = moved[: max(1, len(moved) // 2)]
    pairs = zip(first.sum(axis=0) + moved, second.sum(axis=0) - moved, strict=True)
    half = np.array([abs(metric.score(a) - metric.score(b)) for a, b in pairs])
    return np.tile(half, 2 if len(changes) else 1)


def _sacrebleus(differences: FloatArray, observed: float) -> float:
    """The share of larger differences, the observed one added: sacreBLEU's rule."""
    return (int((differences > observed).sum()) + 1) / (len(differences) + 1)


def sentence_differences(metric: Metric, first: FloatArray, second: FloatArray) -> FloatArray:
    """By how much the second system is better in each sentence."""
    return np.array(
        [metric.better(metric.score(other), metric.score(one)) for one, other in zip(first, second, strict=True)]
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number (Holm 1979): the probability of a single error among all stays the level.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    corrected, largest = [0.0] * len(order), 0.0
    for rank, place in enumerate(order.tolist()):
        largest = max(largest, min(1.0, (len(order) - rank) * p_values[place]))
        corrected[place] = largest
    return corrected
