"""Minimum Bayes risk: among several translations, take the translation that is most like all the others.

A model's most probable translation can be an odd one out; what most of its samples agree on seldom is (Kumar and Byrne
2004; Eikema and Aziz 2020, "Is MAP Decoding All You Need?"). The samples stand for what the model holds possible: the
expected utility of a candidate is the mean of its sentence-level metric against each sample. The candidates of several
runs, where each run has one vote, are a broader sample than the candidates of one run (`pipeline/several_runs.py`).
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence

import numpy as np
from jaxtyping import Float
from sacrebleu.metrics import BLEU

from dragoman.errors import Error

CHRF_ORDER, CHRF_BETA, BLEU_ORDER = 6, 2, 4
"""sacreBLEU's: the longest n-grams in characters, how much more recall counts than precision; n-grams in words."""

NGRAMS_AT_ONCE = 2**14
"""So many different n-grams are compared at once, at most."""


def expected_utility(
    candidates: Sequence[str], utility: str, tokenize: str = "13a", weights: Sequence[float] | None = None
) -> dict[str, float]:
    """The mean utility (0 to 100) of each different candidate against all of them, itself among them.

    `utility`: `chrf` (Popovic 2015) or `bleu` (with sacreBLEU's smoothing for single sentences; `tokenize` is its
    tokenizer). What was drawn several times counts several times; `weights` say how much each counts beside that.

    >>> utilities = expected_utility(["a man", "a man", "one dog"], "chrf")
    >>> utilities["a man"] > utilities["one dog"]
    True
    """
    if utility not in UTILITIES:
        raise Error.UNKNOWN_NAME(f"utility {utility!r} is not known: {' or '.join(UTILITIES)}")
    counts = dict.fromkeys(candidates, 0.0)
    for text, weight in zip(candidates, weights or [1.0] * len(candidates), strict=True):
        counts[text] += weight
    shares = np.array(list(counts.values())) / sum(counts.values())
    utilities = UTILITIES[utility](list(counts), tokenize) @ shares
    return dict(zip(counts, utilities.tolist(), strict=True))


def chrf(texts: Sequence[str], tokenize: str = "") -> Float[np.ndarray, "texts texts"]:
    """sacreBLEU's sentence chrF of each text (row) against each (column), whose n-grams are counted once for all."""
    joined = ["".join(text.split()) for text in texts]
    precision, recall, orders = (np.zeros((len(texts), len(texts))) for _ in range(3))
    for order in range(1, CHRF_ORDER + 1):
        matches, totals = overlaps([_grams(text, order) for text in joined])
        both = (totals[:, None] > 0) & (totals[None, :] > 0)  # an order of which one text has no n-grams does not count
        orders += both
        precision += np.divide(matches, totals[:, None], out=np.zeros_like(matches), where=both)
        recall += np.divide(matches, totals[None, :], out=np.zeros_like(matches), where=both)
    precision, recall = precision / np.maximum(orders, 1), recall / np.maximum(orders, 1)
    below = CHRF_BETA**2 * precision + recall
    above = (1 + CHRF_BETA**2) * precision * recall
    return 100 * np.divide(above, below, out=np.zeros_like(below), where=below > 0)


def bleu(texts: Sequence[str], tokenize: str) -> Float[np.ndarray, "texts texts"]:
    """sacreBLEU's sentence BLEU of each text (row) against each (column), whose n-grams are counted once for all."""
    split = BLEU(tokenize=tokenize).tokenizer
    words = [split(text.rstrip()).split() for text in texts]
    counted = [overlaps([_grams(tuple(each), order) for each in words]) for order in range(1, BLEU_ORDER + 1)]

    def score(row: int, column: int) -> float:
        correct = [int(matches[row, column]) for matches, _ in counted]
        total = [int(totals[row]) for _, totals in counted]
        lengths = len(words[row]), len(words[column])
        return BLEU.compute_bleu(correct, total, *lengths, smooth_method="exp", effective_order=True).score

    return np.array([[score(row, column) for column in range(len(texts))] for row in range(len(texts))])


def overlaps(
    grams: Sequence[Sequence[Hashable]],
) -> tuple[Float[np.ndarray, "texts texts"], Float[np.ndarray, " texts"]]:
    """(the number of n-grams that each two texts share, the number of n-grams of each text). An n-gram that both texts
    have twice is shared twice.

    >>> shared, totals = overlaps(["aab", "aac", "b"])
    >>> shared.tolist(), totals.tolist()
    ([[3.0, 2.0, 1.0], [2.0, 3.0, 0.0], [1.0, 0.0, 1.0]], [3.0, 3.0, 1.0])
    """
    numbers: dict[Hashable, int] = {}
    entries = [
        (row, numbers.setdefault(gram, len(numbers)), count)
        for row, of_text in enumerate(grams)
        for gram, count in Counter(of_text).items()
    ]
    rows, columns, counts = np.array(entries, dtype=np.int64).reshape(-1, 3).T
    shared = np.zeros((len(grams), len(grams)))
    for start in range(0, len(numbers), NGRAMS_AT_ONCE):
        chosen = (start <= columns) & (columns < start + NGRAMS_AT_ONCE)
        table = np.zeros((len(grams), min(NGRAMS_AT_ONCE, len(numbers) - start)), dtype=np.float32)
        table[rows[chosen], columns[chosen] - start] = counts[chosen]
        for times in range(1, int(table.max(initial=0)) + 1):  # min(a, b): how often both are at least 1, 2, 3 ...
            reached = (table >= times).astype(np.float32)
            shared += reached @ reached.T
    return shared, np.array([float(len(of_text)) for of_text in grams])


def _grams(text: Sequence[Hashable], order: int) -> list[Hashable]:
    return [text[start : start + order] for start in range(len(text) - order + 1)]


UTILITIES: dict[str, Callable[[Sequence[str], str], np.ndarray]] = {"chrf": chrf, "bleu": bleu}
