"""Chapter 4: attention."""

import random

import torch
from torch import Tensor

from dragoman.learn.exercise import Exercise


def additive_scores(query: Tensor, keys: Tensor, w: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """Compute the scores v . tanh(W s + U h) of each state s of the decoder with each position h of the encoder.

    `query` is (batch, queries, d), `keys` (batch, len, d), `w` and `u` (d, d) as in y = W x, `v` (d); the result is
    (batch, queries, len).
    """
    hidden = (query @ w.T)[:, :, None] + (keys @ u.T)[:, None]
    return hidden.tanh() @ v


def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Compute softmax(Q K^T / sqrt(d)) V: (the context, the weights).

    Q is (batch, queries, d), K (batch, keys, d), V (batch, keys, d_value), `mask` (batch, queries, keys), True where a
    query may look.
    """
    scores = query @ key.transpose(-2, -1) / query.size(-1) ** 0.5
    weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    return weights @ value, weights


def draw_attention(rng: random.Random) -> tuple[Tensor, ...]:
    mask = torch.rand(2, 5, 5) < 0.7
    mask[..., 0] = True
    return torch.randn(2, 5, 8), torch.randn(2, 5, 8), torch.randn(2, 5, 3), mask


ADDITIVE_SHAPES = ((2, 3, 4), (2, 5, 4), (4, 4), (4, 4), (4,))

EXERCISES = [
    Exercise(4, additive_scores, lambda rng: tuple(torch.randn(*shape) for shape in ADDITIVE_SHAPES)),
    Exercise(4, attention, draw_attention),
]
