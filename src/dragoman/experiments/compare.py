"""Runs, or files of translations, compared on one test set."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from dragoman.alignment.lexicon import Lexicon
from dragoman.errors import DragomanError, Error
from dragoman.evaluation.judging import Judging
from dragoman.evaluation.systems import Comparison, System, compare_systems
from dragoman.inference.search_translator import SearchTranslator
from dragoman.progress import say
from dragoman.quality.significance import RESAMPLES, TRIALS
from dragoman.quality.test_set import TestSet, read_hypotheses
from dragoman.tasks import recipes
from dragoman.text.glossary import Glossary
from dragoman.text.lines import find, read_lines

DEFAULT_METRICS = ("bleu", "chrf", "ter")
LEARNT_FROM = 50_000
"""Pairs of the training text that the alignment is learnt from, at most."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The wishes of whoever compares."""

    metrics: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    training: tuple[Path, Path] | None = None
    """Both sides of the training text, for the alignment; of the first run's own where there is one."""
    terms: Path | None = None
    resamples: int = RESAMPLES
    trials: int = TRIALS
    lowercase: bool = False
    tokenize: str = "auto"
    device: str = "auto"
    which: str = "best"


def compare(systems: Sequence[Path], src: Path, refs: Sequence[Path], wanted: Wanted) -> Comparison:
    """Compare runs, or files of translations, with the first one.

    Raises DragomanError for fewer than two, for files that do not fit each other, and for runs that do not translate.
    """
    if len(systems) < 2:
        raise Error.MISSING_OPTION(
            "give two or more runs or files of translations; the others are compared with the first"
        )
    if not refs:
        raise Error.MISSING_OPTION("give --ref, the reference translation of each line of --src")
    names = _names(systems, wanted.names)
    test = TestSet.read(src, refs, _languages(systems))
    judging = Judging(wanted.metrics or DEFAULT_METRICS)
    lang = test.languages[1]
    built = [judging.built(lang, tokenize=wanted.tokenize, lowercase=wanted.lowercase, system=name) for name in names]
    outputs = [_output(path, name, test, wanted) for path, name in zip(systems, names, strict=True)]
    outputs = [
        replace(system, faults=tuple(judging.faults(replace(test, name=system.name), system.lines)))
        for system in outputs
    ]
    return compare_systems(
        test,
        outputs,
        built,
        lexicon=_lexicon(systems, wanted, test),
        terms=Glossary.load(wanted.terms, test.languages) if wanted.terms else None,
        resamples=wanted.resamples,
        trials=wanted.trials,
    )


def _names(systems: Sequence[Path], given: Sequence[str]) -> list[str]:
    """A name for each system: that of its file or folder, or as much of the path as tells them apart."""
    if given and len(given) != len(systems):
        raise Error.UNEQUAL_COUNTS(f"{len(given)} --name for {len(systems)} systems", "give one for each, or none")
    names = list(given) or [path.resolve().name for path in systems]
    if len(set(names)) < len(names):
        names = list(given) or [str(path) for path in systems]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise Error.CONFLICT(f"{repeated[0]} is given twice", "compare different systems, or give each a --name")
    return names


def _languages(systems: Sequence[Path]) -> tuple[str, str]:
    """Those of the first run among the systems; of files alone, what their names say."""
    for path in systems:
        if path.is_dir():
            corpus: Any = getattr(recipes.of_run(path), "corpus", None)
            return str(getattr(corpus, "src_lang", "")), str(getattr(corpus, "tgt_lang", ""))
    return "", ""


def _output(path: Path, name: str, test: TestSet, wanted: Wanted) -> System:
    if not path.is_dir():
        return System(name, read_hypotheses(path, test))
    say(f"translating {len(test):,} lines by {name}")
    translator = SearchTranslator.load(path, which=wanted.which, device=wanted.device)
    return System(name, translator.translate(test.sources))


def _lexicon(systems: Sequence[Path], wanted: Wanted, test: TestSet) -> Lexicon:
    """The alignment of training text: the one given, or the first run's own, or the test set's with its references."""
    if wanted.training is not None:
        sides = (read_lines(find(path)) for path in wanted.training)
        return Lexicon(list(islice(zip(*sides, strict=False), LEARNT_FROM)))
    for path in systems:
        pairs = _training_pairs(path) if path.is_dir() else []
        if pairs:
            return Lexicon(pairs)
    return Lexicon([(src, ref) for lines in test.references for src, ref in zip(test.sources, lines, strict=True)])


def _training_pairs(run: Path) -> list[tuple[str, str]]:
    try:
        recipe: Any = recipes.of_run(run)
        source = recipe.corpus.train
        if source.type == "stream":
            return []
        return [(pair.src, pair.tgt) for pair in islice(source.pairs(), LEARNT_FROM)]
    except DragomanError:
        return []
