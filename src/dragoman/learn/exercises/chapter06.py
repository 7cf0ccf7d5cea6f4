"""Chapter 6: the masked loss."""

import math
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.learn.exercise import Exercise, Wrong
from dragoman.learn.language import message


def predict_perplexity() -> float:
    """Predict what this code returns: the perplexity of a batch of two real tokens and one of padding."""
    losses, real = [math.log(2), math.log(8), 100.0], [True, True, False]
    counted = [loss for loss, is_real in zip(losses, real, strict=True) if is_real]
    return math.exp(sum(counted) / len(counted))


def joined_mean(sums: list[float], counts: list[int]) -> float:
    """Compute the mean loss of all tokens of several batches. Fill in the gap ____.

    `sums` are the losses of the batches, each added up over its real tokens; `counts` are the numbers of those tokens.
    """
    return sum(sums) / sum(counts)


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


def wrong_with_a_low_loss() -> list[list[float]]:
    """Choose the logits of four tokens, (4, 5), that are all wrong and have a low loss.

    The right tokens are 0, 1, 2 and 3. The largest logit of no row may be that of the right token, and the mean
    cross-entropy has to be below 0.75.
    """
    return [[9.0 if column == row else 9.01 if column == 4 else 0.0 for column in range(5)] for row in range(4)]


def grade_wrong_with_a_low_loss(answer: Callable[[], Any]) -> None:
    values = answer()
    try:
        logits = torch.as_tensor(values, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        logits = torch.zeros(0)
    if logits.shape != (4, 5):
        raise Wrong(message("four rows of five numbers are asked for"))
    targets = torch.arange(4)
    loss = F.cross_entropy(logits, targets).item()
    right = int((logits.gather(1, targets[:, None])[:, 0] >= logits.max(dim=1).values).sum())
    if not math.isfinite(loss):
        raise Wrong(message("the loss is {loss}: choose finite numbers", loss=loss))
    if right:
        raise Wrong(
            message("{right} of the four are right (or level): another logit has to be the largest", right=right)
        )
    if loss >= 0.75:
        text = "none is right, and the loss is {loss}: the right token's probability may come close to a half"
        raise Wrong(message(text, loss=f"{loss:.3f}"))


def draw_mask(rng: random.Random) -> Tensor:
    rows, width = rng.randrange(1, 5), rng.randrange(1, 6)
    return torch.arange(width) < torch.tensor([rng.randrange(1, width + 1) for _ in range(rows)])[:, None]


def draw(rng: random.Random) -> tuple[Any, ...]:
    real = draw_mask(rng)
    targets = torch.randint(0, 7, real.shape)  # a real token may have the id 0
    return (torch.randn(*real.shape, 7) * 2).requires_grad_(), targets.masked_fill(~real, 0), real


def draw_losses(rng: random.Random) -> tuple[Any, ...]:
    real = draw_mask(rng)
    return torch.rand(real.shape) * 4, real


def draw_sums(rng: random.Random) -> tuple[Any, ...]:
    counts = [rng.randrange(1, 50) for _ in range(rng.randrange(1, 5))]
    return [rng.uniform(0.5, 5) * count for count in counts], counts


EXERCISES = [
    Exercise(6, predict_perplexity),
    Exercise(6, joined_mean, draw_sums, gap="sum(sums) / sum(counts)"),
    Exercise(6, masked_cross_entropy, draw),
    Exercise(6, perplexity, draw_losses),
    Exercise(6, wrong_with_a_low_loss, grade=grade_wrong_with_a_low_loss),
]
