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


def draw_norm(rng: random.Random) -> tuple[Any, ...]:
    torch.manual_seed(rng.randrange(2**31))
    return torch.randn(3, 4, 6) * 2 + 1, torch.randn(6), torch.randn(6), 0.1


def draw_network(rng: random.Random) -> tuple[Any, ...]:
    torch.manual_seed(rng.randrange(2**31))
    return torch.randn(2, 5, 4), torch.randn(8, 4), torch.randn(8), torch.randn(3, 8), torch.randn(3)


def draw_residual(rng: random.Random) -> tuple[Any, ...]:
    torch.manual_seed(rng.randrange(2**31))
    weight = torch.randn(5, 5)
    return torch.randn(2, 3, 5), lambda x: x @ weight, lambda x: F.layer_norm(x, (5,))


WHOLE = "(x - mean) / (variance + eps).sqrt() * gain + bias"
CONV = "F.conv1d(inner, w2[..., None], b2).transpose(1, 2)"
EXERCISES = [
    Exercise(
        9,
        layer_norm,
        draw_norm,
        [
            (
                "correction=0",
                "correction=1",
                "the variance is divided by n - 1: a norm divides by n (the notebook's std does not)",
            ),
            (
                WHOLE,
                "(x - mean) / (variance.sqrt() + eps) * gain + bias",
                "eps is added to the variance, before the root",
            ),
            (WHOLE, "(x - mean) / (variance + eps) * gain + bias", "the root is missing"),
            (WHOLE, "x / (variance + eps).sqrt() * gain + bias", "the mean is not subtracted"),
            (WHOLE, "(x - mean) / (variance + eps).sqrt()", "gain and bias are missing"),
            (WHOLE, "(x - mean) / (variance + eps).sqrt() * gain", "the bias is missing"),
            (WHOLE, "(x - mean) / (variance + eps).sqrt() + bias", "the gain is missing"),
            (WHOLE, "((x - mean) / (variance + eps).sqrt() + bias) * gain", "the bias comes after the gain"),
            (
                "x.var(dim=-1,",
                "x.var(dim=1,",
                "the variance is over positions: a layer norm takes each position's features",
            ),
            (WHOLE, "(x - mean) / (variance - eps).clamp(min=1e-9).sqrt() * gain + bias", "eps is subtracted"),
        ],
    ),
    Exercise(
        9,
        as_convolution,
        draw_network,
        [
            (".relu()", "", "the ReLU is missing: two linear maps are one"),
            (
                CONV,
                "F.conv1d(inner, w2[..., None], b2).relu().transpose(1, 2)",
                "there is no ReLU after the second map",
            ),
            (CONV, "F.conv1d(inner, w2[..., None], b2)", "the result is (batch, features, len): transpose it back"),
            (", b1)", ")", "the first bias is missing"),
            (", b2)", ")", "the second bias is missing"),
            (".relu()", ".tanh()", "it is a ReLU, not a tanh"),
            (".relu()", ".abs()", "it is a ReLU, not the absolute value"),
            ("w1[..., None], b1)", "w1.flip(0)[..., None], b1.flip(0))", "the inner features are in reversed order"),
            ("x.transpose(1, 2)", "x.flip(1).transpose(1, 2)", "the positions are in reversed order"),
            (
                "F.conv1d(x.transpose(1, 2), w1[..., None], b1)",
                "F.conv1d(x.transpose(1, 2), w1[..., None].expand(-1, -1, 3) / 3, b1, padding=1)",
                "a kernel of three positions mixes neighbours: one position each is asked for",
            ),
        ],
    ),
    Exercise(
        9,
        pre_norm,
        draw_residual,
        [
            ("x + sublayer(norm(x))", "norm(x + sublayer(x))", "that is post-norm: the norm stands outside"),
            ("x + sublayer(norm(x))", "sublayer(norm(x))", "the path around the sublayer is missing"),
            ("x + sublayer(norm(x))", "x + norm(sublayer(x))", "the norm stands after the sublayer, not before it"),
            (
                "x + sublayer(norm(x))",
                "norm(x) + sublayer(norm(x))",
                "the path itself is normalised: it should be unbroken",
            ),
            ("x + sublayer(norm(x))", "x + sublayer(x)", "the norm is missing"),
            ("x + sublayer(norm(x))", "x * sublayer(norm(x))", "the sublayer's output is added, not multiplied"),
            ("x + sublayer(norm(x))", "x - sublayer(norm(x))", "the sublayer's output is added, not subtracted"),
            ("x + sublayer(norm(x))", "norm(x + sublayer(norm(x)))", "there is one norm, before the sublayer"),
            ("x + sublayer(norm(x))", "(x + sublayer(norm(x))) / 2", "nothing is divided by two"),
            ("x + sublayer(norm(x))", "x", "the sublayer is not used"),
        ],
    ),
]
