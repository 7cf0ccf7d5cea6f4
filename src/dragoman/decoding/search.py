"""Step 8: encode once and search. The one door to the searches; `search` is all that other code calls."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from dragoman.decoding.base import DecodingConfig, Hypothesis, Specials, padded
from dragoman.decoding.beam import beam_search
from dragoman.decoding.greedy import greedy_search
from dragoman.decoding.rules import Rule
from dragoman.models.base import Seq2SeqModel

__all__ = ["SPECIALS", "DecodingConfig", "Hypothesis", "Specials", "default_max_lengths", "search"]

SPECIALS = Specials()


@torch.inference_mode()
def search(
    model: Seq2SeqModel,
    src: Int[Tensor, "batch src_len"],
    src_mask: Bool[Tensor, "batch src_len"],
    config: DecodingConfig,
    *,
    max_lengths: Int[Tensor, " batch"] | None = None,
    specials: Specials = SPECIALS,
    rules: Sequence[Rule] = (),
) -> list[list[Hypothesis]]:
    """The n best hypotheses of each sentence, in the order of the sentences, best first; at least one each.

    `max_lengths` (tokens with `</s>`, at least 1) replaces the lengths that `config` allows; the model's own limit,
    where it has one, holds for both. `rules` come after those of the settings (`rules.py`). A beam of 1 is greedy
    search. Dropout is off while it searches, whatever mode the model is in, and the mode is put back afterwards.

    Raises DragomanError when the model's logits are not numbers.
    """
    batch = src.size(0)
    if batch == 0:
        return []
    if max_lengths is None:
        max_lengths = default_max_lengths(src_mask, config)
    if model.max_target_length is not None:
        max_lengths = max_lengths.clamp(max=model.max_target_length)
    find = greedy_search if config.beam_size == 1 else beam_search
    # The last sentence again, until the rows of the encoder, and then those of a step, are a multiple of ROW_MULTIPLE.
    rows = torch.arange(padded(batch, rows_per_slot=1), device=src.device).clamp(max=batch - 1)
    num_slots = padded(batch, config.beam_size)
    was_training = model.training
    model.eval()
    try:
        state = model.start(model.encode(src[rows], src_mask[rows]))
        if num_slots < len(rows):
            state = state.reorder(torch.arange(num_slots, device=src.device))
        return find(
            model, state, config, max_lengths[rows[:num_slots]], specials, num_slots - batch, (*config.rules(), *rules)
        )
    finally:
        model.train(was_training)


def default_max_lengths(src_mask: Bool[Tensor, "batch src_len"], config: DecodingConfig) -> Int[Tensor, " batch"]:
    """How many tokens, `</s>` among them, a hypothesis for each sentence may have: at least 1."""
    lengths = config.max_length_ratio * src_mask.sum(dim=1) + config.max_length_extra
    return lengths.long().clamp(min=1)
