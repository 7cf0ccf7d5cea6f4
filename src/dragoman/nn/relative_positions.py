"""Trained vectors for the distances between positions (Shaw et al. 2018)."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from dragoman.nn.positions import AttentionPositions


class RelativePositions(AttentionPositions):
    """Add to the score of query i and key j the product of the query with a trained vector for their distance, all
    distances beyond `max_distance` sharing one (Shaw et al. 2018, equations 2 and 5).

    e_ij = q_i (k_j + a_clip(j - i))^T / sqrt(d_head), for all heads of a layer the same vectors a. The paper's second
    term, added to the values, is left out: their table 3 has the same BLEU without it. No limit on length.
    """

    has_bias = reads_queries = True

    def __init__(self, d_head: int, max_distance: int) -> None:
        super().__init__()
        self.max_distance = max_distance
        self.embedding = nn.Embedding(2 * max_distance + 1, d_head)
        nn.init.xavier_uniform_(self.embedding.weight)

    def bias(
        self, query: Float[Tensor, "batch num_heads query_len d_head"], start: int, key_len: int
    ) -> Float[Tensor, "batch num_heads query_len key_len"]:
        products = query @ self.embedding.weight.T / math.sqrt(query.size(-1))  # one for each distance
        places = torch.arange(start, start + query.size(2), device=query.device)
        distances = torch.arange(key_len, device=query.device) - places[:, None]  # (query_len, key_len)
        rows = distances.clamp(-self.max_distance, self.max_distance) + self.max_distance
        return products.gather(-1, rows.expand(query.size(0), query.size(1), -1, -1))
