"""Linear projections in bfloat16 for training on a CPU: the fast implementation of calling `nn.Linear` under autocast.

Several projections of the same input (queries, keys and values) cast it once and are one product. Rows, all positions
of a batch one below the other, are padded to a multiple of `KERNEL_ROWS`: oneDNN compiles a kernel for every shape,
which takes longer than such a product, and every batch has another number of positions. `to_rows` makes the rows,
functions on rows follow, `from_rows` restores the shape.
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

from dragoman.backends.cpu_training import kernels
from dragoman.device import has_onednn_bf16
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.feedforward import FeedForward

Buffer = npt.NDArray[np.int16]
CACHE_LINE_BYTES = 64
"""Bytes of a line of the cache."""
KERNEL_ROWS = 128
"""Rows of a product are padded with zeros to a multiple of this, so that there are few shapes."""


@contextmanager
def exact_rows() -> Iterator[None]:
    """Inside, rows are not padded and products are PyTorch's own, so that operations can be counted."""
    global KERNEL_ROWS
    before, KERNEL_ROWS = KERNEL_ROWS, 1
    try:
        yield
    finally:
        KERNEL_ROWS = before


def trains_in(dtype: torch.dtype, x: Tensor) -> bool:
    """True if products of `x` are computed in this type on a CPU and gradients are on.

    False under a compiler, which gets the textbook's layers.
    """
    return (
        not torch.compiler.is_compiling()
        and x.device.type == "cpu"
        and torch.is_grad_enabled()
        and dtype == (torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype)
    )


def trains_in_bfloat16(x: Tensor) -> bool:
    """`trains_in`, under autocast."""
    return torch.is_autocast_enabled("cpu") and trains_in(torch.bfloat16, x)


def has_relu_alone(network: FeedForward) -> bool:
    """True if only ReLU is between the two products of a feed-forward network."""
    return isinstance(network.activation, nn.ReLU) and not (network.training and network.dropout.rate)


def has_textbook_heads(attention: MultiHeadAttention) -> bool:
    """True if there are as many heads of keys as of queries and attention weights are not dropped."""
    if not isinstance(attention, MultiHeadAttention):
        return False  # what a decoder has in its place
    grouped = attention.key_proj.out_features != attention.query_proj.out_features
    return not grouped and not (attention.training and attention.dropout.rate)


def project(x: Tensor, *linears: nn.Module) -> tuple[Tensor, ...]:
    """`x` through each of `linears`. All have a `weight` (width, d_in), and a `bias` or none."""
    if not trains_in_bfloat16(x):
        return tuple(linear(x) for linear in linears)
    projected = from_rows(project_rows(to_rows(x), *linears), x.shape[:-1])
    return projected.split([len(linear.weight) for linear in linears], dim=-1)  # type: ignore[arg-type]


def to_rows(x: Float[Tensor, "... width"]) -> Float[Tensor, "rows width"]:
    """`x` in bfloat16 with all dimensions but the last as one, padded with rows of zeros."""
    rows: Tensor = _Rows.apply(x)
    return rows


def from_rows(rows: Float[Tensor, "rows width"], shape: Sequence[int]) -> Float[Tensor, "... width"]:
    """The inverse of `to_rows`: dimensions of `shape` before the last."""
    return rows[: math.prod(shape)].view(*shape, -1)


def project_rows(rows: Float[Tensor, "rows d_in"], *linears: nn.Module) -> Float[Tensor, "rows widths"]:
    """`rows` through all `linears` in one product, results side by side."""
    parameters = [linear.weight for linear in linears] + [getattr(linear, "bias", None) for linear in linears]
    projected: Tensor = _Projection.apply(rows, *parameters)
    return projected


def feed_forward(rows: Float[Tensor, "rows d_model"], expand: nn.Linear, contract: nn.Linear) -> Tensor:
    """contract(relu(expand(rows))) with biases; ReLU is computed within the product, in place."""
    output: Tensor = _FeedForward.apply(rows, expand.weight, expand.bias, contract.weight, contract.bias)
    return output


