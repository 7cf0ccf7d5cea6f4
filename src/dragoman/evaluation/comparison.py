"""Runs, or files of translations, compared on one test set; a model beside the one that it was made from."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from dragoman.alignment.lexicon import Lexicon
from dragoman.errors import DragomanError, Error
from dragoman.evaluation.judging import Judging
from dragoman.evaluation.systems import Comparison, System, compare_systems
from dragoman.inference.loading import corpus_settings
from dragoman.inference.search_translator import SearchTranslator
from dragoman.progress import say
from dragoman.quality.metrics import TITLES, metric
from dragoman.quality.significance import RESAMPLES, TRIALS, Test, paired_test
from dragoman.quality.test_set import TestSet, read_hypotheses
from dragoman.text.glossary import Glossary
from dragoman.text.lines import find, read_lines

Pairs = list[tuple[str, str]]

DEFAULT_METRICS = ("bleu", "chrf", "ter")
LEARNT_FROM = 50_000
"""Pairs of the training text that the alignment is learnt from, at most."""


@dataclass(frozen=True, kw_only=True)
class Comparing(Judging):
    """The settings of a comparison of systems."""

    metrics: tuple[str, ...] = DEFAULT_METRICS
    names: tuple[str, ...] = ()
    pairs: tuple[Path, Path] | None = None
    """Both sides of the training text, for the alignment; of the first run's own where there is none."""
    terms: Path | None = None
    resamples: int = RESAMPLES
    trials: int = TRIALS
    lowercase: bool = False
    tokenize: str = "auto"
    device: str = "auto"
    which: str = "best"


def compare(systems: Sequence[Path], src: Path, refs: Sequence[Path], options: Comparing) -> Comparison:
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
    test = TestSet.read(src, refs, _languages(systems))
    lang = test.languages[1]
    built = [options.built(lang, tokenize=options.tokenize, lowercase=options.lowercase, system=name) for name in names]
    outputs = [_output(path, name, test, options) for path, name in zip(systems, names, strict=True)]
    outputs = [
        replace(system, faults=tuple(options.faults(replace(test, name=system.name), system.lines)))
        for system in outputs
    ]
    return compare_systems(
        test,
        outputs,
        built,
        lexicon=_lexicon(systems, options, test),
        terms=Glossary.load(options.terms, test.languages) if options.terms else None,
        resamples=options.resamples,
        trials=options.trials,
    )


@dataclass(frozen=True)
class Compared:
    """A model beside the one that it was made from, by the metrics and the rule of `dragoman compare`."""

    name: str
    sentences: int
    tests: tuple[Test, ...]
    """By BLEU, which the verdict goes by, and by chrF."""

    @property
    def verdict(self) -> str:
        """Of the new model: better, worse or undecided."""
        return self.tests[0].verdict

    def __str__(self) -> str:
        figures = (f"{TITLES[test.metric]} {test.first:.2f} before, {test.second:.2f} after" for test in self.tests)
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
    return Compared(test.name, len(test), tuple(tests))


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


def _languages(systems: Sequence[Path]) -> tuple[str, str]:
    """Those of the first run among the systems; of files alone, what their names say."""
    for path in systems:
        if path.is_dir():
            corpus = corpus_settings(path)
            return corpus.src_lang, corpus.tgt_lang
    return "", ""


def _output(path: Path, name: str, test: TestSet, options: Comparing) -> System:
    if not path.is_dir():
        return System(name, read_hypotheses(path, test))
    say(f"translating {len(test):,} lines by {name}")
    translator = SearchTranslator.load(path, which=options.which, device=options.device)
    return System(name, translator.translate(test.sources))


def _lexicon(systems: Sequence[Path], options: Comparing, test: TestSet) -> Lexicon:
    """The alignment of training text: the one given, or the first run's own, or the test set's with its references."""
    if options.pairs is not None:
        sides = (read_lines(find(path)) for path in options.pairs)
        return Lexicon(list(islice(zip(*sides, strict=False), LEARNT_FROM)))
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
        return [(pair.src, pair.tgt) for pair in islice(source.pairs(), LEARNT_FROM)]
    except DragomanError:
        return []
