"""Beam search: the `beam_size` most probable prefixes of each sentence go on; those that end in `</s>` are kept aside.

The model sees one batch with `beam_size` rows for each sentence, the rows of a sentence side by side: row
`slot * beam_size + place`. Places are ranked, best first. A sentence is in a slot until it is done; then its slot is
given up and later steps cost less.

One step, for one sentence with beam 2 and a vocabulary of `</s>` (3) and the words 4, 5, 6. Alive are the prefixes
"4" with probability 0.6 and "5" with 0.4, and the model gives the next tokens these probabilities:

>>> alive = torch.tensor([[0.6, 0.4]]).log()
>>> next_probs = torch.tensor([[[0.7, 0.1, 0.1, 0.1],      # after "4": </s> is likely
...                             [0.0, 0.1, 0.1, 0.8]]])    # after "5": word 6 is likely
>>> next_ids = torch.tensor([3, 4, 5, 6]).expand(1, 2, 4)
>>> ranked = rank_candidates(alive, next_probs.log(), next_ids)

Of the 2 x 4 continuations the best four (twice the beam: at most two of them can end in `</s>`, so two are left to go
on with) are "4 </s>" = 0.6 x 0.7, "5 6" = 0.4 x 0.8, and then "4 4" and "4 5" with 0.06 each, the smaller id first:

>>> [[round(p, 2) for p in row] for row in ranked.log_probs.exp().tolist()]
[[0.42, 0.32, 0.06, 0.06]]
>>> ranked.places.tolist(), ranked.ids.tolist()
([[0, 1, 0, 0]], [[3, 6, 4, 5]])

"4 </s>" is among the best two and so is finished. The two best that do not end in `</s>` are the next beam: "5 6" and
"4 4". The beam does not shrink.

>>> finishing(ranked, eos_id=3).tolist()
[[True, False]]
>>> going_on(ranked, eos_id=3).ids.tolist()
[[6, 4]]

With the penalty `average` and alpha 1, "4 </s>" scores ln 0.42 / 2 = -0.43. The best that "5 6" can still reach is to
lose nothing more and be as long as is allowed, say 4 tokens: ln 0.32 / 4 = -0.28. So the search goes on.

>>> beams = Beams(prefixes=torch.tensor([[[2, 5, 6], [2, 4, 4]]]), log_probs=torch.tensor([[0.32, 0.06]]).log())
>>> cannot_be_overtaken(torch.tensor([[0.42]]).log() / 2, beams, torch.tensor([4.0])).tolist()
[False]
>>> cannot_be_overtaken(torch.tensor([[0.42]]).log() / 2, beams, torch.tensor([2.0])).tolist()
[True]
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from dragoman.decoding.base import DecodingConfig, Hypothesis, banned_ids, best_tokens, divisors
from dragoman.decoding.continuous_batching import Search
from dragoman.decoding.rows import Slots, check_finite
from dragoman.decoding.rules import Rule
from dragoman.models.base import DecoderState
from dragoman.special_tokens import BOS_ID, EOS_ID, PAD_ID


class Beams(NamedTuple):
    """The prefixes that go on, best first in each slot. Places that hold none have log probability -inf."""

    prefixes: Int[Tensor, "slots beam length"]  # each begins with <s>
    log_probs: Float[Tensor, "slots beam"]


class Candidates(NamedTuple):
    """Continuations of a slot's prefixes: token `ids` after the prefix at `places`, best first."""

    log_probs: Float[Tensor, "slots candidates"]
    places: Int[Tensor, "slots candidates"]
    ids: Int[Tensor, "slots candidates"]


class Finished(NamedTuple):
    """The best finished hypotheses of each slot, best first: `n_best`, or as many as the beam where the stopping rule
    counts them. Places that hold none have score -inf."""

    tokens: Int[Tensor, "slots kept length"]  # without <s> and </s>, filled up with <pad>
    log_probs: Float[Tensor, "slots kept"]
    scores: Float[Tensor, "slots kept"]


@dataclass(frozen=True)
class BeamStep:
    """One step of a search, for those who watch it: what was alive, how its continuations were ranked, what is finished
    by now, and which slots are done with it."""

    length: int  # of the hypotheses with their new token
    beams: Beams
    logits: Float[Tensor, "rows vocab"]  # of the next token of each
    ranked: Candidates
    finished: Finished
    done: Bool[Tensor, " slots"]
    state: DecoderState


