"""Linear projections in bfloat16 for training on a CPU: the fast twin of calling `nn.Linear` under autocast.

What autocast does in three ways at once is done here once: several projections of the same input (queries, keys and
values) cast it once and are one product. And rows, all positions of a batch below each other, are counted in steps of
`ROWS`: oneDNN compiles a kernel for every shape, which takes longer than such a product itself, and every batch brings
another number of positions. `to_rows` makes them once, functions on rows follow on each other, `from_rows` leads back.
"""

import math
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from dragoman.backends.cpu_bf16 import kernels
from dragoman.device import has_onednn_bf16
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.feedforward import FeedForward

Room = npt.NDArray[np.int16]
LINE = 64
"""Bytes of a line of the cache."""
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


def has_relu_alone(network: FeedForward) -> bool:
    """Whether nothing but ReLU stands between the two products of a feed-forward network."""
    return isinstance(network.activation, nn.ReLU) and not (network.training and network.dropout.rate)


def has_textbook_heads(attention: MultiHeadAttention) -> bool:
    """Whether there are as many heads of keys as of queries, and weights are not dropped."""
    grouped = attention.key_proj.out_features != attention.query_proj.out_features
    return not grouped and not (attention.training and attention.dropout.rate)


def project(x: Tensor, *linears: nn.Module) -> tuple[Tensor, ...]:
    """Each of `linears` of `x`. All have a `weight` (width, d_in), and a `bias` or none."""
    if not trains_in_bfloat16(x):
        return tuple(linear(x) for linear in linears)
    projected = from_rows(project_rows(to_rows(x), *linears), x.shape[:-1])
    return projected.split([len(linear.weight) for linear in linears], dim=-1)  # type: ignore[arg-type]


def to_rows(x: Float[Tensor, "... width"]) -> Float[Tensor, "rows width"]:
    """In bfloat16, all dimensions but the last as one, and rows of zeros below."""
    rows: Tensor = _Rows.apply(x)
    return rows


def from_rows(rows: Float[Tensor, "rows width"], shape: Sequence[int]) -> Float[Tensor, "... width"]:
    """The way back, to dimensions of `shape` before the last."""
    return rows[: math.prod(shape)].view(*shape, -1)


def project_rows(rows: Float[Tensor, "rows d_in"], *linears: nn.Module) -> Float[Tensor, "rows widths"]:
    """What `linears` make of `rows`, side by side, in one product."""
    parameters = [linear.weight for linear in linears] + [getattr(linear, "bias", None) for linear in linears]
    projected: Tensor = _Projection.apply(rows, *parameters)
    return projected


def feed_forward(rows: Float[Tensor, "rows d_model"], expand: nn.Linear, contract: nn.Linear) -> Tensor:
    """contract(relu(expand(rows))), where both have biases; ReLU is taken within the product and in its place."""
    found: Tensor = _FeedForward.apply(rows, expand.weight, expand.bias, contract.weight, contract.bias)
    return found


def to_logits(hidden: Float[Tensor, "*shape d_model"], weight: Float[Tensor, "vocab d_model"]) -> Tensor:
    """hidden @ weight.T, (*shape, vocab) in bfloat16, where the logits of a step before lay that nobody holds any more.

    They are the largest tensor of a step. Memory that is new comes from the system page by page, which takes longer
    than the product. Where PyTorch's products are taken, the rows that fill up are still there when the gradient comes
    back in the place of the logits (`token_loss`, `in_place`).
    """
    if ROWS > 1 and kernels.multiplies(weight):
        lines = hidden.flatten(0, -2).bfloat16().contiguous()
        logits: Tensor = _FastLogits.apply(lines, weight)
        return logits.view(*hidden.shape[:-1], -1)
    logits = _Logits.apply(to_rows(hidden), weight, hidden.shape[:-1])
    return logits


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.x_shape, ctx.dtype, length = x.shape, x.dtype, x.numel() // x.size(-1)
        rows = x.new_empty(padded(length), x.size(-1), dtype=torch.bfloat16)
        rows[:length] = x.reshape(length, -1)
        rows[length:] = 0.0
        return rows

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return from_rows(gradient, ctx.x_shape[:-1]).to(ctx.dtype)


