"""Muon: momentum whose matrices are made orthogonal before they are taken as a step (Jordan et al. 2024).

PyTorch's own `torch.optim.Muon` does the same one matrix after the other, and always in bfloat16; here those of one
shape go through the products together, which is three times as fast on a CPU (docs/log.md). A test holds the two equal.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
"""Coefficients of the quintic that pulls small singular values up fastest (Jordan et al. 2024)."""
RMS = 0.2
"""Root mean square of an element of a step at a rate of 1: about that of AdamW's (Liu et al. 2025, section 2.2)."""


def orthogonalised(matrices: Tensor, steps: int = 5) -> Tensor:
    """Each matrix of a (count, rows, columns) stack with its singular values brought near 1, its vectors as they were.

    U S V^T becomes U f(S) V^T with f(S) between 0.65 and 1.25, but for singular values next to nothing: `steps` times
    X -> a X + b (X X^T) X + c (X X^T)^2 X, from X of norm 1. Products are in the precision of the autocast around it.
    """
    a, b, c = NEWTON_SCHULZ
    tall = matrices.size(1) > matrices.size(2)
    x = matrices.mT if tall else matrices  # X X^T on the shorter side
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    """Muon for `matrices`, and for everything else the optimizer `others`: together one optimizer to whoever trains.

    With buffer = momentum * buffer + (1 - momentum) * gradient, a step is the rate times 0.2 * sqrt(longer side) times
    the orthogonalised momentum * buffer + (1 - momentum) * gradient (Nesterov's); weights decay as in AdamW. So its
    elements are about as large as AdamW's, and one rate can serve both. A group's `lr_ratio` is what multiplies it.
    """

    def __init__(
        self,
        matrices: Sequence[Tensor],
        others: torch.optim.Optimizer,
        *,
        momentum: float,
        weight_decay: float,
        steps: int,
        lr_ratio: float,
    ) -> None:
        own = {"params": list(matrices), "lr_ratio": lr_ratio}
        super().__init__([own], {"lr": 0.0, "momentum": momentum, "weight_decay": weight_decay, "steps": steps})
        self.others = others
        # State and rates are looked after from outside, in one place for both.
        others.state = self.state
        self.param_groups += others.param_groups

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        assert closure is None
        group = self.param_groups[0]
        alike: dict[torch.Size, list[Tensor]] = defaultdict(list)
        for parameter in group["params"]:
            if parameter.grad is not None:
                alike[parameter.shape].append(parameter)
        for shape, parameters in alike.items():
            for parameter in parameters:
                if not self.state[parameter]:
                    self.state[parameter]["momentum"] = torch.zeros_like(parameter)
            buffers = [self.state[parameter]["momentum"] for parameter in parameters]
            gradients = [cast(Tensor, parameter.grad) for parameter in parameters]
            torch._foreach_lerp_(buffers, gradients, 1 - group["momentum"])
            ahead = torch.stack(torch._foreach_lerp(gradients, buffers, group["momentum"]))
            updates = orthogonalised(ahead, group["steps"]).to(ahead.dtype).unbind()
            torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_add_(parameters, updates, alpha=-group["lr"] * RMS * max(shape) ** 0.5)
        self.others.step()
