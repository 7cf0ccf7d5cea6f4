"""Chapter 8: positions."""

import math
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dragoman.learn.exercise import Exercise, Wrong
from dragoman.learn.language import message


def predict_position_0() -> list[float]:
    """Predict what this code returns: the vector of position 0."""
    position, d_model = 0, 6
    waves = position * 10_000 ** (-torch.arange(0, d_model, 2) / d_model)
    return torch.stack([waves.sin(), waves.cos()], dim=-1).flatten().tolist()


def rotate(pair: Tensor, angle: float) -> Tensor:
    """Turn pairs of features, (..., 2), by an angle, as rotary positions do. Fill in the gap ____.

    (1, 0) becomes (cos, sin) of the angle, and (0, 1) becomes (-sin, cos).
    """
    x, y = pair.unbind(-1)
    return torch.stack([x * math.cos(angle) - y * math.sin(angle), x * math.sin(angle) + y * math.cos(angle)], dim=-1)


def sinusoid(position: int, d_model: int, base: float) -> Tensor:
    """Compute the paper's vector of one position, (d_model): dimension 2i is sin(pos / base^(2i/d_model)), 2i+1 its cosine."""
    angles = position * base ** (-torch.arange(0, d_model, 2) / d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten()


def move(vector: Tensor, distance: int, base: float) -> Tensor:
    """Make the sinusoidal vector of position pos + distance of that of pos, without knowing pos: a rotation of each pair.

    sin(a + b) = sin a cos b + cos a sin b, and cos(a + b) = cos a cos b - sin a sin b.
    """
    d_model = len(vector)
    turn = distance * base ** (-torch.arange(0, d_model, 2) / d_model)
    sin, cos = vector.unflatten(0, (-1, 2)).unbind(-1)
    return torch.stack([sin * turn.cos() + cos * turn.sin(), cos * turn.cos() - sin * turn.sin()], dim=-1).flatten()


WAVE = 12


def alike_positions() -> tuple[int, int]:
    """Choose two positions from 0 to 100 that an encoding with one wave cannot tell apart.

    The encoding is (sin, cos) of 2 pi pos / 12. Both numbers have to be the same for both positions.
    """
    return 1, 13


def grade_alike_positions(answer: Callable[[], Any]) -> None:
    pair = answer()
    is_pair = isinstance(pair, tuple | list) and len(pair) == 2
    if not is_pair or not all(type(one) is int and 0 <= one <= 100 for one in pair):
        raise Wrong(message("two whole numbers from 0 to 100 are asked for"))
    one, other = pair
    if one == other:
        raise Wrong(message("two different positions are asked for"))
    waves = [2 * math.pi * position / WAVE for position in pair]
    sines, cosines = ([function(wave) for wave in waves] for function in (math.sin, math.cos))
    same = [abs(values[0] - values[1]) < 1e-9 for values in (sines, cosines)]
    values = {"one": one, "other": other}
    if same == [True, False]:
        raise Wrong(message("the sines of {one} and {other} are the same, and the cosines are not", **values))
    if same == [False, True]:
        raise Wrong(message("the cosines of {one} and {other} are the same, and the sines are not", **values))
    if not all(same):
        raise Wrong(
            message("the wave tells {one} and {other} apart: after how many positions does it repeat?", **values)
        )


def draw_pairs(rng: random.Random) -> tuple[Any, ...]:
    shape = [rng.randrange(1, 4) for _ in range(rng.randrange(0, 3))]
    return torch.randn(*shape, 2), rng.uniform(-3, 3)


def draw_position(rng: random.Random) -> tuple[Any, ...]:
    return rng.randrange(0, 60), 2 * rng.randrange(1, 9), rng.choice([100.0, 10_000.0])


def draw_move(rng: random.Random) -> tuple[Any, ...]:
    position, d_model, base = draw_position(rng)
    return sinusoid(position, d_model, base), rng.randrange(1, 40), base


EXERCISES = [
    Exercise(8, predict_position_0),
    Exercise(8, rotate, draw_pairs, gap="x * math.sin(angle) + y * math.cos(angle)"),
    Exercise(8, sinusoid, draw_position),
    Exercise(8, move, draw_move),
    Exercise(8, alike_positions, grade=grade_alike_positions),
]
