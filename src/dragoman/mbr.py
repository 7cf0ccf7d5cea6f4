"""Minimum Bayes risk: of several translations take the one that is most like all of them.

A model's most probable translation can be an odd one out; what most of its samples agree on seldom is (Kumar and Byrne
2004; Eikema and Aziz 2020, "Is MAP Decoding All You Need?"). The samples stand for what the model holds possible: the
expected utility of a candidate is the mean of its sentence-level metric against each of them.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from dragoman.errors import DragomanError


def expected_utility(candidates: Sequence[str], utility: str, tokenize: str = "13a") -> dict[str, float]:
    """The mean utility (0 to 100) of each different candidate against all of them, itself among them.

    `utility`: `chrf` (Popovic 2015) or `bleu` (with sacreBLEU's smoothing for single sentences; `tokenize` is its
    tokenizer). What was drawn several times counts several times.

    >>> found = expected_utility(["a man", "a man", "one dog"], "chrf")
    >>> found["a man"] > found["one dog"]
    True
    """
    counts = Counter(candidates)
    metric = _metric(utility, tokenize)
    total = sum(counts.values())
    return {
        candidate: sum(count * metric.sentence_score(candidate, [other]).score for other, count in counts.items())
        / total
        for candidate in counts
    }


def _metric(utility: str, tokenize: str) -> Any:
    from sacrebleu.metrics import BLEU, CHRF

    if utility == "chrf":
        return CHRF()
    if utility == "bleu":
        return BLEU(effective_order=True, tokenize=tokenize)
    raise DragomanError(f"utility {utility!r} is not known: chrf or bleu")
