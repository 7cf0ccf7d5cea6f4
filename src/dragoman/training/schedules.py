"""Learning-rate schedules: the rate of each optimizer step, counted from 1.

All but `plateau` are pure functions of the step, so a resumed run needs nothing but its step to go on.
"""

import math
from typing import Annotated, Any, Literal

from dragoman.config import Field, by_type, settings


class Schedule:
    """A schedule by settings that are a function of the step: `settings.rate_at(step, max_steps, d_model)`."""

    def __init__(self, settings: Any, max_steps: int, d_model: int) -> None:
        self.settings, self.max_steps, self.d_model = settings, max_steps, d_model

    def rate(self, step: float) -> float:
        """The rate for a step, which may be a fraction (`time_budget.py`)."""
        return float(self.settings.rate_at(step, self.max_steps, self.d_model))

    def observe(self, better: bool) -> None:
        """Take note of a validation: whether it was better than all before (`runs/events.py`)."""

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class _OfStepAlone:
    """A schedule whose rate follows from the step alone."""

    def build(self, max_steps: int, d_model: int) -> Schedule:
        return Schedule(self, max_steps, d_model)


def warm_up(step: float, warmup_steps: int) -> float:
    """step / warmup_steps up to 1."""
    return min(1.0, step / warmup_steps) if warmup_steps else 1.0


@settings
class NoamConfig(_OfStepAlone):
    """factor * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5) (Vaswani et al. 2017, equation 3)."""

    type: Literal["noam"] = "noam"
    factor: float = Field(default=1.0, gt=0)  #: Multiplier of the whole curve.
    warmup_steps: int = Field(default=4000, ge=1)  #: Length of the warm-up. [steps]
    lowest: float = Field(default=0.0, ge=0)  #: Rate that it does not fall below.

    def rate_at(self, step: float, max_steps: int, d_model: int) -> float:
        rate = float(self.factor * d_model**-0.5 * min(step**-0.5, step * self.warmup_steps**-1.5))
        return rate if step < self.warmup_steps else max(rate, self.lowest)


@settings
class InverseSqrtConfig(_OfStepAlone):
    """Noam's curve with its peak given: lr * min(step / warmup_steps, sqrt(warmup_steps / step))."""

    type: Literal["inverse_sqrt"] = "inverse_sqrt"
    lr: float = Field(default=1e-3, gt=0)  #: Peak learning rate.
    warmup_steps: int = Field(default=4000, ge=1)  #: Length of the warm-up. [steps]
    lowest: float = Field(default=0.0, ge=0)  #: Rate that it does not fall below.

    def rate_at(self, step: float, max_steps: int, d_model: int) -> float:
        rate = self.lr * min(step / self.warmup_steps, math.sqrt(self.warmup_steps / step))
        return rate if step < self.warmup_steps else max(rate, self.lowest)


@settings
class LinearConfig(_OfStepAlone):
    """Up to `lr` in warmup_steps, then in a straight line to `final` * lr at max_steps."""

    type: Literal["linear"] = "linear"
    lr: float = Field(default=1e-3, gt=0)  #: Peak learning rate.
    warmup_steps: int = Field(default=400, ge=0)  #: Length of the warm-up. [steps]
    final: float = Field(default=0.0, ge=0, le=1)  #: Last rate, as a share of `lr`.

    def rate_at(self, step: float, max_steps: int, d_model: int) -> float:
        done = progress(step, self.warmup_steps, max_steps)
        return self.lr * warm_up(step, self.warmup_steps) * (1 - done + self.final * done)


@settings
class CosineConfig(_OfStepAlone):
    """Up to `lr` in warmup_steps, then half a cosine down to `final` * lr at max_steps (Loshchilov and Hutter 2017)."""

    type: Literal["cosine"] = "cosine"
    lr: float = Field(default=1e-3, gt=0)  #: Peak learning rate.
    warmup_steps: int = Field(default=400, ge=0)  #: Length of the warm-up. [steps]
    final: float = Field(default=0.0, ge=0, le=1)  #: Last rate, as a share of `lr`.

    def rate_at(self, step: float, max_steps: int, d_model: int) -> float:
        fall = 0.5 * (1 + math.cos(math.pi * progress(step, self.warmup_steps, max_steps)))
        return self.lr * warm_up(step, self.warmup_steps) * (self.final + (1 - self.final) * fall)


