"""Minimum Bayes risk over several runs: of all their translations the one that is most like all of them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragoman.inference.mbr import expected_utility
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Translation


@dataclass(frozen=True)
class SeveralRuns:
    """A way to rank translations by those of other runs too, for `SearchTranslator.reranked_by`.

    The runs need not share a vocabulary. Each has one vote, of which its translations have equal parts.
    """

    others: Sequence[SearchTranslator]
    utility: str = "chrf"
    tokenize: str = "13a"

    def __call__(self, sources: Sequence[str], found: Sequence[list[Translation]]) -> list[list[Translation]]:
        """The translations of each source by all runs, each text once, best first, with expected utilities as scores.

        What several runs have found keeps the log probability of the first.
        """
        wide = [other.with_decoding(n_best=other.decoding.num_candidates) for other in self.others]
        lists = [found, *(other.n_best(sources) for other in wide)]
        return [self._ranked(of_runs) for of_runs in zip(*lists, strict=True)]

    def _ranked(self, of_runs: Sequence[list[Translation]]) -> list[Translation]:
        items: dict[str, Translation] = {}
        votes: dict[str, float] = defaultdict(float)
        for of_run in of_runs:
            for item in of_run:
                items.setdefault(item.text, item)
                votes[item.text] += 1 / len(of_run)
        texts = list(items)
        utility = expected_utility(texts, self.utility, self.tokenize, [votes[text] for text in texts])
        ranked = sorted(texts, key=lambda text: -utility[text])  # stable: the first run's stand first among equals
        return [replace(items[text], score=utility[text]) for text in ranked]
