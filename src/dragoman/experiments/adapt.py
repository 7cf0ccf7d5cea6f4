"""The work of `dragoman adapt`: a run trained on what people corrected, and handed over only if that did it good."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from dragoman import config
from dragoman.analysis.report import write_report
from dragoman.errors import Error, writing
from dragoman.evaluation.comparison import Compared, Pairs, compare_models
from dragoman.inference.loading import corpus_settings
from dragoman.inference.search_translator import SearchTranslator
from dragoman.pipeline.memory import settled_pairs
from dragoman.progress import say
from dragoman.runs import atomic_io, checkpoint
from dragoman.runs.directory import check_run_dir
from dragoman.tasks import recipes
from dragoman.tasks.fine_tuning import Course, fine_tuning_recipe, sample
from dragoman.text.corpus import FilesSource

FEWEST = 8
"""Corrections that are worth a training."""
ENOUGH_TO_HOLD_OUT = 40
"""Corrections from which on every fifth is held out: whether others than those that were learnt get better."""
COURSE = Course(epochs=3, steps=(60, 2000), validations=3, most_times=8, others=2, whole=True, rate=0.1)
"""A third of an epoch are corrections, if there are enough."""
FOR_FEW = (
    "few are better looked up than learnt: `dragoman datastore` makes a `datastore` of them for `dragoman translate`, "
    "whose `memory` says the same texts again"
)
GENERAL = 4000
"""General pairs that are mixed in, at most, so that nothing is forgotten."""
VALIDATION = 1000


@dataclass(frozen=True)
class Adaptation:
    """The new run, and how it compares with the old one; `refusal` says why it is not handed over."""

    run: Path
    compared: list[Compared]
    refusal: str = ""


def adapt(
    run: Path, corrections: Path, output: Path, *, device: str = "auto", seed: int = 1, lora: int | None = None
) -> Adaptation:
    """Train a run (or an adapter of it, of rank `lora`) on corrections, mixed with the text that it was trained on, and
    compare the two.

    The new run is `output` if it is better on the corrections and no worse on the validation set, by the tests of
    `dragoman compare`; else it lies in `output`.refused.

    Raises DragomanError for corrections that are too few or of other languages, and where `output` is there already.
    """
    old = check_run_dir(run)
    refused = output.with_name(output.name + ".refused")
    if output.exists():
        raise Error.ALREADY_THERE("is there already", "name a new run with -o", file=output)
    corpus = corpus_settings(old)
    languages = (corpus.src_lang, corpus.tgt_lang)
    pairs = settled_pairs(corrections, languages)
    if len(pairs) < FEWEST:
        too_few = f"{len(pairs)} corrections from {' to '.join(languages)}: too few to learn from"
        raise Error.TOO_FEW(too_few, f"{FEWEST - len(pairs)} more are needed; {FOR_FEW}", file=corrections)
    held = pairs[::5] if len(pairs) >= ENOUGH_TO_HOLD_OUT else []
    learnt = [pair for pair in pairs if pair not in held]
    general, validation = sample(corpus.train, GENERAL, seed), sample(corpus.valid, VALIDATION, seed)
    if not validation:
        general, validation = general[len(general) // 5 :], general[: len(general) // 5]
    if not validation:
        raise Error.MISSING_CORPUS(
            "neither its training nor its validation text is here any more: nothing to compare on", file=old
        )
    if not general:
        say(f"{old}: its training text is not here any more: corrections alone are learnt, and more is forgotten")
    building = output.with_name(output.name + ".building")
    with TemporaryDirectory(prefix="dragoman-adapt-") as folder:
        text = {"own": learnt, "general": general, "valid": validation}
        files = {name: _written(pairs, Path(folder) / name) for name, pairs in text.items()}
        recipe = fine_tuning_recipe(
            str(old),
            *files["own"],
            str(building),
            general=FilesSource(src=files["general"][0], tgt=files["general"][1]) if general else None,
            course=COURSE,
            adapter=None if lora is None else {"r": lora},
            valid=files["valid"],
            languages=languages,
            doctor="skip",
        )
        settings = config.parse(recipes.TranslationRecipe, {**recipe, "device": device, "seed": seed}, "corrections")
        atomic_io.remove(building)
        result = recipes.run(settings, report=write_report)
    if result.outcome.reason == "interrupted" or not checkpoint.list_checkpoints(building):
        raise Error.INTERRUPTED("stopped: nothing is handed over")
    sets = {"corrections held out": held, "corrections learnt": learnt, "validation": validation}
    compared = _compared(old, building, sets, device)
    refusal = _refusal(compared)
    final = refused if refusal else output
    with writing(final):
        atomic_io.remove(refused)
        building.rename(final)
    return Adaptation(final, compared, refusal)


def _compared(old: Path, new: Path, sets: dict[str, Pairs], device: str) -> list[Compared]:
    """The two runs on each set of pairs that is not empty; says what comes out."""
    before, after = (SearchTranslator.load(run, device=device) for run in (old, new))
    compared = [compare_models(name, before, after, pairs) for name, pairs in sets.items() if pairs]
    for line in compared:
        say(str(line))
    return compared


def _refusal(compared: Sequence[Compared]) -> str:
    first, validation = compared[0], compared[-1]
    if first.verdict != "better":
        return f"it is not surely better on the {first.name}; {_more_needed(first)}; {FOR_FEW}"
    if validation.verdict == "worse":
        return "it is worse on the validation set"
    return ""


def _more_needed(compared: Compared) -> str:
    """The number of corrections from which on a difference like this one would be sure: its interval narrows with the
    square root of the sentences."""
    test = compared.tests[0]
    difference = f"{test.difference:+.2f} {compared.titles[test.metric]}"
    if test.difference <= 0:
        return f"it gained nothing there ({difference}): more of one kind are needed"
    sure = compared.sentences * ((test.high - test.low) / 2 / test.difference) ** 2
    more = 5 * max(1, math.ceil(sure - compared.sentences))
    return f"{difference} would be sure with about {more:,} more corrections"


def _written(pairs: Pairs, folder: Path) -> tuple[str, str]:
    """The two files of `folder` that have the pairs, a line each."""
    folder.mkdir()
    for side, name in enumerate(("src", "tgt")):
        lines = "".join(" ".join(pair[side].split()) + "\n" for pair in pairs)
        (folder / name).write_text(lines, encoding="utf-8")
    return str(folder / "src"), str(folder / "tgt")
