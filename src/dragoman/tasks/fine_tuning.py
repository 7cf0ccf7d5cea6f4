"""Fine-tuning: the one recipe for going on from another run, and text that keeps the model from forgetting.

The text is like that which the run was trained on, to mix in and to measure on. Where it is to be had in the source
language alone, the model's own translations of it, made before it goes on, are the other side ("pseudo-rehearsal",
Robins 1995; "Learning without Forgetting", Li and Hoiem 2016).
"""

import itertools
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman import config
from dragoman.errors import DragomanError, Error, writing
from dragoman.evaluation.comparison import Compared, Pairs, compare_models
from dragoman.inference.loading import corpus_settings
from dragoman.inference.search_translator import SearchTranslator
from dragoman.progress import Progress, say
from dragoman.runs import atomic_io
from dragoman.runs.directory import check_run_dir
from dragoman.runs.log import RunLog
from dragoman.tasks import recipes
from dragoman.tasks.auto_recipe import default_recipe, hold_out
from dragoman.tasks.sizes import PIECES_A_STRANGE_WORD, size_for, words_of
from dragoman.text.corpus import FilesSource, MixSource
from dragoman.text.lines import STREAM_LINES, find, in_chunks, read_lines
from dragoman.text.sources.base import PairSource
from dragoman.training.annotated_pairs import pieces_of

SHARES: list[tuple[float, float]] = [(1_000, 0.1), (5_000, 0.2), (float("inf"), 0.4)]
"""(fewer pairs than this, the share of a model's own rate it goes on with): few pairs are soon learnt by heart."""

IMPORTED_RATE, HIGHEST_RATE = 5e-4, 2e-3
"""AdamW's rate for a model that came without one: at a d_model of 512, half of it at twice that, and at the most."""

LORA_RATE, HIGHEST_LORA_RATE = 2e-3, 1e-2
"""AdamW's rate for an adapter: several times that of a whole model (benchmarks/log/2026-11.md, "adapters")."""

PATIENCE_VALIDATIONS = 4
"""Validations in a row that may be no better."""

MAX_OWN_LINES = 20_000
"""Lines of general text that the model itself translates, at most."""

MAX_COMPARED_PAIRS = 500
"""Pairs of each kind of text that both models translate, at most."""


@dataclass(frozen=True)
class Course:
    """The length and the rate of a training that goes on from another run."""

    epochs: int
    steps: tuple[int, int]
    """The fewest and the most."""
    validations: int
    most_times: int
    """Times that the own text comes in an epoch of a mixture: with more of the other text nearly nothing is forgotten,
    and less is learnt in the same time (benchmarks/log/2026-11.md, "fine-tuning, how much general text")."""
    others: int
    """Pairs of the other text for each own one, where there are enough."""
    whole: bool = False
    """True: an epoch has all of the other text, and goes through the mixture. False: as much of the other text as of
    the own one, other pairs each time, and an epoch goes through the own text once."""
    rate: float | None = None
    """Share of the run's own rate; None: as suits so few pairs."""


USUAL = Course(epochs=30, steps=(150, 8_000), validations=12, most_times=4, others=1)
"""The course for a user's own pairs."""


