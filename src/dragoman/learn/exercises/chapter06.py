"""Chapter 6: attention."""

import random
from typing import Any

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


def draw_additive(rng: random.Random) -> tuple[Any, ...]:
    torch.manual_seed(rng.randrange(2**31))
    return torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(4, 4), torch.randn(4, 4), torch.randn(4)


def draw_attention(rng: random.Random) -> tuple[Any, ...]:
    torch.manual_seed(rng.randrange(2**31))
    mask = torch.rand(2, 5, 5) < 0.7
    mask[..., 0] = True
    return torch.randn(2, 5, 8), torch.randn(2, 5, 8), torch.randn(2, 5, 3), mask


HIDDEN = "(query @ w.T)[:, :, None] + (keys @ u.T)[:, None]"
EXERCISES = [
    Exercise(
        6,
        additive_scores,
        draw_additive,
        [
            ("hidden.tanh() @ v", "hidden @ v", "tanh is missing: without it W s adds the same to all keys' scores"),
            ("hidden.tanh()", "hidden.sigmoid()", "it is a tanh, not a sigmoid"),
            ("hidden.tanh()", "hidden.relu()", "it is a tanh, not a ReLU"),
            (" + (keys @ u.T)[:, None]", " * (keys @ u.T)[:, None]", "W s and U h are added, not multiplied"),
            (" + (keys @ u.T)[:, None]", " - (keys @ u.T)[:, None]", "W s and U h are added, not subtracted"),
            ("query @ w.T", "query @ w", "y = W x is x @ W.T for rows: W is not transposed"),
            ("keys @ u.T", "keys @ u", "y = U x is x @ U.T for rows: U is not transposed"),
            (HIDDEN, "(query @ u.T)[:, :, None] + (keys @ w.T)[:, None]", "W and U are exchanged"),
            ("(query @ w.T)[:, :, None]", "query[:, :, None]", "the query is not projected by W"),
            ("hidden.tanh() @ v", "(hidden.tanh() @ v).softmax(dim=-1)", "these are weights; scores are asked for"),
        ],
    ),
    Exercise(
        6,
        attention,
        draw_attention,
        [
            (" / query.size(-1) ** 0.5", "", "the scores are not divided by sqrt(d)"),
            (" / query.size(-1) ** 0.5", " / query.size(-1)", "the scores are divided by d, not by its square root"),
            (
                " / query.size(-1) ** 0.5",
                " * query.size(-1) ** 0.5",
                "the scores are multiplied by sqrt(d), not divided",
            ),
            (
                " / query.size(-1) ** 0.5",
                " / key.size(1) ** 0.5",
                "sqrt of the number of keys; d is the width of a head",
            ),
            ("~mask", "mask", "the mask is inverted"),
            ("-torch.inf", "0.0", "hidden scores become 0, and e^0 is 1: they get weight"),
            ("softmax(dim=-1)", "softmax(dim=1)", "the softmax goes over queries: a column sums to 1, not a row"),
            (".masked_fill(~mask, -torch.inf)", "", "the mask is not used"),
            (
                "query @ key.transpose(-2, -1)",
                "key @ query.transpose(-2, -1)",
                "rows and columns are exchanged: a row is a query",
            ),
            ("weights @ value, weights", "weights.transpose(-2, -1) @ value, weights", "the context is W V, not W^T V"),
        ],
    ),
]
