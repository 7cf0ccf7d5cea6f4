"""The one seam for speed: fast twins take the places of textbook layers here, and nowhere else.

A twin is a subclass of the layer that it stands for, with the same parameters and attributes, and computes the same in
another way. So a layer of the model changes its class and stays where it is: names of weights, checkpoints and hooks
know nothing of it. `nn/` and `models/` know no twin; `training.backend: textbook` leaves all of them out. Each twin is
held to its textbook by tests, outputs and gradients.
"""

import torch
from torch import nn

from dragoman.backends.byte_dropout import ByteDropout
from dragoman.backends.fused_attention import FusedAttention
from dragoman.backends.packed_linear import pack
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.dropout import Dropout

Twins = dict[type[nn.Module], type[nn.Module]]


def accelerate(model: nn.Module, device: torch.device, precision: str) -> None:
    """Give `model` the twins for training on `device` in `precision`; those that it had before are exchanged."""
    twins: Twins = {MultiHeadAttention: FusedAttention}
    if device.type == "cpu":
        twins[Dropout] = ByteDropout
        if precision == "bfloat16":
            from dragoman.backends.cpu_bf16.twins import TWINS

            twins |= TWINS
    exchange(model, twins)


def accelerate_inference(model: nn.Module, *, packed: bool) -> None:
    """Give `model` the twins for computing without gradients. `packed`: its linear layers too, on a CPU."""
    exchange(model, {MultiHeadAttention: FusedAttention})
    if packed:
        pack(model)


def exchange(model: nn.Module, twins: Twins) -> None:
    """Make each layer of a kind that is in `twins` the twin, and every other twin the textbook's layer again."""
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