def fine_tuning_recipe(
    run: str,
    src: str,
    tgt: str,
    run_dir: str,
    *,
    general: Any = None,
    course: Course = USUAL,
    adapter: Mapping[str, Any] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Plain settings to go on from another run with two files: its model, tokenizer and spelling, at a lower rate.

    `general`: a `Source` of other text to mix in, so that the model does not forget it. `adapter`: settings of an
    adapter, which is trained alone. `options` are those of `default_recipe`, whose errors are raised too.
    """
    recipe = default_recipe(src, tgt, run_dir, **options)
    theirs: Any = recipes.of_run(run)
    own = config.parse(FilesSource, recipe["corpus"]["train"], "the training pairs")
    pairs, times = sum(1 for _ in FilesSource(src=src, tgt=tgt).pairs()), 1
    words: float = words_of(own)
    batch_tokens = recipe["training"]["batch_tokens"]
    corpus = {**recipe["corpus"], **kept_from(run)}
    if general is not None:
        size = sum(1 for _ in general.pairs())
        times = max(1, min(course.most_times, size // (course.others * pairs)))
        share = 1.0 if course.whole else min(1.0, times * pairs / max(1, size))
        is_mix = isinstance(general, MixSource)
        parts, passes = (general.sources, general.passes()) if is_mix else ([general], [1.0])
        words = times * words + share * words_of(general)
        if course.whole:
            batch_tokens = size_for(times * pairs + size).batch_tokens
        corpus["train"] = {
            "type": "mix",
            "sources": [config.to_dict(part) for part in (own, *parts)],
            "weights": [float(times), *(share * each for each in passes)],
        }
    epochs = course.epochs if course.whole else course.epochs / times
    steps = min(max(round(epochs * words * PIECES_A_STRANGE_WORD / batch_tokens), course.steps[0]), course.steps[1])
    optimizer, rate = _optimizer(theirs, pairs, course, recipe["training"]["schedule"]["lr"], adapter is not None)
    plain = config.to_dict(theirs)
    return {
        **recipe,
        "init_from": run,
        "adapter": adapter,
        "corpus": corpus,
        "tokenizer": {"type": "reuse", "run": run},
        "model": plain["model"],
        "decoding": plain["decoding"],
        "training": {
            **recipe["training"],
            "batch_tokens": batch_tokens,
            "max_steps": steps,
            "validate_every": max(25, steps // course.validations),
            "patience": PATIENCE_VALIDATIONS,
            "optimizer": optimizer,
            "schedule": {"type": "linear", "lr": rate, "warmup_steps": max(10, steps // 10)},
        },
    }


def kept_from(run: str) -> dict[str, Any]:
    """Settings of another run's corpus that count for its text: spelling, length, and what it has learnt beside it."""
    theirs: Any = recipes.of_run(run)
    theirs = theirs.corpus
    kept = {"normalize": theirs.normalize, "max_tokens": theirs.max_tokens}
    if theirs.context.src:
        kept["context"] = {**config.to_dict(theirs.context), "documents": None}
    return {**kept, "augment": config.to_dict(theirs.augment)} if pieces_of(theirs.augment) else kept


def _optimizer(theirs: Any, pairs: int, course: Course, usual: float, is_adapter: bool) -> tuple[dict[str, Any], float]:
    """The optimizer and the rate to go on with from a run, on so many pairs; `usual`: the rate of a new model."""
    adamw, training = {"type": "adamw"}, theirs.training
    if is_adapter:  # it begins at nothing, whatever the base was trained with
        return adamw, min(LORA_RATE * 512 / theirs.model.d_model, HIGHEST_LORA_RATE)
    trained = not str(getattr(theirs.corpus.train, "src", "")).startswith("imported.")
    rate = min(IMPORTED_RATE * 512 / theirs.model.d_model, HIGHEST_RATE)
    if trained or course.rate is not None:
        lower = course.rate or next(share for limit, share in SHARES if pairs < limit)
        rate = lower * float(getattr(training.schedule, "lr", None) or usual)
    return config.to_dict(training.optimizer) if trained else adamw, rate


@dataclass(frozen=True)
class ReplayData:
    """Text of the old kind."""

    train: Any
    """A `Source` to mix in; None: nothing."""
    test: Pairs
    """Pairs to see on what was forgotten; none where there is no such text."""


def replay_data(run: Path, src: Path | None, tgt: Path | None, mix: bool | None, directory: Path) -> ReplayData:
    """The text that was given, or else that which the run was trained and validated on, if it is still there.

    Of a text that is given some pairs are held out in `directory`, the new run's. Without `tgt` the run itself
    translates `src`, its first MAX_OWN_LINES lines. Raises DragomanError where `mix` asks for text that is not there.
    """
    if src is not None:
        if tgt is None:
            src, tgt = _own_translations(run, src, directory / "general-own")
        given = FilesSource(src=str(src), tgt=str(tgt))
        files = hold_out(str(src), str(tgt), sum(1 for _ in given.pairs()), directory / "general")
        train, valid = (FilesSource(src=one, tgt=other) for one, other in files)
        return ReplayData(None if mix is False else train, sample(valid, MAX_COMPARED_PAIRS))
    corpus = corpus_settings(check_run_dir(run))
    there = bool(sample(corpus.train, 1))
    if not there:
        if mix:
            raise Error.MISSING_CORPUS(
                "its training text is not here any more", "give `general_src` and `general_tgt`", file=run
            )
        say(f"{run}: its training text is gone: only your text is learnt, and other text may be translated worse")
    return ReplayData(corpus.train if there and mix is not False else None, sample(corpus.valid, MAX_COMPARED_PAIRS))


def _own_translations(run: Path, src: Path, directory: Path) -> tuple[Path, Path]:
    """Lines of a text and what the run makes of them, as two files of `directory`; those of an earlier call serve."""
    files = directory / "general.src", directory / "general.tgt"
    lines = list(dict.fromkeys(line.strip() for line in itertools.islice(read_lines(find(str(src))), MAX_OWN_LINES)))
    lines = [line for line in lines if line]
    text = "".join(f"{line}\n" for line in lines)
    if all(path.is_file() for path in files) and files[0].read_text(encoding="utf-8") == text:
        return files
    translator = SearchTranslator.load(run)
    with Progress("the model translates general text", len(lines)) as bar, writing(directory):
        translations: list[str] = []
        for chunk in in_chunks(lines, STREAM_LINES):
            translations += translator.translate(chunk)
            bar.advance(len(chunk))
        directory.mkdir(parents=True, exist_ok=True)
        atomic_io.replace_text(files[1], "".join(f"{line}\n" for line in translations))
        atomic_io.replace_text(files[0], text)
    return files


def sample(source: PairSource, count: int, seed: int = 1) -> Pairs:
    """A reproducible sample of a source's pairs; empty if its files are gone."""
    try:
        pairs = [(pair.src, pair.tgt) for pair in itertools.islice(source.pairs(), 200_000) if pair.src.strip()]
    except DragomanError:
        return []
    return random.Random(seed).sample(pairs, min(count, len(pairs)))


def report_forgetting(recipe: Any, general: ReplayData) -> list[Compared]:
    """Say what the new run has gained on its own validation pairs and lost on general ones, and log it."""
    own = sample(recipe.corpus.valid, MAX_COMPARED_PAIRS)
    # Greedy: what is to be seen is a difference, and a model on text that is strange to it searches for long.
    before, after = (SearchTranslator.load(run, beam_size=1) for run in (recipe.init_from, recipe.run_dir))
    sets = {"your text": own, "general text": general.test}
    compared = [compare_models(name, before, after, pairs) for name, pairs in sets.items() if pairs]
    with RunLog(Path(recipe.run_dir)) as log:
        for one in compared:
            say(str(one))
            log.event("compared", **one.to_dict())
    return compared
