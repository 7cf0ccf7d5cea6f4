"""Chapter 5: the masked loss."""

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
    torch.manual_seed(rng.randrange(2**31))
    real = torch.arange(5) < torch.tensor([5, rng.randrange(1, 5), 2])[:, None]
    return torch.randn(3, 5, 7) * 2, torch.randint(1, 7, (3, 5)).masked_fill(~real, 0), real


def draw_losses(rng: random.Random) -> tuple[Any, ...]:
    _, _, real = draw(rng)
    return torch.rand(3, 5) * 4, real


MEAN = "losses[real].sum() / real.sum()"
EXERCISES = [
    Exercise(
        5,
        masked_cross_entropy,
        draw,
        [
            (MEAN, "losses.mean()", "padding is in the mean: its loss is not masked"),
            (MEAN, "(losses * real).mean()", "the mean is over pads too: divide by the number of real tokens"),
            (MEAN, "losses[real].sum()", "that is the sum: it is to be divided by the number of real tokens"),
            (MEAN, "losses[real].sum() / len(real)", "divided by the number of sentences, not of tokens"),
            (
                MEAN,
                "((losses * real).sum(1) / real.sum(1)).mean()",
                "a mean of each sentence's mean: a token of a short sentence counts more",
            ),
            (MEAN, "losses[~real].sum() / real.sum()", "the mask is inverted: only padding counts"),
            (
                "logits.log_softmax(dim=-1)",
                "logits.softmax(dim=-1).log_softmax(dim=-1)",
                "the softmax is applied twice",
            ),
            (
                "logits.log_softmax(dim=-1)",
                "logits.log_softmax(dim=1)",
                "the softmax goes over positions, not the vocabulary",
            ),
            (
                "logits.log_softmax(dim=-1)",
                "logits.softmax(dim=-1)",
                "these are probabilities; their logarithm is missing",
            ),
            ("-log_probs.gather", "log_probs.gather", "the sign: a loss is minus the log probability"),
        ],
    ),
    Exercise(
        5,
        perplexity,
        draw_losses,
        [
            ("losses[real].mean().exp()", "losses.mean().exp()", "padding is in the mean"),
            ("losses[real].mean().exp()", "losses[real].exp().mean()", "e to the mean, not the mean of the powers"),
            ("losses[real].mean().exp()", "losses[real].sum().exp()", "e to the mean, not to the sum"),
            ("losses[real].mean().exp()", "losses[real].mean()", "that is the loss: e to it is asked for"),
            (
                "losses[real].mean().exp()",
                "2 ** losses[real].mean()",
                "the loss is in nats, so the base is e and not 2",
            ),
            ("losses[real].mean().exp()", "(losses * real).mean().exp()", "the mean is over pads too"),
            ("losses[real].mean().exp()", "losses[~real].mean().exp()", "the mask is inverted"),
            (
                "losses[real].mean().exp()",
                "(-losses[real].mean()).exp()",
                "the sign: that is the mean probability's kind",
            ),
            (
                "losses[real].mean().exp()",
                "10 ** losses[real].mean()",
                "the loss is in nats, so the base is e and not 10",
            ),
            ("losses[real].mean().exp()", "losses[real].max().exp()", "that is the worst token's"),
        ],
    ),
]
