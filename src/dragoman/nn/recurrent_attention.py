"""Attention of a recurrent decoder: from one state to all positions of the encoder's memory.

The score functions of Bahdanau et al. (2015, appendix A.1.2), Luong et al. (2015, equation 8) and Vaswani et al. (2017,
equation 1) in one table. s is the decoder's state (the query), h a position of the memory.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


class RecurrentAttention(nn.Module, ABC):
    """context = sum over h of softmax(score(s, h)) h. Abstract: a subclass is a score function.

    `project_keys` computes the part of a score that depends on the memory alone, once for each sentence.
    """

    def project_keys(
        self, memory: Float[Tensor, "sentences src_len d_model"]
    ) -> Float[Tensor, "sentences src_len d_key"]:
        return memory

    @abstractmethod
    def scores(
        self, query: Float[Tensor, "sentences queries d_model"], keys: Float[Tensor, "sentences src_len d_key"]
    ) -> Float[Tensor, "sentences queries src_len"]: ...

    def attend(
        self,
        query: Float[Tensor, "sentences queries d_model"],
        keys: Float[Tensor, "sentences src_len d_key"],
        memory: Float[Tensor, "sentences src_len d_model"],
        real: Bool[Tensor, "sentences src_len"],
    ) -> tuple[Float[Tensor, "sentences queries d_model"], Float[Tensor, "sentences queries src_len"]]:
        """(context of each query, attention weights: each row sums to 1 and is 0 at pads)."""
        # A bfloat16 weight has 8 bits; a row of them would not sum to 1.
        scores = self.scores(query, keys).float().masked_fill(~real[:, None, :], -math.inf)
        weights = scores.softmax(dim=-1)
        return torch.bmm(weights.to(memory.dtype), memory), weights


class DotAttention(RecurrentAttention):
    """score(s, h) = s . h"""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.scale = 1.0

    def scores(
        self, query: Float[Tensor, "sentences queries d_model"], keys: Float[Tensor, "sentences src_len d_key"]
    ) -> Float[Tensor, "sentences queries src_len"]:
        return torch.bmm(query * self.scale, keys.transpose(1, 2))


class ScaledDotAttention(DotAttention):
    """score(s, h) = s . h / sqrt(d_model): of size 1 for any width if the components of s and h are."""

    def __init__(self, d_model: int) -> None:
        super().__init__(d_model)
        self.scale = d_model**-0.5


class GeneralAttention(DotAttention):
    """score(s, h) = s . W h"""

    def __init__(self, d_model: int) -> None:
        super().__init__(d_model)
        self.key_proj = nn.Linear(d_model, d_model, bias=False)

    def project_keys(
        self, memory: Float[Tensor, "sentences src_len d_model"]
    ) -> Float[Tensor, "sentences src_len d_key"]:
        return self.key_proj(memory)


class AdditiveAttention(RecurrentAttention):
    """score(s, h) = v . tanh(W s + U h)"""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.query_proj = nn.Linear(d_model, d_model, bias=False)
        self.key_proj = nn.Linear(d_model, d_model, bias=False)
        self.score_proj = nn.Linear(d_model, 1, bias=False)

    def project_keys(
        self, memory: Float[Tensor, "sentences src_len d_model"]
    ) -> Float[Tensor, "sentences src_len d_key"]:
        return self.key_proj(memory)

    def scores(
        self, query: Float[Tensor, "sentences queries d_model"], keys: Float[Tensor, "sentences src_len d_key"]
    ) -> Float[Tensor, "sentences queries src_len"]:
        hidden = self.query_proj(query)[:, :, None] + keys[:, None]  # (sentences, queries, src_len, d_key)
        return self.score_proj(hidden.tanh())[..., 0]


SCORES: dict[str, Callable[[int], RecurrentAttention]] = {
    "dot": DotAttention,
    "scaled_dot": ScaledDotAttention,
    "general": GeneralAttention,
    "additive": AdditiveAttention,
}
