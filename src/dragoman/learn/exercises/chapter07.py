"""Chapter 7: several heads."""

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dragoman.learn.exercise import Exercise, Wrong
from dragoman.learn.language import message
from dragoman.nn.attention import MultiHeadAttention


def predict_heads() -> tuple[int, ...]:
    """Predict what this code returns: a shape."""
    x = torch.zeros(2, 5, 12)
    return tuple(x.unflatten(-1, (3, -1)).transpose(1, 2).shape)


def repeat_heads(heads: Tensor, times: int) -> Tensor:
    """Repeat the keys of each head for `times` heads of queries that share it, one after the other. Fill in the gap ____.

    `heads` is (batch, kv_heads, len, d_head), the result (batch, kv_heads * times, len, d_head). Heads 0 to times - 1 of
    the result are head 0.
    """
    return heads.repeat_interleave(times, dim=1)


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


def small_cache() -> dict[str, int]:
    """Choose the sizes of an attention, "d_model", "num_heads" and "num_kv_heads", with a small cache.

    d_model has to be at least 512, and a head 64 wide. For each token its cache of keys and values has to hold at most
    an eighth of what it would hold with as many key heads as query heads.
    """
    return {"d_model": 512, "num_heads": 8, "num_kv_heads": 1}


def grade_small_cache(answer: Callable[[], Any]) -> None:
    sizes = answer()
    keys = ("d_model", "num_heads", "num_kv_heads")
    if not isinstance(sizes, dict) or set(sizes) != set(keys):
        raise Wrong(message("a dict with the keys {keys} is asked for", keys=", ".join(keys)))
    d_model, heads, kv_heads = (sizes[key] for key in keys)
    if not all(type(size) is int and 0 < size <= 8192 for size in (d_model, heads, kv_heads)):
        raise Wrong(message("sizes are whole numbers from 1 to 8192"))
    if d_model < 512:
        raise Wrong(message("d_model is {size}, and has to be at least 512", size=d_model))
    if heads * 64 != d_model:
        raise Wrong(message("{heads} heads of 64 features need a d_model of {size}", heads=heads, size=heads * 64))
    if heads % kv_heads:
        raise Wrong(
            message(
                "{heads} heads of queries cannot share {kv_heads} heads of keys evenly", heads=heads, kv_heads=kv_heads
            )
        )
    with torch.device("meta"):
        few, all_heads = (MultiHeadAttention(d_model, heads, num_kv_heads=n) for n in (kv_heads, heads))
        few_numbers, all_numbers = (_cache_size(one, d_model) for one in (few, all_heads))
    if few_numbers * 8 > all_numbers:
        values = {"few": few_numbers, "all": all_numbers}
        raise Wrong(
            message(
                "the cache holds {few} numbers for a token, of {all} with all heads: that is over an eighth", **values
            )
        )


def _cache_size(attention: MultiHeadAttention, d_model: int) -> int:
    cache = attention.project_kv(torch.zeros(1, 1, d_model))
    return cache.key.numel() + cache.value.numel()


def draw_kv(rng: random.Random) -> tuple[Any, ...]:
    return torch.randn(*(rng.randrange(1, 4) for _ in range(4))), rng.randrange(1, 4)


def draw_features(rng: random.Random) -> tuple[Any, ...]:
    heads = rng.choice([1, 2, 3, 4])
    return torch.randn(rng.randrange(1, 4), rng.randrange(1, 6), heads * rng.randrange(1, 5)), heads


def draw_sizes(rng: random.Random) -> tuple[int, ...]:
    heads = rng.choice([4, 8, 16])
    return heads * rng.randrange(2, 20), heads, rng.choice([1, 2, 4])


EXERCISES = [
    Exercise(7, predict_heads),
    Exercise(7, repeat_heads, draw_kv, gap="heads.repeat_interleave(times, dim=1)"),
    Exercise(7, split_heads, draw_features),
    Exercise(7, merge_heads, lambda rng: (torch.randn(*(rng.randrange(1, 6) for _ in range(4))),)),
    Exercise(7, count_parameters, draw_sizes),
    Exercise(7, small_cache, grade=grade_small_cache),
]
