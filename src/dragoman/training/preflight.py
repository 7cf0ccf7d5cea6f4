"""Before the first step: the whole way once in small, so that nothing fails at the end that could have failed now.

The largest batch, a validation with real decoding, a checkpoint that is written, verified and read back, and room on
the disk for those that will be kept. What was measured on the way says how long the training will take, and how much
memory and disk.
"""

import bisect
import contextlib
import math
import shutil
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

from dragoman.backends.compile import uncompiled
from dragoman.device import available_bytes, peak_bytes, reset_peak
from dragoman.errors import DragomanError, Error, writing
from dragoman.progress import say, size_text
from dragoman.runs import atomic_io, checkpoint
from dragoman.training.loop import Trainer
from dragoman.training.loss_scale import LossScale
from dragoman.training.nonfinite import NotFinite

TRIAL_STEPS = 24
"""On a CPU, memory goes on growing after the largest batch, by what tensors of other shapes leave between each other;
after so many steps most of that has happened."""
WARM_UP_STEPS = 2
"""Steps of the trial that are not measured: the first ones prepare what later ones find ready."""
PREFLIGHT = "preflight"
"""Folder of a run directory for the trial's checkpoint; it is gone when training starts."""
MAX_BATCH_MEMORY_SHARE = 0.8
"""The share of the memory that is free which the largest batch may take where its size is looked for: batches of other
shapes leave gaps between them."""
MAX_MEMORY_SHARE = 0.95
"""The share of the memory that is there which a training may take."""

T = TypeVar("T")


@dataclass(frozen=True)
class Estimate:
    """Time, memory and disk that a training will take."""

    seconds_per_step: float
    seconds_per_validation: float
    seconds_per_checkpoint: float
    peak_bytes: int
    """Of the process on the CPU, of the device's allocator on a GPU."""
    checkpoint_bytes: int
    disk_bytes: int
    """Bytes of all kept checkpoints, and of the checkpoint that is being written."""

    def seconds(self, steps: int, validate_every: int) -> float:
        """Seconds that so many steps will take, with their validations and checkpoints."""
        validations = math.ceil(steps / validate_every)
        return steps * self.seconds_per_step + validations * (self.seconds_per_validation + self.seconds_per_checkpoint)

    def steps_within(self, seconds: float, validate_every: int) -> int:
        """As many steps as fit into a time, with their validations; 0 where not one does."""
        too_many = max(2, int(seconds / self.seconds_per_step) + 1)
        return bisect.bisect(range(1, too_many), seconds, key=lambda steps: self.seconds(steps, validate_every))


def preflight(trainer: Trainer) -> Estimate:
    """Try everything once, changing nothing that training depends on.

    Weights and averages stay as they are (the rate is 0 and the optimizer's state is thrown away), and random numbers
    are keyed by step. Raises DragomanError for a batch that does not fit (saying which would), for a metric or a
    checkpoint that does not work, and where the disk has not enough room.
    """
    reset_peak(trainer.device)
    _fitting(trainer, _largest_batch)
    seconds_per_step = _fitting(trainer, _steps)
    kept = trainer.config.keep_last + trainer.config.keep_best + 1

    def measured() -> dict[str, Any]:
        with uncompiled():
            seconds_per_validation = trainer.task.dry_run_validation(trainer.model)
        size, seconds_per_checkpoint = _checkpoint(trainer)
        peak = peak_bytes(trainer.device)
        _room(trainer.run_dir, kept * size, size)
        estimated = Estimate(seconds_per_step, seconds_per_validation, seconds_per_checkpoint, peak, size, kept * size)
        return asdict(estimated)

    estimate = Estimate(**trainer.ranks.broadcast(measured))
    trainer.training_step.optimizer.state.clear()
    vars(trainer.state.loss_scale).update(vars(LossScale.of(trainer.precision)))
    return estimate


# -- memory and time -------------------------------------------------------------------------------------------------


def _fitting(trainer: Trainer, trial: Callable[[Trainer], T]) -> T:
    """The result of `trial`. Raises DragomanError, saying which batches would fit, where memory is full in it."""
    try:
        return trial(trainer)
    except torch.OutOfMemoryError as error:
        why = str(error).splitlines()[0]
    # Not before the exception is gone: it holds what the trial held, and smaller batches are tried without that.
    raise _does_not_fit(trainer.config.batch_tokens, _largest_that_fits(trainer), why)


