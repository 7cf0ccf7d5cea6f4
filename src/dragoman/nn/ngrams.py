"""Embeddings of n-grams, hashed into a table of fixed size (Joulin et al. 2017, fastText)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

_FACTOR = 1_000_003
"""An odd prime: the hash of an n-gram is a polynomial in it, modulo 2^64."""


class NgramEmbedding(nn.Module):
    """For each position, the sum of the vectors of the 2- to `order`-grams that end there.

    Different n-grams may share a row of the table. Rows begin at zero, so that an n-gram that training never saw says
    nothing.
    """

    def __init__(self, order: int, buckets: int, d_model: int) -> None:
        super().__init__()
        self.order, self.buckets = order, buckets
        self.table = nn.Parameter(torch.zeros(buckets, d_model))

    def forward(self, ids: Int[Tensor, "batch len"]) -> Float[Tensor, "batch len d_model"]:
        return F.embedding(self.rows(ids), self.table).sum(dim=2)

    def rows(self, ids: Int[Tensor, "batch len"]) -> Int[Tensor, "batch len orders"]:
        """The row of each n-gram; before the beginning of a text stands id 0."""
        found, code, before = [], ids, ids
        for length in range(2, self.order + 1):
            before = F.pad(before, (1, 0))[:, :-1]  # the id `length - 1` places earlier
            code = code * _FACTOR + before + length
            found.append(_scrambled(code) % self.buckets)
        return torch.stack(found, dim=2)


def _scrambled(code: Tensor) -> Tensor:
    """Every bit decides about the low ones, which the remainder is taken of."""
    return (code ^ (code >> 29)) * 0x1B873593 >> 7
