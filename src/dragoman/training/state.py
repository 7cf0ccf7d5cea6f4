"""The state of a training: all that must survive its process, besides tensors and pace.json."""

import math
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from torch import Tensor

from dragoman.runs.events import MIN_MEANINGFUL_BLEU, goodness, rank
from dragoman.training.config import TrainingConfig
from dragoman.training.loss_scale import LossScale
from dragoman.training.schedules import Schedule
from dragoman.training.task import Validation


@dataclass
class MetricAccumulator:
    """The steps since the last log line: their mean loss, the norm of the last gradient, and their speed."""

    losses: list[float] = field(default_factory=list)
    """These and the norm are saved, so that a resumed run logs the same loss at the next line."""
    norm: float | None = None

    def __post_init__(self) -> None:
        self.shown_loss, self.shown_rate = "-", "-"
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


@dataclass(kw_only=True)
class TrainingState:
    """The place where a training stands. A checkpoint's state.json holds every field, so a new field is saved too."""

    step: int = 0
    best_step: int = 0
    best: dict[str, Any] = field(default_factory=dict)
    """The figures of the best validation (`Validation.ranked_by`), empty before the first."""
    bad_validations: int = 0
    """Validations since the best one."""
    peaks: dict[str, float] = field(default_factory=dict)
    """The best of each figure in `training.best_by` (`goodness`), each from a validation of its own."""
    stalled: dict[str, int] = field(default_factory=dict)
    """Validations since then."""
    skipped: int = 0
    rollbacks: int = 0
    schedule: Schedule
    window: MetricAccumulator = field(default_factory=MetricAccumulator)
    loss_scale: LossScale = field(default_factory=LossScale)
    """Of the training step, which changes it."""
    precision: str
    """The number format that the training began in, whatever `auto` is where it goes on."""

    def observe(self, validation: Validation, best_by: Sequence[str], min_improvement: float = 0.0) -> bool:
        """Count the validation at this step; True where it is the best so far."""
        for name in best_by:
            value = goodness(validation.metrics, name)
            peak = self.peaks.get(name, -math.inf)
            if value > peak + min_improvement:
                self.stalled[name] = 0
            elif name != "bleu" or peak >= MIN_MEANINGFUL_BLEU:
                self.stalled[name] += 1
            self.peaks[name] = max(value, peak)
        ranked_by = validation.ranked_by(best_by)
        before, now = rank(self.best), rank(ranked_by)
        better = now > before
        if better:
            self.best, self.best_step = ranked_by, self.step
        is_enough = better and (not min_improvement or now[0] > before[0] + min_improvement)
        self.bad_validations = 0 if is_enough else self.bad_validations + 1
        self.schedule.observe(better)
        return better

    def to_dict(self) -> dict[str, Any]:
        """The state as JSON can hold it."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        plain = {"window": asdict(self.window), "loss_scale": asdict(self.loss_scale)}
        return values | plain | {"schedule": self.schedule.state_dict()}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], schedule: Schedule) -> "TrainingState":
        """The state that `to_dict` made plain; what a checkpoint says beyond it is for people to read."""
        values = {each.name: saved[each.name] for each in fields(cls) if each.name in saved}  # earlier ones lack some
        schedule.load_state_dict(values["schedule"])
        values |= {
            "window": MetricAccumulator(**values["window"]),
            "loss_scale": LossScale(**values.get("loss_scale", {})),
        }
        return cls(**{**values, "schedule": schedule})


def is_out_of_patience(state: Mapping[str, Any], training: TrainingConfig) -> bool:
    """True where a training that stands like this (the fields of a `TrainingState`) waits no longer for better."""
    if training.patience is None:
        return False
    telling = [
        count
        for name, count in state.get("stalled", {}).items()
        if name != "bleu" or state["peaks"][name] >= MIN_MEANINGFUL_BLEU
    ]
    bad = (
        {"any": max, "all": min}[training.patience_on](telling) if telling and training.patience_on != "best" else None
    )
    return bool((state["bad_validations"] if bad is None else bad) >= training.patience)