def _largest_batch(trainer: Trainer) -> None:
    """Take the micro-batch that needs the most memory, after a quarter of it has shown whether it will fit."""
    budget = trainer.config.batch_tokens
    sizes, peaks = [], []
    for part in (8, 4):
        batch = trainer.task.worst_case_batch(budget // part)
        _forward_backward(trainer, batch)
        sizes.append(_positions(batch))
        peaks.append(peak_bytes(trainer.device))
    largest, available = trainer.task.worst_case_batch(budget), available_bytes(trainer.device)
    # What grows with the batch is what these two differ by; the optimizer will have two moments for each weight.
    each = max(0.0, (peaks[1] - peaks[0]) / max(1, sizes[1] - sizes[0]))
    moments = _moments(trainer)
    needed = each * (_positions(largest) - sizes[1]) + moments
    if available is not None and needed > MAX_MEMORY_SHARE * available:
        room = sizes[1] + (MAX_MEMORY_SHARE * available - moments) / each if each else 0.0
        fits = int(budget * min(1.0, max(0.0, room / _positions(largest))))
        raise _does_not_fit(budget, fits, f"needs about {size_text(needed)} more, {size_text(available)} are free")
    _forward_backward(trainer, largest)


def fitting_batch_tokens(trainer: Trainer) -> int:
    """The largest `training.batch_tokens` that was tried and whose largest batch keeps to `training.workspace`.

    Trials double the batch, or go as far as memory would last at the rate at which it grew. Raises DragomanError where
    the smallest batch does not fit, and where the free memory is not known.
    """
    device, budget = trainer.device, max(1, trainer.config.batch_tokens // 8)
    limit, batches = _workspace(trainer), [(0, 0, 0)]  # (batch_tokens, positions, bytes)
    reset_peak(device)
    before = peak_bytes(device)
    while True:
        batch = trainer.task.worst_case_batch(budget)
        positions = _positions(batch)
        if positions == batches[-1][1] and budget >= 2 * positions:
            break  # the whole corpus is in it
        try:
            _forward_backward(trainer, batch)
        except torch.OutOfMemoryError:
            break
        if (used := peak_bytes(device) - before) > limit:
            break
        each = (used - batches[-1][2]) / (budget - batches[-1][0])
        batches.append((budget, positions, used))
        budget = min(2 * budget, budget + int((limit - used) / max(each, 1e-9)))
        if budget < 1.05 * batches[-1][0]:
            break
    tokens, _, used = batches[-1]
    if not tokens:
        raise Error.OUT_OF_MEMORY(f"training.workspace: {size_text(limit)} are too little for {budget:,} tokens")
    say(f"training.workspace: batches of training.batch_tokens={tokens} take {size_text(used)} of {size_text(limit)}")
    return tokens


def _workspace(trainer: Trainer) -> int:
    """Bytes that a micro-batch may take."""
    if (given := trainer.config.workspace) != "auto":
        return int(given or 0) << 20
    if (free := available_bytes(trainer.device)) is None:
        raise Error.UNSUPPORTED("training.workspace=auto: the amount of free memory is unknown here", "give it in MiB")
    sharing = trainer.ranks.world if trainer.device.type == "cpu" else 1
    return int(MAX_BATCH_MEMORY_SHARE * free / sharing) - _moments(trainer)


def _moments(trainer: Trainer) -> int:
    """Bytes of the two moments that an optimizer will have for each weight."""
    return 2 * sum(tensor.numel() * tensor.element_size() for tensor in checkpoint.weights(trainer.model).values())


def _positions(batch: Any) -> int:
    """The size of a batch's largest tensor: what the memory of a step grows with."""
    values = [value for field in vars(batch).values() for value in (field if isinstance(field, tuple) else (field,))]
    return max(value.numel() for value in values if isinstance(value, torch.Tensor))


def _largest_that_fits(trainer: Trainer) -> int:
    """By halving, on a device that says when its memory is full; 0 where nothing fits."""
    budget = trainer.config.batch_tokens
    while budget := budget // 2:
        trainer.training_step.clear_gradients()
        torch.cuda.empty_cache()
        try:
            _forward_backward(trainer, trainer.task.worst_case_batch(budget))
            return budget
        except torch.OutOfMemoryError:
            continue
    return 0


def _does_not_fit(budget: int, fits: int, why: str) -> DragomanError:
    remedy = f"training.batch_tokens={fits} fits" if fits else "take a smaller model"
    return Error.OUT_OF_MEMORY(
        f"a batch of training.batch_tokens={budget} does not fit into memory ({why}): {remedy}; "
        "training.micro_batches makes up for smaller batches"
    )


def _forward_backward(trainer: Trainer, batch: Any) -> None:
    trainer.model.train()
    trainer.training_step.backward(0, 0, 0, batch)
    trainer.training_step.clear_gradients()


def _steps(trainer: Trainer) -> float:
    """Seconds of a step, from a few whole ones at a rate of 0. On a GPU then the largest batch once more: only now are
    the optimizer's moments in its memory."""
    times = []
    for step in range(1, TRIAL_STEPS + 1):
        start = time.monotonic()
        with contextlib.suppress(NotFinite):  # which the training itself will meet, and do something about
            trainer.training_step.take(step, 0.0)  # it looks at its loss, so a GPU is at most an update behind
        times.append(time.monotonic() - start)
    if trainer.device.type != "cpu":
        _forward_backward(trainer, trainer.task.worst_case_batch(trainer.config.batch_tokens))
    # A step in which a compiler meets a new kind of shape takes as long as hundreds; those come to an end.
    typical = statistics.fmean if trainer.training_step.compiled == "none" else statistics.median
    return typical(times[WARM_UP_STEPS:])


# -- disk ------------------------------------------------------------------------------------------------------------


def _checkpoint(trainer: Trainer) -> tuple[int, float]:
    """(bytes, seconds) of a checkpoint, from one that is written, verified, read back and thrown away."""
    folder = trainer.run_dir / PREFLIGHT
    atomic_io.remove(folder)
    try:
        start = time.monotonic()
        groups, state = trainer.saved({})
        path = checkpoint.save(folder, trainer.step, groups, state)
        checkpoint.verify(path)
        seconds = time.monotonic() - start
        read = {name: checkpoint.load_group(path, name) for name in groups}
        assert all(read[name].keys() == tensors.keys() for name, tensors in groups.items()), "saved and read differ"
        return sum(file.stat().st_size for file in path.iterdir()), seconds
    finally:
        atomic_io.remove(folder)


def _room(run_dir: Path, needed: int, one: int) -> None:
    there = sum(file.stat().st_size for file in checkpoint.checkpoints_dir(run_dir).rglob("*") if file.is_file())
    needed -= there  # those of a run that goes on make way for new ones
    with writing(run_dir):
        free = shutil.disk_usage(run_dir).free
    if free < needed:
        raise Error.NO_SPACE(
            f"the checkpoints will need {size_text(needed)} more ({size_text(one)} each), and {size_text(free)} are "
            "free",
            "free space, choose another run_dir=..., or lower training.keep_last",
            file=run_dir,
        )
