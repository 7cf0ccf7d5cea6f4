"""Chapter 11: training."""

import random
from typing import Any

import torch
from torch import Tensor

from dragoman.learn.exercise import Exercise


def noam(step: int, d_model: int, warmup: int) -> float:
    """Compute the paper's learning rate: d_model^-0.5 * min(step^-0.5, step * warmup^-1.5). Steps count from 1."""
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def smooth(target: int, vocab: int, epsilon: float) -> Tensor:
    """Make the smoothed target distribution, (vocab): 1 - epsilon at the target, and epsilon spread over all entries,
    the target among them."""
    distribution = torch.full((vocab,), epsilon / vocab)
    distribution[target] += 1 - epsilon
    return distribution


def smooth_without_pad(target: int, vocab: int, epsilon: float, pad: int) -> Tensor:
    """Make the annotated notebook's target: 1 - epsilon at the target, epsilon spread over all but target and padding.

    Where the target itself is padding, all of it is 0: nothing is asked for.
    """
    distribution = torch.full((vocab,), epsilon / (vocab - 2))
    distribution[target] = 1 - epsilon
    distribution[pad] = 0.0
    return torch.zeros(vocab) if target == pad else distribution


def draw_padded(rng: random.Random) -> tuple[Any, ...]:
    return rng.choice([0, rng.randrange(1, 7), rng.randrange(1, 7)]), 7, rng.uniform(0.05, 0.4), 0


EXERCISES = [
    Exercise(
        11,
        noam,
        lambda rng: (rng.choice([rng.randrange(1, 300), rng.randrange(400, 9000)]), rng.choice([128, 512]), 350),
    ),
    Exercise(11, smooth, lambda rng: (rng.randrange(1, 7), 7, rng.uniform(0.05, 0.4))),
    Exercise(11, smooth_without_pad, draw_padded),
]
