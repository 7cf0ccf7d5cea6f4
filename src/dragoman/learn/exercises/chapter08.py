"""Chapter 8: positions."""

import random
from typing import Any

import torch
from torch import Tensor

from dragoman.learn.exercise import Exercise


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


def draw_position(rng: random.Random) -> tuple[Any, ...]:
    return rng.randrange(1, 60), 2 * rng.randrange(2, 9), rng.choice([100.0, 10_000.0])


def draw_move(rng: random.Random) -> tuple[Any, ...]:
    position, d_model, base = draw_position(rng)
    return sinusoid(position, d_model, base), rng.randrange(1, 40), base


EXERCISES = [Exercise(8, sinusoid, draw_position), Exercise(8, move, draw_move)]
