"""Lion: every weight moves by the rate, in the direction that momentum and gradient agree on (Chen et al. 2023)."""

from collections.abc import Iterable
from typing import Any, cast

import torch
from torch import Tensor


class Lion(torch.optim.Optimizer):
    """With momentum m, gradient g and weight w (Chen et al. 2023, algorithm 2), of all weights at once:

    w = w - rate * (sign(beta1 * m + (1 - beta1) * g) + weight_decay * w), then m = beta2 * m + (1 - beta2) * g.
    """

    def __init__(self, groups: Iterable[dict[str, Any]], *, betas: tuple[float, float]) -> None:
        super().__init__(groups, {"lr": 0.0, "betas": betas, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        assert closure is None
        for group in self.param_groups:
            parameters: list[Tensor] = [parameter for parameter in group["params"] if parameter.grad is not None]
            if not parameters:
                continue
            for parameter in parameters:
                if not self.state[parameter]:
                    self.state[parameter]["momentum"] = torch.zeros_like(parameter)
            gradients = [cast(Tensor, parameter.grad) for parameter in parameters]
            momenta = [self.state[parameter]["momentum"] for parameter in parameters]
            beta1, beta2 = group["betas"]
            updates = torch._foreach_sign(torch._foreach_lerp(momenta, gradients, 1 - beta1))
            torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_add_(parameters, updates, alpha=-group["lr"])
            torch._foreach_lerp_(momenta, gradients, 1 - beta2)
