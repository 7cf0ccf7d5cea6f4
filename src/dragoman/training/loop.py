"""The training loop: steps, validations and checkpoints up to the end, the same for every kind of model.

Where a run stands is one integer, the step; nothing else needs to be remembered to compute the next one (`step.py`).
"""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from types import FrameType
from typing import Any

from torch import Tensor

from dragoman.backends.compile import uncompiled
from dragoman.device import peak_bytes
from dragoman.progress import Progress, say
from dragoman.text.sources.stream import StreamEnded
from dragoman.training.ema import applied
from dragoman.training.nonfinite import NotFinite, RollbackConfig, given_up
from dragoman.training.recovery import Resumable
from dragoman.training.state import is_out_of_patience
from dragoman.training.task import Validation


@dataclass(frozen=True)
class Outcome:
    """The end of a training."""

    reason: str
    step: int
    best_step: int
    best_score: float | None
    elapsed_s: float


class Trainer(Resumable):
    """Takes training steps in a run directory, from the start or from the checkpoint that `resume` is given."""

    def train(self) -> Outcome:
        """Train to the end of the recipe, to the end of patience, or until asked to stop (Ctrl-C, SIGTERM)."""
        self.started = time.monotonic()
        self.state.window.start_clock()
        self.start_time_budget()
        try:
            with (
                stop_on_signals(self._stop_after_this_step),
                Progress("training", self.time_budget.end, done=self.step, interval_s=15.0) as bar,
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
            if self.roll_back(error, bar):
                return False
            self.skip(error, bar)
        self.state.step += 1
        self.stop_requested = self.stop_when(self.step) or self.stop_requested  # a signal may come while it is asked
        due, save = self._what_is_due()
        bar.total = self.time_budget.end
        if self.step % self.config.log_every == 0 or self.step == self.time_budget.end:
            self._log_step()
        bar.advance(1, **{"loss": self.state.window.shown_loss, "tokens/s": self.state.window.shown_rate})
        ranked_by: Mapping[str, Any] = {}
        if due:  # even when asked to stop: a resumed run must see the validations of one never stopped
            try:
                ranked_by = self._validate(bar).ranked_by(self.config.best_by)
            except NotFinite as error:
                if self.roll_back(error, bar):
                    return False
                raise given_up(error, "") from error
        if self._is_stop_asked() or due or save:
            self.save(ranked_by, log=due or self.stop_agreed)
            self.state.window.start_clock()
        return True

    def _what_is_due(self) -> tuple[bool, bool]:
        """After a step: (a validation, a checkpoint). A clock has something to say in it, so rank 0 decides."""

        def decided() -> list[int]:
            moved = self.time_budget.reestimate(self.step)
            return [moved, self.time_budget.should_validate(self.step), self.time_budget.should_save()]

        moved, due, save = self.ranks.broadcast_numbers(decided, 3)
        if moved:
            self.share_stretches()
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
        return self.state.schedule.rate(self.time_budget.schedule_step(step)) * lowered

    def _is_stop_asked(self) -> bool:
        self.stop_agreed = self.stop_agreed or self.ranks.any(self.stop_requested)
        return self.stop_agreed

    def _stop_after_this_step(self) -> None:
        self.stop_requested = True
        say("stopping after this step; once more to stop at once, without saving")

    def end(self) -> Outcome:
        """Log the step, and the reason for the end of the training."""
        reason = self.why_done or "interrupted"
        outcome = Outcome(reason, self.step, self.state.best_step, self.state.best.get("score"), self.elapsed_s)
        self.log.event("end", **asdict(outcome), peak_bytes=peak_bytes(self.device))
        return outcome

    def _end_with_stream(self, bar: Progress) -> None:
        """The pairs are at their end, wherever the recipe's is: validate and save what there is."""
        self.stream_ended = True
        if self.step and self.step % self.config.validate_every:
            self.save(self._validate(bar).ranked_by(self.config.best_by))

    @property
    def why_done(self) -> str | None:
        """Why there is nothing left to train, None where there is."""
        if self.stream_ended:
            return "stream"
        if self.step >= self.time_budget.end:
            return "max_steps"
        return "patience" if is_out_of_patience(vars(self.state), self.config) else None

    def _log_step(self) -> None:
        loss, norm, rate = self.state.window.close()
        epoch, _ = self.task.position(self.step)
        place = {"step": self.step, "epoch": epoch, "elapsed_s": self.elapsed_s, **self.state.loss_scale.shown()}
        self.log.event("train", loss=loss, lr=self.rate(self.step), grad_norm=norm, tokens_per_s=rate, **place)

    def _validate(self, bar: Progress) -> Validation:
        started = time.monotonic()
        with applied(self.model, self.averager.average(self.model, self.step)), uncompiled():
            if hasattr(self.task, "ranks"):
                result = self.task.validate(self.model)
            else:
                result = Validation(**self.ranks.broadcast(lambda: vars(self.task.validate(self.model))))
        self.time_budget.validated(time.monotonic() - started)
        for name, value in {"score": result.score, **result.metrics}.items():
            if not math.isfinite(value):
                raise NotFinite(f"step {self.step:,}: the {name} of the validation is {value}", self.step)
        better = self.state.observe(result, self.config.best_by, self.config.min_improvement)
        epoch, _ = self.task.position(self.step)
        self.log.event(
            "valid",
            step=self.step,
            epoch=epoch,
            score=result.score,
            rank=result.ranked_by(self.config.best_by)["rank"],
            **result.metrics,
            samples=result.samples,
            elapsed_s=self.elapsed_s,
        )
        shown = (f"{result.titles.get(name, name)} {v:.{3 if v < 10 else 2}f}" for name, v in result.metrics.items())
        bar.say(f"step {self.step:,}  epoch {epoch + 1}  {'  '.join(shown)}{'  (best so far)' if better else ''}")
        for sample in result.samples[:2]:
            src, hyp, ref = (sample[name].replace("\n", " ⏎ ") for name in ("src", "hyp", "ref"))
            bar.say(f"    {src}\n      -> {hyp}\n      == {ref}")
        return result


@contextmanager
def stop_on_signals(ask: Callable[[], None]) -> Iterator[None]:
    """Call `ask` at the first Ctrl-C or SIGTERM inside, and raise KeyboardInterrupt at the second."""
    stopping = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        if stopping:
            raise KeyboardInterrupt
        stopping = True
        ask()

    in_main_thread = threading.current_thread() is threading.main_thread()  # elsewhere whoever runs us handles them
    numbers = (signal.SIGINT, signal.SIGTERM) if in_main_thread else ()
    known = [number for number in numbers if signal.getsignal(number) is not None]  # others were not set by Python
    previous = {number: signal.signal(number, handle) for number in known}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
