"""The one seam for speed: fast twins replace textbook layers here and nowhere else.

A twin is a subclass of its textbook layer with the same parameters and attributes, which computes the same in another
way. A layer of the model only changes its class: names of weights, checkpoints and hooks stay. `nn/` and `models/` know
no twin, and `training.backend: textbook` turns all of them off. Tests hold each twin to its textbook, outputs and
gradients.
"""

import torch
from torch import nn

from dragoman.backends.byte_dropout import ByteDropout
from dragoman.backends.fused_attention import FusedAttention
from dragoman.backends.packed_linear import pack
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.dropout import Dropout
from dragoman.nn.lora import lora_layers

Twins = dict[type[nn.Module], type[nn.Module]]


def accelerate(model: nn.Module, device: torch.device, precision: str) -> None:
    """Give `model` the twins for training on `device` in `precision`, in place of any that it has."""
    twins: Twins = {MultiHeadAttention: FusedAttention}
    if device.type == "cpu":
        twins[Dropout] = ByteDropout
        if precision == "bfloat16" and not lora_layers(model):  # these twins multiply by weights without asking layers
            from dragoman.backends.cpu_bf16.twins import TWINS

            twins |= TWINS
    exchange(model, twins)


def accelerate_inference(model: nn.Module, *, packed: bool) -> None:
    """Give `model` the twins for inference. `packed`: its linear layers too, on a CPU."""
    exchange(model, {MultiHeadAttention: FusedAttention})
    if packed:
        pack(model)


def exchange(model: nn.Module, twins: Twins) -> None:
    """Give each layer the class that `twins` has for it, or else its textbook class again."""
    for module in model.modules():
        textbook = textbook_class(type(module))
        if type(module) is not (kind := twins.get(textbook, textbook)):
            module.__class__ = kind


def textbook_class(kind: type[nn.Module]) -> type[nn.Module]:
    """The class of `nn/` or `models/` that a twin stands for; any other class itself."""
    base = kind.__base__
    if base is None or not base.__module__.startswith("dragoman.") or not kind.__module__.startswith(__package__):
        return kind
    return textbook_class(base)
