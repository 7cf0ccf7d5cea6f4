"""The training loop: the same for every kind of model, which a `Task` describes.

Where a run stands is one integer, the step. The batches of a step come from a pure function of (seed, step), and the
random numbers of each micro-batch are keyed by (seed, step, micro-batch); so nothing else needs to be remembered.
"""

import hashlib
import math
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from dragoman import checkpoint
from dragoman.config import Field, settings
from dragoman.device import PrecisionName, autocast
from dragoman.errors import DragomanError
from dragoman.progress import Progress, say
from dragoman.ranking import rank
from dragoman.training import optim
from dragoman.training.averaging import AveragingConfig, EmaConfig, LastConfig, applied
from dragoman.training.optim import AdamWConfig, OptimizerConfig
from dragoman.training.runlog import RunLog
from dragoman.training.schedules import LinearConfig, ScheduleConfig


@settings
class TrainingConfig:
    """How a model is trained. Steps are optimizer steps."""

    max_steps: int = Field(default=5000, ge=1)
    batch_tokens: int = Field(default=2048, ge=1)
    """Positions of a micro-batch, pads included, on its longer side."""
    micro_batches: int = Field(default=1, ge=1)
    """Micro-batches whose gradients are added up before each optimizer step."""
    optimizer: OptimizerConfig = Field(default_factory=AdamWConfig)
    schedule: ScheduleConfig = Field(default_factory=LinearConfig)
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    clip_norm: float = Field(default=1.0, ge=0)
    """Largest norm of the whole gradient; 0: no limit."""
    averaging: AveragingConfig = Field(default_factory=EmaConfig)
    precision: PrecisionName = "auto"
    validate_every: int = Field(default=500, ge=1)
    """Steps between validations; a checkpoint is written after each."""
    validation_beam_size: int = Field(default=1, ge=1)
    patience: int | None = Field(default=None, ge=1)
    """Stop after this many validations in a row of which none was better than all before; null: never."""
    keep_last: int = Field(default=2, ge=1)
    keep_best: int = Field(default=1, ge=1)
    log_every: int = Field(default=50, ge=1)
    samples: int = Field(default=4, ge=0)
    """Validation sentences whose translations are shown as training goes on."""

    def __post_init__(self) -> None:
        if isinstance(self.averaging, LastConfig) and self.keep_last < self.averaging.checkpoints - 1:
            raise ValueError(
                f"averaging the last {self.averaging.checkpoints} checkpoints needs keep_last of at least "
                f"{self.averaging.checkpoints - 1}, it is {self.keep_last}"
            )


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
        """The micro-batches of an optimizer step: a pure function of the seed and the step."""
        ...

    def loss(self, model: nn.Module, batch: Any, label_smoothing: float) -> tuple[Tensor, int, int]:
        """(loss summed over the tokens that count, their number, all real tokens processed)."""
        ...

    def validate(self, model: nn.Module) -> Validation: ...


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
    ) -> None:
        self.config, self.model, self.task = config, model.to(device), task
        self.run_dir, self.log, self.device, self.precision, self.seed = run_dir, log, device, precision, seed
        self.optimizer = config.optimizer.build(self.model)
        self.schedule = config.schedule.build(config.max_steps, d_model)
        self.averager = config.averaging.build(self.model, run_dir)
        self.step = 0
        self.best: dict[str, float] = {}
        self.best_step, self.bad_validations = 0, 0
        self.elapsed_before = 0.0
        self.started: float | None = None
        self.stop_asked = False

    # -- one step ------------------------------------------------------------------------------------------------

    def train_step(self, step: int) -> tuple[Tensor, Tensor, int]:
        """One optimizer step: (mean loss in nats per target token, gradient norm, real tokens processed)."""
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        loss_sum = torch.zeros((), device=self.device)
        count = processed = 0
        for number, batch in enumerate(self.task.batches(step)):
            seed_for(self.seed, step, number)
            with autocast(self.device, self.precision):
                loss, tokens, all_tokens = self.task.loss(
                    self.model, batch.to(self.device), self.config.label_smoothing
                )
            loss.backward()
            loss_sum += loss.detach()
            count, processed = count + tokens, processed + all_tokens
        gradients = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
        # The loss is a sum over tokens; it is divided here, once, by the number of tokens of the whole step.
        torch._foreach_div_(gradients, count)
        norm = torch.nn.utils.get_total_norm(gradients)
        if self.config.clip_norm:
            torch.nn.utils.clip_grads_with_norm_(self.model.parameters(), self.config.clip_norm, norm)
        for group in self.optimizer.param_groups:
            group["lr"] = self.schedule.rate(step)
        self.optimizer.step()
        self.averager.update(self.model, step)
        return loss_sum / count, norm, processed

    # -- the whole way -------------------------------------------------------------------------------------------

    def train(self) -> Outcome:
        """Train to the end of the recipe, to the end of patience, or until asked to stop (Ctrl-C, SIGTERM)."""
        self.started = time.monotonic()
        window = _Window()
        with (
            self._stop_on_signals(),
            Progress("training", self.config.max_steps, done=self.step, interval_s=15.0) as bar,
        ):
            while self.step < self.config.max_steps and not self._out_of_patience():
                loss, norm, tokens = self.train_step(self.step + 1)
                self.step += 1
                window.add(loss, tokens)
                if self.step % self.config.log_every == 0 or self.step == self.config.max_steps:
                    self._log_step(window, norm)
                    window.restart()
                bar.advance(1, **{"loss": window.shown_loss, "tokens/s": window.shown_rate})
                due = self.step % self.config.validate_every == 0 or self.step == self.config.max_steps
                if due or self.stop_asked:
                    self._require_finite(loss, norm)
                if due:  # even when asked to stop: a resumed run must see the validations of one never stopped
                    found = self._validate(bar)
                if due or self.stop_asked:
                    self._save(found.ranked_by if due else {})
                    window.restart()
                if self.stop_asked:
                    break
        reason = "interrupted" if self.stop_asked else "patience" if self.step < self.config.max_steps else "max_steps"
        outcome = self.outcome(reason)
        self.log.event("end", **asdict(outcome))
        return outcome

    def outcome(self, reason: str) -> Outcome:
        """Where the training stands, and why it goes no further."""
        return Outcome(reason, self.step, self.best_step, self.best.get("score"), self.elapsed_s)

    def _out_of_patience(self) -> bool:
        return self.config.patience is not None and self.bad_validations >= self.config.patience

    @property
    def elapsed_s(self) -> float:
        """Seconds of training so far, those before a resume included."""
        return self.elapsed_before + (0.0 if self.started is None else time.monotonic() - self.started)

    def _require_finite(self, loss: float | Tensor, norm: Tensor) -> None:
        """Stop before numbers that are none are logged, validated or saved."""
        for name, value in (("loss", float(loss)), ("norm of the gradient", float(norm))):
            if not math.isfinite(value):
                raise DragomanError(
                    f"the {name} is {value} at step {self.step}: nothing was saved since the last checkpoint. "
                    "Lower training.schedule's rate, lengthen its warm-up, or set training.precision=float32"
                )

    def _log_step(self, window: "_Window", norm: Tensor) -> None:
        loss, rate = window.close()
        self._require_finite(loss, norm)
        epoch, _ = self.task.position(self.step)
        self.log.event(
            "train",
            step=self.step,
            epoch=epoch,
            loss=loss,
            lr=self.schedule.rate(self.step),
            grad_norm=float(norm),
            tokens_per_s=rate,
            elapsed_s=self.elapsed_s,
        )

    def _validate(self, bar: Progress) -> Validation:
        with applied(self.model, self.averager.average(self.model)):
            result = self.task.validate(self.model)
        self.schedule.observe(result.score)
        better = rank(result.ranked_by) > rank(self.best)
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
        groups = {
            "model": checkpoint.weights(self.model),
            "optimizer": optim.state_tensors(self.optimizer, self.model),
        }
        averages = self.averager.average(self.model)
        if averages is not None:
            groups["averaged"] = averages
        epoch, step_in_epoch = self.task.position(self.step)
        state = {
            "step": self.step,
            "epoch": epoch,
            "step_in_epoch": step_in_epoch,
            "score": found.get("score"),
            "loss": found.get("loss"),
            "best_step": self.best_step,
            "best": self.best,
            "bad_validations": self.bad_validations,
            "schedule": self.schedule.state_dict(),
            "precision": self.precision,
            "elapsed_s": self.elapsed_s,
        }
        checkpoint.save(self.run_dir, self.step, groups, state)
        checkpoint.prune(self.run_dir, self.config.keep_last, self.config.keep_best)

    def resume(self, path: Path) -> None:
        """Go on from a verified checkpoint."""
        state = checkpoint.load_state(path)
        checkpoint.load_weights(self.model, checkpoint.load_group(path, "model"), str(path))
        optim.load_state_tensors(self.optimizer, self.model, checkpoint.load_group(path, "optimizer"))
        if (path / "averaged.safetensors").exists():
            self.averager.load(checkpoint.load_group(path, "averaged"))
        self.schedule.load_state_dict(state["schedule"])
        self.step, self.bad_validations = state["step"], state["bad_validations"]
        self.best, self.best_step = state["best"], state["best_step"]
        self.precision = state["precision"]
        self.elapsed_before = state["elapsed_s"]

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
    """Mean loss and speed since the last log line, validation or save, so that a resumed run logs the same losses."""

    def __init__(self) -> None:
        self.shown_loss, self.shown_rate = "-", "-"
        self.restart()

    def restart(self) -> None:
        self.losses: list[Tensor] = []
        self.tokens = 0
        self.start = time.monotonic()

    def add(self, loss: Tensor, tokens: int) -> None:
        self.losses.append(loss)
        self.tokens += tokens

    def close(self) -> tuple[float, float]:
        loss = float(torch.stack(self.losses).mean())
        rate = self.tokens / max(time.monotonic() - self.start, 1e-9)
        self.shown_loss, self.shown_rate = f"{loss:.3f}", f"{rate:,.0f}"
        return loss, rate


def seed_for(seed: int, step: int, micro_batch: int) -> None:
    """Key torch's random numbers by (seed, step, micro-batch): the same wherever and whenever the batch is computed."""
    digest = hashlib.blake2b(f"{seed}/{step}/{micro_batch}".encode(), digest_size=8).digest()
    torch.manual_seed(int.from_bytes(digest, "little") >> 1)
