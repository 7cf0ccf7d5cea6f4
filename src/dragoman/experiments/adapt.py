"""The work of `dragoman adapt`: a run trained on what people corrected, and handed over only if that did it good."""

import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from dragoman import config
from dragoman.analysis.report import write_report
from dragoman.errors import Error, writing
from dragoman.evaluation.comparison import Compared, Pairs, compare_models
from dragoman.experiments.corrections import Corrections
from dragoman.inference.loading import corpus_settings
from dragoman.inference.search_translator import SearchTranslator
from dragoman.pipeline.sentence_pairs import with_sentences
from dragoman.progress import say
from dragoman.runs import atomic_io, checkpoint
from dragoman.runs.directory import check_run_dir
from dragoman.tasks import recipes
from dragoman.tasks.fine_tuning import Course, fine_tuning_recipe, sample
from dragoman.text.corpus import FilesSource

MIN_CORRECTIONS = 8
"""The least number of corrections that is worth a training."""
MIN_CORRECTIONS_TO_HOLD_OUT = 40
"""Corrections from which on every fifth is held out: whether others than those that were learnt get better."""
COURSE = Course(epochs=3, steps=(60, 2000), validations=3, most_times=8, others=2, whole=True, rate=0.1)
"""A third of an epoch are corrections, if there are enough."""
RETRY_FACTOR = 3
"""Times the steps that corrections which were not learnt are given in the next try."""
HELD_OUT, LEARNT = "corrections held out", "corrections learnt"
MAX_REPLAY_PAIRS = 4000
"""General pairs that are mixed in, at most, so that nothing is forgotten."""
MAX_VALIDATION_PAIRS = 1000


@dataclass(frozen=True)
class Adaptation:
    """The new run, and how it compares with the old one; `refusal` says why it is not handed over."""

    run: Path
    compared: list[Compared]
    refusal: str = ""


