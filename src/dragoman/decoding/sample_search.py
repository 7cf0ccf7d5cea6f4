"""Translations drawn from the model instead of searched for: ancestral sampling (as in Eikema and Aziz 2020).

`draw.py` says how a token is drawn. The numbers that decide belong to (seed, sentence, sample), where a sentence is
known by its tokens: so its samples are the same in every batch, and the same sentence again has the same samples.
"""

import hashlib
import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from dragoman.decoding.base import (
    DecodingConfig,
    Hypothesis,
    SampledConfig,
    Slots,
    Specials,
    ban,
    banned_ids,
    check_finite,
    divisors,
    rows_at_once,
)
from dragoman.decoding.continuous_batching import Search
from dragoman.decoding.filters import draw, filtered, numbers
from dragoman.decoding.rules import Rule, Step
from dragoman.device import float64_device
from dragoman.models.base import DecoderState


def sample_search(
    state: DecoderState,
    config: DecodingConfig,
    max_lengths: Int[Tensor, " batch"],
    specials: Specials,
    spare: int,
    rules: Sequence[Rule],
    sources: Sequence[Sequence[int]],
) -> Search:
    """`config.sampling.samples` hypotheses for each sentence, in the order they were drawn; the same one may come
    several times.

    `sources` are the sentences' tokens; the last `spare` rows of `state` hold none. Probabilities and scores are those
    of the model itself, whatever the filters leave out.

    Raises DragomanError when the model's logits are not numbers.
    """
    assert config.sampling is not None
    samples, device, batch = config.sampling.samples, max_lengths.device, max_lengths.size(0)
    state = state.reorder(torch.arange(batch, device=device).repeat_interleave(samples))
    slots = Slots(num_sentences=batch - spare, rows_per_slot=samples, spare=spare)
    longest = int(max_lengths.max())
    divisor = divisors(config.length_penalty, max_lengths, longest).tolist()
    nowhere = torch.zeros(samples, longest, dtype=torch.float64)
    exact = float64_device(device)
    where = torch.stack([_where(config.sampling, ids, longest) for ids in sources] + [nowhere] * spare)
    where = where.to(exact)  # (batch, samples, longest)
    tokens = torch.full((batch, samples, 1), specials.bos_id, device=device)
    log_probs = torch.zeros(batch, samples, dtype=torch.float64, device=exact)
    lengths = torch.zeros(batch, samples, dtype=torch.long, device=device)  # of what has ended; 0: it goes on
    results: list[list[Hypothesis]] = [[] for _ in sources]

    for length in range(1, longest + 1):
        logits, state = yield tokens[:, :, -1].flatten(), state
        own = logits.log_softmax(dim=-1, dtype=torch.float32)
        allowed = own.clone()
        for rule in rules:
            rule(Step(allowed, tokens.flatten(0, 1), slots.of_rows(), logits))
        ban(allowed, banned_ids(config, specials, length))
        for row in (~(allowed > -math.inf).any(dim=1)).nonzero().flatten().tolist()[:1]:
            check_finite(float(allowed[row].amax()), slots.of_rows()[row])
        at_once = rows_at_once(logits)  # as in `best_tokens`
        parts = zip(allowed.to(exact).split(at_once), where[:, :, length - 1].flatten().split(at_once), strict=True)
        ids = torch.cat([draw(filtered(part, config.sampling), at) for part, at in parts]).to(device)
        goes_on = lengths == 0
        drawn = own.gather(1, ids[:, None]).view_as(lengths)
        log_probs = log_probs + torch.where(goes_on, drawn, 0.0).to(exact)
        ids = torch.where(goes_on, ids.view_as(lengths), specials.pad_id)
        tokens = torch.cat([tokens, ids[:, :, None]], dim=2)
        ends = goes_on & ((ids == specials.eos_id) | (max_lengths <= length)[:, None])
        lengths = torch.where(ends, length, lengths)

        closing = slots.close((lengths > 0).all(dim=1).tolist())
        if not closing:
            continue
        for slot, sentence in closing:
            columns = tokens[slot, :, 1:].tolist(), log_probs[slot].tolist(), lengths[slot].tolist()
            for found, log_prob, size in zip(*columns, strict=True):
                check_finite(log_prob, sentence)
                written = [token for token in found[:size] if token != specials.eos_id]
                results[sentence].append(
                    Hypothesis(written, log_prob / divisor[size], log_prob, cut=len(written) == size)
                )
        kept = slots.shrink()
        if not kept:
            break
        rows = torch.tensor(kept, device=device)
        first_rows = rows[:, None] * samples
        state = state.reorder((first_rows + torch.arange(samples, device=device)).flatten())
        tokens, lengths, max_lengths = tokens[rows], lengths[rows], max_lengths[rows]
        where, log_probs = where[rows.to(exact)], log_probs[rows.to(exact)]
    return results


def _where(config: SampledConfig, ids: Sequence[int], longest: int) -> Float[Tensor, "samples longest"]:
    """The numbers that decide each sample of a sentence, token by token."""
    digest = hashlib.sha256(repr(list(ids)).encode()).digest()
    sentence = int.from_bytes(digest[:8], "little")
    return torch.stack([numbers(config.seed, (sentence + i) % 2**64, longest) for i in range(config.samples)])
