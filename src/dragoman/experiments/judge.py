"""Judging of translations that lie in files, by whatever system they are."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from dragoman.errors import Error
from dragoman.evaluation.judging import Judged, Judging
from dragoman.quality.test_set import TestSet, read_hypotheses
from dragoman.tasks.recipes import references_of, titles_of
from dragoman.text.lines import find, read_lines


@dataclass(frozen=True)
class Asked:
    """The options of scoring as the command line has them."""

    metrics: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    checks: bool = True
    training_text: tuple[Path, ...] = ()

    def judging(self) -> Judging:
        """For files: there is training text only where it was given."""
        return Judging(self.metrics, self.by, self.checks, self._training if self.training_text else None)

    def of_a_run(self) -> Judging | None:
        """For a run, which has a training text of its own; None where everything is as usual."""
        return None if self == Asked() else self.judging()

    def _training(self) -> Iterable[str]:
        return chain.from_iterable(read_lines(find(path)) for path in self.training_text)


def judge_files(
    asked: Asked,
    hypotheses: list[Path],
    *,
    sources: list[Path],
    references: list[Path],
    names: list[str],
    tokenize: str = "auto",
    lowercase: bool = False,
) -> dict[str, Judged]:
    """The figures of each file of translations; source and references say what it is a translation of.

    Raises DragomanError when files do not fit each other.
    """
    if not sources:
        raise Error.MISSING_OPTION("--hypotheses needs --src, the text that was translated, and --ref")
    if not references and not all("=" in text or text.endswith(".py") for text in asked.metrics or ("bleu",)):
        raise Error.MISSING_OPTION("--hypotheses needs --ref, the reference translation of each line")
    if len(hypotheses) != len(sources):
        raise Error.UNEQUAL_COUNTS(f"{len(hypotheses)} --hypotheses for {len(sources)} --src", "give one for each")
    judging = asked.judging()
    tests = [
        TestSet.read(src, refs, name=title)
        for src, refs, title in zip(sources, references_of(sources, references), titles_of(sources, names), strict=True)
    ]
    lines = [read_hypotheses(path, test) for path, test in zip(hypotheses, tests, strict=True)]
    results = {}
    for path, test, texts in zip(hypotheses, tests, lines, strict=True):
        metrics = judging.built(test.languages[1], tokenize=tokenize, lowercase=lowercase, system=path.stem)
        results[test.name] = judging.judge(test, texts, metrics)
    return results
