"""Minimum Bayes risk over several runs: of all their translations, the translation most similar to all others."""

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dragoman.inference.mbr import expected_utility
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Translation
from dragoman.quality.metrics import Metric
from dragoman.quality.test_set import TestSet


@dataclass(frozen=True)
class SeveralRuns:
    """A way to rank translations together with other runs' translations, for `SearchTranslator.reranked_by`.

    The runs need not share a vocabulary. Each run has one vote. Its translations share the vote equally.
    """

    others: Sequence[SearchTranslator]
    utility: str | Metric = "chrf"
    """A likeness of `expected_utility`, or any metric."""
    tokenize: str = "13a"

    def __call__(self, sources: Sequence[str], translations: Sequence[list[Translation]]) -> list[list[Translation]]:
        """The translations of each source by all runs, each text once, best first, with expected utilities as scores.

        A translation of several runs keeps the log probability that the first of these runs gave it.
        """
        wide = [other.with_decoding(n_best=other.decoding.num_candidates) for other in self.others]
        lists = list(zip(translations, *(other.n_best(sources) for other in wide), strict=True))
        votes = [_votes(of_runs) for of_runs in lists]
        if isinstance(self.utility, Metric):
            utilities = expected_figures(self.utility, sources, votes)
        else:
            utilities = [expected_utility(list(of), self.utility, self.tokenize, list(of.values())) for of in votes]
        return list(map(_ranked, lists, utilities))


def expected_figures(
    by: Metric, sources: Sequence[str], candidates: Sequence[Mapping[str, float]]
) -> list[dict[str, float]]:
    """The mean figure of each source's candidates with each of them as the reference, itself among them; a metric of
    which less is better is negative. The candidates of a source have weights; blank ones alone have no figure, but 0.

    The metric is asked once for all: a program of its own loads its model once.
    """
    rows = [row for row, weights in enumerate(candidates) if any(text.strip() for text in weights)]
    if not rows:
        return [dict.fromkeys(weights, 0.0) for weights in candidates]
    triples = [(sources[row], text, ref) for row in rows for text in candidates[row] for ref in candidates[row]]
    srcs, texts, refs = map(list, zip(*triples, strict=True))
    sign = 1 if by.higher_is_better else -1
    figures = iter([sign * by.score(sums) for sums in by.statistics(TestSet(srcs, [refs]), texts)])
    means = [dict.fromkeys(weights, 0.0) for weights in candidates]
    for row in rows:
        weights = candidates[row]
        for text in weights:
            means[row][text] = sum(weight * next(figures) for weight in weights.values()) / sum(weights.values())
    return means


def _votes(of_runs: Sequence[list[Translation]]) -> dict[str, float]:
    """The weight of each text, the first run's first."""
    votes: dict[str, float] = defaultdict(float)
    for of_run in of_runs:
        for item in of_run:
            votes[item.text] += 1 / len(of_run)
    return votes


def _ranked(of_runs: Sequence[list[Translation]], utility: Mapping[str, float]) -> list[Translation]:
    items: dict[str, Translation] = {}
    for item in itertools.chain(*of_runs):
        items.setdefault(item.text, item)
    ranked = sorted(items, key=lambda text: -utility[text])  # stable: the first run's stand first among equals
    return [replace(items[text], score=utility[text]) for text in ranked]
