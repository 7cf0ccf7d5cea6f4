"""The training loop: the same for every kind of model, which a `Task` describes.

Where a run stands is one integer, the step. The batches of a step come from a pure function of (seed, step), and the
random numbers of each micro-batch are keyed by (seed, step, micro-batch); so nothing else needs to be remembered.
"""

import hashlib
import math
import signal
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from dragoman.backends import chunked_loss
from dragoman.backends.accelerate import accelerate
from dragoman.backends.compile import CompileName, compile_layers, uncompiled
from dragoman.config import Field, settings
from dragoman.device import PrecisionName, autocast, peak_bytes
from dragoman.progress import Progress, say
from dragoman.runs import checkpoint
from dragoman.runs.best import rank
from dragoman.runs.log import RunLog
from dragoman.training import optim
from dragoman.training.ema import AveragingConfig, EmaConfig, LastConfig, applied
from dragoman.training.loss import TEXTBOOK, Losses
from dragoman.training.nonfinite import (
    AbortConfig,
    GuardConfig,
    NotFinite,
    RollbackConfig,
    SkipConfig,
    given_up,
    not_finite,
)
from dragoman.training.optim import AdamWConfig, OptimizerConfig
from dragoman.training.prefetch import BatchesAhead
from dragoman.training.schedules import LinearConfig, ScheduleConfig


@settings
class TrainingConfig:
    """How a model is trained. Steps are optimizer steps."""

    max_steps: int = Field(default=5000, ge=1)  #: Length of the training. [steps]
    batch_tokens: int = Field(default=2048, ge=1)
    """Limit of rows times the longer side of a micro-batch, padding included. [positions]"""
    micro_batches: int = Field(default=1, ge=1)
    """Micro-batches whose gradients are summed before each step (gradient accumulation)."""
    optimizer: OptimizerConfig = Field(default_factory=AdamWConfig)  #: The optimizer.
    schedule: ScheduleConfig = Field(default_factory=LinearConfig)
    """The learning rate of each step; it has the rate itself too (`lr`)."""
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    """Share of the target's probability that is spread over the vocabulary."""
    r_drop: float = Field(default=0.0, ge=0)
    """Weight of the divergence between two passes with other dropout, the alpha of Liang et al. 2021; 0: one pass. Two
    take twice the time and memory: halve `batch_tokens` where that is too much."""
    clip_norm: float = Field(default=1.0, ge=0)  #: Largest norm of the whole gradient; 0: no limit.
    averaging: AveragingConfig = Field(default_factory=EmaConfig)
    """Weight averaging: which weights are validated and translated with."""
    precision: PrecisionName = "auto"
    """Number format of forward and backward passes; weights stay float32. `auto`: the device's best."""
    compile: CompileName = "auto"
    """`layers`: each kind of layer is compiled for all shapes by torch.compile; `graphs`: and recorded as CUDA graphs,
    one for each shape of a batch, so for language models and images, whose batches have few; `auto`: layers on an
    NVIDIA GPU. Recurrent models are left as they are."""
    backend: Literal["auto", "textbook"] = "auto"
    """`auto`: fast twins of layers and losses, those for this processor among them; `textbook`: all as it is written in
    `nn/`, `models/` and `training/loss.py`, slower, to step through with a debugger."""
    not_finite: GuardConfig = Field(default_factory=AbortConfig)  #: Reaction to a loss or gradient that is not finite.
    validate_every: int = Field(default=500, ge=1)
    """Interval between validations; a checkpoint is written after each. [steps]"""
    validation_beam_size: int = Field(default=1, ge=1)  #: Beam of validation decoding; 1: greedy. [hypotheses]
    patience: int | None = Field(default=None, ge=1)
    """Validations in a row without a new best before training stops; null: never. [validations]"""
    keep_last: int = Field(default=2, ge=1)  #: Newest checkpoints that are kept.
    keep_best: int = Field(default=1, ge=1)  #: Best checkpoints that are kept, beside the newest.
    log_every: int = Field(default=50, ge=1)  #: Interval between lines of the log. [steps]
    samples: int = Field(default=4, ge=0)
    """Validation sentences whose translations are shown during training. [sentences]"""

    def __post_init__(self) -> None:
        if isinstance(self.averaging, LastConfig) and self.keep_last < self.averaging.checkpoints - 1:
            raise ValueError(
                f"averaging the last {self.averaging.checkpoints} checkpoints needs keep_last of at least "
                f"{self.averaging.checkpoints - 1}, it is {self.keep_last}"
            )


