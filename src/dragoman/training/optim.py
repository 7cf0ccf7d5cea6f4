"""Optimizers. The learning rate belongs to the schedule (`schedules.py`)."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, cast

import torch
from torch import Tensor, nn

from dragoman.config import Field, by_type, settings
from dragoman.errors import Error
from dragoman.nn.lora import is_projection

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
"""Coefficients of the quintic that pulls small singular values up fastest (Jordan et al. 2024)."""
UPDATE_RMS = 0.2
"""Root mean square of an element of a step at a rate of 1: about as in AdamW (Liu et al. 2025, section 2.2)."""


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

    PyTorch's own `torch.optim.Muon` does the same one matrix after the other, and always in bfloat16. Here the matrices
    of one shape go through the products together: three times as fast on a CPU (benchmarks/log/2026-11.md, "what Muon's
    orthogonalisation costs"). A test holds the two equal.
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
            torch._foreach_add_(parameters, updates, alpha=-group["lr"] * UPDATE_RMS * max(shape) ** 0.5)
        self.others.step()


class Lion(torch.optim.Optimizer):
    """Every weight moves by the rate, in the direction that momentum and gradient agree on (Chen et al. 2023).

    With momentum m, gradient g and weight w (algorithm 2), of all weights at once:

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


@settings
class AdamWConfig:
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019). beta2 and eps as in Vaswani et al. 2017, 5.3."""

    type: Literal["adamw"] = "adamw"
    beta1: float = Field(default=0.9, ge=0, lt=1)  #: Decay of the mean of gradients.
    beta2: float = Field(default=0.98, ge=0, lt=1)  #: Decay of the mean of squared gradients.
    eps: float = Field(default=1e-9, gt=0)  #: Added to the root of the second moment, against division by zero.
    weight_decay: float = Field(default=0.0, ge=0)  #: Decoupled weight decay of matrices; biases and norms have none.

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        return self.over(model.parameters())

    def over(self, parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
        """An optimizer of these parameters alone."""
        groups = decaying(parameters, self.weight_decay)
        return torch.optim.AdamW(groups, lr=0.0, betas=(self.beta1, self.beta2), eps=self.eps, fused=True)


@settings
class MuonConfig:
    """Orthogonalised momentum on the hidden matrices (Jordan et al. 2024), AdamW on everything else.

    A matrix's step is scaled to be as large as AdamW's (Liu et al. 2025), so the schedule's rate serves both.
    """

    type: Literal["muon"] = "muon"
    momentum: float = Field(default=0.95, ge=0, lt=1)  #: Decay of the momentum (Nesterov).
    weight_decay: float = Field(default=0.0, ge=0)
    """Weight decay of the hidden matrices; embeddings and the output matrix have `others.weight_decay`."""
    lr_ratio: float = Field(default=1.0, gt=0)
    """Learning rate of the hidden matrices, as a multiple of the schedule's."""
    newton_schulz_steps: int = Field(default=5, ge=1)  #: Iterations that orthogonalise the momentum.
    others: AdamWConfig = Field(default_factory=AdamWConfig)
    """AdamW for embeddings, the output matrix, recurrent weights, convolutions, biases and norms."""

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        matrices = hidden_matrices(model)
        hidden = set(matrices)
        return Muon(
            matrices,
            self.others.over(parameter for parameter in model.parameters() if parameter not in hidden),
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            steps=self.newton_schulz_steps,
            lr_ratio=self.lr_ratio,
        )


@settings
class LionConfig:
    """Steps of equal size, by the sign alone (Chen et al. 2023). Wants a third to a tenth of AdamW's rate."""

    type: Literal["lion"] = "lion"
    beta1: float = Field(default=0.9, ge=0, lt=1)  #: Share of the momentum in the update's sign.
    beta2: float = Field(default=0.99, ge=0, lt=1)  #: Decay of the momentum.
    weight_decay: float = Field(default=0.0, ge=0)  #: On matrices only, times the rate: so three to ten times AdamW's.

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        return Lion(decaying(model.parameters(), self.weight_decay), betas=(self.beta1, self.beta2))


def decaying(parameters: Iterable[Tensor], weight_decay: float) -> list[dict[str, Any]]:
    """Two groups of parameters for an optimizer: matrices, which decay, and biases and norms, which are left alone."""
    parameters = list(parameters)
    matrices = [parameter for parameter in parameters if parameter.dim() >= 2]
    others = [parameter for parameter in parameters if parameter.dim() < 2]
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]


def hidden_matrices(model: nn.Module) -> list[Tensor]:
    """The trained matrices that map hidden states to hidden states (`is_projection`).

    Embeddings and the output matrix have a row for each token, the rows of a recurrent layer's matrices are stacked
    gates, and a convolution's weights are no matrix: none of these is a map whose singular values mean anything.
    """
    return [
        module.weight
        for name, module in model.named_modules()
        if is_projection(name, module) and isinstance(module.weight, nn.Parameter)
    ]


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Let the next step be taken at the schedule's rate, or at the ratio to it that a group of parameters has."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get("lr_ratio", 1.0)


OptimizerConfig = Annotated[AdamWConfig | MuonConfig | LionConfig, by_type]


def state_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """The optimizer's state as named tensors, `PARAMETER/FIELD`, which is what a checkpoint can hold without pickle."""
    names: dict[Tensor, str] = {parameter: name for name, parameter in model.named_parameters()}
    return {
        f"{names[parameter]}/{field}": value
        for parameter, fields in optimizer.state.items()
        for field, value in fields.items()
    }


def load_state_tensors(optimizer: torch.optim.Optimizer, model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Put back what `state_tensors` gave."""
    parameters = dict(model.named_parameters())
    for key, value in tensors.items():
        name, _, field = key.rpartition("/")
        # Fused optimizers want the step counter on the device of the parameter too.
        optimizer.state[parameters[name]][field] = value.to(parameters[name].device)


EMBEDDINGS = ("src_embedding", "tgt_embedding", "embedding")
"""The names of a model's parts that `embeddings` stands for."""


def frozen_parameters(model: nn.Module, parts: Sequence[str]) -> list[Tensor]:
    """The parameters of some parts of a model, for the setting `training.freeze`.

    Raises DragomanError for a part that there is not, and where nothing is left to train.
    """
    named = dict(model.named_parameters())
    frozen: dict[str, Tensor] = {}
    for part in parts:
        names = EMBEDDINGS if part == "embeddings" else (part,)
        chosen = {name: one for name, one in named.items() if any(f"{name}.".startswith(f"{w}.") for w in names)}
        if not chosen:
            there = ", ".join(dict.fromkeys(name.split(".")[0] for name in named))
            raise Error.UNKNOWN_NAME(
                f"training.freeze: no part {part!r} in this model; it has {there}, and `embeddings`"
            )
        frozen |= chosen
    if len(frozen) == len(named):
        raise Error.WRONG_SETTING("training.freeze: the whole model is frozen", "leave something to train")
    return list(frozen.values())
