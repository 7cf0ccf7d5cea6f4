"""Chapter 3: batches and masks."""

import random
from typing import Any

import torch
from torch import Tensor

from dragoman.learn.exercise import Exercise


def sequence_mask(lengths: Tensor, width: int) -> Tensor:
    """Make the mask of padded rows, (batch, width): True at the first `lengths[row]` positions of each row."""
    return torch.arange(width) < lengths[:, None]


def joint_mask(real: Tensor) -> Tensor:
    """Make the mask of a decoder's self-attention, (batch, 1, query, key), of `real`, (batch, len), True at real tokens.

    True: this query may attend to this key. A query sees the real tokens at its own position and before, nothing after.
    """
    length = real.size(1)
    past = torch.ones(length, length, dtype=torch.bool).tril()
    return real[:, None, None, :] & past


def to_other_convention(mask: Tensor) -> Tensor:
    """Convert a mask of ours, (batch, 1, query, key), True = may be attended to, to that of an additive mask.

    There, 0.0 is added to scores that may be seen and minus infinity to the others: scores + mask, then softmax.
    """
    return torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)


def masked_softmax(scores: Tensor, real: Tensor) -> Tensor:
    """Softmax over the keys that are real: `scores` is (batch, query, key), `real` (batch, key), True at real keys."""
    return scores.masked_fill(~real[:, None, :], -torch.inf).softmax(dim=-1)


def draw_lengths(rng: random.Random) -> tuple[Any, ...]:
    return torch.tensor([rng.randrange(1, 7), 7, rng.randrange(1, 5), 0]), 7


def draw_real(rng: random.Random) -> tuple[Any, ...]:
    lengths = torch.tensor([rng.randrange(2, 5), 5, 3])
    return (torch.arange(5) < lengths[:, None],)


def draw_mask(rng: random.Random) -> tuple[Any, ...]:
    return (joint_mask(*draw_real(rng)),)


def draw_scores(rng: random.Random) -> tuple[Any, ...]:
    torch.manual_seed(rng.randrange(2**31))
    return torch.randn(3, 5, 5) * 2, *draw_real(rng)


EXERCISES = [
    Exercise(
        3,
        sequence_mask,
        draw_lengths,
        [
            ("<", "<=", "one position too many is real in each row: positions count from 0"),
            ("<", ">=", "the mask is inverted: True stands at padding"),
            ("<", ">", "the mask is inverted, and wrong by one"),
            (
                "torch.arange(width)",
                "torch.arange(1, width + 1)",
                "one position too few is real: positions count from 0",
            ),
            ("torch.arange(width)", "torch.arange(width).flip(0)", "the real positions stand at the end of each row"),
            ("lengths[:, None]", "lengths.flip(0)[:, None]", "the rows have each other's lengths, in reversed order"),
            ("lengths[:, None]", "lengths.max()", "every row has the longest row's length"),
            ("lengths[:, None]", "lengths.clamp(min=1)[:, None]", "an empty row has no real position, yet one is True"),
            (
                "torch.arange(width) < lengths[:, None]",
                "(torch.arange(width) < lengths[:, None]).int()",
                "the mask holds 0 and 1; True and False are asked for",
            ),
            (
                "torch.arange(width) < lengths[:, None]",
                "(torch.arange(width) < lengths[:, None]).T",
                "the shape is (width, batch): rows are sentences",
            ),
        ],
    ),
    Exercise(
        3,
        joint_mask,
        draw_real,
        [
            (".tril()", ".triu()", "the future is visible and the past is hidden: the triangle is the other one"),
            (".tril()", ".tril(-1)", "a query does not see itself: the diagonal is hidden"),
            (".tril()", ".tril(1)", "a query sees the token after it, which it must predict"),
            (".tril()", "", "the future is visible: nothing is causal"),
            ("real[:, None, None, :]", "real[:, None, :, None]", "padding hides query rows instead of key columns"),
            (
                "real[:, None, None, :] & past",
                "real.flip(0)[:, None, None, :] & past",
                "the sentences have each other's padding",
            ),
            (
                "real[:, None, None, :] & past",
                "past.expand(len(real), 1, -1, -1) & (real[:, None, None, :] | True)",
                "padding is visible: the real tokens are not used",
            ),
            ("&", "|", "the masks are joined with `or`: a key has to pass both"),
            ("real[:, None, None, :] & past", "~(real[:, None, None, :] & past)", "the mask is inverted"),
            (
                "real[:, None, None, :] & past",
                "real[:, None, :] & past",
                "the shape is (batch, query, key): one dimension for the heads is missing",
            ),
        ],
    ),
    Exercise(
        3,
        to_other_convention,
        draw_mask,
        [
            ("~mask", "mask", "the mask is inverted: what may be seen becomes minus infinity"),
            ("-torch.inf", "torch.inf", "plus infinity is added: softmax would look only where it must not"),
            ("-torch.inf", "0.0", "nothing is hidden: 0 is added everywhere"),
            ("-torch.inf", "-1.0", "hidden scores are only lowered by one: e^-1 of their weight remains"),
            ("-torch.inf", "1.0", "that is the convention 1 = hidden, which is not to be added to scores"),
            ("-torch.inf", "-10.0", "a little weight is left at hidden positions: e^-10 is not 0"),
            (
                "torch.zeros",
                "torch.ones",
                "1 is added to scores that may be seen; it changes nothing, but 0 is asked for",
            ),
            (
                "torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)",
                "mask.float()",
                "that is 1 = may be seen, not to be added",
            ),
            (
                "torch.zeros(mask.shape)",
                "2 * torch.ones(mask.shape)",
                "2 is added to scores that may be seen; 0 is asked for",
            ),
            (
                "torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)",
                "~mask",
                "that is True = hidden, and not numbers to be added",
            ),
        ],
    ),
    Exercise(
        3,
        masked_softmax,
        draw_scores,
        [
            ("-torch.inf", "0.0", "hidden scores become 0, and e^0 is 1: they get weight; minus infinity gives none"),
            ("~real[:, None, :]", "real[:, None, :]", "the mask is inverted: only padding is looked at"),
            ("real[:, None, :]", "real[:, :, None]", "padding hides query rows instead of key columns"),
            ("softmax(dim=-1)", "softmax(dim=1)", "the softmax goes over queries; each query's weights must sum to 1"),
            ("softmax(dim=-1)", "softmax(dim=0)", "the softmax goes over the batch"),
            (".softmax(dim=-1)", ".log_softmax(dim=-1)", "these are logarithms of weights"),
            (".softmax(dim=-1)", ".sigmoid()", "a sigmoid weighs each key alone: the weights do not sum to 1"),
            (
                ".masked_fill(~real[:, None, :], -torch.inf).softmax(dim=-1)",
                ".softmax(dim=-1)",
                "padding is not hidden",
            ),
            (
                ".masked_fill(~real[:, None, :], -torch.inf).softmax(dim=-1)",
                ".softmax(dim=-1).masked_fill(~real[:, None, :], 0.0)",
                "the weights are hidden after the softmax: those that are left no longer sum to 1",
            ),
            ("-torch.inf", "torch.inf", "plus infinity at padding: the softmax becomes NaN"),
        ],
    ),
]
