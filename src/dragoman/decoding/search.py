"""Step 8: encode once and search. The one door to the searches: `search` for one batch, `search_steps` and
`search_together` for several."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from dragoman.decoding.base import DecodingConfig, Hypothesis
from dragoman.decoding.beam import BeamStep, beam_search
from dragoman.decoding.constrained import Terms, constrained_search, rows_for
from dragoman.decoding.continuous_batching import Search, search_together
from dragoman.decoding.coverage import rank_by_coverage
from dragoman.decoding.greedy import greedy_search
from dragoman.decoding.group_search import group_search
from dragoman.decoding.rows import padded
from dragoman.decoding.rules import Rule
from dragoman.decoding.sample_search import sample_search
from dragoman.errors import Error
from dragoman.models.base import DecoderState, Seq2SeqModel


def search(
    model: Seq2SeqModel,
    src: Int[Tensor, "batch src_len"],
    src_mask: Bool[Tensor, "batch src_len"],
    config: DecodingConfig,
    **options: Any,
) -> list[list[Hypothesis]]:
    """The n best hypotheses of each sentence, in the order of the sentences, best first; at least one each.

    `options` are those of `search_steps`. Dropout is off while it searches, whatever mode the model is in, and the mode
    is put back afterwards. On a CPU it takes one thread.

    Raises DragomanError when the model's logits are not numbers, terms cannot be written, or settings ask for what the
    model or the search has not.
    """
    [hypotheses] = search_together(model, [search_steps(model, src, src_mask, config, **options)], src.device)
    return hypotheses


def search_steps(
    model: Seq2SeqModel,
    src: Int[Tensor, "batch src_len"],
    src_mask: Bool[Tensor, "batch src_len"],
    config: DecodingConfig,
    *,
    max_lengths: Int[Tensor, " batch"] | None = None,
    rules: Sequence[Rule] = (),
    terms: Sequence[Terms] | None = None,
    glue: Bool[Tensor, " vocab"] | None = None,
    watch: Callable[[BeamStep], None] | None = None,
    read: Int[Tensor, "batch read_len"] | None = None,
) -> Search:
    """The search of a batch, for `search_together`; it reads its source when its turn comes. A beam of 1 is greedy.

    `max_lengths` (tokens with `</s>`, at least 1) replaces the lengths that `config` allows; the model's own limit,
    where it has one, holds for both. `rules` come after those of the settings (`rules.py`). `terms` are what each
    sentence's translations must hold, one or more for every sentence (`constrained.py`); `glue` are the tokens that
    do not follow one. With `config.sampling` hypotheses are drawn, all of them returned, and `terms` cannot be asked
    for; nor can they with `config.diversity`. `watch` is shown the steps of a beam, of 1 too. `read`: tokens that stand
    before each sentence's hypotheses, `<s>` first, and are no part of them: the model reads them at once.
    """
    batch = src.size(0)
    if batch == 0:
        return []
    if max_lengths is None:
        max_lengths = default_max_lengths(src_mask, config)
    longest = _room(model, read)
    max_lengths = max_lengths if longest is None else max_lengths.clamp(max=longest)
    widened = config if not config.coverage_penalty else replace(config, n_best=config.num_candidates)
    rows_per_slot = config.num_candidates if terms is None else rows_for(config, terms)
    state, rows = _started(model, src, src_mask, rows_per_slot, read)
    padding_slots, limits, all_rules = len(rows) - batch, max_lengths[rows], config.rules(rules)
    begun = (state, widened, limits, padding_slots, all_rules)
    last = None if read is None else read[rows, -1]
    if config.sampling is not None:
        if terms is not None:
            raise Error.CONFLICT("terms that a translation must hold are searched for, not drawn", "leave the sampling")
        sources = [ids[mask].tolist() for ids, mask in zip(src, src_mask, strict=True)]
        return (yield from _behind(last, sample_search(*begun, sources)))
    if terms is not None:
        if config.diversity:
            raise Error.CONFLICT("terms that a translation must hold divide the beam already", "set diversity to 0")
        searching = constrained_search(*begun, terms, glue, longest)
    elif config.beam_size == 1 and watch is None:
        searching = greedy_search(*begun)
    else:
        searching = group_search(*begun) if config.diversity_groups > 1 else beam_search(*begun, watch)
    hypotheses = yield from _behind(last, searching)
    hypotheses = _without_penalty(hypotheses, config.word_penalty)
    if config.coverage_penalty:
        hypotheses = rank_by_coverage(model, src, src_mask, hypotheses, config.coverage_penalty, read)
    return [of_sentence[: config.n_best] for of_sentence in hypotheses]


def _without_penalty(hypotheses: list[list[Hypothesis]], penalty: float) -> list[list[Hypothesis]]:
    """The hypotheses, whose scores have the word penalty in them, with log probabilities that have not."""
    if not penalty:
        return hypotheses
    return [
        [replace(item, log_prob=item.log_prob + penalty * (len(item.ids) + (not item.cut))) for item in of_sentence]
        for of_sentence in hypotheses
    ]


def _started(
    model: Seq2SeqModel,
    src: Int[Tensor, "batch src_len"],
    src_mask: Bool[Tensor, "batch src_len"],
    rows_per_slot: int,
    read: Int[Tensor, "batch read_len"] | None,
) -> tuple[DecoderState, Int[Tensor, " slots"]]:
    """(the state before the first step, the sentence of each slot: the last one again for padding slots)."""
    batch = src.size(0)
    before = 0 if read is None else read.size(1) - 1  # the first step goes on from the last token
    # The last sentence again, until the vectors that are multiplied at once are a multiple of ROW_MULTIPLE.
    width = math.gcd(src.size(1), before) if model.reads_at_once else 1
    rows = torch.arange(padded(batch, rows_per_slot=width), device=src.device).clamp(max=batch - 1)
    memory = model.encode(src[rows], src_mask[rows])
    state = model.start_search(memory, rows_per_slot, None if read is None else read[rows, :-1])
    num_slots = batch if state.pads_rows else padded(batch, rows_per_slot)
    if num_slots < len(rows):
        state = state.reorder(torch.arange(num_slots, device=src.device))
    return state, rows[:num_slots]


def _room(model: Seq2SeqModel, read: Int[Tensor, "batch read_len"] | None) -> int | None:
    """Tokens that the model can write behind what it has read; None: no limit."""
    before = 0 if read is None else read.size(1) - 1
    return None if model.max_target_length is None else model.max_target_length - before


def _behind(last: Int[Tensor, " slots"] | None, search: Search) -> Search:
    """The search, whose first step goes on from the `last` token that stands before each slot instead of `<s>`."""
    if last is None:
        return (yield from search)
    start, state = next(search)
    step = last.repeat_interleave(len(start) // len(last)), state
    while True:
        try:
            step = search.send((yield step))
        except StopIteration as done:
            return cast(list[list[Hypothesis]], done.value)


def default_max_lengths(src_mask: Bool[Tensor, "batch src_len"], config: DecodingConfig) -> Int[Tensor, " batch"]:
    """Number of tokens, `</s>` among them, that a hypothesis of each sentence may have: at least 1."""
    lengths = config.max_length_ratio * src_mask.sum(dim=1) + config.max_length_extra
    return lengths.long().clamp(min=config.min_length + 1)
