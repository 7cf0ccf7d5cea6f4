"""Batches of a recipe for a measurement: of its own corpus, or of random ids where its files are not there."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from torch import Tensor, nn

from dragoman.data.batch import Batch, collate
from dragoman.errors import DragomanError, Error
from dragoman.runs.log import RunLog
from dragoman.special_tokens import SPECIALS
from dragoman.tasks import recipes
from dragoman.tasks.translation.job import TranslationJob, TranslationRecipe
from dragoman.tasks.translation.task import TranslationTask
from dragoman.text.sources.base import files_of
from dragoman.training.distillation import Teachers
from dragoman.training.loop import Trainer
from dragoman.training.step import pick_losses
from dragoman.training.task import PlannedTask

PAIRS = 29_000
LOG_LENGTH, LOG_SPREAD, LOG_RATIO_SPREAD = 2.6, 0.32, 0.18
"""Of random sentences: mean and standard deviation of the logarithm of the source's length in tokens, and of the
logarithm of target by source. Those of Multi30k, English to German, in a joint BPE of 8,000: 14 tokens a side."""
RANDOM = (
    f"random ids, lengths log-normal (median {np.exp(LOG_LENGTH):.0f} tokens, sigma {LOG_SPREAD}; target by source: "
    f"median 1, sigma {LOG_RATIO_SPREAD})"
)


@contextmanager
def subject(recipe: Any, *, synthetic: bool = False) -> Iterator[Trainer]:
    """The training of a recipe, ready to take its first step, in a run directory of its own that is gone afterwards.

    Raises DragomanError where the corpus is not there and the task is not translation, or where parts do not fit.
    """
    with TemporaryDirectory(prefix="dragoman-bench-") as folder:
        changes: dict[str, Any] = {"run_dir": folder, "init_from": None}
        if not synthetic and recipe.task == "translation":
            synthetic = not _is_there(recipe)
        if recipe.task == "translation":
            changes["corpus"] = replace(recipe.corpus, doctor="skip", test={})
        changed = replace(recipe, **changes)
        if synthetic and recipe.task != "translation":
            raise Error.WRONG_TASK(f"random batches are made for translation only, not for {recipe.task}")
        job = RandomIdsJob(changed) if synthetic else recipes.job(changed)
        with RunLog(folder, loggers=()) as log:
            if not synthetic:
                job.check()
                job.prepare()
            yield job.trainer(job.training_step(), log)


def _is_there(recipe: Any) -> bool:
    try:
        return all(files_of(source) is not None for source in (recipe.corpus.train, recipe.corpus.valid))
    except DragomanError:
        return False


class RandomIdsJob(TranslationJob):
    """The job of a recipe on batches of random ids: nothing is prepared."""

    def start(self) -> tuple[nn.Module, Any]:
        model = self.build_untrained()
        pairs = RandomPairs(model, self.recipe)  # type: ignore[abstract]  # steps need no validation
        pairs.plan = self.batch_plan(*pairs.lengths)
        return model, pairs


class RandomPairs(PlannedTask):
    """As much of a `training.task.Task` as steps need, over ids drawn at random."""

    def __init__(self, model: Any, recipe: TranslationRecipe) -> None:
        training = recipe.training
        self.r_drop, self.losses = training.r_drop, pick_losses(training.backend)
        self.teachers = Teachers()  # runs that could teach know nothing of ids drawn at random
        rng = np.random.default_rng(recipe.seed)
        src = np.exp(rng.normal(LOG_LENGTH, LOG_SPREAD, PAIRS))
        tgt = src * np.exp(rng.normal(0.0, LOG_RATIO_SPREAD, PAIRS))
        longest = min(recipe.corpus.max_tokens, training.batch_tokens - 1)
        self.lengths = [np.clip(np.rint(side), 1, longest).astype(np.int32) for side in (src, tgt)]
        self.sides = [
            rng.integers(len(SPECIALS), size, (PAIRS, int(side.max())))
            for size, side in zip((model.src_vocab_size, model.tgt_vocab_size), self.lengths, strict=True)
        ]

    def micro_batch(self, step: int, number: int) -> list[Batch]:
        (src, tgt), (src_lengths, tgt_lengths) = self.sides, self.lengths
        rows = self.plan.step(*self.position(step))[number]
        return [collate([(src[row, : src_lengths[row]], tgt[row, : tgt_lengths[row]]) for row in rows], rows)]

    def loss(self, model: nn.Module, batch: Batch, label_smoothing: float) -> tuple[Tensor, int, int]:
        return TranslationTask.loss(self, model, batch, label_smoothing)  # type: ignore[arg-type]

    def describe(self, batch: Batch) -> str:
        return "random ids"