def to_logits(
    hidden: Float[Tensor, "*shape d_model"], weight: Float[Tensor, "vocab d_model"], dtype: torch.dtype = torch.bfloat16
) -> Tensor:
    """hidden @ weight.T, (*shape, vocab) in `dtype`, in memory of an earlier step's logits that is free again.

    They are the largest tensor of a step. The system gives new memory page by page, which takes longer than the
    product. With PyTorch's products, the padding rows are still there when the gradient replaces the logits
    (`token_loss`, `in_place`).
    """
    if KERNEL_ROWS > 1 and kernels.multiplies(weight, dtype):
        lines = hidden.flatten(0, -2).to(dtype).contiguous()
        logits: Tensor = _FastLogits.apply(lines, weight)
        return logits.view(*hidden.shape[:-1], -1)
    if dtype == torch.float32:
        return F.linear(hidden, weight)
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
    """Weights, one below the other, are one matrix (widths, d_in)."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, *parameters: Tensor | None) -> Tensor:
        weights = [weight for weight in parameters[: len(parameters) // 2] if weight is not None]
        biases = [bias for bias in parameters[len(weights) :] if bias is not None]
        matrix = in_bfloat16(weights)
        ctx.save_for_backward(rows, matrix)
        ctx.widths, ctx.has_bias = [len(weight) for weight in weights], bool(biases)
        return linear(rows, matrix, in_bfloat16(biases) if biases else None)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        rows, matrix = ctx.saved_tensors
        grad_biases = _grad_bias(grad_output).split(ctx.widths) if ctx.has_bias else (None,) * len(ctx.widths)
        return grad_output @ matrix, *grad_weight(grad_output, rows).split(ctx.widths), *grad_biases


class _FeedForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, *parameters: Tensor) -> Tensor:
        expand, expand_bias, contract, contract_bias = (parameter.bfloat16() for parameter in parameters)
        hidden = linear(rows, expand, expand_bias, "relu")  # (rows, d_ff)
        ctx.save_for_backward(rows, hidden, expand, contract)
        return linear(hidden, contract, contract_bias)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, ...]:
        rows, hidden, expand, contract = ctx.saved_tensors
        grad_hidden = grad_output @ contract
        torch.ops.aten.threshold_backward.grad_input(grad_hidden, hidden, 0, grad_input=grad_hidden)
        grad_expand, grad_contract = grad_weight(grad_hidden, rows), grad_weight(grad_output, hidden)
        return grad_hidden @ expand, grad_expand, _grad_bias(grad_hidden), grad_contract, _grad_bias(grad_output)


class _Logits(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, shape: Sequence[int]) -> Tensor:
        matrix = weight.bfloat16()
        ctx.save_for_backward(rows, matrix)
        ctx.logits = torch.mm(rows, matrix.T, out=_reuse(len(rows), len(matrix)))
        return from_rows(ctx.logits, shape)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        rows, matrix = ctx.saved_tensors
        # If the loss has replaced the logits by it, it has their padding rows already.
        grad_output = ctx.logits if grad_output.data_ptr() == ctx.logits.data_ptr() else to_rows(grad_output)
        return grad_output @ matrix, grad_weight(grad_output, rows), None


class _FastLogits(torch.autograd.Function):
    """`_Logits` by the products of `kernels.py`, which need no padding rows."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor) -> Tensor:
        matrix = kernels.Matrix.of(weight, dtype=rows.dtype)
        ctx.save_for_backward(rows, matrix.down)
        return kernels.multiply(rows, matrix.across, matrix.n, out=_reuse(len(rows), matrix.n, rows.dtype))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        rows, down = ctx.saved_tensors
        grad_output = grad_output.to(rows.dtype).contiguous()
        return kernels.multiply(grad_output, down, rows.size(1)), kernels.weight_gradient(grad_output, rows)[0]


_kept: list[tuple[Buffer, weakref.ref[Buffer]]] = []
"""Buffers of `_reuse`, and a view of each that lives as long as the tensor made of it."""


def _reuse(rows: int, width: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    """An empty (rows, width), in an earlier buffer that is free again, if there is one."""
    size = rows * width * dtype.itemsize // 2
    held = [(buffer, view) for buffer, view in _kept if view() is not None]
    free = [(buffer, view) for buffer, view in _kept if view() is None and buffer.size >= size]
    buffer = free.pop()[0] if free else _on_a_line(size + size // 4)  # some later batches are larger
    view = buffer[:size]
    _kept[:] = [*held, *free, (buffer, weakref.ref(view))]
    return torch.from_numpy(view).view(dtype).view(rows, width)


def _on_a_line(size: int) -> Buffer:
    """An empty buffer aligned to a cache line, so that no vector lies in two lines."""
    buffer = np.empty(size + CACHE_LINE_BYTES // 2, dtype=np.int16)
    return buffer[-buffer.ctypes.data % CACHE_LINE_BYTES // 2 :]


def linear(rows: Tensor, matrix: Tensor, bias: Tensor | None, activation: str = "none") -> Tensor:
    """activation(rows @ matrix.T + bias), by oneDNN in one pass; PyTorch would first write the bias into every row."""
    if KERNEL_ROWS > 1 and has_onednn_bf16():
        return torch.ops.mkldnn._linear_pointwise(rows, matrix, bias, activation, [], "")
    product = F.linear(rows, matrix, bias)
    return product.relu_() if activation == "relu" else product


def grad_weight(grad_output: Tensor, rows: Tensor) -> Tensor:
    return (grad_output.T @ rows).float()


def _grad_bias(grad_output: Tensor) -> Tensor:
    return grad_output.sum(dim=0).float()  # the kernel sums in float32 too


def in_bfloat16(parameters: Sequence[Tensor]) -> Tensor:
    """The parameters in bfloat16, one below the other."""
    return (parameters[0] if len(parameters) == 1 else torch.cat(tuple(parameters))).bfloat16()


def padded(length: int) -> int:
    """Number of rows with padding for `length` real ones."""
    return length + -length % KERNEL_ROWS
