"""The figures between two lines of the log."""

import statistics
import time
from collections.abc import Mapping
from typing import Any

from torch import Tensor


class Window:
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
        """State that lets a resumed run log the same loss at the next line."""
        return {"losses": self.losses, "norm": self.norm}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.losses, self.norm = list(state["losses"]), state["norm"]
