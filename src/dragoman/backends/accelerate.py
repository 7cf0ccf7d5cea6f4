"""The one seam for speed: fast implementations replace textbook layers here and nowhere else.

A fast implementation is a subclass of its textbook layer with the same parameters and attributes, which computes the
same in another way. A layer of the model only changes its class: names of weights, checkpoints and hooks stay. `nn/`
and `models/` know no fast implementation, and `training.backend: textbook` turns all of them off. Tests hold each of
them to its textbook, outputs and gradients.
"""

from typing import cast

import torch
from torch import nn

from dragoman.backends.byte_dropout import ByteDropout
from dragoman.backends.cpu_search import library
from dragoman.backends.cpu_search.fast_transformer import FastTransformer, Weights
from dragoman.backends.cpu_search.weights import can_be_packed
from dragoman.backends.fused_attention import FusedAttention
from dragoman.backends.packed_linear import pack
from dragoman.device import cpu_has_bfloat16
from dragoman.errors import Error
from dragoman.models.transformer import Transformer
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.dropout import Dropout
from dragoman.nn.lora import lora_layers

FastLayers = dict[type[nn.Module], type[nn.Module]]


def accelerate(model: nn.Module, device: torch.device, precision: str, *, kernels: bool = False) -> None:
    """Give `model` the fast layers for training on `device` in `precision`, in place of any that it has.

    `kernels`: take the layers made of C kernels in float32 too. They round at other places, and draw other numbers for
    dropout.
    """
    fast_layers: FastLayers = {MultiHeadAttention: FusedAttention}
    if device.type == "cpu":
        fast_layers[Dropout] = ByteDropout
        # These layers multiply by weights without asking layers.
        if (precision == "bfloat16" or (kernels and precision == "float32")) and not lora_layers(model):
            from dragoman.backends.cpu_training.fast_layers import BFLOAT16_LAYERS, FLOAT32_LAYERS

            fast_layers |= BFLOAT16_LAYERS if precision == "bfloat16" else FLOAT32_LAYERS
    exchange(model, fast_layers)


def accelerate_inference(model: nn.Module, *, packed: bool, precision: str = "float32") -> None:
    """Give `model` the fast layers for inference. `packed`: its linear layers too, on a CPU, and its whole search where
    that can be.

    Raises DragomanError for `precision` int8 of a model that does not search in C.
    """
    exchange(model, {MultiHeadAttention: FusedAttention})
    if packed and precision == "bfloat16" and not cpu_has_bfloat16():
        model.float()  # the same weights, whose products are faster in float32 there
    for part in [model, *getattr(model, "models", [])] if packed else ():  # of an ensemble
        search_in_c(part, precision)
    if packed:
        pack(model)
    if precision == "int8":
        for part in getattr(model, "models", [model]):
            if not isinstance(part, FastTransformer):
                raise Error.UNSUPPORTED(f"`precision` int8: {_why_not_in_c(part)}", "leave it, or take bfloat16")


def search_in_c(model: nn.Module, precision: str = "float32") -> None:
    """Have a Transformer's searches run in C, where there is a compiler and `search.c` knows all of its layers."""
    if type(model) is Transformer and can_be_packed(model) and library.library() is not None:
        model.__class__ = FastTransformer
        cast(FastTransformer, model).weights = Weights(precision)


def _why_not_in_c(model: nn.Module) -> str:
    if next(model.parameters()).device.type != "cpu":
        return "for a CPU alone"
    if library.library() is None:
        return "needs a C compiler, and there is none that works here"
    return "for Transformers without relative positions, LoRA or recurrent layers alone, and this model is another"


def exchange(model: nn.Module, fast_layers: FastLayers) -> None:
    """Give each layer the class that `fast_layers` has for it, or else its textbook class again."""
    for module in model.modules():
        textbook = textbook_class(type(module))
        if type(module) is not (kind := fast_layers.get(textbook, textbook)):
            module.__class__ = kind


def textbook_class(kind: type[nn.Module]) -> type[nn.Module]:
    """The class of `nn/` or `models/` that a fast layer stands for; any other class itself."""
    base = kind.__base__
    if base is None or not base.__module__.startswith("dragoman.") or not kind.__module__.startswith(__package__):
        return kind
    return textbook_class(base)
