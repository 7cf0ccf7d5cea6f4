"""An output of a test set, judged: its faults first, then its figures by the metrics asked for, whole and in parts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from dragoman.errors import Error
from dragoman.progress import say
from dragoman.quality.external_metrics import MeanMetric, any_metric
from dragoman.quality.metrics import Metric, unsplit
from dragoman.quality.output_checks import OutputFault, check_output, leaks
from dragoman.quality.scores import USUAL, Scores, scores_of
from dragoman.quality.slices import slices
from dragoman.quality.test_set import TestSet, read_hypotheses
from dragoman.quality.text_forms import joined
from dragoman.text.lines import find, read_lines


@dataclass(frozen=True, kw_only=True)
class EvaluationOptions:
    """The settings of judging: metrics, parts of the lines, and whether faults are looked for first.

    `resamples`: of the bootstrap by which figures get an interval; 0: none. `training_text`: files of the source side
    of the training text; `training`: gives its lines anew at each call, or None where there is none.
    """

    metrics: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    checks: bool = True
    resamples: int = 0
    training_text: tuple[Path, ...] = ()
    training: Callable[[], Iterable[str] | None] | None = None
    join: bool = False  #: Join the pieces of other systems' output, and of references, first.

    def build_metrics(
        self, tgt_lang: str, *, tokenize: str = "auto", lowercase: bool = False, system: str = ""
    ) -> list[Metric]:
        """The metrics. Raises DragomanError for an unknown metric or a missing package, before the long work begins."""
        names = self.metrics or USUAL
        metrics = [any_metric(text, tgt_lang, system=system, tokenize=tokenize, lowercase=lowercase) for text in names]
        titles = [metric.name for metric in metrics]
        if repeated := [name for name in titles if titles.count(name) > 1]:
            raise Error.CONFLICT(f"`metric` {repeated[0]} twice: one output has one figure of a metric")
        return metrics

    def evaluate(self, test: TestSet, hypotheses: Sequence[str], metrics: Sequence[Metric]) -> Scores:
        """The figures of an output. Its faults are said on standard error first: figures may mean nothing then."""
        if self.join:
            references = [list(map(joined, lines)) for lines in test.references]
            test, hypotheses = replace(test, references=references, files=None), list(map(joined, hypotheses))
        faults = self.faults(test, hypotheses)
        if why := unsplit(test, metrics):
            say(f"warning: {test.name}: {why}")
        rows: dict[str, list[int]] = {}
        for by in self.by:
            rows |= slices(test, by, self._training_lines())
        return scores_of(test, hypotheses, metrics, rows, tuple(faults), self.resamples)

    def faults(self, test: TestSet, hypotheses: Sequence[str]) -> list[OutputFault]:
        """The faults of an output as a whole, said on standard error too."""
        if not self.checks or not test.references:
            return []
        findings = check_output(test, hypotheses)
        training = self._training_lines()
        if training is not None and list(test.sources) != list(test.references[0]):
            findings += leaks(test, training)
        for fault in findings:
            say(f"warning: {test.name}: {fault}")
        return findings

    def _training_lines(self) -> Iterable[str] | None:
        if self.training_text:
            return chain.from_iterable(read_lines(find(path)) for path in self.training_text)
        return self.training() if self.training is not None else None


def evaluate_files(
    options: EvaluationOptions,
    hypotheses: list[Path],
    *,
    sources: list[Path],
    references: list[Path],
    names: list[str],
    languages: tuple[str | None, str | None] = (None, None),
    tokenize: str = "auto",
    lowercase: bool = False,
) -> dict[str, Scores]:
    """The figures of each file of translations; source and references say what it is a translation of, and in which
    languages, where `languages` do not.

    Raises DragomanError when files do not fit each other.
    """
    outside = [isinstance(any_metric(text), MeanMetric) for text in options.metrics or USUAL]
    if not references and not all(outside):
        raise Error.MISSING_OPTION("`hypotheses` needs `ref`, the reference translation of each line")
    if not sources and not options.by and not any(outside):  # sacreBLEU's figures, and faults that need no source
        sources = references[:: max(1, len(references) // len(hypotheses))]
    if not sources:
        raise Error.MISSING_OPTION("other metrics, and `by`, need `src`, the text that was translated")
    if len(hypotheses) != len(sources):
        raise Error.UNEQUAL_COUNTS(f"{len(hypotheses)} `hypotheses` for {len(sources)} `src`", "give one for each")
    tests = [
        TestSet.read(src, refs, (languages[0] or "", languages[1] or ""), title)
        for src, refs, title in zip(sources, references_of(sources, references), titles_of(sources, names), strict=True)
    ]
    lines = [read_hypotheses(path, test) for path, test in zip(hypotheses, tests, strict=True)]
    results = {}
    for path, test, texts in zip(hypotheses, tests, lines, strict=True):
        metrics = options.build_metrics(test.languages[1], tokenize=tokenize, lowercase=lowercase, system=path.stem)
        results[test.name] = options.evaluate(test, texts, metrics)
    return results


def references_of(sources: list[Path], references: list[Path]) -> list[list[Path]]:
    """The references of each source: as many of each, those of the first source first."""
    if len(references) % len(sources) if sources else references:
        raise Error.UNEQUAL_COUNTS(
            f"{len(sources)} `src` but {len(references)} `ref`",
            "give one reference for each source, or as many of each",
        )
    size = len(references) // max(1, len(sources))
    return [references[size * place : size * (place + 1)] for place in range(len(sources))]


def titles_of(sources: list[Path], names: list[str]) -> list[str]:
    """The name of each set: as it was given, or else its file's name, or the whole path where two share a name."""
    if names and len(names) != len(sources):
        raise Error.UNEQUAL_COUNTS(f"{len(names)} `name` for {len(sources)} `src`", "give one for each, or none")
    files = [path.name for path in sources]
    titles = names or [str(path) if files.count(path.name) > 1 else path.name for path in sources]
    if repeated := [title for title in titles if titles.count(title) > 1]:
        raise Error.CONFLICT(
            f"{'`name`' if names else '`src`'} {repeated[0]} twice", "give each set a `name` of its own"
        )
    return titles
