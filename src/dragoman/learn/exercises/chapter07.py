"""Chapter 7: several heads."""

import random

import torch
from torch import Tensor

from dragoman.learn.exercise import Exercise


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Split (batch, len, d_model) into heads, (batch, num_heads, len, d_head): head 0 has the first d_head features."""
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def merge_heads(heads: Tensor) -> Tensor:
    """Put heads side by side again: (batch, num_heads, len, d_head) to (batch, len, d_model)."""
    return heads.transpose(1, 2).flatten(2)


def count_parameters(d_model: int, num_heads: int, num_kv_heads: int) -> int:
    """Count the weights and biases of multi-head attention: projections of queries, keys, values and of the output.

    Each has a bias. Keys and values have `num_kv_heads` heads, queries `num_heads`, all of d_model / num_heads features.
    """
    d_kv = num_kv_heads * (d_model // num_heads)
    return 2 * (d_model * d_model + d_model) + 2 * (d_model * d_kv + d_kv)


def draw_sizes(rng: random.Random) -> tuple[int, ...]:
    heads = rng.choice([8, 16])
    return heads * rng.randrange(2, 20), heads, rng.choice([2, 4])


EXERCISES = [
    Exercise(7, split_heads, lambda rng: (torch.randn(2, 4, 24), rng.choice([2, 3, 6]))),
    Exercise(7, merge_heads, lambda rng: (torch.randn(2, 3, 4, 6),)),
    Exercise(7, count_parameters, draw_sizes),
]
