"""Step 8 for a language model: draw the next token, again and again, from what the model holds likely."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from dragoman.config import Field, settings
from dragoman.decoding.filters import DrawConfig, draw, filtered, numbers
from dragoman.decoding.rows import Slots, padded
from dragoman.device import float64_device
from dragoman.errors import Error
from dragoman.special_tokens import BOS_ID, PAD_ID, UNK_ID


@settings
class SamplingConfig(DrawConfig):
    """Settings of drawing a text."""

    temperature: float = Field(default=0.8, ge=0)
    max_tokens: int = Field(default=500, ge=1)  #: Longest continuation. [tokens]


class NextTokenModel(Protocol):
    """The part of a language model that generation needs; `state` is the model's own and has `reorder`."""

    training: bool

    def start(self, rows: int) -> Any:
        """The state of `rows` texts before their first token."""
        ...

    def decode_step(self, prev: Tensor, state: Any) -> tuple[Tensor, Any]:
        """(logits after `prev`, the state that has seen it)."""
        ...

    def train(self, mode: bool = True) -> Any: ...

    def parameters(self) -> Iterator[Tensor]: ...


def generate(
    model: NextTokenModel, prompts: Sequence[Sequence[int]], config: SamplingConfig, *, max_context: int
) -> list[list[int]]:
    """The `max_tokens` ids that follow each prompt; see `stream`."""
    continuations: list[list[int]] = [[] for _ in prompts]
    for drawn in stream(model, prompts, config, max_context=max_context):
        for row, token in drawn:
            continuations[row].append(token)
    return continuations


@torch.inference_mode()
def stream(
    model: NextTokenModel, prompts: Sequence[Sequence[int]], config: SamplingConfig, *, max_context: int
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
        yield from _stream([list(prompt)[-max_context:] for prompt in prompts], model, config, max_context)
    finally:
        model.train(was_training)


def _stream(
    prompts: list[list[int]], model: NextTokenModel, config: SamplingConfig, max_context: int
) -> Iterator[list[tuple[int, int]]]:
    assert all(prompts), "a prompt has one id or more"
    device = next(model.parameters()).device
    # The last prompt again, until the rows of a step are a multiple of ROW_MULTIPLE.
    chosen = [min(row, len(prompts) - 1) for row in range(padded(len(prompts), rows_per_slot=1))]
    lengths = torch.tensor([len(prompts[row]) for row in chosen], device=device)
    exact = float64_device(device)
    where = torch.stack([numbers(config.seed, row, config.max_tokens) for row in chosen]).to(exact)
    ids = torch.zeros(len(chosen), int(lengths.max()) + config.max_tokens, dtype=torch.long, device=device)
    for slot, row in enumerate(chosen):
        ids[slot, : len(prompts[row])] = torch.tensor(prompts[row], device=device)
    banned = torch.tensor([PAD_ID, UNK_ID, BOS_ID], device=device)
    slots = Slots(num_sentences=len(chosen), rows_per_slot=1)
    state, seen = model.start(len(chosen)), 0

    for column in range(ids.size(1) - 1):
        if seen == max_context:
            state, seen = model.start(len(ids)), max_context // 2
            for earlier in range(column - seen, column):
                _, state = model.decode_step(ids[:, earlier], state)
        logits, state = model.decode_step(ids[:, column], state)
        seen += 1
        turn = column + 1 - lengths  # how many tokens each row has drawn before; negative inside of its prompt
        draws = turn >= 0
        if not draws.any():
            continue
        if not logits.isfinite().all():
            raise Error.DIVERGED(
                "the model's logits are NaN or infinite: its training diverged or the checkpoint is damaged",
                "try an earlier checkpoint",
            )
        logits = logits.index_fill(1, banned, -math.inf)
        at = turn.clamp(0, config.max_tokens - 1).to(exact)
        drawn = draw(filtered(logits.to(exact), config), where.gather(1, at[:, None])[:, 0]).to(device)
        ids[:, column + 1] = torch.where(draws, drawn, ids[:, column + 1])

        by_row = zip(slots.sentences, draws.tolist(), drawn.tolist(), strict=True)
        yield [(row, token) for row, drew, token in by_row if drew and 0 <= row < len(prompts)]
        if not slots.close((turn >= config.max_tokens - 1).tolist()):
            continue
        kept = slots.shrink()
        if not kept:
            return
        if len(kept) < len(ids):
            rows = torch.tensor(kept, device=device)
            state = state.reorder(rows)
            ids, lengths, where = ids[rows], lengths[rows], where[rows.to(exact)]
