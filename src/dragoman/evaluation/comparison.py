"""Runs, or files of translations, compared on one test set; a model beside the one that it was made from.

Each system stands beside the first: tests of their difference, where it is, and in which sentences.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from dragoman.alignment.lexicon import Lexicon
from dragoman.errors import DragomanError, Error
from dragoman.evaluation.evaluate_output import EvaluationOptions
from dragoman.inference.loading import corpus_settings
from dragoman.inference.search_translator import SearchTranslator
from dragoman.progress import say
from dragoman.quality.differences import FaultCounts, fault_counts, faults_of, top_examples
from dragoman.quality.metrics import TITLES, FloatArray, Metric, metric, unsplit
from dragoman.quality.output_checks import OutputFault
from dragoman.quality.significance import RESAMPLES, SEED, TRIALS, Test, holm, paired_test, sentence_differences
from dragoman.quality.slices import slices
from dragoman.quality.test_set import TestSet, read_hypotheses
from dragoman.text.glossary import Glossary
from dragoman.text.lines import find, read_lines

Pairs = list[tuple[str, str]]

DEFAULT_METRICS = ("bleu", "chrf", "ter")
MAX_ALIGNMENT_PAIRS = 50_000
"""Pairs of the training text that the alignment is learnt from, at most."""
MAX_EXAMPLES = 50
"""Sentences that are kept for each pair of systems."""


@dataclass(frozen=True)
class System:
    """A system's name and its translations of the test set."""

    name: str
    lines: list[str]
    faults: tuple[OutputFault, ...] = ()


@dataclass(frozen=True)
class ExampleSentence:
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
class SystemPair:
    """A system beside the first one."""

    second: System
    tests: list[Test]
    parts: dict[str, tuple[int, float, float]]
    """Lengths of sentences: (sentences, figure of the first, of the second) by the first metric."""
    classes: dict[str, FaultCounts]
    sentences: list[ExampleSentence]
    differences: FloatArray
    """Of each sentence, in points of chrF."""

    @property
    def verdict(self) -> str:
        """By the first metric that was asked for."""
        return self.tests[0].verdict


@dataclass(frozen=True)
class SystemComparison:
    """Systems compared with the first of them on one test set."""

    test: TestSet
    first: System
    pairs: list[SystemPair]
    metrics: list[Metric]
    signatures: dict[str, str]

    @property
    def verdict(self) -> str:
        """The verdict for a script: worse if one pair is worse, better if all pairs are better, else undecided."""
        verdicts = {pair.verdict for pair in self.pairs}
        return "worse" if "worse" in verdicts else "better" if verdicts == {"better"} else "undecided"

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


@dataclass(frozen=True, kw_only=True)
class ComparisonOptions(EvaluationOptions):
    """The settings of a comparison of systems."""

    metrics: tuple[str, ...] = DEFAULT_METRICS
    names: tuple[str, ...] = ()
    pairs: tuple[Path, Path] | None = None
    """Both sides of the training text, for the alignment; of the first run's own where there is none."""
    terms: Path | None = None
    resamples: int = RESAMPLES
    trials: int = TRIALS
    languages: tuple[str | None, str | None] = (None, None)
    """From and to; None: as the first run says, or the files."""
    lowercase: bool = False
    tokenize: str = "auto"
    device: str = "auto"
    which: str = "best"


def compare_systems(
    systems: Sequence[Path], src: Path, refs: Sequence[Path], options: ComparisonOptions
) -> SystemComparison:
    """Compare runs, or files of translations, with the first one.

    Raises DragomanError for fewer than two, for files that do not fit each other, and for runs that do not translate.
    """
    if len(systems) < 2:
        raise Error.MISSING_OPTION(
            "give two or more runs or files of translations; the others are compared with the first"
        )
    if not refs:
        raise Error.MISSING_OPTION("give `ref`, the reference translation of each line of `src`")
    names = _names(systems, options.names)
    test = TestSet.read(src, refs, _languages(systems, options.languages))
    lang = test.languages[1]
    built = [
        options.build_metrics(lang, tokenize=options.tokenize, lowercase=options.lowercase, system=name)
        for name in names
    ]
    if why := unsplit(test, built[0]):
        say(f"warning: {test.name}: {why}")
    outputs = [_output(path, name, test, options) for path, name in zip(systems, names, strict=True)]
    outputs = [
        replace(system, faults=tuple(options.faults(replace(test, name=system.name), system.lines)))
        for system in outputs
    ]
    lexicon = _lexicon(systems, options, test)
    terms = Glossary.load(options.terms, test.languages) if options.terms else None
    return _compared(test, outputs, built, options, lexicon, terms)


