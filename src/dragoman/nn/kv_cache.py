"""The KV cache of a search: the hypotheses of a sentence share one table that is written once and never moved.

`attention.KVCache` is the simple one: a row for each hypothesis, copied when hypotheses change places and again when it
grows. Here all hypotheses of a sentence write into one table, each decode step into the next slots, and a mask tells
each hypothesis which slots are its own past. Reordering a beam then moves a few bits. Attention computes scores for
more keys (the keys of the other hypotheses, masked). With up to MAX_SHARING hypotheses that costs less than the copies
in bfloat16 and as much in float32 (benchmarks/log/2026-11.md, "the shared table of keys up to eight hypotheses").
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from dragoman.nn.attention import QKV, KVCache, MultiHeadAttention
from dragoman.nn.ssru import SSRUState

MAX_SHARING = 8
"""Hypotheses of a sentence that share a table. With more hypotheses copying is cheaper."""

GROWTH_STEPS = 8
"""Decode steps that a table grows by. A CPU's kernels are made for each size anew, so the sizes should be few."""


@dataclass
class Table:
    """Keys and values of all hypotheses of each sentence, zero where nothing has been written."""

    key: Float[Tensor, "sentences num_kv_heads slots d_head"]
    value: Float[Tensor, "sentences num_kv_heads slots d_head"]
    positions: Int[Tensor, " slots"]
    """Position of each slot's token in its hypothesis."""
    written: int = 0
    """Slots in use. A state that uses fewer shares the table with a later one."""

    def select(self, sentences: Int[Tensor, " new_sentences"]) -> "Table":
        key, value = self.key.index_select(0, sentences), self.value.index_select(0, sentences)
        return Table(key, value, self.positions.clone(), self.written)

    def with_capacity(self, used: int, new: int, block: int) -> "Table":
        """This table, or a copy of its first `used` slots that holds `new` more and is shared with no other state."""
        slots = self.key.size(2)
        if used == self.written and used + new <= slots:
            return self
        more = 0 if used + new <= slots else block
        key, value = (F.pad(kept[:, :, :used], (0, 0, 0, slots - used + more)) for kept in (self.key, self.value))
        return Table(key, value, F.pad(self.positions[:used], (0, slots - used + more)), used)


@dataclass(frozen=True)
class SharedKVCache:
    """A `KVCache` whose rows share a table by sentence.

    Rows of one sentence are neighbours, equally many for each sentence. All rows have the same length.
    """

    table: Table
    seen: Bool[Tensor, "sentences rows_per_sentence slots"]
    """True where a slot holds a token of the row's own hypothesis."""
    used: int
    """Slots of the table that this state uses; later states may have written others."""
    length: int
    """Positions of each row."""

    @property
    def num_rows(self) -> int:
        return self.seen.size(0) * self.seen.size(1)

    @classmethod
    def of(cls, cache: KVCache) -> "SharedKVCache":
        """The cache of what has been read before a search, one row for each sentence; of nothing at first."""
        length, device = cache.length, cache.key.device
        seen = torch.ones(cache.num_rows, 1, length, dtype=torch.bool, device=device)
        return cls(Table(cache.key, cache.value, torch.arange(length, device=device), length), seen, length, length)

    def reorder(self, rows: Int[Tensor, " new_rows"], kept: Int[Tensor, " new_sentences"] | None) -> "SharedKVCache":
        """Row i of the result is row `rows[i]`. `kept`: the sentences that stay (`models.base.kept_sentences`)."""
        sentences = self.seen.size(0) if kept is None else kept.numel()
        seen = self.seen.flatten(0, 1).index_select(0, rows).unflatten(0, (sentences, -1))
        table = self.table if kept is None else self.table.select(kept)
        return SharedKVCache(table, seen, self.used, self.length)

    def attend(
        self,
        attention: MultiHeadAttention,
        new: QKV,
        causal_mask: Bool[Tensor, "1 1 1 past_and_new"] | None = None,
    ) -> tuple[Float[Tensor, "rows 1 d_model"], "SharedKVCache"]:
        """Attend from one new position of each row to these and to itself: (the context, the cache with it)."""
        assert new.query.size(1) == 1, "a search decodes token by token"
        cache = self._appended(attention.kv_cache(new.key, new.value, self.length))
        table, (sentences, beam, slots) = cache.table, cache.seen.shape
        query = attention.positions.rotate(attention.split_heads(new.query), self.length)
        bias = attention.positions.bias(query, self.length, cache.length)
        # Heads that share keys become queries of one head, beside the hypotheses, which share them too.
        heads, groups = table.key.size(1), query.size(1) // table.key.size(1)
        query = query.view(sentences, beam, heads, groups, -1).permute(0, 2, 3, 1, 4)
        query = query.reshape(sentences, heads, groups * beam, -1) / math.sqrt(attention.d_head)
        scores = (query @ table.key.transpose(-2, -1)).view(sentences, heads, groups, beam, slots)
        if bias is not None:  # one for all rows, or one for each row
            of_slots = (
                bias[:, :, 0, table.positions]
                .to(scores.dtype)
                .view(-1, 1 if len(bias) == 1 else beam, heads, groups, slots)
            )
            scores = scores + of_slots.permute(0, 2, 3, 1, 4)
        scores = scores.masked_fill(~cache.seen[:, None, None], -math.inf)
        context = scores.softmax(dim=-1).view(sentences, heads, groups * beam, slots) @ table.value
        context = context.view(sentences, heads, groups, beam, -1).permute(0, 3, 1, 2, 4)
        return context.reshape(new.query.shape), cache

    def _appended(self, new: KVCache) -> "SharedKVCache":
        sentences, beam = self.seen.shape[:2]
        table = self.table.with_capacity(self.used, beam, GROWTH_STEPS * beam)
        ours = slice(self.used, self.used + beam)
        for kept, added in ((table.key, new.key), (table.value, new.value)):
            kept[:, :, ours] = added.view(sentences, beam, added.size(1), -1).transpose(1, 2)
        table.positions[ours] = self.length
        table.written = self.used + beam
        seen = F.pad(self.seen, (0, table.key.size(2) - self.seen.size(2)))
        seen[:, :, ours] = torch.eye(beam, dtype=torch.bool, device=seen.device)
        return SharedKVCache(table, seen, table.written, self.length + 1)


DecodingCache = KVCache | SharedKVCache | SSRUState
"""Keys and values of the tokens so far, for the self-attention of one decoder layer, or for the layer in its place."""
