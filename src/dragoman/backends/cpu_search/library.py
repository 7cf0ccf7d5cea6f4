"""The functions and structures of `search.c`."""

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

from dragoman.backends import c_library

SOURCE = Path(__file__).with_name("search.c")
Pointer, Integer, Real = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float


def _fields(kind: Any, names: str) -> list[tuple[str, Any]]:
    return [(name, kind) for name in names.split()]


class Linear(ctypes.Structure):
    _fields_ = _fields(Pointer, "weight bias scales sums") + _fields(Integer, "inputs outputs kind")


class Norm(ctypes.Structure):
    _fields_ = _fields(Pointer, "gain bias") + _fields(Real, "eps")


class Layer(ctypes.Structure):
    _fields_ = _fields(Norm, "self_norm cross_norm ffn_norm") + _fields(
        Linear, "qkv self_out cross_query cross_kv cross_out expand gate contract"
    )


class Stack(ctypes.Structure):
    _fields_ = (
        _fields(Pointer, "tokens positions")
        + _fields(Norm, "norm final_norm")
        + _fields(Pointer, "layers")
        + _fields(Integer, "num_layers")
    )


class Model(ctypes.Structure):
    _fields_ = (
        _fields(Integer, "d_model num_heads num_kv_heads d_head d_ff vocab max_positions placement activation")
        + _fields(Pointer, "cosines sines")
        + _fields(Stack, "encoder decoder")
        + _fields(Linear, "output")
    )


class Settings(ctypes.Structure):
    _fields_ = (
        _fields(Integer, "beam n_best counted stopping min_length max_slots max_tokens threads num_banned")
        + _fields(Pointer, "banned divisors")
        + _fields(Integer, "bos eos")
    )


class Group(ctypes.Structure):
    _fields_ = (
        _fields(Pointer, "read keys values last sentences paths")
        + _fields(Integer, "rows position")
        + _fields(Pointer, "hidden logits")
    )


FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "panel_columns": (Integer, []),
    "cell_width": (Integer, [Pointer]),
    "packed_bytes": (Integer, [Integer] * 3),
    "pack": (Integer, [Pointer, Integer, Integer, Integer, Pointer, Pointer, Pointer]),
    "search_new": (Pointer, [Pointer, Pointer, Integer, Pointer, Pointer, Pointer, Pointer]),
    "search_run": (Integer, [Pointer, Integer]),
    "searches_run": (None, [Pointer, Integer, Pointer]),
    "search_cancel": (None, [Pointer, Integer]),
    "search_rows": (Integer, [Pointer]),
    "search_failed": (Integer, [Pointer]),
    "search_result": (Integer, [Pointer, Integer, Integer, Pointer, Pointer]),
    "search_free": (None, [Pointer]),
    "read_new": (Pointer, [Pointer, Integer, Pointer, Pointer]),
    "read_free": (None, [Pointer]),
    "decode_steps": (None, [Pointer, Pointer, Integer]),
    "log_softmax": (None, [Pointer, Integer, Integer, Integer, Pointer]),
    "forced_log_probs": (None, [Pointer, Integer, Pointer, Pointer, Pointer, Pointer, Integer, Pointer]),
}
"""By name what each returns and takes."""


@cache
def library() -> ctypes.CDLL | None:
    """The compiled file; None, with one message, where there is no compiler, and on Windows, whose take other flags."""
    if not hasattr(os, "getuid"):
        return None
    flags = ("-fopenmp",) if c_library.shares_threads() else ()
    loaded = c_library.load(SOURCE, flags, "translating by PyTorch's own operations alone")
    for name, (result, arguments) in FUNCTIONS.items() if loaded is not None else ():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded
