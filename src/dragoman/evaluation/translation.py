"""A test set translated and scored."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.inference.search_translator import SearchTranslator
from dragoman.quality.scores import EvaluationConfig, Scores, score
from dragoman.text.corpus import Pair


@dataclass(frozen=True)
class Evaluation:
    """A test set translated and scored, with the seconds that translating took."""

    scores: Scores
    hypotheses: list[str]
    decode_s: float


def evaluate(
    translator: SearchTranslator,
    pairs: Sequence[Pair],
    config: EvaluationConfig,
    tgt_lang: str,
    *,
    with_ter: bool = True,
) -> Evaluation:
    """Steps 8 and 9: translate the source side of `pairs` and score against the target side."""
    config.metrics(tgt_lang, with_ter=with_ter)  # what it lacks should be said before the long work
    start = time.monotonic()
    hypotheses = translate(translator, pairs)
    decode_s = time.monotonic() - start
    scores = score(hypotheses, [pair.tgt for pair in pairs], config, tgt_lang, with_ter=with_ter)
    return Evaluation(scores, hypotheses, decode_s)


def translate(translator: SearchTranslator, pairs: Sequence[Pair]) -> list[str]:
    """The translation of each source side, between the languages of its pair."""
    hypotheses = [""] * len(pairs)
    for languages in dict.fromkeys(pair.languages for pair in pairs):
        rows = [row for row, pair in enumerate(pairs) if pair.languages == languages]
        speaking = translator if languages is None else translator.between(*languages)
        for row, text in zip(rows, speaking.translate([pairs[row].src for row in rows]), strict=True):
            hypotheses[row] = text
    return hypotheses


def spread(pairs: Sequence[Pair], hypotheses: Sequence[str], count: int) -> list[dict[str, str]]:
    """Up to `count` samples spread over a test set, the same sentences every time: [{src, ref, hyp}]."""
    count = min(count, len(pairs))
    chosen = [i * len(pairs) // count for i in range(count)]
    return [{"src": pairs[i].src, "ref": pairs[i].tgt, "hyp": hypotheses[i]} for i in chosen]
