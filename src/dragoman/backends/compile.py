"""`torch.compile`, layer by layer, for the steps of a training.

The layers of a model are compiled, not the model ("regional compilation" in PyTorch's words): one compilation serves
all layers of a kind, and batches of all shapes, because sizes are dynamic. It happens in place: names of weights stay,
and checkpoints, resuming and exports are unaffected. Validation and decoding run the layers eagerly (`uncompiled`), so
that a validation's score is the translator's.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Literal

import torch
from torch import nn

from dragoman.errors import Error
from dragoman.models.blocks import DecoderLayer, EncoderLayer
from dragoman.nn.ssru import SSRU
from dragoman.progress import say

CompileName = Literal["auto", "none", "layers", "graphs"]
Compiled = Literal["none", "layers", "graphs"]

KINDS = (EncoderLayer, DecoderLayer)
"""The layers of Transformers, language models and classifiers; a recurrent model has none."""
BACKEND = "inductor"
"""PyTorch's own compiler: to C++ on a CPU, to Triton on a GPU."""
MAX_VARIANTS = 64
"""Limit of compilations of one kind of layer, greater than the number of causes: one row or several, lengths that are
multiples of 16 or not, position tables that grow. After PyTorch's default of 8, new shapes would stay uncompiled."""


@cache
def pick_compilation(name: CompileName, device: torch.device) -> Compiled:
    """`auto`: layers on an NVIDIA GPU if its compiler works, else none, with one message.

    Raises DragomanError if another setting than `auto` does not work here.
    """
    if name == "none" or (name == "auto" and device.type != "cuda"):
        return "none"
    if name == "graphs" and device.type != "cuda":
        raise Error.NO_DEVICE(
            f"training.compile=graphs needs an NVIDIA GPU and the device is {device}", "set it to layers"
        )
    try:
        # A small forward and backward pass: otherwise a missing compiler would be a traceback from the first step.
        torch.compile(lambda x: x.sin().sum(), backend=BACKEND)(
            torch.ones(8, device=device).requires_grad_()
        ).backward()
    except Exception as error:  # PyTorch, Triton and their compilers raise all kinds
        why = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if name == "auto":
            say(f"torch.compile does not work on this machine ({why}): training without it")
            return "none"
        needed = "a C compiler and Triton" if device.type == "cuda" else "a C++ compiler"
        raise Error.UNSUPPORTED(
            f"training.compile={name}: torch.compile does not work on this machine ({why})",
            f"install {needed}, or set training.compile=none",
        ) from error
    return "layers" if name == "auto" else name


def compile_layers(model: nn.Module, name: CompileName, device: torch.device) -> Compiled:
    """Compile the layers of `model`, each kind at its first batch, and return what was done.

    Raises DragomanError as `pick_compilation`. A model without such layers stays uncompiled; a message says so, except
    for `auto`.
    """
    how = pick_compilation(name, device)
    # The passes of a recurrence depend on the length: it would be compiled anew for each.
    layers = [
        module
        for module in model.modules()
        if isinstance(module, KINDS) and not any(isinstance(part, SSRU) for part in module.modules())
    ]
    if how != "none" and not layers:
        if name != "auto":
            say(f"training.compile={name}: this model has no layers to compile; it is trained as it is")
        return "none"
    if how != "none":
        torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, MAX_VARIANTS)
    for layer in layers if how != "none" else ():
        layer.compile(dynamic=True, backend=BACKEND, mode="reduce-overhead" if how == "graphs" else None)
    return how


@contextmanager
def uncompiled() -> Iterator[None]:
    """Inside, compiled layers run eagerly."""
    with torch.compiler.set_stance("force_eager"):
        yield
