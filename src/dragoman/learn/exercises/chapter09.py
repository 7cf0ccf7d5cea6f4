"""Chapter 9: norms, residual connections, the feed-forward network."""

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.learn.exercise import Exercise, Wrong
from dragoman.learn.language import message


def predict_norm() -> list[float]:
    """Predict what this code returns: two numbers."""
    x = torch.tensor([1.0, 3.0])
    return F.layer_norm(x, (2,)).tolist()


def rms_norm(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    """Divide each position's features by their root mean square: no mean is subtracted. Fill in the gap ____.

    x is (batch, len, features), `gain` (features); the result is x / sqrt(mean of squares + eps) * gain.
    """
    mean_square = x.square().mean(dim=-1, keepdim=True)
    return x * (mean_square + eps).rsqrt() * gain


def layer_norm(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Normalise each position's features: (x - mean) / sqrt(variance + eps) * gain + bias. x is (batch, len, features)."""
    mean = x.mean(dim=-1, keepdim=True)
    variance = x.var(dim=-1, correction=0, keepdim=True)
    return (x - mean) / (variance + eps).sqrt() * gain + bias


def as_convolution(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    """Compute relu(x W1 + b1) W2 + b2 with F.conv1d and kernels of one position: it is the same network.

    x is (batch, len, d_model), `w1` (d_ff, d_model) and `w2` (d_out, d_ff) as in F.linear. F.conv1d wants (batch,
    features, len) and weights (out, in, 1).
    """
    inner = F.conv1d(x.transpose(1, 2), w1[..., None], b1).relu()
    return F.conv1d(inner, w2[..., None], b2).transpose(1, 2)


def pre_norm(x: Tensor, sublayer: Any, norm: Any) -> Tensor:
    """Put a residual connection around a sublayer, with the norm before it, inside of the connection."""
    return x + sublayer(norm(x))


def alike_after_norm() -> tuple[list[float], list[float]]:
    """Choose two vectors of four numbers that differ by at least 1 in each place, and that layer normalisation makes equal.

    Equal: up to 0.01 in each place, without gain and bias. The numbers of a vector may not all be the same.
    """
    return [1.0, 2.0, 3.0, 4.0], [12.0, 14.0, 16.0, 18.0]


def grade_alike_after_norm(answer: Callable[[], Any]) -> None:
    values = answer()
    try:
        vectors = torch.as_tensor(values, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        vectors = torch.zeros(0)
    if vectors.shape != (2, 4) or not vectors.isfinite().all():
        raise Wrong(message("two lists of four numbers are asked for"))
    if (vectors.std(dim=-1) < 1e-3).any():
        raise Wrong(message("the numbers of a vector may not all be the same: their variance is 0"))
    if (vectors[0] - vectors[1]).abs().min() < 1:
        raise Wrong(message("the vectors have to differ by at least 1 in each place"))
    one, other = F.layer_norm(vectors, (4,))
    if (one - other).abs().max() < 0.01:
        return
    if (one + other).abs().max() < 0.01:
        raise Wrong(message("after the norm one is minus the other: a negative factor turns the sign"))
    text = "after the norm they are {one} and {other}: what do you add to a vector, or multiply it with, that the norm takes away?"
    raise Wrong(message(text, one=_rounded(one), other=_rounded(other)))


def _rounded(vector: Tensor) -> list[float]:
    return [round(value, 2) for value in vector.tolist()]


def draw_rms(rng: random.Random) -> tuple[Any, ...]:
    shape = [rng.randrange(1, 5), rng.randrange(1, 5), rng.randrange(2, 7)]
    return torch.randn(*shape) * 2 + 1, torch.randn(shape[-1]), rng.choice([1e-5, 0.1, 1.0])


def draw_norm(rng: random.Random) -> tuple[Any, ...]:
    x, gain, eps = draw_rms(rng)
    return x, gain, torch.randn(len(gain)), eps


def draw_network(rng: random.Random) -> tuple[Tensor, ...]:
    rows, width, d, d_ff, d_out = (rng.randrange(1, 6) for _ in range(5))
    shapes = ((rows, width, d), (d_ff, d), (d_ff,), (d_out, d_ff), (d_out,))
    return tuple(torch.randn(*shape) for shape in shapes)


def draw_residual(rng: random.Random) -> tuple[Any, ...]:
    d = rng.randrange(2, 7)
    weight = torch.randn(d, d)
    x = torch.randn(rng.randrange(1, 4), rng.randrange(1, 5), d)
    return x, lambda x: x @ weight, lambda x: F.layer_norm(x, (d,))


EXERCISES = [
    Exercise(9, predict_norm),
    Exercise(9, rms_norm, draw_rms, gap="x.square().mean(dim=-1, keepdim=True)"),
    Exercise(9, layer_norm, draw_norm),
    Exercise(9, as_convolution, draw_network),
    Exercise(9, pre_norm, draw_residual),
    Exercise(9, alike_after_norm, grade=grade_alike_after_norm),
]
