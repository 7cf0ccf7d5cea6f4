"""Attention over short sentences, for training in bfloat16 on a CPU: the fast implementation of
`scaled_dot_product_attention`.

PyTorch's softmax computes row by row, which for rows of some fifteen keys costs ten times as much as the products;
separate operations over all rows do not. Inputs and outputs stay in the rows of the projections (`projection.py`), so
that they are copied once to the layout of heads and once back.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Complex, Float
from torch import Tensor

from dragoman.backends.cpu_training.projection import padded
from dragoman.nn.positions import AttentionPositions, RotaryPositions

MAX_SHORT_KEYS = 32
"""Most queries and keys. In longer sentences products take the time, and bfloat16 pays."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of an attention whose inputs are rows."""

    batch: int
    query_len: int
    key_len: int
    num_heads: int


def short_attention(
    queries: Float[Tensor, "query_rows query_widths"],
    memory: Float[Tensor, "key_rows key_widths"] | None,
    sizes: Sizes,
    mask: Bool[Tensor, "#batch 1 #query_len key_len"] | None,
    bias: Float[Tensor, "#batch num_heads query_len key_len"] | None = None,
    phase: Complex[Tensor, "query_len half_d_head"] | None = None,
) -> Float[Tensor, "query_rows d_model"]:
    """softmax(Q K^T / sqrt(d_head) + bias) V with the heads side by side again.

    `queries` and `memory` are rows of `project_rows`: queries, and keys and values side by side. If `memory` is None,
    keys and values are beside the queries. `phase` is the phase of rotary positions (`rotary_phase`). Products are in
    the dtype of `queries`, the softmax is in float32. There is no gradient by `bias`.
    """
    context: Tensor = _ShortAttention.apply(queries, memory, sizes, mask, bias, phase)
    return context


class _ShortAttention(torch.autograd.Function):
    @staticmethod
    @torch.autocast("cpu", enabled=False)
    def forward(
        ctx: Any,
        queries: Tensor,
        memory: Tensor | None,
        sizes: Sizes,
        mask: Tensor | None,
        bias: Tensor | None,
        phase: Tensor | None,
    ) -> Tensor:
        if memory is None:
            q, k, v = _by_head(queries, sizes, sizes.query_len, 3)  # (batch x num_heads, len, d_head) each
        else:
            (q,), (k, v) = _by_head(queries, sizes, sizes.query_len, 1), _by_head(memory, sizes, sizes.key_len, 2)
        if phase is not None:
            q, k = rotated(q, phase), rotated(k, phase)
        added = torch.zeros(1, 1, 1, 1) if bias is None else bias  # a bare number would leave the sum in bfloat16
        if mask is not None:
            added = added + torch.zeros(mask.shape).masked_fill_(~mask, -math.inf)
        products = (q @ k.mT).unflatten(0, (-1, sizes.num_heads))  # (batch, num_heads, query_len, key_len)
        ctx.scale = 1.0 / math.sqrt(q.size(-1))
        scores = torch.add(added, products, alpha=ctx.scale)
        scores -= scores.amax(dim=-1, keepdim=True)
        scores.exp_()
        scores /= scores.sum(dim=-1, keepdim=True)
        weights = scores.flatten(0, 1).to(q.dtype)
        ctx.save_for_backward(q, k, v, weights, phase)
        ctx.sizes, ctx.alone = sizes, memory is None
        return _side_by_side([weights @ v], sizes)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights, phase = ctx.saved_tensors
        (grad_output,) = _by_head(gradient, ctx.sizes, ctx.sizes.query_len, 1)
        exact = weights.to(torch.float32, copy=True)
        grad_scores = (grad_output @ v.mT).float()
        grad_scores *= exact
        grad_scores -= exact.mul_(grad_scores.sum(dim=-1, keepdim=True))
        grad_scores = grad_scores.mul_(ctx.scale).to(q.dtype)
        to_q, to_k, to_v = grad_scores @ k, grad_scores.mT @ q, weights.mT @ grad_output
        if phase is not None:
            to_q, to_k = rotated(to_q, phase.conj()), rotated(to_k, phase.conj())
        if ctx.alone:
            return _side_by_side([to_q, to_k, to_v], ctx.sizes), *(None,) * 5
        return _side_by_side([to_q], ctx.sizes), _side_by_side([to_k, to_v], ctx.sizes), *(None,) * 4


def _by_head(rows: Tensor, sizes: Sizes, length: int, count: int) -> Tensor:
    """(rows, count x d_model) -> (count, batch x num_heads, length, d_head), head by head in memory."""
    parts = rows[: sizes.batch * length].view(sizes.batch, length, count, sizes.num_heads, -1)
    return parts.permute(2, 0, 3, 1, 4).contiguous().flatten(1, 2)


def _side_by_side(parts: list[Tensor], sizes: Sizes) -> Tensor:
    """The way back, from (batch x num_heads, length, d_head) each."""
    length, width = parts[0].size(1), sizes.num_heads * parts[0].size(2)
    rows = parts[0].new_empty(padded(sizes.batch * length), len(parts), width)
    real = rows[: sizes.batch * length].view(sizes.batch, length, len(parts), sizes.num_heads, -1)
    for index, part in enumerate(parts):
        real[:, :, index] = part.unflatten(0, (sizes.batch, -1)).transpose(1, 2)
    rows[sizes.batch * length :] = 0.0
    return rows.flatten(1)


def rotary_phase(
    positions: AttentionPositions, start: int, length: int
) -> Complex[Tensor, "length half_d_head"] | None:
    """exp(j m theta): the factors of pairs of dimensions at each position; None for positions that rotate nothing."""
    if not isinstance(positions, RotaryPositions):
        return None
    sin, cos = positions.waves(start, length).chunk(2, dim=-1)
    return torch.complex(cos, sin)


def rotated(
    heads: Float[Tensor, "*heads len d_head"], phase: Complex[Tensor, "len half_d_head"]
) -> Float[Tensor, "*heads len d_head"]:
    numbers = torch.view_as_complex(
        heads.to(torch.float32, memory_format=torch.contiguous_format).unflatten(-1, (-1, 2))
    )
    return torch.view_as_real(numbers * phase).flatten(-2).to(heads.dtype)
