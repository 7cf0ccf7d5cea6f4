"""Reactions to a loss or a gradient that is no finite number: abort, skip the step, or roll back.

Such a step is found before its update, so that no weight, moment or average ever takes part of it, and no checkpoint
holds it. Where it came from is found by taking its micro-batches one by one again: random numbers are keyed, so each
computes what it computed before.
"""

import math
from collections.abc import Iterable
from typing import Annotated, Literal

from torch import Tensor

from dragoman.config import Field, by_type, settings
from dragoman.errors import DragomanError, Error

MAX_SHOWN_LINES = 8
"""Lines of a micro-batch that a message names."""


@settings
class AbortConfig:
    """End the training; the last checkpoint stays as it is."""

    type: Literal["abort"] = "abort"


@settings
class SkipConfig:
    """Leave out the update of such a step, at most `limit` times in a run."""

    type: Literal["skip"] = "skip"
    limit: int = Field(default=10, ge=1)  #: Skipped steps before training ends. [steps]


@settings
class RollbackConfig:
    """Go back to the last checkpoint and on with `factor` times the rate, at most `limit` times in a run."""

    type: Literal["rollback"] = "rollback"
    limit: int = Field(default=3, ge=1)  #: Rollbacks before training ends.
    factor: float = Field(default=0.5, gt=0, lt=1)  #: Multiplier of the learning rate after each rollback.


class NotFinite(Exception):
    """A step whose loss or gradient is no finite number; the message says which, and of which sentences."""

    def __init__(self, text: str, step: int) -> None:
        super().__init__(text)
        self.step = step


def not_finite(loss: Tensor, norm: Tensor) -> str | None:
    """The number of a step that is not finite, in words (`the loss is nan`); None if all numbers are finite."""
    for name, value in (("loss", float(loss)), ("norm of the gradient", float(norm))):
        if not math.isfinite(value):
            return f"the {name} is {value}"
    return None


def listed(what: str, numbers: Iterable[int]) -> str:
    """Numbers for a message, the lowest first, and how many more there are.

    >>> listed("line", [7]), listed("line", range(100, 0, -10))
    ('line 7', 'lines 10, 20, 30, 40, 50, 60, 70, 80 and 2 more')
    """
    ordered = sorted(int(number) for number in numbers)
    shown, more = ", ".join(f"{number}" for number in ordered[:MAX_SHOWN_LINES]), len(ordered) - MAX_SHOWN_LINES
    return f"{what}{'s' if len(ordered) > 1 else ''} {shown}" + (f" and {more:,} more" if more > 0 else "")


def given_up(error: NotFinite, tried: str) -> DragomanError:
    """The message at the end of a training, in one line."""
    return Error.DIVERGED(
        f"{error}{tried}: nothing was saved since the last checkpoint. Look at those lines",
        "lower training.schedule's rate, lengthen its warm-up, or set training.precision=float32; or let such steps "
        "be left out (training.not_finite.type=skip) or taken back (rollback)",
    )


NonFiniteConfig = Annotated[AbortConfig | SkipConfig | RollbackConfig, by_type]
