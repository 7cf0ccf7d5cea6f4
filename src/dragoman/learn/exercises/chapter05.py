"""Chapter 5: batches and masks."""

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dragoman.learn.exercise import Exercise, Wrong
from dragoman.learn.language import message


def predict_mask_shape() -> tuple[int, ...]:
    """Predict what this code returns: the shape of a mask."""
    padding = torch.ones(2, 1, 1, 5, dtype=torch.bool)
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    return tuple((padding & causal).shape)


def padding_share(lengths: list[int]) -> float:
    """Compute the share of padding in a batch, from 0 to 1. Fill in the gap ____.

    `lengths` are the lengths of its sentences. All are padded to the longest.
    """
    positions = len(lengths) * max(lengths)
    return 1 - sum(lengths) / positions


def sequence_mask(lengths: Tensor, width: int) -> Tensor:
    """Make the mask of padded rows, (batch, width): True at the first `lengths[row]` positions of each row."""
    return torch.arange(width) < lengths[:, None]


def joint_mask(real: Tensor) -> Tensor:
    """Make the mask of a decoder's self-attention, (batch, 1, query, key), of `real`, (batch, len), True at real tokens.

    True: this query may attend to this key. A query sees the real tokens at its own position and before, nothing after.
    """
    length = real.size(1)
    past = torch.ones(length, length, dtype=torch.bool).tril()
    return real[:, None, None, :] & past


def to_other_convention(mask: Tensor) -> Tensor:
    """Convert a mask of ours, (batch, 1, query, key), True = may be attended to, to that of an additive mask.

    There, 0.0 is added to scores that may be seen and minus infinity to the others: scores + mask, then softmax.
    """
    return torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)


def masked_softmax(scores: Tensor, real: Tensor) -> Tensor:
    """Softmax over the keys that are real: `scores` is (batch, query, key), `real` (batch, key), True at real keys."""
    return scores.masked_fill(~real[:, None, :], -torch.inf).softmax(dim=-1)


def uneven_lengths() -> list[int]:
    """Choose the lengths of eight sentences, each from 1 to 40, for which sorting by length saves most of the padding.

    In one batch at least 60 % has to be padding. Sorted and cut into two batches of four, it has to be 30 % at most.
    """
    return [2, 2, 2, 2, 40, 30, 25, 25]


def grade_uneven_lengths(answer: Callable[[], Any]) -> None:
    lengths = answer()
    if (
        not isinstance(lengths, list)
        or len(lengths) != 8
        or not all(type(one) is int and 1 <= one <= 40 for one in lengths)
    ):
        raise Wrong(message("a list of eight whole numbers from 1 to 40 is asked for"))
    ordered = sorted(lengths)
    one = padding_share(lengths)
    two = 1 - sum(lengths) / (4 * (ordered[3] + ordered[7]))
    values = {"one": f"{one:.0%}", "two": f"{two:.0%}"}
    if one < 0.6:
        raise Wrong(
            message("in one batch {one} is padding: the sentences beside the longest have to be shorter", **values)
        )
    if two > 0.3:
        text = "in one batch {one} is padding, in two sorted ones {two}: within a batch the lengths have to be alike"
        raise Wrong(message(text, **values))


def draw_lengths(rng: random.Random) -> tuple[Tensor, int]:
    width, rows = rng.randrange(1, 8), rng.randrange(1, 6)
    return torch.tensor([rng.choice([0, width, rng.randrange(0, width + 1)]) for _ in range(rows)]), width


def draw_real(rng: random.Random) -> tuple[Tensor]:
    width, rows = rng.randrange(1, 7), rng.randrange(1, 5)
    return (torch.arange(width) < torch.tensor([rng.randrange(1, width + 1) for _ in range(rows)])[:, None],)


def draw_mask(rng: random.Random) -> tuple[Tensor]:
    mask = joint_mask(*draw_real(rng))
    return (mask if rng.random() < 0.7 else mask[:, :, -1:],)


def draw_scores(rng: random.Random) -> tuple[Tensor, Tensor]:
    (real,) = draw_real(rng)
    queries = rng.choice([real.size(1), rng.randrange(1, 7)])
    return torch.randn(len(real), queries, real.size(1)) * 2, real


EXERCISES = [
    Exercise(5, predict_mask_shape),
    Exercise(
        5,
        padding_share,
        lambda rng: ([rng.randrange(1, 20) for _ in range(rng.randrange(1, 7))],),
        gap="1 - sum(lengths) / positions",
    ),
    Exercise(5, sequence_mask, draw_lengths),
    Exercise(5, joint_mask, draw_real),
    Exercise(5, to_other_convention, draw_mask),
    Exercise(5, masked_softmax, draw_scores),
    Exercise(5, uneven_lengths, grade=grade_uneven_lengths),
]
