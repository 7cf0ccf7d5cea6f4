"""An output of a test set, judged: its faults first, then its figures by the metrics asked for, whole and in parts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dragoman.errors import Error
from dragoman.progress import say
from dragoman.quality.external_metrics import any_metric
from dragoman.quality.metrics import Metric
from dragoman.quality.output_checks import Finding, check_output, leaks
from dragoman.quality.slices import slices
from dragoman.quality.test_set import TestSet

DEFAULT_METRICS = ("bleu", "chrf", "ter", "exact_match")


@dataclass(frozen=True)
class Judged:
    """Figures of an output by the name of the metric, in points or percent, and how they were computed."""

    values: dict[str, float]
    titles: dict[str, str]
    signatures: dict[str, str]
    sentences: int
    parts: dict[str, "Judged"] = field(default_factory=dict)
    faults: tuple[Finding, ...] = ()

    def figures(self) -> dict[str, str]:
        """The columns of a table."""
        shown = {self.titles[name]: f"{value:.2f}" for name, value in self.values.items()}
        return {"sentences": f"{self.sentences:,}", **shown}

    def notes(self) -> list[str]:
        """The signature of each metric, which says how it was computed."""
        return [f"{metric}: {signature}" for metric, signature in self.signatures.items()]

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {**self.values, "signatures": self.signatures, "sentences": self.sentences}
        found["faults"] = [
            {"kind": fault.kind, "message": fault.message, "lines": list(fault.lines)} for fault in self.faults
        ]
        if self.parts:
            found["parts"] = {name: {**part.values, "sentences": part.sentences} for name, part in self.parts.items()}
        return found


@dataclass(frozen=True)
class Judging:
    """The wishes of the command line: metrics, parts, and whether outputs are looked at first.

    `training`: gives the source side of the training text anew at each call, or None where there is none.
    """

    metrics: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    checks: bool = True
    training: Callable[[], Iterable[str] | None] | None = None

    def built(
        self, tgt_lang: str, *, tokenize: str = "auto", lowercase: bool = False, system: str = ""
    ) -> list[Metric]:
        """The metrics. Raises DragomanError for one that is not known or lacks a package: before the long work."""
        asked = self.metrics or DEFAULT_METRICS
        found = [any_metric(text, tgt_lang, system=system, tokenize=tokenize, lowercase=lowercase) for text in asked]
        names = [metric.name for metric in found]
        if repeated := [name for name in names if names.count(name) > 1]:
            raise Error.CONFLICT(f"--metric {repeated[0]} twice: one output has one figure of a metric")
        return found

    def judge(self, test: TestSet, hypotheses: Sequence[str], metrics: Sequence[Metric]) -> Judged:
        """The figures of an output. Its faults are said on standard error first: figures may mean nothing then."""
        faults = self.faults(test, hypotheses)
        rows: dict[str, list[int]] = {}
        for by in self.by:
            rows |= slices(test, by, self.training() if self.training is not None else None)
        return judge(test, hypotheses, metrics, rows, tuple(faults))

    def faults(self, test: TestSet, hypotheses: Sequence[str]) -> list[Finding]:
        """The faults of an output as a whole, said on standard error too."""
        if not self.checks or not test.references:
            return []
        found = check_output(test, hypotheses)
        training = self.training() if self.training is not None else None
        if training is not None:
            found += leaks(test, training)
        for fault in found:
            say(f"warning: {test.name}: {fault}")
        return found


def judge(
    test: TestSet,
    hypotheses: Sequence[str],
    metrics: Sequence[Metric],
    rows: Mapping[str, Sequence[int]] | None = None,
    faults: tuple[Finding, ...] = (),
) -> Judged:
    """The figures of an output, and of each part of the lines."""
    titles = {metric.name: metric.title for metric in metrics}
    statistics = {metric.name: metric.statistics(test, hypotheses) for metric in metrics}

    def of(part: Sequence[int] | slice, count: int) -> Judged:
        values = {metric.name: metric.score(statistics[metric.name][part].sum(axis=0)) for metric in metrics}
        return Judged(values, titles, {metric.name: metric.signature() for metric in metrics}, count)

    whole = of(slice(None), len(test))
    parts = {name: of(list(part), len(part)) for name, part in (rows or {}).items()}
    return Judged(whole.values, titles, whole.signatures, len(test), parts, faults)