def beam_search(
    state: DecoderState,
    config: DecodingConfig,
    max_lengths: Int[Tensor, " batch"],
    padding_slots: int = 0,
    rules: Sequence[Rule] = (),
    watch: Callable[[BeamStep], None] | None = None,
) -> Search:
    """Up to n_best hypotheses for each row of `state`, best score first; the last `padding_slots` rows hold none.

    A sentence with a finished hypothesis returns finished ones only, be they fewer than n_best; one that has none when
    it reaches its `max_lengths` returns its best unfinished prefixes, scored by the same penalty. `watch` is shown each
    step.

    Raises DragomanError when the model's logits are not numbers.
    """
    batch, beam, device = max_lengths.size(0), config.beam_size, max_lengths.device
    state = state.reorder(torch.arange(batch, device=device).repeat_interleave(beam))
    slots = Slots(batch - padding_slots, beam, padding_slots, state.pads_rows)
    results: list[list[Hypothesis]] = [[] for _ in range(batch - padding_slots)]
    beams, finished = first_beams(batch, beam, device), no_finished(batch, config, device)
    longest = int(max_lengths.max())
    divisor = divisors(config.length_penalty, max_lengths, longest)

    for length in range(1, longest + 1):
        logits, state = yield beams.prefixes[:, :, -1].flatten(), state
        # At most one continuation of a prefix ends in </s>, so beam + 1 of each are enough to go on with `beam`.
        banned, prefixes = banned_ids(config, length), beams.prefixes.flatten(0, 1)
        log_probs, ids = best_tokens(logits, beam + 1, banned, rules, prefixes, slots.of_rows())
        ranked = rank_candidates(
            beams.log_probs, log_probs.unflatten(0, (-1, beam)), ids.unflatten(0, (-1, beam)), config.diversity
        )  # (slots, 2 * beam)
        finished = add_finished(finished, beams, ranked, divisor[length])
        chosen = going_on(ranked, EOS_ID)
        before, beams = beams, extend(beams, chosen)

        by_now = divisor[max_lengths] if config.stopping == "exact" else divisor[length]
        done = (max_lengths <= length) | may_stop(config, finished, beams, ranked, by_now)
        if watch is not None:
            watch(BeamStep(length, before, logits, ranked, finished, done, state))
        closing = slots.close(done.tolist())
        first_rows = torch.arange(0, logits.size(0), beam, device=device)
        parents = first_rows[:, None] + chosen.places  # (slots, beam)
        if closing:
            collect(results, closing, finished, as_finished(beams, divisor[length], config.n_best))
            kept = torch.tensor(slots.shrink(), dtype=torch.long, device=device)
            if kept.numel() == 0:
                break
            beams, finished = Beams(*(part[kept] for part in beams)), Finished(*(part[kept] for part in finished))
            max_lengths = max_lengths[kept]
            parents = parents[kept]
        state = state.reorder(parents.flatten())
    return results


