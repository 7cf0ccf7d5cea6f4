"""Chapter 7: several heads."""

import random
from typing import Any

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


def draw_split(rng: random.Random) -> tuple[Any, ...]:
    torch.manual_seed(rng.randrange(2**31))
    return torch.randn(2, 4, 24), rng.choice([2, 3, 6])


def draw_heads(rng: random.Random) -> tuple[Any, ...]:
    torch.manual_seed(rng.randrange(2**31))
    return (torch.randn(2, 3, 4, 6),)


def draw_sizes(rng: random.Random) -> tuple[Any, ...]:
    heads = rng.choice([8, 16])
    return heads * rng.randrange(2, 20), heads, rng.choice([2, 4])


SPLIT = "x.unflatten(-1, (num_heads, -1)).transpose(1, 2)"
MERGED = "heads.transpose(1, 2).flatten(2)"
BOTH = "2 * (d_model * d_model + d_model) + 2 * (d_model * d_kv + d_kv)"
VIEW = "x.reshape(len(x), num_heads, x.size(1), -1)"
EXERCISES = [
    Exercise(
        7,
        split_heads,
        draw_split,
        [
            (
                SPLIT,
                VIEW,
                "a view to (batch, heads, len, d_head) mixes positions: split the last dimension, then transpose",
            ),
            (
                SPLIT,
                "x.unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2)",
                "heads take every n-th feature, not neighbours",
            ),
            (SPLIT, "x.unflatten(-1, (num_heads, -1))", "heads stand after positions: the transposition is missing"),
            (SPLIT, "x.unflatten(-1, (num_heads, -1)).transpose(1, 2).flip(1)", "the heads are in reversed order"),
            (SPLIT, "x.unflatten(-1, (num_heads, -1)).transpose(1, 2).flip(2)", "the positions are in reversed order"),
            (SPLIT, "x.unflatten(-1, (num_heads, -1)).permute(0, 3, 1, 2)", "features stand where heads should"),
            (SPLIT, "x.unflatten(-1, (num_heads, -1)).transpose(1, 2)[:, :1]", "there is only one head"),
            (
                SPLIT,
                "x.unflatten(-1, (num_heads, -1)).permute(2, 0, 1, 3)",
                "heads stand before sentences: the batch comes first",
            ),
            (
                SPLIT,
                "x[:, None].expand(-1, num_heads, -1, -1)",
                "every head has all features: each should have its share",
            ),
            (
                SPLIT,
                "x.unflatten(-1, (num_heads, -1)).transpose(1, 2) / num_heads",
                "the values are divided; only their places change",
            ),
        ],
    ),
    Exercise(
        7,
        merge_heads,
        draw_heads,
        [
            (MERGED, "heads.reshape(len(heads), heads.size(2), -1)", "without the transposition, positions are mixed"),
            (MERGED, "heads.flip(1).transpose(1, 2).flatten(2)", "the heads are in reversed order"),
            (
                MERGED,
                "heads.permute(0, 2, 3, 1).flatten(2)",
                "the heads' features stand in turn: head after head is asked for",
            ),
            (MERGED, "heads.mean(dim=1)", "that is a mean of the heads: put them side by side"),
            (MERGED, "heads.sum(dim=1)", "the heads are added: put them side by side"),
            (MERGED, "heads.transpose(1, 2)", "heads and features are still two dimensions: flatten them"),
            (MERGED, "heads.flatten(1, 2)", "heads became positions: transpose first"),
            (MERGED, "heads[:, 0]", "only the first head is left"),
            (MERGED, "heads.transpose(1, 2).flatten(2).flip(1)", "the positions are in reversed order"),
            (
                MERGED,
                "heads.transpose(1, 2).flatten(2).softmax(-1)",
                "the values are changed; only their places should be",
            ),
        ],
    ),
    Exercise(
        7,
        count_parameters,
        draw_sizes,
        [
            (BOTH, "4 * (d_model * d_model + d_model)", "keys and values have fewer heads, so narrower matrices"),
            (BOTH, "2 * d_model * d_model + 2 * d_model * d_kv", "the biases are missing"),
            (
                BOTH,
                "2 * (d_model * d_model + d_model) + 2 * (d_model * d_kv + d_model)",
                "a bias has as many numbers as its output",
            ),
            (BOTH, "(d_model * d_model + d_model) + 2 * (d_model * d_kv + d_kv)", "the output projection is missing"),
            (
                BOTH,
                "2 * (d_model * d_model + d_model) + (d_model * d_kv + d_kv)",
                "keys and values have a projection each",
            ),
            (
                BOTH,
                "num_heads * (2 * (d_model * d_model + d_model) + 2 * (d_model * d_kv + d_kv))",
                "heads share d_model: they do not multiply it",
            ),
            ("d_model // num_heads", "d_model", "a head has d_model / num_heads features, not d_model"),
            ("num_kv_heads * (d_model // num_heads)", "d_model // num_heads", "num_kv_heads is not used"),
            (
                "num_kv_heads * (d_model // num_heads)",
                "d_model // num_kv_heads",
                "num_kv_heads times a head's width, not d_model divided by it",
            ),
            (BOTH, "2 * (d_model * d_kv + d_kv)", "only keys and values are counted"),
        ],
    ),
]
