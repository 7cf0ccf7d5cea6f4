"""`torch.compile`, layer by layer, for the steps of a training.

What is compiled is the layer that a model is stacked from, not the model: one compilation serves all layers of a kind
("regional compilation" in PyTorch's words) and batches of all shapes, as their sizes are left open. It happens in
place, so the names of weights stay, and checkpoints, resuming and exports know nothing of it. Validation and decoding
compute with the layers as they are written (`uncompiled`), so that a validation's score is the translator's own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Literal

import torch
from torch import nn

from dragoman.errors import DragomanError
from dragoman.models.blocks import DecoderLayer, EncoderLayer
from dragoman.progress import say

CompileName = Literal["auto", "none", "layers", "graphs"]
Compiled = Literal["none", "layers", "graphs"]

KINDS = (EncoderLayer, DecoderLayer)
"""The layers of Transformers, language models and classifiers; a recurrent model has none."""
BACKEND = "inductor"
"""PyTorch's own compiler: to C++ on a CPU, to Triton on a GPU."""
VARIANTS = 64
"""Compilations of a kind of layer, more than there are reasons for: one row or several, lengths that are multiples of
16 or not, tables of positions that grow. With PyTorch's 8, what is new after them is left uncompiled for good."""


@cache
def pick_compilation(name: CompileName, device: torch.device) -> Compiled:
    """`auto`: layers on an NVIDIA GPU if its compiler works, else none; said once where it does not.

    Raises DragomanError where another setting than `auto` cannot be had here.
    """
    if name == "none" or (name == "auto" and device.type != "cuda"):
        return "none"
    if name == "graphs" and device.type != "cuda":
        raise DragomanError(f"training.compile=graphs needs an NVIDIA GPU and the device is {device}: set it to layers")
    try:
        # Something small, there and back: otherwise a missing compiler would be a traceback out of the first step.
        torch.compile(lambda x: x.sin().sum(), backend=BACKEND)(
            torch.ones(8, device=device).requires_grad_()
        ).backward()
    except Exception as error:  # PyTorch, Triton and the compilers below them raise of every kind
        why = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if name == "auto":
            say(f"torch.compile does not work on this machine ({why}): training without it")
            return "none"
        needed = "a C compiler and Triton" if device.type == "cuda" else "a C++ compiler"
        raise DragomanError(
            f"training.compile={name}: torch.compile does not work on this machine ({why}): install {needed}, or set "
            "training.compile=none"
        ) from error
    return "layers" if name == "auto" else name


def compile_layers(model: nn.Module, name: CompileName, device: torch.device) -> Compiled:
    """Have the layers of `model` compiled, each kind when its first batch comes; what came of it.

    Raises DragomanError as `pick_compilation`. A model that has no such layers is left as it is, which is said where
    it was asked for.
    """
    how = pick_compilation(name, device)
    layers = [module for module in model.modules() if isinstance(module, KINDS)]
    if how != "none" and not layers:
        if name != "auto":
            say(f"training.compile={name}: this model has no layers to compile; it is trained as it is")
        return "none"
    if how != "none":
        torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, VARIANTS)
    for layer in layers if how != "none" else ():
        layer.compile(dynamic=True, backend=BACKEND, mode="reduce-overhead" if how == "graphs" else None)
    return how


@contextmanager
def uncompiled() -> Iterator[None]:
    """Inside, compiled layers compute as they are written."""
    with torch.compiler.set_stance("force_eager"):
        yield
