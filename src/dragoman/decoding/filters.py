"""Shared by every search that draws: the settings, the filters, and the drawing itself.

Filters are pure functions from logits to logits in which what may not be drawn is -inf, so they can follow each other
and any search can use them. Where to draw is a number from 0 to 1 that follows from (seed, row, how many were drawn
before), never from a generator that others use too: a text is the same whatever is drawn beside it.
"""

import math

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from dragoman.config import Field, settings

NUCLEUS_CANDIDATES = 256
"""Tokens of a row among which a nucleus is looked for first."""
ROUNDING_BOUND = 1e-9
"""A generous bound on the rounding error of a sum of probabilities."""


@settings
class DrawConfig:
    """Settings of drawing tokens. `temperature` comes first, then `top_k`, then `top_p`."""

    temperature: float = Field(default=1.0, ge=0)
    """Divisor of the logits; 1: the model's distribution, 0: the most probable token."""
    top_k: int | None = Field(default=None, ge=1)
    """Draw from so many of the most probable tokens (Fan et al. 2018); null: all. [tokens]"""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Draw from the fewest tokens that have this probability together (Holtzman et al. 2020)."""
    seed: int = Field(default=1, ge=0, lt=2**63)  #: Another seed, other draws.


def tempered(logits: Float[Tensor, "rows vocab"], temperature: float) -> Float[Tensor, "rows vocab"]:
    """Logits of p^(1 / temperature), up to a constant: the likeliest has 0, however small the temperature."""
    logits = logits.double()
    return (logits - logits.amax(dim=-1, keepdim=True)) / temperature


def keep_top_k(logits: Float[Tensor, "rows vocab"], k: int) -> Float[Tensor, "rows vocab"]:
    """The k likeliest tokens of each row; of equally likely tokens, the tokens with smaller ids.

    >>> keep_top_k(torch.tensor([[1.0, 3.0, 2.0, 3.0]]), 2)
    tensor([[-inf, 3., -inf, 3.]])
    """
    ids = logits.sort(dim=-1, descending=True, stable=True).indices[:, :k]
    return torch.full_like(logits, -math.inf).scatter(1, ids, logits.gather(1, ids))


def keep_top_p(logits: Float[Tensor, "rows vocab"], p: float) -> Float[Tensor, "rows vocab"]:
    """The nucleus: the fewest of the likeliest tokens whose probabilities add up to p (Holtzman et al. 2020, eq. 2).

    A token is in it when the tokens likelier than itself do not make up p; of equal tokens the smaller ids come first.

    >>> keep_top_p(torch.tensor([[0.125, 0.5, 0.25, 0.125]]).log(), 0.75).exp()
    tensor([[0.0000, 0.5000, 0.2500, 0.0000]])
    """
    probs = logits.softmax(dim=-1, dtype=torch.float64)
    inside = torch.zeros_like(logits, dtype=torch.bool)
    wide = torch.ones(len(logits), dtype=torch.bool, device=logits.device)  # rows whose nucleus may have any size
    if logits.size(1) > NUCLEUS_CANDIDATES:
        # A nucleus is mostly small, and to sort a whole vocabulary takes most of the time that drawing takes.
        top, ids = logits.topk(NUCLEUS_CANDIDATES, dim=-1)
        above = top > top[:, -1:]  # all that are as likely as these are here
        wide = probs.gather(1, ids).masked_fill(~above, 0.0).sum(dim=-1) < p + ROUNDING_BOUND
        ids = ids.sort(dim=-1).values
        inside.scatter_(1, ids, _in_nucleus(logits.gather(1, ids), probs.gather(1, ids), p))
    if bool(wide.any()):
        inside[wide] = _in_nucleus(logits[wide], probs[wide], p)
    return logits.masked_fill(~inside, -math.inf)


def _in_nucleus(
    logits: Float[Tensor, "rows tokens"], probs: Float[Tensor, "rows tokens"], p: float
) -> Bool[Tensor, "rows tokens"]:
    """Which of these tokens, in the order of their ids, are in the nucleus. Every likelier token must be among them."""
    order = logits.sort(dim=-1, descending=True, stable=True).indices
    ordered = probs.gather(1, order)
    return torch.zeros_like(logits, dtype=torch.bool).scatter(1, order, ordered.cumsum(dim=-1) - ordered < p)


def filtered(logits: Float[Tensor, "rows vocab"], config: DrawConfig) -> Float[Tensor, "rows vocab"]:
    """Logits to draw from: tempered, with -inf for what the settings leave out."""
    if config.temperature == 0:
        return keep_top_k(logits, 1)
    logits = tempered(logits, config.temperature)
    if config.top_k is not None:
        logits = keep_top_k(logits, config.top_k)
    return keep_top_p(logits, config.top_p) if config.top_p < 1 else logits


def numbers(seed: int, row: int, count: int) -> Float[Tensor, " count"]:
    """The first `count` numbers, from 0 to less than 1, that belong to a row (any number below 2**64) of a seed."""
    # Raw words of a counter-based generator: numpy promises that these stay the same in every version.
    words = np.random.Philox(key=np.array([seed, row], dtype=np.uint64)).random_raw(count)
    return torch.from_numpy((words >> np.uint64(32)) * 2.0**-32)


def draw(logits: Float[Tensor, "rows vocab"], where: Float[Tensor, " rows"]) -> Int[Tensor, " rows"]:
    """The token at which the row's probabilities, added up in the order of the ids, pass its number `where`.

    >>> draw(torch.tensor([[0.25, 0.0, 0.5, 0.25]]).log().expand(4, 4), torch.tensor([0.0, 0.3, 0.7, 0.8]))
    tensor([0, 2, 2, 3])
    """
    sums = logits.softmax(dim=-1, dtype=torch.float64).cumsum(dim=-1)
    return torch.searchsorted(sums, where[:, None] * sums[:, -1:], right=True)[:, 0]