def pick_losses(backend: str) -> Losses:
    """The losses of a training, for the setting `training.backend`."""
    return TEXTBOOK if backend == "textbook" else Losses(chunked_loss.token_loss, chunked_loss.divergence)


@dataclass(frozen=True)
class Validation:
    """What a validation found: best checkpoint and patience go by `score`, higher is better, and of equal scores by
    the lower `metrics["loss"]`."""

    score: float
    metrics: dict[str, float]
    samples: list[dict[str, str]] = field(default_factory=list)

    @property
    def ranked_by(self) -> dict[str, float]:
        """What `rank` compares, as a checkpoint's state keeps it."""
        return {"score": self.score, "loss": self.metrics["loss"]}


class Task(Protocol):
    """What a batch, a loss and a score are for one kind of model."""

    def position(self, step: int) -> tuple[int, int]:
        """(epoch, step within it), both from 0, of optimizer step `step`, counted from 1."""
        ...

    def batches(self, step: int) -> Sequence[Any]:
        """The micro-batches of an optimizer step: a pure function of the seed and the step, and safe to be called from
        several threads (`training/prefetch.py`). They are `data.movable.Movable`."""
        ...

    def loss(self, model: nn.Module, batch: Any, label_smoothing: float) -> tuple[Tensor, int, int]:
        """(loss summed over the tokens that count, their number, all real tokens processed)."""
        ...

    def largest(self, batch_tokens: int) -> Any:
        """The micro-batch that takes the most memory under such a budget, as `batches` would make it."""
        ...

    def where(self, step: int, number: int) -> str:
        """What of the training corpus micro-batch `number` of a step is made of, for a person to look it up."""
        ...

    def validate(self, model: nn.Module) -> Validation: ...

    def rehearse(self, model: nn.Module) -> float:
        """Do all that a validation does, if on fewer examples, with a model that may know nothing yet; the seconds that
        a whole one will take."""
        ...


@dataclass(frozen=True)
class Outcome:
    """How a training ended."""

    reason: str
    step: int
    best_step: int
    best_score: float | None
    elapsed_s: float


