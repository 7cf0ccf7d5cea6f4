"""Step 8 for a language model: draw the next token, again and again, from what the model holds likely.

Filters are pure functions from logits to logits in which what may not be drawn is -inf, so they can follow each other
and any search can use them. Where to draw is a number from 0 to 1 that follows from (seed, row, how many were drawn
before), never from a generator that others use too: a continuation is the same whatever is generated beside it.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from dragoman.config import Field, settings
from dragoman.decoding.base import Slots, Specials, padded
from dragoman.errors import DragomanError

SPECIALS = Specials()


@settings
class SamplingConfig:
    """How to draw tokens. `temperature` comes first, then `top_k`, then `top_p`."""

    temperature: float = Field(default=0.8, ge=0)
    """Logits are divided by it: 1 is the model's own distribution, less is bolder, 0 always takes the likeliest."""
    top_k: int | None = Field(default=None, ge=1)
    """Draw from this many of the likeliest tokens (Fan et al. 2018); null: from all."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Draw from the fewest of the likeliest tokens that together have this probability (Holtzman et al. 2020)."""
    seed: int = Field(default=1, ge=0, lt=2**63)
    max_tokens: int = Field(default=500, ge=1)


class NextTokenModel(Protocol):
    """What generation asks of a language model; `state` is the model's own and has `reorder`."""

    training: bool

    def start(self, rows: int) -> Any:
        """The state of `rows` texts before their first token."""
        ...

    def step(self, prev: Tensor, state: Any) -> tuple[Tensor, Any]:
        """(logits after `prev`, the state that has seen it)."""
        ...

    def train(self, mode: bool = True) -> Any: ...

    def parameters(self) -> Iterator[Tensor]: ...


# -- filters -------------------------------------------------------------------------------------------------------


def tempered(logits: Float[Tensor, "rows vocab"], temperature: float) -> Float[Tensor, "rows vocab"]:
    """Logits of p^(1 / temperature), up to a constant: the likeliest has 0, however small the temperature."""
    logits = logits.double()
    return (logits - logits.amax(dim=-1, keepdim=True)) / temperature


def keep_top_k(logits: Float[Tensor, "rows vocab"], k: int) -> Float[Tensor, "rows vocab"]:
    """The k likeliest tokens of each row; of equal ones those with the smaller ids.

    >>> keep_top_k(torch.tensor([[1.0, 3.0, 2.0, 3.0]]), 2)
    tensor([[-inf, 3., -inf, 3.]])
    """
    ids = logits.sort(dim=-1, descending=True, stable=True).indices[:, :k]
    return torch.full_like(logits, -math.inf).scatter(1, ids, logits.gather(1, ids))


def keep_top_p(logits: Float[Tensor, "rows vocab"], p: float) -> Float[Tensor, "rows vocab"]:
    """The nucleus: the fewest of the likeliest tokens whose probabilities add up to p (Holtzman et al. 2020, eq. 2).

    A token is in it when those likelier than itself do not make up p yet; of equal ones the smaller ids come first.

    >>> keep_top_p(torch.tensor([[0.125, 0.5, 0.25, 0.125]]).log(), 0.75).exp()
    tensor([[0.0000, 0.5000, 0.2500, 0.0000]])
    """
    ordered, ids = logits.sort(dim=-1, descending=True, stable=True)
    probs = ordered.softmax(dim=-1, dtype=torch.float64)
    outside = probs.cumsum(dim=-1) - probs >= p
    return logits.masked_fill(torch.zeros_like(outside).scatter(1, ids, outside), -math.inf)


def filtered(logits: Float[Tensor, "rows vocab"], config: SamplingConfig) -> Float[Tensor, "rows vocab"]:
    """Logits to draw from: tempered, with -inf for what the settings leave out."""
    if config.temperature == 0:
        return keep_top_k(logits, 1)
    logits = tempered(logits, config.temperature)
    if config.top_k is not None:
        logits = keep_top_k(logits, config.top_k)
    return keep_top_p(logits, config.top_p) if config.top_p < 1 else logits


# -- drawing -------------------------------------------------------------------------------------------------------


def numbers(seed: int, row: int, count: int) -> Float[Tensor, " count"]:
    """The first `count` numbers, from 0 to less than 1, that belong to a row of a seed."""
    # Raw words of a counter-based generator: numpy promises that these stay the same in every version.
    words = np.random.Philox(key=np.array([seed, row], dtype=np.uint64)).random_raw(count)
    return torch.from_numpy((words >> np.uint64(32)) * 2.0**-32)


