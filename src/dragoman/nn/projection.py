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

from dragoman.nn.packed import can_pack

ROWS = 128
"""Rows of a product are filled up with zeros to a multiple of this, so that few shapes come about."""


@contextmanager
def exact_rows() -> Iterator[None]:
    """Inside, rows are not filled up and products are PyTorch's own: for those who count operations."""
    global ROWS
    before, ROWS = ROWS, 1
    try:
        yield
    finally:
        ROWS = before


def trains_in_bfloat16(x: Tensor) -> bool:
    """Whether products of `x` are computed in bfloat16 on a CPU, and gradients will be asked for."""
    return (
        x.device.type == "cpu"
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


def feed_forward(x: Tensor, expand: nn.Linear, contract: nn.Linear) -> Tensor:
    """contract(relu(expand(x))), under `trains_in_bfloat16` alone; both have biases.

    One function instead of three: what lies between the products stays filled up, and ReLU is taken in its place.
    """
    found: Tensor = _FeedForward.apply(x, expand.weight, expand.bias, contract.weight, contract.bias)
    return found


class _Projection(torch.autograd.Function):
    """Rows are all dimensions of `x` but the last; weights below each other are one matrix (widths, d_in)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, count: int, *parameters: Tensor | None) -> tuple[Tensor, ...]:
        weights = [weight for weight in parameters[:count] if weight is not None]
        biases = [bias for bias in parameters[count:] if bias is not None]
        rows, matrix = _padded_rows([x.reshape(-1, x.size(-1))]), _in_bfloat16(weights)
        ctx.save_for_backward(rows, matrix)
        ctx.widths, ctx.x_shape, ctx.has_bias = [len(weight) for weight in weights], x.shape, bool(biases)
        projected = _linear(rows, matrix, _in_bfloat16(biases) if biases else None)[: x.numel() // x.size(-1)]
        return tuple(part.view(*x.shape[:-1], -1) for part in projected.split(ctx.widths, dim=1))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        rows, matrix = ctx.saved_tensors
        parts = [gradient.reshape(-1, gradient.size(-1)) for gradient in gradients]
        above = _padded_rows(parts)  # (rows, widths)
        to_x = (above @ matrix)[: len(parts[0])].view(ctx.x_shape)
        to_weights = _to_weight(above, rows).split(ctx.widths)
        to_biases = _to_bias(above).split(ctx.widths) if ctx.has_bias else (None,) * len(parts)
        return to_x, None, *to_weights, *to_biases


class _FeedForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, *parameters: Tensor) -> Tensor:
        rows = _padded_rows([x.reshape(-1, x.size(-1))])
        expand, expand_bias, contract, contract_bias = (parameter.bfloat16() for parameter in parameters)
        hidden = _linear(rows, expand, expand_bias, "relu")  # (rows, d_ff)
        ctx.save_for_backward(rows, hidden, expand, contract)
        return _linear(hidden, contract, contract_bias)[: x.numel() // x.size(-1)].view(x.shape)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        rows, hidden, expand, contract = ctx.saved_tensors
        above = _padded_rows([gradient.reshape(-1, gradient.size(-1))])
        to_hidden = above @ contract
        torch.ops.aten.threshold_backward.grad_input(to_hidden, hidden, 0, grad_input=to_hidden)
        to_x = (to_hidden @ expand)[: gradient.numel() // gradient.size(-1)].view(gradient.shape)
        return to_x, _to_weight(to_hidden, rows), _to_bias(to_hidden), _to_weight(above, hidden), _to_bias(above)


def _linear(rows: Tensor, matrix: Tensor, bias: Tensor | None, activation: str = "none") -> Tensor:
    """activation(rows @ matrix.T + bias): by oneDNN in one walk, where PyTorch first writes the bias into every row."""
    if ROWS > 1 and can_pack():
        return torch.ops.mkldnn._linear_pointwise(rows, matrix, bias, activation, [], "")
    product = F.linear(rows, matrix, bias)
    return product.relu_() if activation == "relu" else product


def _to_weight(above: Tensor, rows: Tensor) -> Tensor:
    return (above.T @ rows).float()


def _to_bias(above: Tensor) -> Tensor:
    return above.sum(dim=0).float()  # added up in float32 as well, by the kernel


def _in_bfloat16(parameters: list[Tensor]) -> Tensor:
    """Below each other."""
    return (parameters[0] if len(parameters) == 1 else torch.cat(parameters)).bfloat16()


def _padded_rows(parts: list[Tensor]) -> Tensor:
    """Matrices of equally many rows side by side in bfloat16, and rows of zeros below them."""
    length = len(parts[0])
    if len(parts) == 1 and length % ROWS == 0:
        return parts[0].bfloat16()
    rows = parts[0].new_empty(length + -length % ROWS, sum(part.size(1) for part in parts), dtype=torch.bfloat16)
    torch.cat(parts, dim=1, out=rows[:length]) if len(parts) > 1 else rows[:length].copy_(parts[0])
    rows[length:].zero_()
    return rows
