"""Scaled dot-product attention and its multi-head form (Vaswani et al. 2017, sections 3.2.1 and 3.2.2)."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.nn.dropout import Dropout


def textbook_attention(
    query: Float[Tensor, "batch num_heads query_len d_head"],
    key: Float[Tensor, "batch num_heads key_len d_head"],
    value: Float[Tensor, "batch num_heads key_len d_head"],
    mask: Bool[Tensor, "#batch #num_heads #query_len key_len"] | None,
    dropout: nn.Module | None = None,
) -> tuple[Float[Tensor, "batch num_heads query_len d_head"], Float[Tensor, "batch num_heads query_len key_len"]]:
    """softmax(Q K^T / sqrt(d_head)) V (equation 1): (the context, the attention weights before dropout)."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))  # (batch, num_heads, query_len, key_len)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return (dropout(weights) if dropout is not None else weights) @ value, weights


def fused_attention(
    query: Float[Tensor, "batch num_heads query_len d_head"],
    key: Float[Tensor, "batch num_heads key_len d_head"],
    value: Float[Tensor, "batch num_heads key_len d_head"],
    mask: Bool[Tensor, "#batch #num_heads #query_len key_len"] | None,
    dropout_rate: float = 0.0,
) -> Float[Tensor, "batch num_heads query_len d_head"]:
    """The same in one kernel that never holds the weights."""
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout_rate)


class MultiHeadAttention(nn.Module):
    """Attention in `num_heads` subspaces of d_model / num_heads dimensions each, joined by a final projection.

    Keys and values can be projected once (`project_keys_values`) and attended to many times (`attend`): that is the
    decoding cache. `forward` does both.
    """

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model ({d_model}) must be a multiple of num_heads ({num_heads})")
        self.num_heads = num_heads
        self.query_proj = nn.Linear(d_model, d_model)
        self.key_proj = nn.Linear(d_model, d_model)
        self.value_proj = nn.Linear(d_model, d_model)
        self.output_proj = nn.Linear(d_model, d_model)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        query: Float[Tensor, "batch query_len d_model"],
        memory: Float[Tensor, "batch key_len d_model"],
        mask: Bool[Tensor, "#batch 1 #query_len key_len"] | None,
    ) -> Float[Tensor, "batch query_len d_model"]:
        """Attend from each query to the real positions of `memory` (which is `query` itself in self-attention)."""
        return self.attend(query, *self.project_keys_values(memory), mask)

    def project_keys_values(
        self, memory: Float[Tensor, "batch key_len d_model"]
    ) -> tuple[
        Float[Tensor, "batch num_heads key_len d_head"],
        Float[Tensor, "batch num_heads key_len d_head"],
    ]:
        return self._split(self.key_proj(memory)), self._split(self.value_proj(memory))

    def attend(
        self,
        query: Float[Tensor, "batch query_len d_model"],
        key: Float[Tensor, "batch num_heads key_len d_head"],
        value: Float[Tensor, "batch num_heads key_len d_head"],
        mask: Bool[Tensor, "#batch 1 #query_len key_len"] | None,
    ) -> Float[Tensor, "batch query_len d_model"]:
        heads = self._split(self.query_proj(query))
        if self._textbook_is_faster(heads):
            context, _ = textbook_attention(heads, key, value, mask, self.dropout)
        else:
            context = fused_attention(heads, key, value, mask, self.dropout.rate if self.training else 0.0)
        return self.output_proj(context.transpose(1, 2).flatten(2))  # (batch, query_len, d_model)

    def weights(
        self,
        query: Float[Tensor, "batch query_len d_model"],
        memory: Float[Tensor, "batch key_len d_model"],
        mask: Bool[Tensor, "#batch 1 #query_len key_len"] | None,
    ) -> Float[Tensor, "batch num_heads query_len key_len"]:
        """The attention map of every head: row = query, column = key, each row sums to 1."""
        key, value = self.project_keys_values(memory)
        return textbook_attention(self._split(self.query_proj(query)), key, value, mask)[1]

    def _split(self, x: Float[Tensor, "batch len d_model"]) -> Float[Tensor, "batch num_heads len d_head"]:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)  # (batch, num_heads, len, d_head)

    def _textbook_is_faster(self, query: Tensor) -> bool:
        # The fused kernel's bf16 backward on the CPU is several times slower for short sentences (docs/log.md).
        return query.device.type == "cpu" and torch.is_grad_enabled() and query.dtype == torch.bfloat16