class Trainer:
    """Trains `model` on `task` in a run directory: from the start, or from the checkpoint that `resume` is given."""

    def __init__(
        self,
        config: TrainingConfig,
        model: nn.Module,
        task: Task,
        *,
        run_dir: Path,
        log: RunLog,
        device: torch.device,
        precision: str,
        seed: int,
        d_model: int,
        batches_ahead: bool | None = None,
    ) -> None:
        """`batches_ahead`: make those of the next step on a thread during this one; None: where the device is no CPU,
        whose cores have enough to do."""
        self.config, self.model, self.task = config, model.to(device), task
        self.parameters = list(self.model.parameters())  # once: to walk the modules costs a small model's step 2 %
        self.run_dir, self.log, self.device, self.precision, self.seed = run_dir, log, device, precision, seed
        self.optimizer = config.optimizer.build(self.model)
        self.schedule = config.schedule.build(config.max_steps, d_model)
        self.averager = config.averaging.build(self.model, run_dir)
        if config.backend == "auto":
            accelerate(self.model, device, precision)
        self.compiled = compile_layers(self.model, config.compile, device)
        ahead = device.type != "cpu" if batches_ahead is None else batches_ahead
        self.ahead = BatchesAhead(task.batches, pin=device.type == "cuda") if ahead else None
        self.step = 0
        self.best: dict[str, float] = {}
        self.best_step, self.bad_validations = 0, 0
        self.skipped, self.rollbacks = 0, 0
        self.window = _Window()
        self.elapsed_before = 0.0
        self.started: float | None = None
        self.stop_asked = False
        self.standing_still = False
        """In the trial before the start: steps take time and memory and change nothing."""

    # -- one step ------------------------------------------------------------------------------------------------

    def train_step(self, step: int) -> tuple[Tensor, Tensor, int]:
        """One optimizer step: (mean loss in nats per target token, gradient norm, real tokens processed).

        Raises NotFinite, before anything is changed, where loss or gradient is no finite number.
        """
        loss_sum, count, processed = self.gradients(step)
        loss, norm = self.update(step, loss_sum, count)
        return loss, norm, processed

    def batches(self, step: int) -> Sequence[Any]:
        """The micro-batches of a step."""
        return self.task.batches(step) if self.ahead is None else self.ahead.of(step)

    def gradients(self, step: int) -> tuple[Tensor, int, int]:
        """Those of a step, summed over its target tokens, in `.grad`: (loss sum, target tokens, real tokens)."""
        if not self.model.training:
            self.model.train()
        self.forget_gradients()
        if self.compiled == "graphs":  # a graph writes into its own memory each time it runs: add up outside of that
            for parameter in self.parameters:
                if parameter.requires_grad:  # one that has a gradient is decayed, be it zero
                    parameter.grad = torch.zeros_like(parameter)
        loss_sum = torch.zeros((), device=self.device)
        count = processed = 0
        for number, batch in enumerate(self.batches(step)):
            loss, tokens, all_tokens = self.backpropagate(step, number, batch)
            loss_sum += loss
            count, processed = count + tokens, processed + all_tokens
        return loss_sum, count, processed

    def backpropagate(self, step: int, number: int, batch: Any) -> tuple[Tensor, int, int]:
        """Forward and back through a micro-batch, whose gradients are added to those there are: `Task.loss` of it."""
        if self.compiled == "graphs":
            torch.compiler.cudagraph_mark_step_begin()
        seed_for(self.seed, step, number)
        with autocast(self.device, self.precision):
            loss, tokens, all_tokens = self.task.loss(self.model, batch.to(self.device), self.config.label_smoothing)
        loss.backward()
        return loss.detach(), tokens, all_tokens

    def forget_gradients(self) -> None:
        """`optimizer.zero_grad()`, without the half millisecond that it takes for a small model."""
        for parameter in self.parameters:
            parameter.grad = None

    def update(self, step: int, loss_sum: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Move weights and averages by what `gradients` left: (mean loss, norm of the gradient), both on the CPU.

        Raises NotFinite. To look at those two numbers is the one time in a step that the program waits for a GPU.
        """
        gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
        # The loss is a sum over tokens; it is divided here, once, by the number of tokens of the whole step.
        norm = torch.nn.utils.get_total_norm(gradients) / count
        loss, shown_norm = torch.stack([loss_sum / count, norm]).cpu().unbind()
        if found := not_finite(loss, shown_norm):
            self.forget_gradients()
            raise NotFinite(f"step {step:,}: {found} ({self._culprit(step)})", step)
        scale = torch.ones_like(norm) / count
        if self.config.clip_norm:
            scale *= (self.config.clip_norm / (norm + 1e-6)).clamp(max=1.0)
        torch._foreach_mul_(gradients, scale)  # divided and clipped in one walk
        optim.set_rate(self.optimizer, self._rate(step))
        with autocast(self.device, self.precision):  # an optimizer may have matrix products of its own
            self.optimizer.step()
        if not self.standing_still:
            self.averager.update(step)
        return loss, shown_norm

    def _rate(self, step: int) -> float:
        if self.standing_still:
            return 0.0
        guard = self.config.not_finite
        return self.schedule.rate(step) * (guard.factor**self.rollbacks if isinstance(guard, RollbackConfig) else 1.0)

    def _culprit(self, step: int) -> str:
        """Which micro-batch of a step gives no finite numbers by itself, with the lines that it is made of."""
        batches = self.task.batches(step)
        for number, batch in enumerate(batches):
            loss, _, _ = self.backpropagate(step, number, batch)
            gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
            found = not_finite(loss, torch.nn.utils.get_total_norm(gradients))
            self.forget_gradients()
            if found:
                return f"micro-batch {number + 1} of {len(batches)}: {self.task.where(step, number)}"
        return f"the sum of its {len(batches)} micro-batches; none by itself"

    # -- the whole way -------------------------------------------------------------------------------------------

    def train(self) -> Outcome:
        """Train to the end of the recipe, to the end of patience, or until asked to stop (Ctrl-C, SIGTERM)."""
        self.started = time.monotonic()
        self.window.start_clock()
        with (
            self._stop_on_signals(),
            self._nothing_ahead_after(),
            Progress("training", self.config.max_steps, done=self.step, interval_s=15.0) as bar,
        ):
            while not self.why_done:
                try:
                    loss, norm, tokens = self.train_step(self.step + 1)
                except NotFinite as error:
                    if self._roll_back(error, bar):
                        continue
                    self._skip(error, bar)
                else:
                    self.window.add(loss, norm, tokens)
                self.step += 1
                if self.step % self.config.log_every == 0 or self.step == self.config.max_steps:
                    self._log_step()
                bar.advance(1, **{"loss": self.window.shown_loss, "tokens/s": self.window.shown_rate})
                due = self.step % self.config.validate_every == 0 or self.step == self.config.max_steps
                if due:  # even when asked to stop: a resumed run must see the validations of one never stopped
                    try:
                        found = self._validate(bar)
                    except NotFinite as error:
                        if self._roll_back(error, bar):
                            continue
                        raise given_up(error, "") from error
                if due or self.stop_asked:
                    self._save(found.ranked_by if due else {})
                    self.window.start_clock()
                if self.stop_asked:
                    break
        return self.end()

    def end(self) -> Outcome:
        """Log where the training stands, and why it goes no further."""
        reason = self.why_done or "interrupted"
        outcome = Outcome(reason, self.step, self.best_step, self.best.get("score"), self.elapsed_s)
        self.log.event("end", **asdict(outcome), peak_bytes=peak_bytes(self.device))
        return outcome

    @property
    def why_done(self) -> str | None:
        """Why there is nothing left to train, None where there is."""
        if self.step >= self.config.max_steps:
            return "max_steps"
        return "patience" if self._out_of_patience() else None

    def _out_of_patience(self) -> bool:
        return self.config.patience is not None and self.bad_validations >= self.config.patience

    @property
    def elapsed_s(self) -> float:
        """Seconds of training so far, those before a resume included."""
        return self.elapsed_before + (0.0 if self.started is None else time.monotonic() - self.started)

    def _roll_back(self, error: NotFinite, bar: Progress) -> bool:
        """Back to the last checkpoint with a lower rate, if that is what the recipe asks for.

        Raises DragomanError where there is none, or where it has been tried often enough.
        """
        guard = self.config.not_finite
        if not isinstance(guard, RollbackConfig):
            return False
        # A checkpoint that a stop left is passed over: a run that was never stopped does not have it.
        path = checkpoint.newest(self.run_dir, complain=bar.say, among=checkpoint.validated(self.run_dir))
        if path is None or self.rollbacks >= guard.limit:
            tried = "no checkpoint to go back to" if path is None else f"rolled back {self.rollbacks} times before"
            raise given_up(error, f"; {tried}") from error
        rollbacks, elapsed_s = self.rollbacks + 1, self.elapsed_s
        self.resume(path, self.rollbacks)
        checkpoint.drop_after(self.run_dir, self.step)
        self.rollbacks, self.elapsed_before, self.started = rollbacks, elapsed_s, time.monotonic()
        bar.advance(self.step - bar.done)
        self.log.event("rollback", step=error.step, why=str(error), to=self.step, rollbacks=rollbacks)
        bar.say(f"{error}; back to step {self.step:,}, with {guard.factor**rollbacks:g} times the rate")
        return True

    def _skip(self, error: NotFinite, bar: Progress) -> None:
        """Leave a step out, if that is what the recipe asks for and it was not done too often. Raises DragomanError."""
        guard = self.config.not_finite
        if not isinstance(guard, SkipConfig):
            raise given_up(error, "") from error
        if self.skipped >= guard.limit:
            raise given_up(error, f"; {self.skipped} steps were left out before") from error
        self.skipped += 1
        self.log.event("skip", step=error.step, why=str(error), skipped=self.skipped)
        bar.say(f"{error}; left out")

    def _log_step(self) -> None:
        loss, norm, rate = self.window.close()
        epoch, _ = self.task.position(self.step)
        self.log.event(
            "train",
            step=self.step,
            epoch=epoch,
            loss=loss,
            lr=self._rate(self.step),
            grad_norm=norm,
            tokens_per_s=rate,
            elapsed_s=self.elapsed_s,
        )

    def _validate(self, bar: Progress) -> Validation:
        with applied(self.model, self.averager.average(self.model, self.step)), uncompiled():
            result = self.task.validate(self.model)
        for name, value in result.ranked_by.items():
            if not math.isfinite(value):
                raise NotFinite(f"step {self.step:,}: the {name} of the validation is {value}", self.step)
        better = rank(result.ranked_by) > rank(self.best)
        self.schedule.observe(better)
        if better:
            self.best, self.best_step, self.bad_validations = result.ranked_by, self.step, 0
        else:
            self.bad_validations += 1
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

    # -- checkpoints ---------------------------------------------------------------------------------------------

    def _save(self, found: Mapping[str, float]) -> None:
        """Write a checkpoint; `found` is what the validation at this step found, empty where there was none."""
        # Not in the state: a run that was stopped takes longer, and ends in the same bytes all the same.
        self.log.event("checkpoint", step=self.step, validated=bool(found), elapsed_s=self.elapsed_s)
        checkpoint.save(self.run_dir, self.step, self.groups(), self.state(found))
        checkpoint.prune(self.run_dir, self.config.keep_last, self.config.keep_best)

    def groups(self) -> dict[str, dict[str, Tensor]]:
        """The tensors of a checkpoint."""
        groups = {
            "model": checkpoint.weights(self.model),
            "optimizer": optim.state_tensors(self.optimizer, self.model),
        }
        averages = self.averager.average(self.model, self.step)
        return groups if averages is None else {**groups, "averaged": averages}

    def state(self, found: Mapping[str, float]) -> dict[str, Any]:
        """What else a checkpoint must know for a run to go on from it as if it had never stopped."""
        epoch, step_in_epoch = self.task.position(max(1, self.step))
        return {
            "step": self.step,
            "epoch": epoch,
            "step_in_epoch": step_in_epoch,
            "score": found.get("score"),
            "loss": found.get("loss"),
            "best_step": self.best_step,
            "best": self.best,
            "bad_validations": self.bad_validations,
            "skipped": self.skipped,
            "rollbacks": self.rollbacks,
            "schedule": self.schedule.state_dict(),
            "window": self.window.state_dict(),
            "precision": self.precision,
        }

    def resume(self, path: Path, rollbacks: int | None = None) -> None:
        """Go on from a verified checkpoint, with the log of a run that has rolled back so often (None: as it says)."""
        state = checkpoint.load_state(path)
        checkpoint.load_weights(self.model, checkpoint.load_group(path, "model"), str(path))
        optim.load_state_tensors(self.optimizer, self.model, checkpoint.load_group(path, "optimizer"))
        if (path / "averaged.safetensors").exists():
            self.averager.load(checkpoint.load_group(path, "averaged"))
        self.schedule.load_state_dict(state["schedule"])
        self.step, self.bad_validations = state["step"], state["bad_validations"]
        self.best, self.best_step = state["best"], state["best_step"]
        self.skipped, self.rollbacks = state["skipped"], state["rollbacks"]
        self.window.load_state_dict(state["window"])
        if state["precision"] != self.precision and self.config.backend == "auto":
            accelerate(self.model, self.device, state["precision"])
        self.precision = state["precision"]
        in_log = self.rollbacks if rollbacks is None else rollbacks
        self.elapsed_before, self.started = self.log.rewind(self.step, in_log), None

    @contextmanager
    def _nothing_ahead_after(self) -> Iterator[None]:
        try:
            yield
        finally:
            if self.ahead is not None:
                self.ahead.stop()

    # -- signals -------------------------------------------------------------------------------------------------

    @contextmanager
    def _stop_on_signals(self) -> Iterator[None]:
        """The first Ctrl-C or SIGTERM finishes the step, saves and ends the training; a second one ends it at once."""

        def ask(number: int, frame: FrameType | None) -> None:
            if self.stop_asked:
                raise KeyboardInterrupt
            self.stop_asked = True
            say("stopping after this step; once more to stop at once, without saving")

        previous: dict[int, Any] = {}
        try:
            for wanted in (signal.SIGINT, signal.SIGTERM):
                previous[wanted] = signal.signal(wanted, ask)
        except ValueError:  # not in the main thread: whoever runs us there handles signals
            pass
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


class _Window:
    """The steps since the last log line: their mean loss, the norm of the last gradient, and their speed."""

    def __init__(self) -> None:
        self.shown_loss, self.shown_rate = "-", "-"
        self.losses: list[float] = []
        self.norm: float | None = None
        self.start_clock()

    def start_clock(self) -> None:
        """Measure speed from now on: validations and saves are not training."""
        self.tokens, self.start = 0, time.monotonic()

    def add(self, loss: Tensor, norm: Tensor, tokens: int) -> None:
        self.losses.append(float(loss))
        self.norm = float(norm)
        self.tokens += tokens

    def close(self) -> tuple[float | None, float | None, float | None]:
        """(mean loss, gradient norm, tokens a second), None where no step was taken; and begin anew."""
        loss, norm = statistics.fmean(self.losses) if self.losses else None, self.norm
        rate = self.tokens / max(time.monotonic() - self.start, 1e-9) if self.tokens else None
        self.shown_loss = "-" if loss is None else f"{loss:.3f}"
        self.shown_rate = "-" if rate is None else f"{rate:,.0f}"
        self.losses, self.norm = [], None
        self.start_clock()
        return loss, norm, rate

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run must know to log the same loss at the next line."""
        return {"losses": self.losses, "norm": self.norm}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.losses, self.norm = list(state["losses"]), state["norm"]


def seed_for(seed: int, step: int, micro_batch: int) -> None:
    """Key torch's random numbers by (seed, step, micro-batch): the same wherever and whenever the batch is computed."""
    digest = hashlib.blake2b(f"{seed}/{step}/{micro_batch}".encode(), digest_size=8).digest()
    torch.manual_seed(int.from_bytes(digest, "little") >> 1)
