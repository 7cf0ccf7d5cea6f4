"""Linear projections in bfloat16 for training on a CPU: the fast twin of calling `nn.Linear` under autocast.

What autocast does in three ways at once is done here once: several projections of the same input (queries, keys and
values) cast it once and are one product. And rows are counted in steps of `ROWS`: oneDNN compiles a kernel for every
shape, which takes longer than such a product itself, and every batch brings another number of positions.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

ROWS = 128
"""Rows of a product are filled up with zeros to a multiple of this, so that few shapes come about."""


@contextmanager
def exact_rows() -> Iterator[None]:
    """Inside, rows are not filled up: for those who count operations."""
    global ROWS
    before, ROWS = ROWS, 1
    try:
        yield
    finally:
        ROWS = before


def trains_in_bfloat16(x: Tensor) -> bool:
    """Whether products of `x` are computed in bfloat16 on a CPU, and gradients will be asked for.

    Not so where a compiler reads along: it is given the plain layers, which it knows.
    """
    return (
        not torch.compiler.is_compiling()
        and x.device.type == "cpu"
        and torch.is_grad_enabled()
        and torch.is_autocast_enabled("cpu")
        and torch.get_autocast_dtype("cpu") == torch.bfloat16
    )


def project(x: Tensor, *linears: nn.Module) -> tuple[Tensor, ...]:
    """Each of `linears` of `x`. All have a `weight` (width, d_in), and a `bias` or none."""
    if not trains_in_bfloat16(x):
        return tuple(linear(x) for linear in linears)
    weights = [linear.weight for linear in linears]
    biases = [getattr(linear, "bias", None) for linear in linears]
    projected: tuple[Tensor, ...] = _Projection.apply(x, len(linears), *weights, *biases)
    return projected


class _Projection(torch.autograd.Function):
    """Rows are all dimensions of `x` but the last; weights below each other are one matrix (widths, d_in)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, count: int, *parameters: Tensor | None) -> tuple[Tensor, ...]:
        weights, biases = [weight for weight in parameters[:count] if weight is not None], parameters[count:]
        widths = [len(weight) for weight in weights]
        rows = _padded_rows([x.reshape(-1, x.size(-1))])
        matrix = weights[0].new_empty(sum(widths), x.size(-1), dtype=torch.bfloat16)
        for part, weight in zip(matrix.split(widths), weights, strict=True):
            part.copy_(weight)
        bias = None if biases[0] is None else torch.cat([b for b in biases if b is not None]).bfloat16()
        ctx.save_for_backward(rows, matrix)
        ctx.widths, ctx.x_shape, ctx.has_bias = widths, x.shape, bias is not None
        projected = F.linear(rows, matrix, bias)[: x.numel() // x.size(-1)]
        return tuple(part.view(*x.shape[:-1], -1) for part in projected.split(widths, dim=1))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        rows, matrix = ctx.saved_tensors
        parts = [gradient.reshape(-1, gradient.size(-1)) for gradient in gradients]
        above = _padded_rows(parts)  # (rows, widths)
        to_x = (above @ matrix)[: len(parts[0])].view(ctx.x_shape)
        to_weights = (above.T @ rows).float().split(ctx.widths)
        to_biases: tuple[Tensor | None, ...] = (None,) * len(parts)
        if ctx.has_bias:
            to_biases = above.sum(dim=0).float().split(ctx.widths)  # added up in float32 as well, by the kernel
        return to_x, None, *to_weights, *to_biases


def _padded_rows(parts: list[Tensor]) -> Tensor:
    """Matrices of equally many rows side by side in bfloat16, and rows of zeros below them."""
    length = len(parts[0])
    if len(parts) == 1 and length % ROWS == 0 and parts[0].dtype == torch.bfloat16:
        return parts[0]
    rows = parts[0].new_empty(length + -length % ROWS, sum(part.size(1) for part in parts), dtype=torch.bfloat16)
    start = 0
    for part in parts:
        rows[:length, start : start + part.size(1)] = part
        start += part.size(1)
    rows[length:].zero_()
    return rows
