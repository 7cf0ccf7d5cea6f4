"""The training loop: steps, validations and checkpoints up to the end, the same for every kind of model.

Where a run stands is one integer, the step; nothing else needs to be remembered to compute the next one (`step.py`).
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.backends.compile import uncompiled
from dragoman.device import peak_bytes
from dragoman.progress import Progress, say
from dragoman.runs import checkpoint
from dragoman.runs.best import rank
from dragoman.runs.log import RunLog
from dragoman.text.sources.stream import StreamEnded
from dragoman.training import recovery
from dragoman.training.config import TrainingConfig
from dragoman.training.distributed import Ranks
from dragoman.training.ema import applied
from dragoman.training.nonfinite import NotFinite, RollbackConfig, SkipConfig, given_up
from dragoman.training.pace import Budget, Mark, Pace
from dragoman.training.planned import InShards
from dragoman.training.signals import stop_on_signals
from dragoman.training.state import TrainingState
from dragoman.training.step import TrainingStep
from dragoman.training.task import Task, Validation


@dataclass(frozen=True)
class Outcome:
    """The end of a training."""

    reason: str
    step: int
    best_step: int
    best_score: float | None
    elapsed_s: float


NOT_IN_STATE = (
    "config", "training_step", "run_dir", "log", "stop_when",  # given to it; the tensors of the step are saved
    "averager",  # its tensors are saved
    "pace",  # has a file of its own, pace.json
    "elapsed_before", "started",  # seconds: the log has them
    "stream_ended", "stop_asked", "_stop_wanted",  # of this process alone
)  # fmt: skip
"""The attributes of a `Trainer` beside its `state`, which alone survives its process as it is."""


class Trainer:
    """Takes training steps in a run directory, from the start or from the checkpoint that `resume` is given."""

    def __init__(
        self,
        config: TrainingConfig,
        training_step: TrainingStep,
        *,
        run_dir: Path,
        log: RunLog,
        d_model: int,
        budget: Budget | None = None,
    ) -> None:
        self.config, self.training_step = config, training_step
        self.run_dir, self.log = run_dir, log
        self.pace = Pace(config, run_dir, budget if self.ranks.is_first else None, writes=self.ranks.is_first)
        self.state = TrainingState(config.schedule.build(config.max_steps, d_model), training_step.precision)
        self.averager = config.averaging.build(self.model, run_dir)
        self.elapsed_before = 0.0
        self.started: float | None = None
        self.stream_ended = False
        self.stop_asked = False
        """Agreed on by all ranks."""
        self._stop_wanted = False
        self.stop_when: Callable[[int], bool] = lambda step: False
        """Asked after each step: whether to save and stop there, as Ctrl-C would."""

    @property
    def model(self) -> nn.Module:
        return self.training_step.model

    @property
    def task(self) -> Task:
        return self.training_step.task

    @property
    def device(self) -> torch.device:
        return self.training_step.device

    @property
    def ranks(self) -> Ranks:
        return self.training_step.ranks

    @property
    def precision(self) -> str:
        return self.training_step.precision

    @property
    def step(self) -> int:
        return self.state.step

    def train(self) -> Outcome:
        """Train to the end of the recipe, to the end of patience, or until asked to stop (Ctrl-C, SIGTERM)."""
        self.started = time.monotonic()
        self.state.window.start_clock()
        self.start_pace()
        try:
            with (
                stop_on_signals(self._stop_after_this_step),
                Progress("training", self.pace.end, done=self.step, interval_s=15.0) as bar,
            ):
                while not self.why_done:
                    if self._advance(bar) and self._is_stop_asked():
                        break
        finally:
            self.training_step.stop_prefetching()
        return self.end()

    def _advance(self, bar: Progress) -> bool:
        """One step, with the log line, the validation and the checkpoint that are due after it; False where the run was
        rolled back instead."""
        try:
            self.state.window.add(*self.train_step(self.step + 1))
        except StreamEnded:
            self._end_with_stream(bar)
            return True
        except NotFinite as error:
            if self._roll_back(error, bar):
                return False
            self._skip(error, bar)
        self.state.step += 1
        self._stop_wanted = self._stop_wanted or self.stop_when(self.step)
        due, save = self._what_is_due()
        bar.total = self.pace.end
        if self.step % self.config.log_every == 0 or self.step == self.pace.end:
            self._log_step()
        bar.advance(1, **{"loss": self.state.window.shown_loss, "tokens/s": self.state.window.shown_rate})
        ranked_by: Mapping[str, float] = {}
        if due:  # even when asked to stop: a resumed run must see the validations of one never stopped
            try:
                ranked_by = self._validate(bar).ranked_by
            except NotFinite as error:
                if self._roll_back(error, bar):
                    return False
                raise given_up(error, "") from error
        if self._is_stop_asked() or due or save:
            self.save(ranked_by, log=due or self.stop_asked)
            self.state.window.start_clock()
        return True

    def save(self, ranked_by: Mapping[str, float], *, log: bool = True) -> None:
        """Write a checkpoint; `ranked_by`: the figures of the validation at this step, empty where there was none.

        Without `log` the log does not tell of it: the clock asks for one at another step in every run. Rank 0 writes;
        where a validation is saved, all see first that they have the same weights.
        """
        if ranked_by and self.ranks.world > 1:
            self.ranks.require_alike(recovery.digest(self.model), f"model after step {self.step:,}")

        def write() -> None:
            started = time.monotonic()
            if log:
                # The time is not in the state: a run that was stopped takes longer, and ends in the same bytes.
                self.log.event("checkpoint", step=self.step, validated=bool(ranked_by), elapsed_s=self.elapsed_s)
            checkpoint.save(self.run_dir, self.step, *self.saved(ranked_by))
            checkpoint.prune(self.run_dir, self.config.keep_last, self.config.keep_best)
            self.pace.saved(time.monotonic() - started)

        self.ranks.first(write)

    def saved(self, ranked_by: Mapping[str, float]) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
        """(the tensors of a checkpoint by group, its state.json)."""
        optimizer = self.training_step.optimizer
        position = self.task.position(max(1, self.step))
        groups = recovery.tensors(self.state, self.model, optimizer, self.averager)
        return groups, recovery.plain(self.state, position, ranked_by)

    def resume(self, path: Path, rollbacks: int | None = None) -> None:
        """Go on from a verified checkpoint, with the log of a run that has rolled back so often (None: as it says)."""
        optimizer = self.training_step.optimizer
        self.state = recovery.restore(path, self.model, optimizer, self.averager, self.state.schedule)
        self.training_step.set_precision(self.state.precision)
        in_log = self.state.rollbacks if rollbacks is None else rollbacks
        self.elapsed_before, self.started = self.log.rewind(self.step, in_log), None

    def _roll_back(self, error: NotFinite, bar: Progress) -> bool:
        """Go back to the last checkpoint with a lower rate, if that is what the recipe asks for.

        Raises DragomanError where there is none, or where it has been tried often enough.
        """
        reaction = self.config.not_finite
        if not isinstance(reaction, RollbackConfig):
            return False
        path, before = (
            self.ranks.broadcast(lambda: recovery.last_validated(self.run_dir, bar.say)),
            self.state.rollbacks,
        )
        if not path or before >= reaction.limit:
            tried = f"rolled back {before} times before" if path else "no checkpoint to go back to"
            raise given_up(error, f"; {tried}") from error
        elapsed_s = self.elapsed_s
        self.resume(Path(path), before)
        self.ranks.first(lambda: checkpoint.drop_after(self.run_dir, self.step))
        self.state.rollbacks, self.elapsed_before, self.started = before + 1, elapsed_s, time.monotonic()
        self.start_pace()
        bar.advance(self.step - bar.done)
        self.log.event("rollback", step=error.step, why=str(error), to=self.step, rollbacks=before + 1)
        bar.say(f"{error}; back to step {self.step:,}, with {reaction.factor ** (before + 1):g} times the rate")
        return True

    def _skip(self, error: NotFinite, bar: Progress) -> None:
        """Leave a step out, if that is what the recipe asks for and it was not done too often. Raises DragomanError."""
        reaction = self.config.not_finite
        if not isinstance(reaction, SkipConfig):
            raise given_up(error, "") from error
        if self.state.skipped >= reaction.limit:
            raise given_up(error, f"; {self.state.skipped} steps were left out before") from error
        self.state.skipped += 1
        self.log.event("skip", step=error.step, why=str(error), skipped=self.state.skipped)
        bar.say(f"{error}; left out")

    def start_pace(self) -> None:
        """Begin, or go on, where the training stands."""
        self.pace.start(self.step, self.elapsed_before)
        self._share_marks()

    def _share_marks(self) -> None:
        self.pace.marks = [Mark(**mark) for mark in self.ranks.broadcast(self.pace.plain_marks)]

    def _what_is_due(self) -> tuple[bool, bool]:
        """After a step: (a validation, a checkpoint). A clock has something to say in it, so rank 0 decides."""

        def decided() -> list[int]:
            moved = self.pace.look(self.step)
            return [moved, self.pace.should_validate(self.step), self.pace.should_save()]

        moved, due, save = self.ranks.broadcast_numbers(decided, 3)
        if moved:
            self._share_marks()
        return bool(due), bool(save)

    def train_step(self, step: int) -> tuple[Tensor, Tensor, int]:
        """One step at the schedule's rate, and the average after it; results and errors of `TrainingStep.take`."""
        taken = self.training_step.take(step, self.rate(step))
        self.averager.update(step)
        return taken

    def rate(self, step: int) -> float:
        """The learning rate of a step: the schedule's, lowered by each rollback."""
        reaction = self.config.not_finite
        lowered = reaction.factor**self.state.rollbacks if isinstance(reaction, RollbackConfig) else 1.0
        return self.state.schedule.rate(self.pace.at(step)) * lowered

    def _is_stop_asked(self) -> bool:
        self.stop_asked = self.stop_asked or self.ranks.any(self._stop_wanted)
        return self.stop_asked

    def _stop_after_this_step(self) -> None:
        self._stop_wanted = True
        say("stopping after this step; once more to stop at once, without saving")

    def end(self) -> Outcome:
        """Log where the training stands, and why it goes no further."""
        reason = self.why_done or "interrupted"
        outcome = Outcome(reason, self.step, self.state.best_step, self.state.best.get("score"), self.elapsed_s)
        self.log.event("end", **asdict(outcome), peak_bytes=peak_bytes(self.device))
        return outcome

    def _end_with_stream(self, bar: Progress) -> None:
        """The pairs are at their end, wherever the recipe's is: validate and save what there is."""
        self.stream_ended = True
        if self.step and self.step % self.config.validate_every:
            self.save(self._validate(bar).ranked_by)

    @property
    def why_done(self) -> str | None:
        """Why there is nothing left to train, None where there is."""
        if self.stream_ended:
            return "stream"
        if self.step >= self.pace.end:
            return "max_steps"
        return "patience" if self._out_of_patience() else None

    def _out_of_patience(self) -> bool:
        return self.config.patience is not None and self.state.bad_validations >= self.config.patience

    @property
    def elapsed_s(self) -> float:
        """Seconds of training so far, those before a resume included."""
        return self.elapsed_before + (0.0 if self.started is None else time.monotonic() - self.started)

    def _log_step(self) -> None:
        loss, norm, rate = self.state.window.close()
        epoch, _ = self.task.position(self.step)
        self.log.event(
            "train",
            step=self.step,
            epoch=epoch,
            loss=loss,
            lr=self.rate(self.step),
            grad_norm=norm,
            tokens_per_s=rate,
            elapsed_s=self.elapsed_s,
        )

    def _validate(self, bar: Progress) -> Validation:
        started = time.monotonic()
        with applied(self.model, self.averager.average(self.model, self.step)), uncompiled():
            if isinstance(self.task, InShards):  # others are validated at rank 0, for all
                result = self.task.validate(self.model)
            else:
                result = Validation(**self.ranks.broadcast(lambda: vars(self.task.validate(self.model))))
        self.pace.validated(time.monotonic() - started)
        for name, value in result.ranked_by.items():
            if not math.isfinite(value):
                raise NotFinite(f"step {self.step:,}: the {name} of the validation is {value}", self.step)
        better = rank(result.ranked_by) > rank(self.state.best)
        self.state.schedule.observe(better)
        if better:
            self.state.best, self.state.best_step, self.state.bad_validations = result.ranked_by, self.step, 0
        else:
            self.state.bad_validations += 1
        epoch, _ = self.task.position(self.step)
        self.log.event(
            "valid",
            step=self.step,
            epoch=epoch,
            score=result.score,
            **result.metrics,
            samples=result.samples,
            elapsed_s=self.elapsed_s,
        )
        figures = "  ".join(f"{name} {value:.{3 if value < 10 else 2}f}" for name, value in result.metrics.items())
        bar.say(f"step {self.step:,}  epoch {epoch + 1}  {figures}{'  (best so far)' if better else ''}")
        for sample in result.samples[:2]:
            src, hyp, ref = (sample[name].replace("\n", " ⏎ ") for name in ("src", "hyp", "ref"))
            bar.say(f"    {src}\n      -> {hyp}\n      == {ref}")
        return result