def draw(logits: Float[Tensor, "rows vocab"], where: Float[Tensor, " rows"]) -> Int[Tensor, " rows"]:
    """The token at which the row's probabilities, added up in the order of the ids, pass its number `where`.

    >>> draw(torch.tensor([[0.25, 0.0, 0.5, 0.25]]).log().expand(4, 4), torch.tensor([0.0, 0.3, 0.7, 0.8]))
    tensor([0, 2, 2, 3])
    """
    sums = logits.softmax(dim=-1, dtype=torch.float64).cumsum(dim=-1)
    return (sums <= where[:, None] * sums[:, -1:]).sum(dim=-1)


# -- generation ----------------------------------------------------------------------------------------------------


def generate(
    model: NextTokenModel,
    prompts: Sequence[Sequence[int]],
    config: SamplingConfig,
    *,
    max_context: int,
    specials: Specials = SPECIALS,
) -> list[list[int]]:
    """The `max_tokens` ids that follow each prompt; see `stream`."""
    found: list[list[int]] = [[] for _ in prompts]
    for drawn in stream(model, prompts, config, max_context=max_context, specials=specials):
        for row, token in drawn:
            found[row].append(token)
    return found


@torch.inference_mode()
def stream(
    model: NextTokenModel,
    prompts: Sequence[Sequence[int]],
    config: SamplingConfig,
    *,
    max_context: int,
    specials: Specials = SPECIALS,
) -> Iterator[list[tuple[int, int]]]:
    """Continue prompts (one id or more each): yields what each step drew, as (number of the prompt, id).

    All rows begin together at their first token, and one that is still in its prompt is given its next token instead
    of drawing it: so prompts of all lengths go together, without padding. No token is drawn from more than
    `max_context` tokens before it: when a row has seen that many, it goes on from the later half of them. Specials
    are never drawn but for `</s>`, which is a line feed here. Dropout is off while it draws.

    Raises DragomanError when the model's logits are not numbers.
    """
    if not prompts:
        return
    was_training = model.training
    model.train(False)
    try:
        yield from _stream([list(prompt)[-max_context:] for prompt in prompts], model, config, max_context, specials)
    finally:
        model.train(was_training)


def _stream(
    prompts: list[list[int]], model: NextTokenModel, config: SamplingConfig, max_context: int, specials: Specials
) -> Iterator[list[tuple[int, int]]]:
    assert all(prompts), "a prompt has one id or more"
    device = next(model.parameters()).device
    # The last prompt again, until the rows of a step are a multiple of ROW_MULTIPLE.
    chosen = [min(row, len(prompts) - 1) for row in range(padded(len(prompts), rows_per_slot=1))]
    lengths = torch.tensor([len(prompts[row]) for row in chosen], device=device)
    where = torch.stack([numbers(config.seed, row, config.max_tokens) for row in chosen]).to(device)
    ids = torch.zeros(len(chosen), int(lengths.max()) + config.max_tokens, dtype=torch.long, device=device)
    for slot, row in enumerate(chosen):
        ids[slot, : len(prompts[row])] = torch.tensor(prompts[row], device=device)
    banned = torch.tensor([specials.pad_id, specials.unk_id, specials.bos_id], device=device)
    slots = Slots(num_sentences=len(chosen), rows_per_slot=1)
    state, seen = model.start(len(chosen)), 0

    for column in range(ids.size(1) - 1):
        if seen == max_context:
            state, seen = model.start(len(ids)), max_context // 2
            for earlier in range(column - seen, column):
                _, state = model.step(ids[:, earlier], state)
        logits, state = model.step(ids[:, column], state)
        seen += 1
        turn = column + 1 - lengths  # how many tokens each row has drawn before; negative inside of its prompt
        draws = turn >= 0
        if not draws.any():
            continue
        if not logits.isfinite().all():
            raise DragomanError(
                "the model's logits are NaN or infinite: its training diverged or the checkpoint is damaged; try an "
                "earlier checkpoint"
            )
        logits = logits.index_fill(1, banned, -math.inf)
        at = turn.clamp(0, config.max_tokens - 1)
        drawn = draw(filtered(logits, config), where.gather(1, at[:, None])[:, 0])
        ids[:, column + 1] = torch.where(draws, drawn, ids[:, column + 1])

        told = zip(slots.sentences, draws.tolist(), drawn.tolist(), strict=True)
        yield [(row, token) for row, drew, token in told if drew and 0 <= row < len(prompts)]
        if not slots.close((turn >= config.max_tokens - 1).tolist()):
            continue
        kept = slots.shrink()
        if not kept:
            return
        if len(kept) < len(ids):
            rows = torch.tensor(kept, device=device)
            state = state.reorder(rows)
            ids, lengths, where = ids[rows], lengths[rows], where[rows]