@settings
class PolynomialConfig(_OfStepAlone):
    """Up to `lr` in warmup_steps, then down to `final` * lr at max_steps with the share of the way that is left, to a
    power. With power 1 it is `linear`."""

    type: Literal["polynomial"] = "polynomial"
    lr: float = Field(default=1e-3, gt=0)  #: Peak learning rate.
    warmup_steps: int = Field(default=400, ge=0)  #: Length of the warm-up. [steps]
    power: float = Field(default=2.0, gt=0)  #: Exponent.
    final: float = Field(default=0.0, ge=0, le=1)  #: Last rate, as a share of `lr`.

    def rate_at(self, step: float, max_steps: int, d_model: int) -> float:
        left = (1 - progress(step, self.warmup_steps, max_steps)) ** self.power
        return self.lr * warm_up(step, self.warmup_steps) * (self.final + (1 - self.final) * left)


@settings
class TriStageConfig(_OfStepAlone):
    """Up to `lr`, there for a while, then an exponential fall to `final` * lr at max_steps (Park et al. 2019,
    "SpecAugment", section 4.3)."""

    type: Literal["tri_stage"] = "tri_stage"
    lr: float = Field(default=1e-3, gt=0)  #: Peak learning rate.
    warmup_steps: int = Field(default=400, ge=0)  #: Length of the warm-up. [steps]
    hold_steps: int = Field(default=2000, ge=0)  #: Steps at the peak. [steps]
    final: float = Field(default=0.01, gt=0, le=1)  #: Last rate, as a share of `lr`.

    def rate_at(self, step: float, max_steps: int, d_model: int) -> float:
        done = progress(step, self.warmup_steps + self.hold_steps, max_steps)
        return float(self.lr * warm_up(step, self.warmup_steps) * self.final**done)


@settings
class ConstantConfig(_OfStepAlone):
    """`lr` after a warm-up."""

    type: Literal["constant"] = "constant"
    lr: float = Field(default=1e-3, gt=0)  #: Learning rate after the warm-up.
    warmup_steps: int = Field(default=0, ge=0)  #: Length of the warm-up. [steps]

    def rate_at(self, step: float, max_steps: int, d_model: int) -> float:
        return self.lr * warm_up(step, self.warmup_steps)


@settings
class PlateauConfig:
    """`lr` after a warm-up, multiplied by `factor` whenever `patience` validations in a row brought nothing better."""

    type: Literal["plateau"] = "plateau"
    lr: float = Field(default=1e-3, gt=0)  #: Peak learning rate.
    warmup_steps: int = Field(default=400, ge=0)  #: Length of the warm-up. [steps]
    factor: float = Field(default=0.5, gt=0, lt=1)  #: Multiplier of the rate at a plateau.
    patience: int = Field(default=3, ge=1)  #: Validations in a row without a new best that are a plateau. [validations]
    lowest: float = Field(default=0.0, ge=0)  #: Rate that it does not fall below.

    def build(self, max_steps: int, d_model: int) -> Schedule:
        return PlateauSchedule(self, max_steps, d_model)


class PlateauSchedule(Schedule):
    bad = reductions = 0

    def rate(self, step: float) -> float:
        warm = warm_up(step, self.settings.warmup_steps)
        rate = float(self.settings.lr * warm * self.settings.factor**self.reductions)
        return max(rate, warm * float(self.settings.lowest))

    def observe(self, better: bool) -> None:
        self.bad = 0 if better else self.bad + 1
        if self.bad >= self.settings.patience:
            self.bad = 0
            self.reductions += 1

    def state_dict(self) -> dict[str, Any]:
        return {"bad": self.bad, "reductions": self.reductions}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.bad, self.reductions = int(state["bad"]), int(state["reductions"])


def progress(step: float, warmup_steps: int, max_steps: int) -> float:
    """The share of the way from the end of the warm-up to max_steps that is done, 0 to 1."""
    return min(1.0, max(0.0, (step - warmup_steps) / max(1, max_steps - warmup_steps)))


ScheduleConfig = Annotated[
    NoamConfig | InverseSqrtConfig | LinearConfig | PolynomialConfig | CosineConfig | TriStageConfig | ConstantConfig |
    PlateauConfig, by_type
]  # fmt: skip