def adapt(
    run: Path,
    corrections: Corrections,
    output: Path,
    *,
    device: str = "auto",
    seed: int = 1,
    lora: int | None = None,
    steps: int | None = None,
) -> Adaptation:
    """Train a run (or an adapter of it, of rank `lora`) on corrections, mixed with the text that it was trained on, and
    compare the two. `steps` of the training; None: as many as suit so much text.

    The new run is `output` if it is better on the corrections and no worse on the validation set, by the tests of
    `dragoman compare`; else it lies in `output`.refused.

    Raises DragomanError for corrections that are too few or of other languages, and where `output` is there already.
    """
    old = check_run_dir(run)
    refused = output.with_name(output.name + ".refused")
    if output.exists():
        raise Error.ALREADY_THERE("is there already", "name a new run with -o", file=output)
    corpus, pairs, given = corpus_settings(old), corrections.pairs, _Given(run, corrections.file)
    if len(pairs) < MIN_CORRECTIONS:
        too_few = f"{len(pairs)} corrections from {corpus.src_lang} to {corpus.tgt_lang}: too few to learn from"
        hint = f"{MIN_CORRECTIONS - len(pairs)} more are needed; {given.for_few()}"
        raise Error.TOO_FEW(too_few, hint, file=corrections.file)
    held = pairs[::5] if len(pairs) >= MIN_CORRECTIONS_TO_HOLD_OUT else []
    learnt = [pair for pair in pairs if pair not in held]
    general, validation = sample(corpus.train, MAX_REPLAY_PAIRS, seed), sample(corpus.valid, MAX_VALIDATION_PAIRS, seed)
    if not validation:
        general, validation = general[len(general) // 5 :], general[: len(general) // 5]
    if not validation:
        raise Error.MISSING_CORPUS(
            "its training text and its validation text are both gone: there is nothing to compare on", file=old
        )
    if not general:
        say(f"{old}: its training text is gone: only corrections are learnt, and more of the rest is forgotten")
    building = output.with_name(output.name + ".building")
    others = {src for src, _ in held}
    own = [pair for pair in with_sentences(learnt, (corpus.src_lang, corpus.tgt_lang)) if pair[0] not in others]
    text = {"own": own, "general": general, "valid": validation}
    options = {"device": device, "seed": seed}
    course = COURSE if steps is None else replace(COURSE, steps=(steps, steps))
    taken = _trained(old, building, text, course, None if lora is None else {"r": lora}, options)
    sets = {HELD_OUT: held, LEARNT: learnt, "validation": validation}
    compared = _compared(old, building, sets, device)
    refusal = _refusal(compared, taken, given)
    final = refused if refusal else output
    with writing(final):
        atomic_io.remove(refused)
        building.rename(final)
    return Adaptation(final, compared, refusal)


def _trained(
    old: Path,
    building: Path,
    text: dict[str, Pairs],
    course: Course,
    adapter: dict[str, Any] | None,
    options: dict[str, Any],
) -> int:
    """Train the new run in a folder. Returns the steps of its training."""
    corpus = corpus_settings(old)
    with TemporaryDirectory(prefix="dragoman-adapt-") as folder:
        files = {name: _written(pairs, Path(folder) / name) for name, pairs in text.items()}
        recipe = fine_tuning_recipe(
            str(old),
            *files["own"],
            str(building),
            general=FilesSource(src=files["general"][0], tgt=files["general"][1]) if text["general"] else None,
            course=course,
            adapter=adapter,
            valid=files["valid"],
            languages=(corpus.src_lang, corpus.tgt_lang),
            doctor="skip",
        )
        if "context" in recipe["corpus"]:  # corrections do not stand behind each other in a text
            recipe["corpus"]["context"]["share"] = 0.0
        settings = config.parse(recipes.TranslationRecipe, {**recipe, **options}, "corrections")
        atomic_io.remove(building)
        result = recipes.run(settings, report=write_report)
    if result.outcome.reason == "interrupted" or not checkpoint.list_checkpoints(building):
        raise Error.INTERRUPTED("stopped: no new run is adopted")
    return settings.training.max_steps


def _compared(old: Path, new: Path, sets: dict[str, Pairs], device: str) -> list[Compared]:
    """The two runs on each set of pairs that is not empty; says what comes out."""
    before, after = (SearchTranslator.load(run, device=device) for run in (old, new))
    compared = [compare_models(name, before, after, pairs) for name, pairs in sets.items() if pairs]
    for line in compared:
        say(str(line))
    return compared


def _refusal(compared: Sequence[Compared], steps: int, given: "_Given") -> str:
    """The reason why a run that was trained for so many steps is not handed over, and what would help; empty: it is."""
    first, validation = compared[0], compared[-1]
    learnt = next(one for one in compared if one.name == LEARNT)
    if first.verdict != "better":
        lacks = [] if first is learnt else [_more_needed(first)]
        if learnt.verdict != "better":
            lacks.append(
                f"not even those learnt are said, and a longer time may help: {given.again(RETRY_FACTOR * steps)}"
            )
        return f"it is not surely better on the {first.name}; {'; '.join(lacks)}; {given.for_few()}"
    if validation.verdict == "worse":
        shorter = f"a shorter time forgets less: {given.again(max(1, steps // RETRY_FACTOR))}"
        return f"it is worse on the validation set; {shorter}; a datastore forgets nothing: {given.for_few()}"
    return ""


class _Given(NamedTuple):
    """The run and the file that `adapt` was given, for commands that people may type."""

    run: Path
    file: Path

    def again(self, steps: int) -> str:
        """The command for another try."""
        return self._named(f"dragoman adapt RUN FILE --steps {steps}")

    def for_few(self) -> str:
        """Adapt to corrections that are too few to train on."""
        made = "few are better looked up: dragoman datastore RUN FILE -o RUN/corrections"
        return self._named(f"{made}, then " + "dragoman translate RUN --datastore RUN/corrections")

    def _named(self, text: str) -> str:
        return re.sub("RUN|FILE", lambda match: shlex.quote(str(getattr(self, match[0].lower()))), text)


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
        atomic_io.write_text(folder / name, lines)
    return str(folder / "src"), str(folder / "tgt")
