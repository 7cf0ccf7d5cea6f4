"""Attention over short sentences, for training in bfloat16 on a CPU: the fast twin of `textbook_attention`.

PyTorch's softmax takes rows one by one, which for rows of some fifteen keys costs ten times what the products do; its
steps over all rows at once do not.
"""

import math
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

SHORT = 32
"""Queries and keys, at most: of longer sentences products take the time, and bfloat16 pays."""


def short_attention(
    query: Float[Tensor, "batch num_heads query_len d_head"],
    key: Float[Tensor, "batch num_heads key_len d_head"],
    value: Float[Tensor, "batch num_heads key_len d_head"],
    mask: Bool[Tensor, "#batch 1 #query_len key_len"] | None,
    bias: Float[Tensor, "#batch num_heads query_len key_len"] | None = None,
) -> Float[Tensor, "batch query_len d_model"]:
    """softmax(Q K^T / sqrt(d_head) + bias) V with the heads side by side again.

    Products are those of the dtype of `query`, the softmax is taken in float32. There is no gradient by `bias`.
    """
    context: Tensor = _ShortAttention.apply(query, key, value, mask, bias)
    return context


class _ShortAttention(torch.autograd.Function):
    @staticmethod
    @torch.autocast("cpu", enabled=False)
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, bias: Tensor | None
    ) -> Tensor:
        q, k, v = _by_head(query), _by_head(key), _by_head(value)  # (batch x num_heads, len, d_head)
        ctx.num_heads, ctx.scale = query.size(1), 1.0 / math.sqrt(query.size(-1))
        added = torch.zeros(()) if bias is None else bias
        if mask is not None:
            added = added + torch.zeros(mask.shape).masked_fill_(~mask, -math.inf)
        products = (q @ k.mT).unflatten(0, (-1, ctx.num_heads))  # (batch, num_heads, query_len, key_len)
        scores = torch.add(added, products, alpha=ctx.scale)
        scores -= scores.amax(dim=-1, keepdim=True)
        scores.exp_()
        scores /= scores.sum(dim=-1, keepdim=True)
        weights = scores.flatten(0, 1).to(q.dtype)
        ctx.save_for_backward(q, k, v, weights)
        return _side_by_side(weights @ v, ctx.num_heads).flatten(2)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights = ctx.saved_tensors
        above = _by_head(gradient.unflatten(-1, (ctx.num_heads, -1)).transpose(1, 2))
        exact = weights.to(torch.float32, copy=True)
        to_scores = (above @ v.mT).float()
        to_scores *= exact
        to_scores -= exact.mul_(to_scores.sum(dim=-1, keepdim=True))
        to_scores = to_scores.mul_(ctx.scale).to(q.dtype)
        parts = (to_scores @ k, to_scores.mT @ q, weights.mT @ above)
        return *(_side_by_side(part, ctx.num_heads).transpose(1, 2) for part in parts), None, None


def _by_head(x: Tensor) -> Tensor:
    """(batch, num_heads, len, d_head) in any layout -> head by head in memory, batch and heads in one."""
    return x.contiguous().flatten(0, 1)


def _side_by_side(x: Tensor, num_heads: int) -> Tensor:
    """(batch x num_heads, len, d_head) -> (batch, len, num_heads, d_head) in memory."""
    return x.unflatten(0, (-1, num_heads)).transpose(1, 2).contiguous()
