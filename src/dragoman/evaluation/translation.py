"""Corpus scores by sacreBLEU (Post 2018), each with the signature that says how it was computed."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from dragoman.config import settings
from dragoman.errors import Error
from dragoman.inference.search_translator import SearchTranslator
from dragoman.quality.metrics import Metric, metric
from dragoman.quality.test_set import TestSet
from dragoman.text.corpus import Pair

Tokenize = Literal["auto", "13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "none"]


@settings
class EvaluationConfig:
    """The settings of scoring."""

    tokenize: Tokenize = "auto"
    """BLEU's own tokenisation of the (detokenised) text; `auto`: `zh` for Chinese, `char` for other languages
    that are written without spaces, else sacreBLEU's default `13a`.
    `none` is for text that is tokenised already, as in the literature's lower-cased Multi30k figures."""
    lowercase: bool = False  #: Lower-case both sides before scoring.


@dataclass(frozen=True)
class Scores:
    """BLEU and chrF in points from 0 to 100, higher is better; TER in percent, lower is better.

    `exact_match`: the percentage of translations that are the reference, which is what toy tasks go by.
    """

    bleu: float
    chrf: float
    ter: float | None
    exact_match: float
    signatures: dict[str, str]
    sentences: int

    def figures(self) -> dict[str, str]:
        """The columns of a table."""
        ter = "-" if self.ter is None else f"{self.ter:.2f}"
        return {
            "sentences": f"{self.sentences:,}",
            "BLEU": f"{self.bleu:.2f}",
            "chrF": f"{self.chrf:.2f}",
            "TER": ter,
            "exact match, %": f"{self.exact_match:.2f}",
        }

    def notes(self) -> list[str]:
        """The signature of each metric, which says how it was computed."""
        return [f"{metric}: {signature}" for metric, signature in self.signatures.items()]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def score(
    hypotheses: Sequence[str],
    references: Sequence[str],
    config: EvaluationConfig,
    tgt_lang: str = "",
    *,
    with_ter: bool = True,
) -> Scores:
    """Score one hypothesis against one reference a line; both are put into NFC first: one letter that is spelt as two
    code points is no difference.

    `with_ter=False` leaves out TER, whose search for shifts takes longer than translating does.
    Raises DragomanError when the counts differ or there is nothing to score.
    """
    if len(hypotheses) != len(references):
        raise Error.UNEQUAL_COUNTS(f"{len(hypotheses):,} translations do not fit {len(references):,} references")
    test = TestSet(list(hypotheses), [list(references)], ("", tgt_lang))
    metrics = _metrics(config, tgt_lang, with_ter=with_ter)
    values = {each.name: each.score(each.statistics(test, hypotheses).sum(axis=0)) for each in metrics}
    return Scores(
        bleu=values["bleu"],
        chrf=values["chrf"],
        ter=values.get("ter"),
        exact_match=values["exact_match"],
        signatures={each.name: each.signature() for each in metrics if each.name != "exact_match"},
        sentences=len(hypotheses),
    )


def _metrics(config: EvaluationConfig, tgt_lang: str, *, with_ter: bool) -> list[Metric]:
    """The metrics of a score. Raises DragomanError when a tokenizer needs a package that is not there."""
    names = ("bleu", "chrf", "ter", "exact_match") if with_ter else ("bleu", "chrf", "exact_match")
    return [metric(name, tgt_lang, tokenize=config.tokenize, lowercase=config.lowercase) for name in names]


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
    _metrics(config, tgt_lang, with_ter=with_ter)  # what it lacks should be said before the long work
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
