"""Figures of an output of a test set, whole and in parts, each with the signature that says how it was computed."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from dragoman.config import settings
from dragoman.errors import Error
from dragoman.languages.identification import language_or_recognised
from dragoman.quality.metrics import Metric, metric
from dragoman.quality.output_checks import OutputFault
from dragoman.quality.significance import SEED, interval
from dragoman.quality.test_set import TestSet

Tokenize = Literal["auto", "13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "flores101", "flores200", "none"]

USUAL = ("bleu", "chrf", "ter", "exact_match")
"""The metrics of an evaluation for which none are named."""


@settings
class EvaluationConfig:
    """The settings of scoring."""

    tokenize: Tokenize = "auto"
    """BLEU's own tokenisation of the (detokenised) text; `auto`: `zh` for Chinese, `char` for other languages
    that are written without spaces, else sacreBLEU's default `13a`.
    `none` is for text that is tokenised already, as in the literature's lower-cased Multi30k figures."""
    lowercase: bool = False  #: Lower-case both sides before scoring.

    def metrics(self, tgt_lang: str, *, with_ter: bool = True) -> list[Metric]:
        """The usual metrics. Raises DragomanError when a tokenizer needs a package that is not there."""
        names = [name for name in USUAL if with_ter or name != "ter"]
        return [metric(name, tgt_lang, tokenize=self.tokenize, lowercase=self.lowercase) for name in names]


@dataclass(frozen=True)
class Scores:
    """Figures of an output by the name of the metric, in points or percent, and how they were computed."""

    values: dict[str, float]
    titles: dict[str, str]
    signatures: dict[str, str]
    sentences: int
    parts: dict[str, "Scores"] = field(default_factory=dict)
    faults: tuple[OutputFault, ...] | None = None
    """None: they were not looked for."""
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Mean and half width of the 95 % interval by the metric, where it was asked for."""

    @property
    def bleu(self) -> float:
        """From 0 to 100; higher is better."""
        return self.values["bleu"]

    @property
    def chrf(self) -> float:
        """From 0 to 100; higher is better."""
        return self.values["chrf"]

    @property
    def ter(self) -> float | None:
        """In percent, lower is better; None where it was left out."""
        return self.values.get("ter")

    @property
    def exact_match(self) -> float:
        """The percentage of translations that equal the reference: the metric of the toy tasks."""
        return self.values["exact_match"]

    def figures(self) -> dict[str, str]:
        """The columns of a table."""
        shown = {self.titles[name]: f"{value:.2f}" for name, value in self.values.items()}
        shown |= {
            self.titles[name]: f"{self.values[name]:.2f} ± {half:.2f}" for name, (_, half) in self.intervals.items()
        }
        return {"sentences": f"{self.sentences:,}", **shown}

    def notes(self) -> list[str]:
        """The signature of each metric, which says how it was computed."""
        return [f"{metric}: {signature}" for metric, signature in self.signatures.items()]

    def to_dict(self) -> dict[str, Any]:
        """All figures, for a program."""
        figures: dict[str, Any] = {**self.values, "signatures": self.signatures, "sentences": self.sentences}
        if self.faults is not None:
            figures["faults"] = [asdict(fault) for fault in self.faults]
        if self.intervals:
            figures["intervals"] = {name: {"mean": mean, "ci": half} for name, (mean, half) in self.intervals.items()}
        if self.parts:
            figures["parts"] = {name: {**part.values, "sentences": part.sentences} for name, part in self.parts.items()}
        return figures


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

    `with_ter=False` leaves out TER, whose search for shifts takes longer than translating does. A `tgt_lang` that is no
    language code is told from the references.
    Raises DragomanError when the counts differ or there is nothing to score.
    """
    if len(hypotheses) != len(references):
        raise Error.UNEQUAL_COUNTS(f"{len(hypotheses):,} translations do not fit {len(references):,} references")
    tgt_lang = language_or_recognised(tgt_lang, references)
    test = TestSet(list(hypotheses), [list(references)], ("", tgt_lang))
    scores = scores_of(test, hypotheses, config.metrics(tgt_lang, with_ter=with_ter))
    signatures = {name: signature for name, signature in scores.signatures.items() if name != "exact_match"}
    return replace(scores, signatures=signatures)


def scores_of(
    test: TestSet,
    hypotheses: Sequence[str],
    metrics: Sequence[Metric],
    parts: Mapping[str, Sequence[int]] | None = None,
    faults: tuple[OutputFault, ...] | None = None,
    resamples: int = 0,
) -> Scores:
    """The figures of an output by each metric; of each part of the lines too. With resamples, their intervals too."""
    titles = {metric.name: metric.title for metric in metrics}
    statistics = {metric.name: metric.statistics(test, hypotheses) for metric in metrics}

    def of(rows: Sequence[int] | slice, count: int) -> Scores:
        own = {metric.name: statistics[metric.name][rows] for metric in metrics}
        values = {metric.name: metric.score(own[metric.name].sum(axis=0)) for metric in metrics}
        signatures = {
            metric.name: metric.resampled(resamples, SEED) if resamples else metric.signature() for metric in metrics
        }
        intervals = {metric.name: interval(metric, own[metric.name], resamples) for metric in metrics if resamples}
        return Scores(values, titles, signatures, count, intervals=intervals)

    of_parts = {name: of(list(rows), len(rows)) for name, rows in (parts or {}).items()}
    return replace(of(slice(None), len(test)), parts=of_parts, faults=faults)
