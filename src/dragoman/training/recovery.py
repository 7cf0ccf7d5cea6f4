"""A training that survives: its checkpoints, and how it goes on from them or back to them."""

import hashlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.progress import Progress
from dragoman.runs import checkpoint
from dragoman.runs.log import RunLog
from dragoman.training import optim
from dragoman.training.config import TrainingConfig
from dragoman.training.loss_scale import LossScale, Overflow
from dragoman.training.nonfinite import NotFinite, RollbackConfig, SkipConfig, given_up
from dragoman.training.state import TrainingState
from dragoman.training.step import TrainingStep
from dragoman.training.time_budget import Deadline, ScheduleStretch, TimeBudget

NOT_IN_STATE = (
    "config", "run_dir", "log", "stop_when", "facts",  # given to it
    "training_step", "model", "task", "device", "ranks",  # given to it, and parts of that; the tensors are saved
    "averager",  # its tensors are saved
    "time_budget",  # has a file of its own, pace.json
    "elapsed_before", "started",  # seconds: the log has them
    "stream_ended", "stop_agreed", "stop_requested",  # of this process alone
)  # fmt: skip
"""The attributes of a `Trainer` beside its `state`, which alone survives its process as it is."""


class Resumable:
    """A training with its checkpoints: saved, gone on with, and gone back to after a step without finite numbers."""

    def __init__(
        self,
        config: TrainingConfig,
        training_step: TrainingStep,
        *,
        run_dir: Path,
        log: RunLog,
        d_model: int,
        deadline: Deadline | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """`facts`: what the state of each checkpoint says besides."""
        self.facts = facts or {}
        self.config, self.training_step, self.task = config, training_step, training_step.task
        self.model, self.device, self.ranks = training_step.model, training_step.device, training_step.ranks
        self.run_dir, self.log = run_dir, log
        self.time_budget = TimeBudget(
            config, run_dir, deadline if self.ranks.is_first else None, writes=self.ranks.is_first
        )
        schedule = config.schedule.build(config.max_steps, d_model)
        self.state = TrainingState(schedule=schedule, precision=training_step.precision)
        training_step.loss_scale = self.state.loss_scale = LossScale.of(training_step.precision)
        self.averager = config.averaging.build(self.model, run_dir)
        self.elapsed_before = 0.0
        self.started: float | None = None
        self.stream_ended = False
        self.stop_requested = False
        """True after Ctrl-C, or when `stop_when` said so, on this rank."""
        self.stop_agreed = False
        """True once any rank was asked to stop: all ranks stop after the same step."""
        self.stop_when: Callable[[int], bool] = lambda step: False
        """Called after each step; True stops the training there, as Ctrl-C would."""

    @property
    def precision(self) -> str:
        return self.training_step.precision

    @property
    def step(self) -> int:
        return self.state.step

    @property
    def elapsed_s(self) -> float:
        """Seconds of training so far, those before a resume included."""
        return self.elapsed_before + (0.0 if self.started is None else time.monotonic() - self.started)

    def save(self, ranked_by: Mapping[str, Any], *, log: bool = True) -> None:
        """Write a checkpoint; `ranked_by`: the figures of the validation at this step, empty where there was none.

        Without `log` the checkpoint is not logged: the clock asks for checkpoints at other steps in every run. Rank 0
        writes. Where a validation is saved, all ranks check first that they have the same weights.
        """
        if ranked_by and self.ranks.world > 1:
            self.ranks.require_alike(digest(self.model), f"model after step {self.step:,}")

        def write() -> None:
            started = time.monotonic()
            if log:
                # First the event, which a run that goes on from here must find. The time is not in the state: a run
                # that was stopped takes longer, and ends in the same bytes.
                self.log.event("checkpoint", step=self.step, validated=bool(ranked_by), elapsed_s=self.elapsed_s)
            checkpoint.save(self.run_dir, self.step, *self.saved(ranked_by))
            checkpoint.prune(self.run_dir, self.config.keep_last, self.config.keep_best)
            self.time_budget.saved(time.monotonic() - started)

        self.ranks.on_rank_zero(write)

    def saved(self, ranked_by: Mapping[str, Any]) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
        """(the tensors of a checkpoint by group, its state.json): all that a run needs to go on from it as if it had
        never stopped."""
        optimizer = optim.state_tensors(self.training_step.optimizer, self.model)
        groups = {"model": checkpoint.weights(self.model), "optimizer": optimizer}
        if (averages := self.averager.average(self.model, self.step)) is not None:
            groups["averaged"] = averages
        epoch, step_in_epoch = self.task.position(max(1, self.step))
        for_people = {"epoch": epoch, "step_in_epoch": step_in_epoch}  # who look: they follow from the step
        figures = {name: ranked_by.get(name) for name in ("score", "loss", "rank")}
        return groups, {"step": self.step, **for_people, **figures, **self.facts, **self.state.to_dict()}

    def resume(self, path: Path, rollbacks: int | None = None) -> None:
        """Go on from a verified checkpoint. `rollbacks`: how often the run has rolled back (None: the checkpoint's
        number)."""
        checkpoint.load_weights(self.model, checkpoint.load_group(path, "model"), str(path))
        optim.load_state_tensors(self.training_step.optimizer, self.model, checkpoint.load_group(path, "optimizer"))
        if (path / "averaged.safetensors").exists():
            self.averager.load(checkpoint.load_group(path, "averaged"))
        self.state = TrainingState.from_dict(checkpoint.load_state(path), self.state.schedule)
        self.training_step.set_precision(self.state.precision)
        self.training_step.loss_scale = self.state.loss_scale
        in_log = self.state.rollbacks if rollbacks is None else rollbacks
        self.elapsed_before, self.started = self.log.rewind(self.step, in_log), None

    def roll_back(self, error: NotFinite, bar: Progress) -> bool:
        """Go back to the last checkpoint with a lower rate, if that is what the recipe asks for.

        Raises DragomanError where there is none, or where it has been tried often enough.
        """
        reaction = self.config.not_finite
        if not isinstance(reaction, RollbackConfig) or isinstance(error, Overflow):
            return False
        # A checkpoint that a stop left is passed over: a run that was never stopped does not have it.
        path = self.ranks.broadcast(
            lambda: str(checkpoint.newest(self.run_dir, bar.say, checkpoint.validated(self.run_dir)) or "")
        )
        before = self.state.rollbacks
        if not path or before >= reaction.limit:
            tried = f"rolled back {before} times before" if path else "no checkpoint to go back to"
            raise given_up(error, f"; {tried}") from error
        elapsed_s = self.elapsed_s
        self.resume(Path(path), before)
        self.ranks.on_rank_zero(lambda: checkpoint.drop_after(self.run_dir, self.step))
        self.state.rollbacks, self.elapsed_before, self.started = before + 1, elapsed_s, time.monotonic()
        self.start_time_budget()
        bar.advance(self.step - bar.done)
        self.log.event("rollback", step=error.step, why=str(error), to=self.step, rollbacks=before + 1)
        bar.say(f"{error}; back to step {self.step:,}, with {reaction.factor ** (before + 1):g} times the rate")
        return True

    def skip(self, error: NotFinite, bar: Progress) -> None:
        """Leave a step out, if that is what the recipe asks for and it was not done too often. Raises DragomanError.

        A step whose scaled gradient overflows is left out in any case, and counted apart.
        """
        reaction = self.config.not_finite
        if isinstance(error, Overflow):
            self.log.event("overflow", step=error.step, **self.state.loss_scale.shown())
            bar.say(f"{error}; left out ({self.state.loss_scale.overflows} so far)")
            return
        if not isinstance(reaction, SkipConfig):
            raise given_up(error, "") from error
        if self.state.skipped >= reaction.limit:
            raise given_up(error, f"; {self.state.skipped} steps were left out before") from error
        self.state.skipped += 1
        self.log.event("skip", step=error.step, why=str(error), skipped=self.state.skipped)
        bar.say(f"{error}; left out")

    def start_time_budget(self) -> None:
        """Begin, or go on, where the training stands."""
        self.time_budget.start(self.step, self.elapsed_before)
        self.share_stretches()

    def share_stretches(self) -> None:
        self.time_budget.stretches = [
            ScheduleStretch(**each) for each in self.ranks.broadcast(self.time_budget.plain_stretches)
        ]


def digest(model: nn.Module) -> str:
    """SHA-256 of a model's weights."""
    sha256 = hashlib.sha256()
    for tensor in checkpoint.weights(model).values():
        sha256.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    return sha256.hexdigest()
