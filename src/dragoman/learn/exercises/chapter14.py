"""Chapter 14: three uses of the same blocks."""

import random

import torch
from torch import Tensor

from dragoman.learn.exercise import Exercise


def mean_over_real(hidden: Tensor, real: Tensor) -> Tensor:
    """Pool an encoder's output, (batch, len, d), to one vector for each text, (batch, d): the mean of its real positions."""
    return (hidden * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True)


def next_token_pairs(ids: Tensor) -> tuple[Tensor, Tensor]:
    """Make what a language model reads and must say of a window of ids, (batch, len): both (batch, len - 1)."""
    return ids[:, :-1], ids[:, 1:]


def hide_tokens(ids: Tensor, chosen: Tensor, mask_id: int) -> tuple[Tensor, Tensor]:
    """Make what a masked language model reads and must say: (inputs, labels), both (batch, len).

    `chosen` is True at the tokens to guess: inputs have `mask_id` there, and labels the token itself. Labels are -100
    everywhere else, which PyTorch's cross-entropy leaves out.
    """
    return ids.masked_fill(chosen, mask_id), ids.masked_fill(~chosen, -100)


def draw_ids(rng: random.Random) -> tuple[Tensor]:
    return (torch.randint(4, 30, (2, 7)),)


def draw_hidden(rng: random.Random) -> tuple[Tensor, Tensor]:
    return torch.randn(3, 6, 4), torch.arange(6) < torch.tensor([6, rng.randrange(2, 6), 3])[:, None]


def draw_chosen(rng: random.Random) -> tuple[Tensor, Tensor, int]:
    (ids,) = draw_ids(rng)
    chosen = torch.rand(ids.shape) < 0.4
    chosen[:, 0], chosen[:, 1] = True, False
    return ids, chosen, 3


EXERCISES = [
    Exercise(14, mean_over_real, draw_hidden),
    Exercise(14, next_token_pairs, draw_ids),
    Exercise(14, hide_tokens, draw_chosen),
]
