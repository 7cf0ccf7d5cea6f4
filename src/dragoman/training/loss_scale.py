"""Loss scaling, by which float16 holds small gradients, though it has nothing below 6e-8 (Micikevicius et al. 2018).

The loss is multiplied before the backward pass, and the gradients are divided after it. Where one of them overflows,
the step is left out and the scale halved; after 2,000 steps without it is doubled: the rule of `torch.amp.GradScaler`,
to which a test holds this one. That one keeps its scale on the device and looks through all gradients; here the norm
tells, which every step computes, and the state is a few numbers in a checkpoint. All scales are powers of two, so that
nothing is rounded by them.
"""

from dataclasses import dataclass
from typing import Any

from dragoman.training.nonfinite import NotFinite

INITIAL_SCALE = 128.0
"""Far less than GradScaler's 65,536: the loss is a sum over tokens here and no mean."""
MIN_SCALE = 2.0**-10
"""A smaller scale would not mend an overflow below this."""
GROWTH_INTERVAL = 2000


class Overflow(NotFinite):
    """A step whose gradient has overflowed, to be left out: the next one is taken at a smaller scale."""


@dataclass
class LossScale:
    """The multiplier of the loss; 1 for good in precisions that need none."""

    value: float = 1.0
    is_dynamic: bool = False
    good_steps: int = 0
    """Steps since the last change."""
    overflows: int = 0
    """Steps that were left out."""

    @classmethod
    def of(cls, precision: str) -> "LossScale":
        return cls(INITIAL_SCALE, is_dynamic=True) if precision == "float16" else cls()

    def overflowed(self) -> bool:
        """Halve the scale after an overflow; False where no other scale would mend it."""
        if not self.is_dynamic or self.value <= MIN_SCALE:
            return False
        self.value, self.good_steps, self.overflows = self.value / 2, 0, self.overflows + 1
        return True

    def passed(self) -> None:
        """Count a step that was taken, and double the scale where that is due."""
        self.good_steps += self.is_dynamic
        if self.good_steps == GROWTH_INTERVAL:
            self.value, self.good_steps = self.value * 2, 0

    def shown(self) -> dict[str, Any]:
        """The fields of a line in the log."""
        return {"loss_scale": self.value, "overflows": self.overflows} if self.is_dynamic else {}
