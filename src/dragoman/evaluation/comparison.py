"""Two models on the same text: which one is better, and how sure that is."""

from dataclasses import dataclass

import numpy as np

from dragoman.evaluation.translation import EvaluationConfig, score
from dragoman.inference.search_translator import SearchTranslator

Pairs = list[tuple[str, str]]

RESAMPLES = 1000
SURE = 0.95
"""The share of resamples in which one of two is better for it to count as better."""


@dataclass(frozen=True)
class Compared:
    """Two models on the same text: mean chrF of their sentences, BLEU, and the share of resamples in which the second
    is better."""

    name: str
    sentences: int
    before: float
    after: float
    better: float
    bleu_before: float
    bleu_after: float

    @property
    def is_better(self) -> bool:
        return self.after > self.before and self.better >= SURE

    @property
    def is_worse(self) -> bool:
        return self.after < self.before and self.better <= 1 - SURE

    def __str__(self) -> str:
        return (
            f"{self.name} ({self.sentences:,} sentences): chrF {self.before:.2f} before, {self.after:.2f} after (BLEU "
            f"{self.bleu_before:.2f}, {self.bleu_after:.2f}), better in {100 * self.better:.0f} % of resamples"
        )


def compare(name: str, before: SearchTranslator, after: SearchTranslator, pairs: Pairs) -> Compared:
    """Translate the sources with both, and compare by paired bootstrap of sentences' chrF (Koehn 2004)."""
    sources, references = [src for src, _ in pairs], [tgt for _, tgt in pairs]
    config = EvaluationConfig()
    texts = [translator.translate(sources) for translator in (before, after)]
    scores = [
        np.array([score([hyp], [ref], config, with_ter=False).chrf for hyp, ref in zip(found, references, strict=True)])
        for found in texts
    ]
    language = after.languages[1] if after.languages else ""
    bleu = [score(found, references, config, language, with_ter=False).bleu for found in texts]
    rng = np.random.default_rng(1)
    rows = rng.integers(len(pairs), size=(RESAMPLES, len(pairs)))
    difference = (scores[1] - scores[0])[rows].mean(axis=1)
    share = float((difference > 0).mean() + (difference == 0).mean() / 2)
    return Compared(name, len(pairs), float(scores[0].mean()), float(scores[1].mean()), share, bleu[0], bleu[1])
