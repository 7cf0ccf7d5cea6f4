"""Optimizers. The learning rate belongs to the schedule (`schedules.py`)."""

from typing import Literal

import torch
from torch import nn

from dragoman.config import Field, settings


@settings
class AdamWConfig:
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019). beta2 and eps as in Vaswani et al. 2017, 5.3."""

    type: Literal["adamw"] = "adamw"
    beta1: float = Field(default=0.9, ge=0, lt=1)
    beta2: float = Field(default=0.98, ge=0, lt=1)
    eps: float = Field(default=1e-9, gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    """On matrices only; biases and norms are left alone."""

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        matrices = [parameter for parameter in model.parameters() if parameter.dim() >= 2]
        others = [parameter for parameter in model.parameters() if parameter.dim() < 2]
        groups = [{"params": matrices, "weight_decay": self.weight_decay}, {"params": others, "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, lr=0.0, betas=(self.beta1, self.beta2), eps=self.eps, fused=True)


OptimizerConfig = AdamWConfig


def state_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, torch.Tensor]:
    """The optimizer's state as named tensors, `PARAMETER/FIELD`, which is what a checkpoint can hold without pickle."""
    names: dict[torch.Tensor, str] = {parameter: name for name, parameter in model.named_parameters()}
    return {
        f"{names[parameter]}/{field}": value
        for parameter, fields in optimizer.state.items()
        for field, value in fields.items()
    }


def load_state_tensors(optimizer: torch.optim.Optimizer, model: nn.Module, tensors: dict[str, torch.Tensor]) -> None:
    """Put back what `state_tensors` gave."""
    parameters = dict(model.named_parameters())
    for key, value in tensors.items():
        name, _, field = key.rpartition("/")
        # Fused optimizers want the step counter on the device of the parameter too.
        optimizer.state[parameters[name]][field] = value.to(parameters[name].device)
