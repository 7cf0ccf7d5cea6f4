"""Chapter 13: measuring a translation."""

import math
import random
from collections import Counter
from typing import Any

from dragoman.learn.exercise import Exercise


def modified_precision(hypothesis: str, reference: str, n: int) -> tuple[int, int]:
    """Count the n-grams of a translation that the reference has: (matches, all n-grams of the translation).

    Words are split at blanks. An n-gram matches no more often than it stands in the reference.
    """

    def ngrams(text: str) -> Counter[tuple[str, ...]]:
        words = text.split()
        return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))

    hyp, ref = ngrams(hypothesis), ngrams(reference)
    return sum(min(count, ref[gram]) for gram, count in hyp.items()), sum(hyp.values())


def bleu(hypotheses: list[str], references: list[str]) -> float:
    """Compute the BLEU of a corpus, from 0 to 100, from n-grams of 1 to 4 words, without smoothing.

    100 * exp(mean of the four log precisions) * brevity penalty; a precision is all matches of the corpus by all its
    n-grams. The penalty is exp(1 - r/c) where the corpus has fewer words, c, than the references, r; else 1.
    """
    logs = []
    for n in (1, 2, 3, 4):
        counts = [modified_precision(h, r, n) for h, r in zip(hypotheses, references, strict=True)]
        logs.append(math.log(sum(match for match, _ in counts) / sum(total for _, total in counts)))
    c, r = (sum(len(text.split()) for text in texts) for texts in (hypotheses, references))
    penalty = math.exp(1 - r / c) if c < r else 1.0
    return 100 * math.exp(sum(logs) / 4) * penalty


def read_signature(signature: str) -> dict[str, str]:
    """Read sacreBLEU's signature, "nrefs:1|case:mixed|tok:13a|smooth:exp|version:2.6.0": {"nrefs": "1", ...}."""
    return dict(part.split(":", 1) for part in signature.split("|"))


WORDS = ["the", "a", "dog", "man", "runs", "sits", "in", "on", "grass", "red"]


def draw_pair(rng: random.Random) -> tuple[Any, ...]:
    reference = rng.choices(WORDS, k=9)
    hypothesis = [word if rng.random() < 0.7 else rng.choice(WORDS) for word in reference] + ["the", "the", "the"]
    return " ".join(hypothesis), " ".join(reference), rng.choice([1, 2])


def draw_corpus(rng: random.Random) -> tuple[Any, ...]:
    references = [rng.choices(WORDS, k=rng.randrange(8, 15)) for _ in range(6)]
    hypotheses = [[w if rng.random() < 0.85 else rng.choice(WORDS) for w in one] for one in references]
    shorter = rng.random() < 0.5
    hypotheses = [one[:-2] if shorter else [*one, "in"] for one in hypotheses]
    hypotheses[0] = references[0] = ["the", "dog", "runs", "in", "the", "grass", "today"]
    return [" ".join(one) for one in hypotheses], [" ".join(one) for one in references]


def draw_signature(rng: random.Random) -> tuple[Any, ...]:
    return (
        f"nrefs:{rng.randrange(1, 9)}|case:{rng.choice(['mixed', 'lc'])}|eff:no|tok:a:{rng.randrange(9)}|version:2.6.0",
    )


EXERCISES = [
    Exercise(13, modified_precision, draw_pair),
    Exercise(13, bleu, draw_corpus),
    Exercise(13, read_signature, draw_signature),
]
