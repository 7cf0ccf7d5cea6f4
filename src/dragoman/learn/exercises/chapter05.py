"""Chapter 5: batches and masks."""

import random

import torch
from torch import Tensor

from dragoman.learn.exercise import Exercise


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


def draw_real(rng: random.Random) -> tuple[Tensor]:
    return (torch.arange(5) < torch.tensor([rng.randrange(2, 5), 5, 3])[:, None],)


EXERCISES = [
    Exercise(5, sequence_mask, lambda rng: (torch.tensor([rng.randrange(1, 7), 7, rng.randrange(1, 5), 0]), 7)),
    Exercise(5, joint_mask, draw_real),
    Exercise(5, to_other_convention, lambda rng: (joint_mask(*draw_real(rng)),)),
    Exercise(5, masked_softmax, lambda rng: (torch.randn(3, 5, 5) * 2, *draw_real(rng))),
]