class _Projection(torch.autograd.Function):
    """Weights below each other are one matrix (widths, d_in)."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, *parameters: Tensor | None) -> Tensor:
        weights = [weight for weight in parameters[: len(parameters) // 2] if weight is not None]
        biases = [bias for bias in parameters[len(weights) :] if bias is not None]
        matrix = in_bfloat16(weights)
        ctx.save_for_backward(rows, matrix)
        ctx.widths, ctx.has_bias = [len(weight) for weight in weights], bool(biases)
        return linear(rows, matrix, in_bfloat16(biases) if biases else None)

    @staticmethod
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        rows, matrix = ctx.saved_tensors
        to_biases = _to_bias(above).split(ctx.widths) if ctx.has_bias else (None,) * len(ctx.widths)
        return above @ matrix, *to_weight(above, rows).split(ctx.widths), *to_biases


class _FeedForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, *parameters: Tensor) -> Tensor:
        expand, expand_bias, contract, contract_bias = (parameter.bfloat16() for parameter in parameters)
        hidden = linear(rows, expand, expand_bias, "relu")  # (rows, d_ff)
        ctx.save_for_backward(rows, hidden, expand, contract)
        return linear(hidden, contract, contract_bias)

    @staticmethod
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor, ...]:
        rows, hidden, expand, contract = ctx.saved_tensors
        to_hidden = above @ contract
        torch.ops.aten.threshold_backward.grad_input(to_hidden, hidden, 0, grad_input=to_hidden)
        to_expand, to_contract = to_weight(to_hidden, rows), to_weight(above, hidden)
        return to_hidden @ expand, to_expand, _to_bias(to_hidden), to_contract, _to_bias(above)


class _Logits(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, shape: Sequence[int]) -> Tensor:
        matrix = weight.bfloat16()
        ctx.save_for_backward(rows, matrix)
        ctx.logits = torch.mm(rows, matrix.T, out=_used_again(len(rows), len(matrix)))
        return from_rows(ctx.logits, shape)

    @staticmethod
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        rows, matrix = ctx.saved_tensors
        # Where the loss has put it in their place, it has the rows of zeros below that they were given.
        above = ctx.logits if above.data_ptr() == ctx.logits.data_ptr() else to_rows(above)
        return above @ matrix, to_weight(above, rows), None


class _FastLogits(torch.autograd.Function):
    """`_Logits` by the products of `backends/cpu_bf16/kernels.py`, which need no rows filled up."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor) -> Tensor:
        matrix = kernels.Matrix.of(weight)
        ctx.save_for_backward(rows, matrix.down)
        return kernels.multiply(rows, matrix.across, matrix.n, out=_used_again(len(rows), matrix.n))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor, Tensor]:
        rows, down = ctx.saved_tensors
        above = above.bfloat16().contiguous()
        return kernels.multiply(above, down, rows.size(1)), kernels.weight_gradient(above, rows)[0]


_kept: list[tuple[Room, weakref.ref[Room]]] = []
"""Room that `_used_again` has given, and a view of it that lives as long as the tensor that was made of that."""


def _used_again(rows: int, width: int) -> Tensor:
    """An empty (rows, width) in bfloat16, in room that was given before where nobody holds that any more."""
    size = rows * width
    held = [(room, view) for room, view in _kept if view() is not None]
    free = [(room, view) for room, view in _kept if view() is None and room.size >= size]
    room = free.pop()[0] if free else _on_a_line(size + size // 4)  # batches to come are larger, some of them
    view = room[:size]
    _kept[:] = [*held, *free, (room, weakref.ref(view))]
    return torch.from_numpy(view).view(torch.bfloat16).view(rows, width)


def _on_a_line(size: int) -> Room:
    """Empty room that begins where a line of the cache does, so that no vector lies in two of them."""
    room = np.empty(size + LINE // 2, dtype=np.int16)
    return room[-room.ctypes.data % LINE // 2 :]


def linear(rows: Tensor, matrix: Tensor, bias: Tensor | None, activation: str = "none") -> Tensor:
    """activation(rows @ matrix.T + bias): by oneDNN in one walk, where PyTorch first writes the bias into every row."""
    if ROWS > 1 and has_onednn_bf16():
        return torch.ops.mkldnn._linear_pointwise(rows, matrix, bias, activation, [], "")
    product = F.linear(rows, matrix, bias)
    return product.relu_() if activation == "relu" else product


def to_weight(above: Tensor, rows: Tensor) -> Tensor:
    return (above.T @ rows).float()


def _to_bias(above: Tensor) -> Tensor:
    return above.sum(dim=0).float()  # added up in float32 as well, by the kernel


def in_bfloat16(parameters: Sequence[Tensor]) -> Tensor:
    """Below each other."""
    return (parameters[0] if len(parameters) == 1 else torch.cat(tuple(parameters))).bfloat16()


def padded(length: int) -> int:
    """How many rows there are for so many real ones."""
    return length + -length % ROWS
