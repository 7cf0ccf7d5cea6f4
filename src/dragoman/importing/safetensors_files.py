"""The tensors of safetensors files: what their headers say, then their numbers in float32, exactly or not at all."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from dragoman.errors import Error
from dragoman.importing.base import refusal

DTYPES = ("F64", "F32", "F16", "BF16")
"""Number formats, in the words of safetensors, that float32 may hold."""


class Stored(NamedTuple):
    """A tensor of a file, by its header."""

    file: Path
    name: str
    shape: tuple[int, ...]
    dtype: str


def header(path: Path) -> list[Stored]:
    """Raises DragomanError for a file that is missing or damaged."""
    try:
        with safe_open(path, framework="pt") as file:
            views = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - no dictionary
            return [Stored(path, name, tuple(view.get_shape()), view.get_dtype()) for name, view in views.items()]
    except (OSError, SafetensorError, ValueError) as error:
        raise Error.DAMAGED(f"cannot be read, or is damaged: {error}", file=path) from error


def loaded(named: Mapping[str, Stored], infinite: Collection[str] = ()) -> tuple[dict[str, Tensor], list[str]]:
    """(the tensors by the given names, why some are not held exactly). `infinite`: tensors that may have minus
    infinity, such as the bias of a piece that is never generated."""
    tensors: dict[str, Tensor] = {}
    reasons = []
    for path in sorted({entry.file for entry in named.values()}):
        with safe_open(path, framework="pt") as file:
            for name, entry in named.items():
                if entry.file == path:
                    tensor = file.get_tensor(entry.name)
                    tensors[name] = tensor.float()
                    problems = _problems(tensor, tensors[name], name in infinite)
                    reasons += [f"{entry.name}: {problem}" for problem in problems]
    return tensors, reasons


def _problems(tensor: Tensor, ours: Tensor, infinite: bool) -> Iterator[str]:
    """The numbers of a tensor that are not held exactly."""
    finite = tensor.isfinite() | (tensor == -torch.inf) if infinite else tensor.isfinite()
    if not finite.all():
        yield f"{int((~finite).sum()):,} of its numbers are NaN or infinite"
    elif tensor.dtype == torch.float64 and not torch.equal(ours.double(), tensor):
        yield "its numbers are no float32"


def read_all(paths: Sequence[Path]) -> dict[str, Tensor]:
    """Every tensor of the parts of a model, in float32, by its name.

    Raises DragomanError for a damaged file, or with each tensor that float32 does not hold or that is there twice.
    """
    stored = [entry for path in paths for entry in header(path)]
    named = {entry.name: entry for entry in stored}
    reasons = [f"{entry.name}: it is there twice" for entry in stored if named[entry.name] is not entry]
    reasons += [
        f"{entry.name}: its numbers are {entry.dtype}, and {', '.join(DTYPES)} are read"
        for entry in stored
        if entry.dtype not in DTYPES
    ]
    if not reasons:
        tensors, reasons = loaded(named)
    if reasons:
        raise refusal(paths[0].parent, reasons)
    return tensors
