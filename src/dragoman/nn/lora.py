"""Low-rank adaptation: a model whose weights stay, with a small trained correction beside its projections."""

import copy
import math
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from dragoman.nn.dropout import Dropout
from dragoman.runs.adapter import A, B, merged

ALL_LINEAR = "all-linear"
"""PEFT's name for every linear layer of the blocks."""


class LoRALinear(nn.Module):
    """W x + b + scale * B A dropout(x), with A of (r, d_in) and B of (d_out, r) (Hu et al. 2021, equation 3).

    B begins as zeros, so at first the output equals the output of `base_layer`, to the last bit. The names are PEFT's.
    """

    def __init__(self, base_layer: nn.Linear, r: int, scale: float, dropout: float = 0.0) -> None:
        super().__init__()
        self.base_layer, self.scale, self.dropout = base_layer, scale, Dropout(dropout)
        self.out_features, self.in_features = base_layer.out_features, base_layer.in_features
        self.lora_A = nn.Linear(self.in_features, r, bias=False)
        self.lora_B = nn.Linear(r, self.out_features, bias=False)
        nn.init.kaiming_uniform_(self.lora_A.weight, a=math.sqrt(5))
        nn.init.zeros_(self.lora_B.weight)

    @property
    def weight(self) -> Float[Tensor, "d_out d_in"]:
        """The weight of one linear layer that computes the same without dropout."""
        return merged(self.base_layer.weight, self.lora_A.weight, self.lora_B.weight, self.scale)

    @property
    def bias(self) -> Tensor | None:
        return self.base_layer.bias

    def forward(self, x: Float[Tensor, "... d_in"]) -> Float[Tensor, "... d_out"]:
        return self.base_layer(x) + self.scale * self.lora_B(self.lora_A(self.dropout(x)))


def targets(model: nn.Module, names: Sequence[str] | str = ALL_LINEAR) -> list[str]:
    """The linear layers that a name stands for: itself, or the end of its path (`query_proj`), as in PEFT.

    Raises ValueError for a name that no layer has.
    """
    layers = [name for name, module in model.named_modules() if is_projection(name, module)]
    if names == ALL_LINEAR:
        return layers
    for name in names:
        if not any(f".{layer}".endswith(f".{name}") for layer in layers):
            known = ", ".join(sorted({layer.rpartition(".")[2] for layer in layers}))
            raise ValueError(f"no linear layer {name!r} in this model; it has {known}")
    return [layer for layer in layers if any(f".{layer}".endswith(f".{name}") for name in names)]


def short_names(layers: Sequence[str], known: Sequence[str]) -> list[str]:
    """Names for `targets` that choose exactly `layers` among the layers `known`: the ends of their names if that is
    enough, else their whole names."""
    ends = sorted({name.rpartition(".")[2] for name in layers})
    return ends if {name for name in known if name.rpartition(".")[2] in ends} == set(layers) else list(layers)


def is_projection(name: str, module: nn.Module) -> bool:
    """True for a linear layer that maps hidden states to hidden states.

    The last one of a classifier does not, and the rows of the one that feeds a recurrent layer with a context
    (`context_proj`) are stacked gates.
    """
    is_hidden = name.rpartition(".")[2] not in ("head", "context_proj")
    return isinstance(module, nn.Linear) and is_hidden and min(module.weight.shape) > 1


def add_lora(model: nn.Module, layers: Sequence[str], r: int, scale: float, dropout: float = 0.0) -> None:
    """Put a `LoRALinear` around each of these layers, in place."""
    for name in layers:
        owner, _, child = name.rpartition(".")
        parent = model.get_submodule(owner)
        setattr(parent, child, LoRALinear(getattr(parent, child), r, scale, dropout))


def freeze_base(model: nn.Module) -> None:
    """Make every parameter but the factors a constant: what trains, averages and saves parameters sees these alone."""
    kept = {id(parameter) for layer in lora_layers(model).values() for parameter in factors(layer)}
    for module in model.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            if id(parameter) not in kept:
                delattr(module, name)
                module.register_buffer(name, parameter.detach(), persistent=False)


def lora_layers(model: nn.Module) -> dict[str, LoRALinear]:
    """The adapted layers of a model by name."""
    return {name: module for name, module in model.named_modules() if isinstance(module, LoRALinear)}


def factors(layer: LoRALinear) -> Iterator[Tensor]:
    yield layer.lora_A.weight
    yield layer.lora_B.weight


def sharing(model: nn.Module) -> nn.Module:
    """A copy of a model's modules that shares its tensors and its linear layers, to be adapted by itself."""
    shared: dict[int, object] = {id(tensor): tensor for tensor in [*model.parameters(), *model.buffers()]}
    shared |= {id(module): module for name, module in model.named_modules() if is_projection(name, module)}
    return copy.deepcopy(model, shared)


@torch.no_grad()
def load_factors(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Copy the factors of `lora_layers` from tensors by name."""
    for name, layer in lora_layers(model).items():
        layer.lora_A.weight.copy_(tensors[name + A])
        layer.lora_B.weight.copy_(tensors[name + B])
