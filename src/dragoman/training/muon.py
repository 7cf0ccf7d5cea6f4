"""PyTorch's Muon for the hidden matrices beside another optimizer for everything else: momentum whose matrices are made
orthogonal before they are taken as a step (Jordan et al. 2024).
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


class Muon(torch.optim.Muon):
    """Muon for `matrices`, and for everything else the optimizer `others`: together one optimizer to whoever trains.

    Elements of a step are about as large as AdamW's (Liu et al. 2025, section 2.2), so one rate can serve both; the
    group's `lr_ratio` is what multiplies it.
    """

    def __init__(
        self, matrices: Sequence[Tensor], others: torch.optim.Optimizer, *, lr_ratio: float, **settings: Any
    ) -> None:
        own = [{"params": list(matrices), "lr_ratio": lr_ratio}]
        super().__init__(own, lr=0.0, adjust_lr_fn="match_rms_adamw", **settings)
        self.others = others
        # State and rates are looked after from outside, in one place for both.
        others.state = self.state
        self.param_groups += others.param_groups

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        assert closure is None
        every = self.param_groups
        self.param_groups = every[:1]  # PyTorch's would take those of `others` for its own
        super().step()
        self.param_groups = every
        self.others.step()
