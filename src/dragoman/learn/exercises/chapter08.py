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


ANGLES = "position * base ** (-torch.arange(0, d_model, 2) / d_model)"
STACK = "torch.stack([angles.sin(), angles.cos()], dim=-1).flatten()"
MOVED = "torch.stack([sin * turn.cos() + cos * turn.sin(), cos * turn.cos() - sin * turn.sin()], dim=-1).flatten()"
EXERCISES = [
    Exercise(
        8,
        sinusoid,
        draw_position,
        [
            (
                STACK,
                "torch.cat([angles.sin(), angles.cos()])",
                "all sines stand before all cosines: they come in pairs",
            ),
            (
                STACK,
                "torch.stack([angles.cos(), angles.sin()], dim=-1).flatten()",
                "a pair is the sine, then the cosine",
            ),
            (STACK, "torch.stack([angles.sin(), angles.sin()], dim=-1).flatten()", "a pair has two sines: no cosines"),
            (
                ANGLES,
                "position * base ** (-torch.arange(d_model // 2) / d_model)",
                "the exponent is i/d, not 2i/d: waves are too fast",
            ),
            (
                ANGLES,
                "position * base ** (torch.arange(0, d_model, 2) / d_model)",
                "the sign: rates fall with i; these grow",
            ),
            (
                ANGLES,
                "position * (base / 10) ** (-torch.arange(0, d_model, 2) / d_model)",
                "the base is a tenth of the one given",
            ),
            (
                ANGLES,
                "(position - 1) * base ** (-torch.arange(0, d_model, 2) / d_model)",
                "positions count from 0, not from 1",
            ),
            (
                ANGLES,
                "(position + 1) * base ** (-torch.arange(0, d_model, 2) / d_model)",
                "the vector is that of the next position",
            ),
            (
                ANGLES,
                "6.2831853 * position * base ** (-torch.arange(0, d_model, 2) / d_model)",
                "there is no 2 pi in the formula",
            ),
            (
                ANGLES,
                "position / (base * (torch.arange(0, d_model, 2) / d_model + 1e-9))",
                "the base is raised to 2i/d, not multiplied by it",
            ),
        ],
    ),
    Exercise(
        8,
        move,
        draw_move,
        [
            (MOVED, "vector + distance", "a distance is not added to the numbers: each pair is rotated"),
            ("cos * turn.cos() - sin * turn.sin()", "cos * turn.cos() + sin * turn.sin()", "the sign in cos(a + b)"),
            ("sin * turn.cos() + cos * turn.sin()", "sin * turn.cos() - cos * turn.sin()", "the sign in sin(a + b)"),
            (
                "sin * turn.cos() + cos * turn.sin(), cos * turn.cos() - sin * turn.sin()",
                "sin * turn.cos() - cos * turn.sin(), cos * turn.cos() + sin * turn.sin()",
                "the pairs are turned backwards, to pos - distance",
            ),
            (MOVED, "vector", "nothing has moved"),
            ("unbind(-1)", "flip(-1).unbind(-1)", "sine and cosine are exchanged when they are read"),
            (
                "sin * turn.cos() + cos * turn.sin(), cos * turn.cos() - sin * turn.sin()",
                "cos * turn.cos() - sin * turn.sin(), sin * turn.cos() + cos * turn.sin()",
                "sine and cosine are exchanged in the answer",
            ),
            ("dim=-1).flatten()", "dim=0).flatten()", "sines and cosines come in pairs, not one block after the other"),
            (
                "torch.arange(0, d_model, 2) / d_model",
                "torch.arange(d_model // 2) / d_model",
                "the rates' exponent is 2i/d, not i/d",
            ),
            ("distance * base", "distance * (base / 10)", "the base is a tenth of the one given"),
        ],
    ),
]
