"""Scaled dot-product attention and its multi-head form (Vaswani et al. 2017, sections 3.2.1 and 3.2.2)."""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dragoman.nn.dropout import Dropout
from dragoman.nn.positions import AttentionPositions


def textbook_attention(
    query: Float[Tensor, "batch num_heads query_len d_head"],
    key: Float[Tensor, "batch num_kv_heads key_len d_head"],
    value: Float[Tensor, "batch num_kv_heads key_len d_head"],
    mask: Bool[Tensor, "#batch #num_heads #query_len key_len"] | None,
    dropout: nn.Module | None = None,
    bias: Float[Tensor, "#batch num_heads query_len key_len"] | None = None,
) -> tuple[Float[Tensor, "batch num_heads query_len d_head"], Float[Tensor, "batch num_heads query_len key_len"]]:
    """softmax(Q K^T / sqrt(d_head) + bias) V (equation 1): (the context, the attention weights before dropout).

    Where there are fewer heads of keys than of queries, each serves as many neighbouring queries' heads.
    """
    key, value = for_each_head(query, key), for_each_head(query, value)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))  # (batch, num_heads, query_len, key_len)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return (dropout(weights) if dropout is not None else weights) @ value, weights


def for_each_head(
    query: Float[Tensor, "batch num_heads query_len d_head"], heads: Float[Tensor, "batch num_kv_heads key_len d_head"]
) -> Float[Tensor, "batch num_heads key_len d_head"]:
    """Heads of keys or values, one for each of the queries'."""
    groups = query.size(1) // heads.size(1)
    return heads if groups == 1 else heads.repeat_interleave(groups, dim=1)


@runtime_checkable
class Past(Protocol):
    """What the rows of a decoder have written so far, as their self-attention sees it: a decoding cache."""

    @property
    def num_rows(self) -> int: ...

    @property
    def length(self) -> int:
        """How many positions each row has."""
        ...

    def reorder(self, rows: Int[Tensor, " new_rows"], kept: Int[Tensor, " new_sentences"] | None) -> "Past":
        """Row i of the result is row `rows[i]`; `kept`: the sentences that stay (`models.base.kept_sentences`)."""
        ...

    def attended(
        self,
        attention: "MultiHeadAttention",
        new: "Projected",
        causal_mask: Bool[Tensor, "1 1 new past_and_new"] | None = None,
    ) -> tuple[Float[Tensor, "rows new d_model"], "Past"]:
        """What new positions find in these and in themselves: (their context, the past that they have joined).

        One new position sees everything and needs no `causal_mask`.
        """
        ...


class Projected(NamedTuple):
    """What the three projections of an attention make of some positions, before heads are told apart."""

    query: Float[Tensor, "rows new d_model"]
    key: Float[Tensor, "rows new width"]
    value: Float[Tensor, "rows new width"]


@dataclass(frozen=True)
class KeysValues:
    """What an attention has projected from the positions that it may look at: the decoding cache of the textbook.

    That of a search is `shared_past.SharedPast`.
    """

    key: Float[Tensor, "rows num_kv_heads len d_head"]
    value: Float[Tensor, "rows num_kv_heads len d_head"]

    @property
    def length(self) -> int:
        """How many positions."""
        return self.key.size(2)

    @property
    def num_rows(self) -> int:
        return self.key.size(0)

    def followed_by(self, new: "KeysValues") -> "KeysValues":
        return KeysValues(torch.cat([self.key, new.key], dim=2), torch.cat([self.value, new.value], dim=2))

    def select(self, rows: Int[Tensor, " new_rows"]) -> "KeysValues":
        return KeysValues(self.key.index_select(0, rows), self.value.index_select(0, rows))

    def reorder(self, rows: Int[Tensor, " new_rows"], kept: Int[Tensor, " new_sentences"] | None) -> "KeysValues":
        return self.select(rows)

    def attended(
        self,
        attention: "MultiHeadAttention",
        new: Projected,
        causal_mask: Bool[Tensor, "1 1 new past_and_new"] | None = None,
    ) -> tuple[Float[Tensor, "rows new d_model"], "KeysValues"]:
        grown = self.followed_by(attention.keys_values(new.key, new.value, self.length))
        return attention.context(new.query, grown, causal_mask, self.length), grown