def _compared(
    test: TestSet,
    systems: Sequence[System],
    metrics: Sequence[Sequence[Metric]],
    options: ComparisonOptions,
    lexicon: Lexicon,
    terms: Glossary | None,
) -> SystemComparison:
    """The comparison; `metrics` are of each system, as a figure may come from a file of its own."""
    statistics = [
        [each.statistics(test, system.lines) for each in own] for system, own in zip(systems, metrics, strict=True)
    ]
    faults = [faults_of(test, system.lines, lexicon, terms) for system in systems]
    by_line = metric("chrf", test.languages[1])
    chrf = [by_line.statistics(test, system.lines) for system in systems]
    pairs = []
    for number, system in enumerate(systems[1:], 1):
        tests = [
            paired_test(each, one, other, resamples=options.resamples, trials=options.trials)
            for each, one, other in zip(metrics[0], statistics[0], statistics[number], strict=True)
        ]
        differences = sentence_differences(by_line, chrf[0], chrf[number])
        sentences = [
            ExampleSentence(
                line=row + 1,
                src=test.sources[row],
                ref=test.references[0][row],
                first=systems[0].lines[row],
                second=system.lines[row],
                difference=float(differences[row]),
                faults=(faults[0][row], faults[number][row]),
            )
            for row in top_examples(differences, faults[0], faults[number], MAX_EXAMPLES)
        ]
        parts = _by_length(test, metrics[0][0], statistics[0][0], statistics[number][0])
        pairs.append(SystemPair(system, tests, parts, fault_counts(faults[0], faults[number]), sentences, differences))
    signatures = {
        each.title: f"{each.signature()}|seed:{SEED}|bs:{options.resamples}|ar:{options.trials}" for each in metrics[0]
    }
    return SystemComparison(test, systems[0], _corrected(pairs), list(metrics[0]), signatures)


def _corrected(pairs: list[SystemPair]) -> list[SystemPair]:
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


@dataclass(frozen=True)
class Compared:
    """A model beside the one that it was made from, by the metrics and the rule of `dragoman compare`."""

    name: str
    sentences: int
    tests: tuple[Test, ...]
    """By BLEU, which the verdict goes by, and by chrF."""
    titles: Mapping[str, str] = field(default_factory=lambda: TITLES)

    @property
    def verdict(self) -> str:
        """Of the new model: better, worse or undecided."""
        return self.tests[0].verdict

    def __str__(self) -> str:
        figures = (
            f"{self.titles[test.metric]} {test.first:.2f} before, {test.second:.2f} after" for test in self.tests
        )
        verdict = f"{self.verdict}, p = {self.tests[0].p:.3f}"
        return f"{self.name} ({self.sentences:,} sentences): {'; '.join(figures)} ({verdict})"

    def to_dict(self) -> dict[str, Any]:
        """All figures, for a program."""
        tests = {test.metric: asdict(test) for test in self.tests}
        return {"name": self.name, "sentences": self.sentences, "verdict": self.verdict, "tests": tests}


def compare_models(name: str, before: SearchTranslator, after: SearchTranslator, pairs: Pairs) -> Compared:
    """Translate the sources of pairs with both, and test the difference as `dragoman compare` does."""
    test = TestSet([src for src, _ in pairs], [[tgt for _, tgt in pairs]], after.languages or ("", ""), name)
    return compare_outputs(test, before.translate(test.sources), after.translate(test.sources))


def compare_outputs(test: TestSet, before: Sequence[str], after: Sequence[str]) -> Compared:
    """Test the difference between two outputs of a test set."""
    metrics = [metric(name, test.languages[1]) for name in DEFAULT_METRICS if name != "ter"]
    tests = (paired_test(each, each.statistics(test, before), each.statistics(test, after)) for each in metrics)
    return Compared(test.name, len(test), tuple(tests), {each.name: each.title for each in metrics})


def _names(systems: Sequence[Path], given: Sequence[str]) -> list[str]:
    """A name for each system: that of its file or folder, or as much of the path as tells them apart."""
    if given and len(given) != len(systems):
        raise Error.UNEQUAL_COUNTS(f"{len(given)} `name` for {len(systems)} systems", "give one for each, or none")
    names = list(given) or [path.resolve().name for path in systems]
    if len(set(names)) < len(names):
        names = list(given) or [str(path) for path in systems]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise Error.CONFLICT(f"{repeated[0]} is given twice", "compare different systems, or give each a `name`")
    return names


def _languages(systems: Sequence[Path], given: tuple[str | None, str | None]) -> tuple[str, str]:
    """Those that are given, or of the first run among the systems; of files alone, what their names say."""
    src, tgt = given
    for path in systems:
        if path.is_dir():
            corpus = corpus_settings(path)
            return src or corpus.src_lang, tgt or corpus.tgt_lang
    return src or "", tgt or ""


def _output(path: Path, name: str, test: TestSet, options: ComparisonOptions) -> System:
    if not path.is_dir():
        return System(name, read_hypotheses(path, test))
    say(f"translating {len(test):,} lines by {name}")
    translator = SearchTranslator.load(path, which=options.which, device=options.device, languages=options.languages)
    return System(name, translator.translate(test.sources))


def _lexicon(systems: Sequence[Path], options: ComparisonOptions, test: TestSet) -> Lexicon:
    """The alignment of training text: the one given, or the first run's own, or the test set's with its references."""
    if options.pairs is not None:
        sides = (read_lines(find(path)) for path in options.pairs)
        return Lexicon(list(islice(zip(*sides, strict=False), MAX_ALIGNMENT_PAIRS)))
    for path in systems:
        pairs = _training_pairs(path) if path.is_dir() else []
        if pairs:
            return Lexicon(pairs)
    return Lexicon([(src, ref) for lines in test.references for src, ref in zip(test.sources, lines, strict=True)])


def _training_pairs(run: Path) -> list[tuple[str, str]]:
    try:
        source = corpus_settings(run).train
        if source.type == "stream":
            return []
        return [(pair.src, pair.tgt) for pair in islice(source.pairs(), MAX_ALIGNMENT_PAIRS)]
    except DragomanError:
        return []
