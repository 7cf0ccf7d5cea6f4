"""Chapter 6: the masked loss."""

import random
from typing import Any

import torch
from torch import Tensor

from dragoman.learn.exercise import Exercise


def masked_cross_entropy(logits: Tensor, targets: Tensor, real: Tensor) -> Tensor:
    """Compute the mean loss of the real tokens, in nats: one number.

    `logits` is (batch, len, vocab), `targets` and `real`, True at real tokens, are (batch, len).
    """
    log_probs = logits.log_softmax(dim=-1)
    losses = -log_probs.gather(-1, targets[..., None])[..., 0]
    return losses[real].sum() / real.sum()


def perplexity(losses: Tensor, real: Tensor) -> Tensor:
    """Compute the perplexity of a batch from each token's loss in nats, (batch, len): e to the mean of the real ones."""
    return losses[real].mean().exp()


def draw(rng: random.Random) -> tuple[Any, ...]:
    real = torch.arange(5) < torch.tensor([5, rng.randrange(1, 5), 2])[:, None]
    return torch.randn(3, 5, 7) * 2, torch.randint(1, 7, (3, 5)).masked_fill(~real, 0), real


EXERCISES = [
    Exercise(6, masked_cross_entropy, draw),
    Exercise(6, perplexity, lambda rng: (torch.rand(3, 5) * 4, draw(rng)[2])),
]
