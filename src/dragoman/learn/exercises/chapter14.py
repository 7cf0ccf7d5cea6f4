"""Chapter 14: three uses of the same blocks."""

import random
from typing import Any

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


def draw_hidden(rng: random.Random) -> tuple[Any, ...]:
    torch.manual_seed(rng.randrange(2**31))
    return torch.randn(3, 6, 4), torch.arange(6) < torch.tensor([6, rng.randrange(2, 6), 3])[:, None]


def draw_ids(rng: random.Random) -> tuple[Any, ...]:
    torch.manual_seed(rng.randrange(2**31))
    return (torch.randint(4, 30, (2, 7)),)


def draw_chosen(rng: random.Random) -> tuple[Any, ...]:
    (ids,) = draw_ids(rng)
    chosen = torch.rand(ids.shape) < 0.4
    chosen[:, 0], chosen[:, 1] = True, False
    return ids, chosen, 3


MEAN = "(hidden * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True)"
PAIRS = "ids[:, :-1], ids[:, 1:]"
HIDDEN = "ids.masked_fill(chosen, mask_id), ids.masked_fill(~chosen, -100)"
EXERCISES = [
    Exercise(
        14,
        mean_over_real,
        draw_hidden,
        [
            (MEAN, "hidden.mean(dim=1)", "padding is in the mean"),
            (MEAN, "(hidden * real[..., None]).mean(dim=1)", "divided by the width: a short text's vector is small"),
            (MEAN, "(hidden * real[..., None]).sum(dim=1)", "that is the sum: a long text's vector is large"),
            (MEAN, "hidden.sum(dim=1) / real.sum(dim=1, keepdim=True)", "padding is in the sum"),
            (MEAN, "(hidden * ~real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True)", "the mask is inverted"),
            (MEAN, "hidden[:, 0]", "that is the first position's vector"),
            (MEAN, "hidden[:, -1]", "that is the last column, padding for most texts"),
            (MEAN, "hidden.masked_fill(~real[..., None], -1e9).amax(dim=1)", "that is the maximum"),
            (MEAN, "(hidden * real[..., None]).sum(dim=1) / real.sum()", "divided by all real tokens of the batch"),
            (
                MEAN,
                "(hidden * real[..., None]).sum(dim=2) / real.sum(dim=1, keepdim=True)",
                "the sum goes over features, not positions",
            ),
        ],
    ),
    Exercise(
        14,
        next_token_pairs,
        draw_ids,
        [
            (PAIRS, "ids, ids", "there is no shift: the model is asked to say what it reads, and learns to copy"),
            (PAIRS, "ids[:, 1:], ids[:, :-1]", "the shift goes backwards: the token before is asked for"),
            (PAIRS, "ids[:, :-1], ids[:, :-1]", "there is no shift; only the last token is cut off"),
            (PAIRS, "ids[:, 1:], ids[:, 1:]", "there is no shift; only the first token is cut off"),
            (PAIRS, "ids[:, :-2], ids[:, 2:]", "shifted by two: every other token is never asked for"),
            (PAIRS, "ids[:-1], ids[1:]", "the shift goes over the batch: another text's tokens are asked for"),
            (PAIRS, "ids, ids.roll(-1, 1)", "the last token is asked to say the first: cut it off"),
            (PAIRS, "ids[:, :-1], ids[:, 1:].flip(1)", "what is to be said is in reversed order"),
            (PAIRS, "ids[:, :-1].flip(1), ids[:, 1:]", "what is read is in reversed order"),
            (PAIRS, "ids[:, :-1], ids[:, -1:]", "only the last token is asked for: every position can be trained"),
        ],
    ),
    Exercise(
        14,
        hide_tokens,
        draw_chosen,
        [
            (HIDDEN, "ids, ids.masked_fill(~chosen, -100)", "nothing is hidden: the model reads what it must guess"),
            (
                HIDDEN,
                "ids.masked_fill(chosen, mask_id), ids",
                "every token is a label: the loss is mostly about copying",
            ),
            (
                HIDDEN,
                "ids.masked_fill(~chosen, mask_id), ids.masked_fill(~chosen, -100)",
                "all but the chosen tokens are hidden",
            ),
            (
                HIDDEN,
                "ids.masked_fill(chosen, mask_id), ids.masked_fill(chosen, -100)",
                "labels are at the tokens that are shown",
            ),
            (
                HIDDEN,
                "ids.masked_fill(chosen, 0), ids.masked_fill(~chosen, -100)",
                "hidden tokens are mask_id, not padding",
            ),
            (
                HIDDEN,
                "ids.masked_fill(chosen, mask_id), ids.masked_fill(~chosen, 0)",
                "labels are -100 where nothing is asked, not 0",
            ),
            (HIDDEN, "ids.masked_fill(chosen, mask_id), ids.masked_fill(chosen, mask_id)", "the labels are hidden too"),
            (
                HIDDEN,
                "ids.masked_fill(chosen, -100), ids.masked_fill(~chosen, -100)",
                "-100 is for labels; a model has no such id to read",
            ),
            (
                HIDDEN,
                "ids.masked_fill(~chosen, -100), ids.masked_fill(chosen, mask_id)",
                "inputs and labels are exchanged",
            ),
            (
                HIDDEN,
                "ids.masked_fill(chosen, mask_id)[:, :-1], ids.masked_fill(~chosen, -100)[:, 1:]",
                "there is no shift here: a token is guessed in its own place",
            ),
        ],
    ),
]
