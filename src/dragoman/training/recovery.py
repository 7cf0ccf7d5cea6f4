"""Checkpoints of a training: written for a later resume, and gone back to after a step without finite numbers."""

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dragoman.progress import Progress
from dragoman.runs import checkpoint
from dragoman.training import optim
from dragoman.training.nonfinite import NotFinite, RollbackConfig, SkipConfig, given_up

if TYPE_CHECKING:
    from dragoman.training.loop import Trainer


def save(trainer: "Trainer", ranked_by: Mapping[str, float], *, log: bool = True) -> None:
    """Write a checkpoint; `ranked_by`: the figures of the validation at this step, empty where there was none.

    Without `log` the log does not tell of it: the clock asks for one at another step in every run. Rank 0 writes; where
    a validation is saved, all see first that they have the same weights.
    """
    if ranked_by:
        trainer.ranks.require_alike(_digest(trainer), f"model after step {trainer.step:,}")
    trainer.ranks.first(lambda: _save(trainer, ranked_by, log))


def _digest(trainer: "Trainer") -> str:
    if trainer.ranks.world == 1:
        return ""
    digest = hashlib.sha256()
    for tensor in checkpoint.weights(trainer.model).values():
        digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _save(trainer: "Trainer", ranked_by: Mapping[str, float], log: bool) -> None:
    started = time.monotonic()
    if log:
        # Not in the state: a run that was stopped takes longer, and ends in the same bytes all the same.
        trainer.log.event("checkpoint", step=trainer.step, validated=bool(ranked_by), elapsed_s=trainer.elapsed_s)
    checkpoint.save(trainer.run_dir, trainer.step, tensors(trainer), state(trainer, ranked_by))
    checkpoint.prune(trainer.run_dir, trainer.config.keep_last, trainer.config.keep_best)
    trainer.pace.saved(time.monotonic() - started)


def tensors(trainer: "Trainer") -> dict[str, dict[str, Tensor]]:
    """The tensors of a checkpoint, by group."""
    groups = {
        "model": checkpoint.weights(trainer.model),
        "optimizer": optim.state_tensors(trainer.training_step.optimizer, trainer.model),
    }
    averages = trainer.averager.average(trainer.model, trainer.step)
    return groups if averages is None else {**groups, "averaged": averages}


def state(trainer: "Trainer", ranked_by: Mapping[str, float]) -> dict[str, Any]:
    """The rest that a checkpoint must hold for a run to go on from it as if it had never stopped."""
    epoch, step_in_epoch = trainer.task.position(max(1, trainer.step))
    return {
        "step": trainer.step,
        "epoch": epoch,  # this and the next for people who look: they follow from the step
        "step_in_epoch": step_in_epoch,
        "score": ranked_by.get("score"),
        "loss": ranked_by.get("loss"),
        "best_step": trainer.best_step,
        "best": trainer.best,
        "bad_validations": trainer.bad_validations,
        "skipped": trainer.skipped,
        "rollbacks": trainer.rollbacks,
        "schedule": trainer.schedule.state_dict(),
        "window": trainer.window.state_dict(),
        "precision": trainer.precision,
    }


def resume(trainer: "Trainer", path: Path, rollbacks: int | None = None) -> None:
    """Go on from a verified checkpoint, with the log of a run that has rolled back so often (None: as it says)."""
    saved, step = checkpoint.load_state(path), trainer.training_step
    checkpoint.load_weights(trainer.model, checkpoint.load_group(path, "model"), str(path))
    optim.load_state_tensors(step.optimizer, trainer.model, checkpoint.load_group(path, "optimizer"))
    if (path / "averaged.safetensors").exists():
        trainer.averager.load(checkpoint.load_group(path, "averaged"))
    trainer.schedule.load_state_dict(saved["schedule"])
    trainer.step, trainer.bad_validations = saved["step"], saved["bad_validations"]
    trainer.best, trainer.best_step = saved["best"], saved["best_step"]
    trainer.skipped, trainer.rollbacks = saved["skipped"], saved["rollbacks"]
    trainer.window.load_state_dict(saved["window"])
    step.set_precision(saved["precision"])
    in_log = trainer.rollbacks if rollbacks is None else rollbacks
    trainer.elapsed_before, trainer.started = trainer.log.rewind(trainer.step, in_log), None


def roll_back(trainer: "Trainer", error: NotFinite, bar: Progress) -> bool:
    """Go back to the last checkpoint with a lower rate, if that is what the recipe asks for.

    Raises DragomanError where there is none, or where it has been tried often enough.
    """
    reaction = trainer.config.not_finite
    if not isinstance(reaction, RollbackConfig):
        return False
    # A checkpoint that a stop left is passed over: a run that was never stopped does not have it.
    found = trainer.ranks.broadcast(lambda: _last_validated(trainer, bar))
    path = Path(found) if found else None
    if path is None or trainer.rollbacks >= reaction.limit:
        tried = "no checkpoint to go back to" if path is None else f"rolled back {trainer.rollbacks} times before"
        raise given_up(error, f"; {tried}") from error
    rollbacks, elapsed_s = trainer.rollbacks + 1, trainer.elapsed_s
    resume(trainer, path, trainer.rollbacks)
    trainer.ranks.first(lambda: checkpoint.drop_after(trainer.run_dir, trainer.step))
    trainer.rollbacks, trainer.elapsed_before, trainer.started = rollbacks, elapsed_s, time.monotonic()
    trainer.start_pace()
    bar.advance(trainer.step - bar.done)
    trainer.log.event("rollback", step=error.step, why=str(error), to=trainer.step, rollbacks=rollbacks)
    bar.say(f"{error}; back to step {trainer.step:,}, with {reaction.factor**rollbacks:g} times the rate")
    return True


def _last_validated(trainer: "Trainer", bar: Progress) -> str:
    path = checkpoint.newest(trainer.run_dir, complain=bar.say, among=checkpoint.validated(trainer.run_dir))
    return str(path or "")


def skip(trainer: "Trainer", error: NotFinite, bar: Progress) -> None:
    """Leave a step out, if that is what the recipe asks for and it was not done too often. Raises DragomanError."""
    reaction = trainer.config.not_finite
    if not isinstance(reaction, SkipConfig):
        raise given_up(error, "") from error
    if trainer.skipped >= reaction.limit:
        raise given_up(error, f"; {trainer.skipped} steps were left out before") from error
    trainer.skipped += 1
    trainer.log.event("skip", step=error.step, why=str(error), skipped=trainer.skipped)
    bar.say(f"{error}; left out")
