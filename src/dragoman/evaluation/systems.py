"""Systems on one test set, each beside the first: tests of their difference, where it is, and in which sentences."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from dragoman.alignment.lexicon import Lexicon
from dragoman.quality.differences import Told, faults_of, most_telling, told
from dragoman.quality.metrics import FloatArray, Metric, metric
from dragoman.quality.output_checks import Finding
from dragoman.quality.significance import (
    RESAMPLES,
    SEED,
    TRIALS,
    Test,
    holm,
    paired_test,
    sentence_differences,
)
from dragoman.quality.slices import slices
from dragoman.quality.test_set import TestSet
from dragoman.text.glossary import Glossary

SHOWN = 50
"""Sentences that are kept for each pair of systems."""


@dataclass(frozen=True)
class System:
    """A system's name and its translations of the test set."""

    name: str
    lines: list[str]
    faults: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Telling:
    """A sentence in two systems' translations."""

    line: int
    src: str
    ref: str
    first: str
    second: str
    difference: float
    """In points of sentence chrF; above zero where the second is better."""
    faults: tuple[dict[str, str], dict[str, str]]


@dataclass(frozen=True)
class Pair:
    """A system beside the first one."""

    second: System
    tests: list[Test]
    parts: dict[str, tuple[int, float, float]]
    """Lengths of sentences: (sentences, figure of the first, of the second) by the first metric."""
    classes: dict[str, Told]
    sentences: list[Telling]
    differences: FloatArray
    """Of each sentence, in points of chrF."""

    @property
    def verdict(self) -> str:
        """By the first metric that was asked for."""
        return self.tests[0].verdict


@dataclass(frozen=True)
class Comparison:
    """Systems compared with the first of them on one test set."""

    test: TestSet
    first: System
    pairs: list[Pair]
    metrics: list[Metric]
    signatures: dict[str, str]

    @property
    def verdict(self) -> str:
        """Of the last word for a script: worse if one is worse, better if all are better, else undecided."""
        found = {pair.verdict for pair in self.pairs}
        return "worse" if "worse" in found else "better" if found == {"better"} else "undecided"

    def to_dict(self) -> dict[str, Any]:
        """All figures, for a program."""
        return {
            "test": self.test.name,
            "sentences": len(self.test),
            "signatures": self.signatures,
            "first": self.first.name,
            "faults": {
                system.name: [asdict(fault) for fault in system.faults]
                for system in (self.first, *(pair.second for pair in self.pairs))
            },
            "verdict": self.verdict,
            "compared": [
                {
                    "name": pair.second.name,
                    "verdict": pair.verdict,
                    "tests": [{**asdict(test), "verdict": test.verdict} for test in pair.tests],
                    "lengths": pair.parts,
                    "classes": {kind: {**asdict(row), "p": row.p_value} for kind, row in pair.classes.items()},
                    "sentences": [asdict(sentence) for sentence in pair.sentences],
                }
                for pair in self.pairs
            ],
        }


def compare_systems(
    test: TestSet,
    systems: Sequence[System],
    metrics: Sequence[Sequence[Metric]],
    *,
    lexicon: Lexicon | None = None,
    terms: Glossary | None = None,
    resamples: int = RESAMPLES,
    trials: int = TRIALS,
) -> Comparison:
    """Compare systems with the first of them; `metrics` are of each system, as a figure may come from a file of its
    own. Classes of faults are told by `lexicon` (words that the source does not account for) and `terms`.
    """
    statistics = [
        [each.statistics(test, system.lines) for each in own] for system, own in zip(systems, metrics, strict=True)
    ]
    faults = [faults_of(test, system.lines, lexicon, terms) for system in systems]
    by_line = metric("chrf", test.languages[1])
    chrf = [by_line.statistics(test, system.lines) for system in systems]
    pairs = []
    for number, system in enumerate(systems[1:], 1):
        tests = [
            paired_test(each, one, other, resamples=resamples, trials=trials)
            for each, one, other in zip(metrics[0], statistics[0], statistics[number], strict=True)
        ]
        differences = sentence_differences(by_line, chrf[0], chrf[number])
        sentences = [
            Telling(
                line=row + 1,
                src=test.sources[row],
                ref=test.references[0][row],
                first=systems[0].lines[row],
                second=system.lines[row],
                difference=float(differences[row]),
                faults=(faults[0][row], faults[number][row]),
            )
            for row in most_telling(differences, faults[0], faults[number], SHOWN)
        ]
        parts = _by_length(test, metrics[0][0], statistics[0][0], statistics[number][0])
        pairs.append(Pair(system, tests, parts, told(faults[0], faults[number]), sentences, differences))
    signatures = {each.title: f"{each.signature()}|seed:{SEED}|bs:{resamples}|ar:{trials}" for each in metrics[0]}
    return Comparison(test, systems[0], _corrected(pairs), list(metrics[0]), signatures)


def _corrected(pairs: list[Pair]) -> list[Pair]:
    """With the p-values of each metric corrected for the number of systems."""
    for column in range(len(pairs[0].tests)):
        corrected = holm([pair.tests[column].p for pair in pairs])
        for pair, value in zip(pairs, corrected, strict=True):
            pair.tests[column] = replace(pair.tests[column], p_corrected=value)
    return pairs


def _by_length(test: TestSet, by: Metric, first: FloatArray, second: FloatArray) -> dict[str, tuple[int, float, float]]:
    parts = slices(test, "length")
    return {
        name: (len(rows), by.score(first[rows].sum(axis=0)), by.score(second[rows].sum(axis=0)))
        for name, rows in parts.items()
    }