class MultiHeadAttention(nn.Module):
    """Attention in `num_heads` subspaces of d_head = d_model / num_heads dimensions each, joined by a final projection.

    Keys and values can be projected once (`project_keys_values`) and attended to many times (`attend`): that is the
    decoding cache. `forward` does both.

    `num_kv_heads` fewer heads of keys and values, each shared by a group of queries' heads, make that cache smaller
    (grouped-query attention, Ainslie et al. 2023; a single one is Shazeer's multi-query attention, 2019).
    `positions` tells a self-attention where its queries and keys stand, where the embeddings do not.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        dropout: float = 0.0,
        *,
        num_kv_heads: int | None = None,
        positions: AttentionPositions | None = None,
    ) -> None:
        super().__init__()
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        if d_model % num_heads:
            raise ValueError(f"d_model ({d_model}) must be a multiple of num_heads ({num_heads})")
        if num_heads % num_kv_heads:
            raise ValueError(f"num_heads ({num_heads}) must be a multiple of num_kv_heads ({num_kv_heads})")
        self.d_head = d_model // num_heads
        self.query_proj = nn.Linear(d_model, d_model)
        self.key_proj = nn.Linear(d_model, num_kv_heads * self.d_head)
        self.value_proj = nn.Linear(d_model, num_kv_heads * self.d_head)
        self.output_proj = nn.Linear(d_model, d_model)
        self.positions = positions if positions is not None else AttentionPositions()
        self.dropout = Dropout(dropout)

    def forward(
        self,
        query: Float[Tensor, "batch query_len d_model"],
        memory: Float[Tensor, "batch key_len d_model"],
        mask: Bool[Tensor, "#batch 1 #query_len key_len"] | None,
        maps: list[Tensor] | None = None,
    ) -> Float[Tensor, "batch query_len d_model"]:
        """Attend from each query to the real positions of `memory` (which is `query` itself in self-attention)."""
        return self.attend(query, self.project_keys_values(memory), mask, maps=maps)

    def project_keys_values(self, memory: Float[Tensor, "batch key_len d_model"], start: int = 0) -> KeysValues:
        """`start`: the position of the first of `memory`."""
        return self.keys_values(self.key_proj(memory), self.value_proj(memory), start)

    def keys_values(
        self, key: Float[Tensor, "batch key_len width"], value: Float[Tensor, "batch key_len width"], start: int = 0
    ) -> KeysValues:
        """Projected keys and values, head by head; `start`: the position of the first."""
        key, value = self.positions.rotate(self.split_heads(key), start), self.split_heads(value)
        if not torch.is_grad_enabled():
            # A cache lies head by head in memory, as after a `select`: a CPU may round products of the same numbers in
            # another layout differently, and a translation would depend on its batch.
            key, value = key.contiguous(), value.contiguous()
        return KeysValues(key, value)

    def attend(
        self,
        query: Float[Tensor, "batch query_len d_model"],
        memory: KeysValues,
        mask: Bool[Tensor, "#batch 1 #query_len key_len"] | None,
        start: int = 0,
        maps: list[Tensor] | None = None,
    ) -> Float[Tensor, "batch query_len d_model"]:
        """`context` of queries that are not projected yet, projected in turn; `start` and `maps` as there."""
        return self.output_proj(self.context(self.query_proj(query), memory, mask, start, maps))

    def context(
        self,
        query: Float[Tensor, "batch query_len d_model"],
        memory: KeysValues,
        mask: Bool[Tensor, "#batch 1 #query_len key_len"] | None,
        start: int = 0,
        maps: list[Tensor] | None = None,
    ) -> Float[Tensor, "batch query_len d_model"]:
        """What projected queries find in `memory`, heads side by side.

        `start`: the position of the first query; the keys begin at 0.

        `maps`, when given, gets the attention weights of every head appended, (batch, num_heads, query_len, key_len):
        row = query, column = key, each row sums to 1.
        """
        heads = self.positions.rotate(self.split_heads(query), start)
        bias = self.positions.bias(start, query.size(1), memory.length)
        bias = bias.to(heads.dtype) if bias is not None else None
        context = self.attend_heads(heads, memory, mask, bias, maps)
        return context.transpose(1, 2).flatten(2)  # (batch, query_len, d_model)

    def attend_heads(
        self,
        query: Float[Tensor, "batch num_heads query_len d_head"],
        memory: KeysValues,
        mask: Bool[Tensor, "#batch 1 #query_len key_len"] | None,
        bias: Float[Tensor, "1 num_heads query_len key_len"] | None,
        maps: list[Tensor] | None,
    ) -> Float[Tensor, "batch num_heads query_len d_head"]:
        """Equation 1 for every head; `maps` as in `context`."""
        context, weights = textbook_attention(query, memory.key, memory.value, mask, self.dropout, bias)
        if maps is not None:
            maps.append(weights)
        return context

    def projected(self, x: Float[Tensor, "rows new d_model"]) -> Projected:
        """Of positions that attend to themselves and to what was before them."""
        return Projected(self.query_proj(x), self.key_proj(x), self.value_proj(x))

    def split_heads(self, x: Float[Tensor, "batch len width"]) -> Float[Tensor, "batch heads len d_head"]:
        return x.unflatten(-1, (-1, self.d_head)).transpose(1, 2)  # (batch, heads, len, d_head)