def rank_candidates(
    log_probs: Float[Tensor, "slots beam"],
    next_log_probs: Float[Tensor, "slots beam k"],
    next_ids: Int[Tensor, "slots beam k"],
    diversity: float = 0.0,
) -> Candidates:
    """The best `2 * beam` continuations of each slot's prefixes. Among equals the better prefix, then the smaller id.

    The smaller id comes first because `next_ids` are in that order among equals already (`best_tokens`).
    With `diversity` a continuation is ranked as if it had lost so much log probability for each better one of the same
    prefix, so that more prefixes have descendants (Li, Monroe and Jurafsky 2016, "A Simple, Fast Diverse Decoding
    Algorithm", eq. 7); what it has lost is not kept.
    """
    beam, k = log_probs.size(1), next_ids.size(2)
    totals = (log_probs[:, :, None] + next_log_probs).flatten(1)  # (slots, beam * k)
    siblings = torch.arange(k, device=totals.device).repeat(beam)  # how many better ones there are
    order = (totals - diversity * siblings).sort(dim=1, descending=True, stable=True).indices[:, : 2 * beam]
    return Candidates(totals.gather(1, order), places=order // k, ids=next_ids.flatten(1).gather(1, order))


def finishing(ranked: Candidates, eos_id: int) -> Bool[Tensor, "slots beam"]:
    """Which of the best `beam` candidates are finished hypotheses: they end in `</s>` and are possible at all.

    A `</s>` further down is no reason to stop there, just as greedy search does not take its second-best token.
    """
    beam = ranked.ids.size(1) // 2
    return (ranked.ids[:, :beam] == eos_id) & (ranked.log_probs[:, :beam] > -math.inf)


def going_on(ranked: Candidates, eos_id: int) -> Candidates:
    """The best `beam` candidates that do not end in `</s>`, in their order."""
    beam = ranked.ids.size(1) // 2
    ends = (ranked.ids == eos_id).to(torch.uint8)
    pick = ends.argsort(dim=1, stable=True)[:, :beam]
    return Candidates(*(values.gather(1, pick) for values in ranked))


def may_stop(
    config: DecodingConfig, finished: Finished, beams: Beams, ranked: Candidates, divisor: Float[Tensor, "*slots"]
) -> Bool[Tensor, " slots"]:
    """True for slots that are done by `config.stopping`; `divisor`: of the length that a prefix is counted on to reach.

    The hypotheses that `likely` and `full` wait for are the places of `finished`.
    """
    done = cannot_be_overtaken(finished.scores, beams, divisor)
    if config.stopping == "full":
        done |= finished.scores[:, -1] > -math.inf
    elif config.stopping == "first":
        done |= finishing(ranked, EOS_ID)[:, 0]
    return done


def cannot_be_overtaken(
    finished_scores: Float[Tensor, "slots kept"],
    beams: Beams,
    longest_divisor: Float[Tensor, "*slots"],
) -> Bool[Tensor, " slots"]:
    """True if going on can no longer change a slot's best finished hypotheses.

    A log probability only falls as tokens are added, and a divisor only grows. So no prefix can end better than its
    log probability of now over the divisor of the longest allowed length. Exact: stopping here loses nothing. With the
    divisor of a shorter one it may lose a better hypothesis.
    """
    best_still_possible = beams.log_probs.amax(dim=1) / longest_divisor
    return finished_scores[:, -1] >= best_still_possible


def first_beams(batch: int, beam: int, device: torch.device) -> Beams:
    """`<s>` for every sentence, in the first place only: `beam` equal prefixes would stay equal for ever."""
    log_probs = torch.full((batch, beam), -math.inf, device=device)
    log_probs[:, 0] = 0.0
    return Beams(torch.full((batch, beam, 1), BOS_ID, dtype=torch.long, device=device), log_probs)


def no_finished(batch: int, config: DecodingConfig, device: torch.device) -> Finished:
    counted = config.beam_size if config.stopping in ("likely", "full") else 0
    kept = max(config.n_best, round(counted * config.patience))
    none = torch.full((batch, kept), -math.inf, device=device)
    return Finished(torch.empty(batch, kept, 0, dtype=torch.long, device=device), none, none)


def extend(beams: Beams, chosen: Candidates) -> Beams:
    """The chosen prefixes, each with its next token."""
    prefixes = gather_rows(beams.prefixes, chosen.places)
    return Beams(torch.cat([prefixes, chosen.ids[:, :, None]], dim=2), chosen.log_probs)


def add_finished(finished: Finished, beams: Beams, ranked: Candidates, divisor: Float[Tensor, ""]) -> Finished:
    """The n best of the finished hypotheses so far and the new ones; among equals the earlier one is first."""
    beam = beams.log_probs.size(1)
    new_log_probs = ranked.log_probs[:, :beam].masked_fill(~finishing(ranked, EOS_ID), -math.inf)
    new_tokens = gather_rows(beams.prefixes, ranked.places[:, :beam])[:, :, 1:]
    grown = new_tokens.size(2) - finished.tokens.size(2)
    old_tokens = functional.pad(finished.tokens, (0, grown), value=PAD_ID)

    scores = torch.cat([finished.scores, new_log_probs / divisor], dim=1)
    scores, order = scores.sort(dim=1, descending=True, stable=True)
    pick = order[:, : finished.scores.size(1)]
    return Finished(
        tokens=gather_rows(torch.cat([old_tokens, new_tokens], dim=1), pick),
        log_probs=torch.cat([finished.log_probs, new_log_probs], dim=1).gather(1, pick),
        scores=scores[:, : finished.scores.size(1)],
    )


def as_finished(beams: Beams, divisor: Float[Tensor, ""], n_best: int) -> Finished:
    """The best prefixes as they stand, for a sentence that reached its longest length without a `</s>`."""
    log_probs, order = beams.log_probs.sort(dim=1, descending=True, stable=True)  # with `diversity` they are in another
    log_probs, order = log_probs[:, :n_best], order[:, :n_best]
    return Finished(gather_rows(beams.prefixes, order)[:, :, 1:], log_probs, log_probs / divisor)


def collect(
    results: list[list[Hypothesis]], closing: list[tuple[int, int]], finished: Finished, unfinished: Finished
) -> None:
    """Collect the hypotheses of the sentences that are done, by one copy from the device for all of them."""
    rows = torch.tensor([slot for slot, _ in closing], device=finished.scores.device)
    # Finished ones, where there are any, take the place of unfinished ones.
    for source, cut in ((unfinished, True), (finished, False)):
        columns = (source.tokens[rows].tolist(), source.scores[rows].tolist(), source.log_probs[rows].tolist())
        for (_, sentence), *of_sentence in zip(closing, *columns, strict=True):
            hypotheses = [
                Hypothesis([token for token in tokens if token != PAD_ID], score, log_prob, cut)
                for tokens, score, log_prob in zip(*of_sentence, strict=True)
                if math.isfinite(log_prob)
            ]
            results[sentence] = hypotheses or results[sentence]
    for slot, sentence in closing:
        if not results[sentence]:
            check_finite(float(unfinished.log_probs[slot].amax()), sentence)  # NaN where there is any


def gather_rows(
    values: Int[Tensor, "slots rows length"], places: Int[Tensor, "slots picked"]
) -> Int[Tensor, "slots picked length"]:
    """`values[slot, places[slot, i]]` for every slot and i."""
    return values.gather(1, places[:, :, None].expand(-1, -1, values.size(2)))
