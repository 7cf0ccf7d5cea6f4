"""PyTorch's fused attention, which never stores the weights: the fast implementation of
`nn.attention.MultiHeadAttention`."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from dragoman.nn.attention import KVCache, MultiHeadAttention, repeat_kv

MIN_FUSED_KEYS = 1024
"""Keys from which training in bfloat16 on a CPU uses the fused attention."""


def fused_attention(
    query: Float[Tensor, "batch num_heads query_len d_head"],
    key: Float[Tensor, "batch num_kv_heads key_len d_head"],
    value: Float[Tensor, "batch num_kv_heads key_len d_head"],
    mask: Bool[Tensor, "#batch #num_heads #query_len key_len"] | None,
    dropout_rate: float = 0.0,
    bias: Float[Tensor, "#batch num_heads query_len key_len"] | None = None,
) -> Float[Tensor, "batch num_heads query_len d_head"]:
    """`scaled_dot_product_attention` in one kernel."""
    if bias is not None:
        mask = bias if mask is None else bias.masked_fill(~mask, -math.inf)
    # With PyTorch's `enable_gqa` and a mask, a GPU only has a kernel that stores the weights.
    key, value = repeat_kv(query, key), repeat_kv(query, value)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout_rate)


class FusedAttention(MultiHeadAttention):
    """The same attention in one kernel, if that is faster and no maps are requested."""

    def attend_heads(
        self, query: Tensor, memory: KVCache, mask: Tensor | None, bias: Tensor | None, maps: list[Tensor] | None
    ) -> Tensor:
        if maps is not None or _prefers_textbook(query, memory.length):
            return super().attend_heads(query, memory, mask, bias, maps)
        rate = self.dropout.rate if self.training else 0.0
        return fused_attention(query, memory.key, memory.value, mask, rate, bias)


def _prefers_textbook(query: Tensor, key_len: int) -> bool:
    if query.device.type != "cpu":
        return False
    if torch.is_grad_enabled():
        # The fused kernel's bf16 backward on the CPU is several times slower, except for very long sentences, whose
        # weights the textbook would store (benchmarks/log/2026-11.md, "attention over long sentences in training").
        return query.dtype == torch.bfloat16 and key_len < MIN_FUSED_KEYS
    # With several threads its result for few queries depends, in the last bit, on which thread computes it, and so on
    # the rest of the batch; it is slower there anyway.
    return query.size(2) < 64
