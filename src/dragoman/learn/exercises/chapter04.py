"""Chapter 4: attention."""

import math
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dragoman.learn.exercise import Exercise, Wrong
from dragoman.learn.language import message


def predict_weights() -> list[float]:
    """Predict what this code returns: the attention weights of two keys, whose scores are 0 and ln 3."""
    scores = torch.tensor([0.0, math.log(3)])
    return scores.softmax(dim=0).tolist()


def attend_once(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Compute the context of one query, (d_value): the mean of the values by attention weights. Fill in the gap ____.

    `query` is (d), `keys` (len, d), `values` (len, d_value).
    """
    scores = keys @ query / math.sqrt(len(query))
    weights = scores.softmax(dim=0)
    return weights @ values


def additive_scores(query: Tensor, keys: Tensor, w: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """Compute the scores v . tanh(W q + U k) of each query q, a state of the decoder, with each key k of the encoder.

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


KEYS = torch.tensor([[1.0, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1], [1, 1, 0, 1]])


def query_for_bier() -> list[float]:
    """Choose a query of four numbers, whose length sqrt(q . q) is at most 10, that looks at `bier`.

    The keys are ich (1, 0, 0, 1), möchte (0, 1, 0, 1), ein (0, 0, 1, 1) and bier (1, 1, 0, 1). Scores are divided by
    sqrt(4). The weight of `bier` has to be at least 0.9.
    """
    return [7.0, 7.0, 0.0, 0.0]


def grade_query_for_bier(answer: Callable[[], Any]) -> None:
    values = answer()
    query = (
        torch.as_tensor(values, dtype=torch.float32) if isinstance(values, list | tuple | Tensor) else torch.zeros(0)
    )
    if query.shape != (4,):
        raise Wrong(message("four numbers are asked for"))
    if query.norm() > 10.001:
        raise Wrong(message("the query is {length} long, and may be 10 long at most", length=f"{query.norm():.4g}"))
    weights = (KEYS @ query / 2).softmax(dim=0)
    if weights[3] >= 0.9:
        return
    shown = {"weights": ", ".join(f"{weight:.2f}" for weight in weights.tolist())}
    if query[3].abs() > 3 and weights[3] < 0.9:
        raise Wrong(
            message("the weights are {weights}: the last number adds the same to all scores, and is wasted", **shown)
        )
    if int(weights.argmax()) != 3:
        raise Wrong(
            message(
                "the weights are {weights}: it looks elsewhere; which numbers does `bier` alone have together?", **shown
            )
        )
    raise Wrong(
        message("the weights are {weights}: the direction is right; a longer query makes a sharper softmax", **shown)
    )


def draw_one(rng: random.Random) -> tuple[Tensor, ...]:
    d, length, d_value = rng.randrange(1, 6), rng.randrange(1, 6), rng.randrange(1, 5)
    return torch.randn(d), torch.randn(length, d), torch.randn(length, d_value)


def draw_additive(rng: random.Random) -> tuple[Tensor, ...]:
    rows, queries, length, d = (rng.randrange(1, 6) for _ in range(4))
    shapes = ((rows, queries, d), (rows, length, d), (d, d), (d, d), (d,))
    return tuple(torch.randn(*shape) for shape in shapes)


def draw_attention(rng: random.Random) -> tuple[Tensor, ...]:
    rows, queries, d, d_value = (rng.randrange(1, 6) for _ in range(4))
    length = rng.choice([queries, rng.randrange(1, 6)])
    mask = torch.rand(rows, queries, length) < 0.7
    mask[..., 0] = True
    return torch.randn(rows, queries, d), torch.randn(rows, length, d), torch.randn(rows, length, d_value), mask


EXERCISES = [
    Exercise(4, predict_weights),
    Exercise(4, attend_once, draw_one, gap="weights @ values"),
    Exercise(4, additive_scores, draw_additive),
    Exercise(4, attention, draw_attention),
    Exercise(4, query_for_bier, grade=grade_query_for_bier),
]
