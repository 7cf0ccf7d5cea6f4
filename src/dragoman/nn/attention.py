"""Scaled dot-product attention and its multi-head form (Vaswani et al. 2017, sections 3.2.1 and 3.2.2)."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dragoman.nn.dropout import Dropout
from dragoman.nn.positions import AttentionPositions


def scaled_dot_product_attention(
    query: Float[Tensor, "batch num_heads query_len d_head"],
    key: Float[Tensor, "batch num_kv_heads key_len d_head"],
    value: Float[Tensor, "batch num_kv_heads key_len d_head"],
    mask: Bool[Tensor, "#batch #num_heads #query_len key_len"] | None,
    dropout: nn.Module | None = None,
    bias: Float[Tensor, "#batch num_heads query_len key_len"] | None = None,
) -> tuple[Float[Tensor, "batch num_heads query_len d_head"], Float[Tensor, "batch num_heads query_len key_len"]]:
    """softmax(Q K^T / sqrt(d_head) + bias) V (equation 1): (the context, the attention weights before dropout).

    With fewer heads of keys than of queries, neighbouring query heads share one.
    """
    key, value = repeat_kv(query, key), repeat_kv(query, value)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))  # (batch, num_heads, query_len, key_len)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return (dropout(weights) if dropout is not None else weights) @ value, weights


def repeat_kv(
    query: Float[Tensor, "batch num_heads query_len d_head"], heads: Float[Tensor, "batch num_kv_heads key_len d_head"]
) -> Float[Tensor, "batch num_heads key_len d_head"]:
    """Heads of keys or values, one for each head of the queries."""
    groups = query.size(1) // heads.size(1)
    return heads if groups == 1 else heads.repeat_interleave(groups, dim=1)


class QKV(NamedTuple):
    """Queries, keys and values before they are split into heads."""

    query: Float[Tensor, "rows new all_heads"]
    key: Float[Tensor, "rows new width"]
    value: Float[Tensor, "rows new width"]


@dataclass(frozen=True)
class KVCache:
    """Keys and values of all positions so far. A search uses `kv_cache.SharedKVCache`, which is cheaper to reorder."""

    key: Float[Tensor, "rows num_kv_heads len d_head"]
    value: Float[Tensor, "rows num_kv_heads len d_head"]

    @property
    def length(self) -> int:
        """Number of positions."""
        return self.key.size(2)

    @property
    def num_rows(self) -> int:
        return self.key.size(0)

    def appended(self, new: "KVCache") -> "KVCache":
        return KVCache(torch.cat([self.key, new.key], dim=2), torch.cat([self.value, new.value], dim=2))

    def select(self, rows: Int[Tensor, " new_rows"]) -> "KVCache":
        return KVCache(self.key.index_select(0, rows), self.value.index_select(0, rows))

    def reorder(self, rows: Int[Tensor, " new_rows"], kept: Int[Tensor, " new_sentences"] | None) -> "KVCache":
        return self.select(rows)

    def attend(
        self,
        attention: "MultiHeadAttention",
        new: QKV,
        causal_mask: Bool[Tensor, "1 1 new past_and_new"] | None = None,
    ) -> tuple[Float[Tensor, "rows new all_heads"], "KVCache"]:
        cache = self.appended(attention.kv_cache(new.key, new.value, self.length))
        return attention.context(new.query, cache, causal_mask, self.length), cache


class MultiHeadAttention(nn.Module):
    """Attention in `num_heads` subspaces of d_head = d_model / num_heads dimensions each, joined by a final projection.

    `d_head` gives heads another width: d_model where heads have "full width". Fewer `num_kv_heads`, each shared by a
    group of query heads, make the cache smaller (grouped-query attention, Ainslie et al. 2023; multi-query, Shazeer
    2019). `positions` adds the positions of queries and keys if the embeddings hold none. `forward` is the paper's. For
    decoding, `project_kv` projects keys and values once, and `attend` attends to them many times.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        dropout: float = 0.0,
        *,
        num_kv_heads: int | None = None,
        positions: AttentionPositions | None = None,
        d_head: int | None = None,
    ) -> None:
        super().__init__()
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        if d_head is None and d_model % num_heads:
            raise ValueError(f"d_model ({d_model}) must be a multiple of num_heads ({num_heads})")
        if num_heads % num_kv_heads:
            raise ValueError(f"num_heads ({num_heads}) must be a multiple of num_kv_heads ({num_kv_heads})")
        self.d_head = d_model // num_heads if d_head is None else d_head
        self.query_proj = nn.Linear(d_model, num_heads * self.d_head)
        self.key_proj = nn.Linear(d_model, num_kv_heads * self.d_head)
        self.value_proj = nn.Linear(d_model, num_kv_heads * self.d_head)
        self.output_proj = nn.Linear(num_heads * self.d_head, d_model)
        self.positions = positions if positions is not None else AttentionPositions()
        self.dropout = Dropout(dropout)

    def forward(
        self,
        query: Float[Tensor, "batch query_len d_model"],
        memory: Float[Tensor, "batch key_len d_model"],
        mask: Bool[Tensor, "#batch 1 #query_len key_len"] | None,
        maps: list[Tensor] | None = None,
    ) -> Float[Tensor, "batch query_len d_model"]:
        """Attend from each query to the positions of `memory` that `mask` shows; self-attention has `memory` = `query`.

        `maps`, if given, gets the attention weights appended, (batch, num_heads, query_len, key_len): row = query,
        column = key, each row sums to 1.
        """
        return self.attend(query, self.project_kv(memory), mask, maps=maps)

    def project_kv(self, memory: Float[Tensor, "batch key_len d_model"], start: int = 0) -> KVCache:
        """Keys and values of `memory`, whose first position is `start`."""
        return self.kv_cache(self.key_proj(memory), self.value_proj(memory), start)

    def attend(
        self,
        query: Float[Tensor, "batch query_len d_model"],
        memory: KVCache,
        mask: Bool[Tensor, "#batch 1 #query_len key_len"] | None,
        start: int = 0,
        maps: list[Tensor] | None = None,
    ) -> Float[Tensor, "batch query_len d_model"]:
        """`forward` with keys and values that are projected already. The first query's position is `start`."""
        return self.output_proj(self.context(self.query_proj(query), memory, mask, start, maps))

    def context(
        self,
        query: Float[Tensor, "batch query_len all_heads"],
        memory: KVCache,
        mask: Bool[Tensor, "#batch 1 #query_len key_len"] | None,
        start: int = 0,
        maps: list[Tensor] | None = None,
    ) -> Float[Tensor, "batch query_len all_heads"]:
        """Contexts of projected queries, heads side by side, before the final projection."""
        heads = self.positions.rotate(self.split_heads(query), start)
        bias = self.positions.bias(heads, start, memory.length)
        bias = bias.to(heads.dtype) if bias is not None else None
        context = self.attend_heads(heads, memory, mask, bias, maps)
        return context.transpose(1, 2).flatten(2)  # (batch, query_len, all heads)

    def attend_heads(
        self,
        query: Float[Tensor, "batch num_heads query_len d_head"],
        memory: KVCache,
        mask: Bool[Tensor, "#batch 1 #query_len key_len"] | None,
        bias: Float[Tensor, "#batch num_heads query_len key_len"] | None,
        maps: list[Tensor] | None,
    ) -> Float[Tensor, "batch num_heads query_len d_head"]:
        """Equation 1 for every head."""
        context, weights = scaled_dot_product_attention(query, memory.key, memory.value, mask, self.dropout, bias)
        if maps is not None:
            maps.append(weights)
        return context

    def kv_cache(
        self, key: Float[Tensor, "batch key_len width"], value: Float[Tensor, "batch key_len width"], start: int = 0
    ) -> KVCache:
        """Projected keys and values, split into heads. The first position is `start`."""
        key, value = self.positions.rotate(self.split_heads(key), start), self.split_heads(value)
        if not torch.is_grad_enabled():
            # Contiguous head by head, as after `select`: a CPU may round products of the same numbers in another
            # layout differently, and a translation would depend on its batch.
            key, value = key.contiguous(), value.contiguous()
        return KVCache(key, value)

    def project_qkv(self, x: Float[Tensor, "rows new d_model"]) -> QKV:
        """The three projections of positions that attend to their past and to themselves."""
        return QKV(self.query_proj(x), self.key_proj(x), self.value_proj(x))

    def split_heads(self, x: Float[Tensor, "batch len width"]) -> Float[Tensor, "batch heads len d_head"]:
        return x.unflatten(-1, (-1, self.d_head)).transpose(1, 2)  # (batch, heads, len, d_head)
