"""Translations drawn from the model instead of searched for: ancestral sampling (as in Eikema and Aziz 2020).

`filters.py` says how a token is drawn. The numbers that decide belong to (seed, sentence, sample), where a sentence is
known by its tokens: so its samples are the same in every batch, and the same sentence again has the same samples.
"""

import hashlib
import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from dragoman.decoding.base import DecodingConfig, Hypothesis, SampledConfig, ban, banned_ids, divisors
from dragoman.decoding.continuous_batching import Search
from dragoman.decoding.filters import draw, filtered, numbers
from dragoman.decoding.rows import Slots, check_finite, rows_at_once
from dragoman.decoding.rules import Rule, Step
from dragoman.device import float64_device
from dragoman.models.base import DecoderState
from dragoman.special_tokens import BOS_ID, EOS_ID, PAD_ID


def sample_search(
    state: DecoderState,
    config: DecodingConfig,
    max_lengths: Int[Tensor, " batch"],
    padding_slots: int,
    rules: Sequence[Rule],
    sources: Sequence[Sequence[int]],
) -> Search:
    """`config.sampling.samples` hypotheses for each sentence, as they were drawn; several may be equal.

    `sources` are the sentences' tokens; the last `padding_slots` rows of `state` hold none. Probabilities and scores
    are the model's own, whatever the filters leave out.

    Raises DragomanError when the model's logits are not numbers.
    """
    assert config.sampling is not None
    samples, device, batch = config.sampling.samples, max_lengths.device, max_lengths.size(0)
    state = state.reorder(torch.arange(batch, device=device).repeat_interleave(samples))
    slots = Slots(batch - padding_slots, samples, padding_slots, state.pads_rows)
    longest = int(max_lengths.max())
    divisor = divisors(config.length_penalty, max_lengths, longest).tolist()
    exact = float64_device(device)
    where = _where(config.sampling, sources, padding_slots, longest).to(exact)
    tokens = torch.full((batch, samples, 1), BOS_ID, device=device)
    log_probs = torch.zeros(batch, samples, dtype=torch.float64, device=exact)
    lengths = torch.zeros(batch, samples, dtype=torch.long, device=device)  # of what has ended; 0: it goes on
    results: list[list[Hypothesis]] = [[] for _ in sources]

    for length in range(1, longest + 1):
        logits, state = yield tokens[:, :, -1].flatten(), state
        own = logits.log_softmax(dim=-1, dtype=torch.float32)
        step = Step(own.clone(), tokens.flatten(0, 1), slots.of_rows(), logits)
        allowed = _allowed(step, rules, banned_ids(config, length))
        numbers_now = where[:, :, length - 1].flatten()
        ids = _drawn(allowed.to(exact), numbers_now, config.sampling, rows_at_once(logits)).to(device)
        goes_on = lengths == 0
        drawn = own.gather(1, ids[:, None]).view_as(lengths)
        log_probs = log_probs + torch.where(goes_on, drawn, 0.0).to(exact)
        ids = torch.where(goes_on, ids.view_as(lengths), PAD_ID)
        tokens = torch.cat([tokens, ids[:, :, None]], dim=2)
        ends = goes_on & ((ids == EOS_ID) | (max_lengths <= length)[:, None])
        lengths = torch.where(ends, length, lengths)
        closing = slots.close((lengths > 0).all(dim=1).tolist())
        if not closing:
            continue
        for slot, sentence in closing:
            columns = tokens[slot, :, 1:].tolist(), log_probs[slot].tolist(), lengths[slot].tolist()
            for drawn_ids, log_prob, size in zip(*columns, strict=True):
                check_finite(log_prob, sentence)
                written = [token for token in drawn_ids[:size] if token != EOS_ID]
                results[sentence].append(Hypothesis(written, log_prob / divisor[size], log_prob, len(written) == size))
        kept = slots.shrink()
        if not kept:
            break
        rows = torch.tensor(kept, device=device)
        state = state.reorder((rows[:, None] * samples + torch.arange(samples, device=device)).flatten())
        tokens, lengths, max_lengths = tokens[rows], lengths[rows], max_lengths[rows]
        where, log_probs = where[rows.to(exact)], log_probs[rows.to(exact)]
    return results


def _drawn(
    log_probs: Float[Tensor, "rows vocab"], where: Float[Tensor, " rows"], config: SampledConfig, at_once: int
) -> Int[Tensor, " rows"]:
    """A token for each row, from the filtered probabilities; `at_once` rows at a time, as in `best_tokens`."""
    parts = zip(log_probs.split(at_once), where.split(at_once), strict=True)
    return torch.cat([draw(filtered(part, config), at) for part, at in parts])


def _where(
    config: SampledConfig, sources: Sequence[Sequence[int]], padding_slots: int, longest: int
) -> Float[Tensor, "batch samples longest"]:
    """The numbers that decide each sample of each sentence, token by token; 0 in the last `padding_slots` rows."""
    where = torch.zeros(len(sources) + padding_slots, config.samples, longest, dtype=torch.float64)
    for row, ids in enumerate(sources):
        sentence = int.from_bytes(hashlib.sha256(repr(list(ids)).encode()).digest()[:8], "little")
        for i in range(config.samples):
            where[row, i] = numbers(config.seed, (sentence + i) % 2**64, longest)
    return where


def _allowed(step: Step, rules: Sequence[Rule], banned: list[int]) -> Float[Tensor, "rows vocab"]:
    """Log probabilities with -inf where rules or bans forbid a token. Raises DragomanError for a row without any."""
    for rule in rules:
        rule(step)
    ban(step.log_probs, banned)
    for row in (~(step.log_probs > -math.inf).any(dim=1)).nonzero().flatten().tolist()[:1]:
        check_finite(float(step.log_probs[row].amax()), step.sentences[row])
    return step.log_probs
