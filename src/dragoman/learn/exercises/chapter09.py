"""Chapter 9: norms, residual connections, the feed-forward network."""

import random
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.learn.exercise import Exercise


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


NETWORK_SHAPES = ((2, 5, 4), (8, 4), (8,), (3, 8), (3,))


def draw_residual(rng: random.Random) -> tuple[Any, ...]:
    weight = torch.randn(5, 5)
    return torch.randn(2, 3, 5), lambda x: x @ weight, lambda x: F.layer_norm(x, (5,))


EXERCISES = [
    Exercise(9, layer_norm, lambda rng: (torch.randn(3, 4, 6) * 2 + 1, torch.randn(6), torch.randn(6), 0.1)),
    Exercise(9, as_convolution, lambda rng: tuple(torch.randn(*shape) for shape in NETWORK_SHAPES)),
    Exercise(9, pre_norm, draw_residual),
]
