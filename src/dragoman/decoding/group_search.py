"""Diverse beam search (Vijayakumar et al. 2018, "Diverse Beam Search: Decoding Diverse Solutions from Neural Sequence
Models", algorithm 1): the beam in groups, each of which keeps away from the tokens that those before it have taken.

A group searches as a beam of its own does. At each step a token loses `config.diversity` in rank for each place of the
groups before that has just gone on with it (Hamming diversity, section 3); its log probability loses nothing.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from dragoman.decoding.base import DecodingConfig, Hypothesis, banned_ids, best_tokens, divisors
from dragoman.decoding.beam import (
    Beams,
    Candidates,
    Finished,
    add_finished,
    as_finished,
    collect,
    extend,
    first_beams,
    gather_rows,
    going_on,
    may_stop,
    no_finished,
)
from dragoman.decoding.continuous_batching import Search
from dragoman.decoding.rows import Slots
from dragoman.decoding.rules import Rule
from dragoman.models.base import DecoderState
from dragoman.special_tokens import EOS_ID


def group_search(
    state: DecoderState,
    config: DecodingConfig,
    max_lengths: Int[Tensor, " batch"],
    padding_slots: int = 0,
    rules: Sequence[Rule] = (),
) -> Search:
    """Up to n_best hypotheses for each sentence, of the groups in turn, each once; otherwise as `beam_search`."""
    batch, device, groups = max_lengths.size(0), max_lengths.device, config.diversity_groups
    width = config.beam_size // groups
    state = state.reorder(torch.arange(batch, device=device).repeat_interleave(config.beam_size))
    slots = Slots(batch - padding_slots, config.beam_size, padding_slots, state.pads_rows)
    results: list[list[Hypothesis]] = [[] for _ in range(batch - padding_slots)]
    beams = [first_beams(batch, width, device) for _ in range(groups)]
    finished = [no_finished(batch, config, device) for _ in range(groups)]
    longest = int(max_lengths.max())
    divisor = divisors(config.length_penalty, max_lengths, longest)

    for length in range(1, longest + 1):
        prefixes = torch.cat([group.prefixes for group in beams], dim=1)  # (slots, beam, length)
        logits, state = yield prefixes[:, :, -1].flatten(), state
        # As many as leave `width + 1` tokens that the groups before have not taken.
        log_probs, ids = best_tokens(
            logits, config.beam_size + 1, banned_ids(config, length), rules, prefixes.flatten(0, 1), slots.of_rows()
        )
        log_probs, ids = (values.unflatten(0, (-1, groups, width)) for values in (log_probs, ids))
        by_now = divisor[max_lengths] if config.stopping == "exact" else divisor[length]
        done, parents, taken = max_lengths <= length, [], ids[:, 0, :, :0].flatten(1)
        over = torch.ones_like(done)
        for group in range(groups):
            ranked = _ranked(beams[group].log_probs, log_probs[:, group], ids[:, group], taken, config.diversity)
            finished[group] = add_finished(finished[group], beams[group], ranked, divisor[length])
            chosen = going_on(ranked, EOS_ID)
            beams[group] = extend(beams[group], chosen)
            taken = torch.cat([taken, chosen.ids], dim=1)
            parents.append(chosen.places + group * width)
            over &= may_stop(config, finished[group], beams[group], ranked, by_now)
        closing = slots.close((done | over).tolist())
        rows = torch.arange(0, logits.size(0), config.beam_size, device=device)[:, None] + torch.cat(parents, dim=1)
        if closing:
            unfinished = _together([as_finished(group, divisor[length], width) for group in beams])
            collect(results, closing, _together(finished), unfinished)
            kept = torch.tensor(slots.shrink(), dtype=torch.long, device=device)
            if kept.numel() == 0:
                break
            beams = [Beams(*(part[kept] for part in group)) for group in beams]
            finished = [Finished(*(part[kept] for part in group)) for group in finished]
            max_lengths, rows = max_lengths[kept], rows[kept]
        state = state.reorder(rows.flatten())
    return [_unlike(of_sentence)[: config.n_best] for of_sentence in results]


def _together(groups: Sequence[Finished]) -> Finished:
    """The best hypothesis of each group, best first, then the second of each ...: so all groups have a part in the
    n best."""
    scores = torch.stack([group.scores for group in groups], dim=2)  # (slots, kept, groups)
    by_score = scores.sort(dim=2, descending=True, stable=True).indices
    kept = torch.arange(scores.size(1), device=scores.device)[:, None]
    order = (by_score * scores.size(1) + kept).flatten(1)  # places in the groups one after another
    parts = [torch.cat(values, dim=1) for values in zip(*groups, strict=True)]
    return Finished(gather_rows(parts[0], order), *(values.gather(1, order) for values in parts[1:]))


def _unlike(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """The hypotheses, each once; several groups may have found it."""
    first: dict[tuple[int, ...], Hypothesis] = {}
    for item in hypotheses:
        first.setdefault(tuple(item.ids), item)
    return list(first.values())


def _ranked(
    log_probs: Float[Tensor, "slots width"],
    next_log_probs: Float[Tensor, "slots width k"],
    next_ids: Int[Tensor, "slots width k"],
    taken: Int[Tensor, "slots taken"],
    diversity: float,
) -> Candidates:
    """The best `2 * width` continuations of a group, ranked with what the tokens of the groups before lose."""
    width, k = next_ids.shape[1:]
    totals = (log_probs[:, :, None] + next_log_probs).flatten(1)
    times = (next_ids.flatten(1)[:, :, None] == taken[:, None, :]).sum(dim=2)
    order = (totals - diversity * times).sort(dim=1, descending=True, stable=True).indices[:, : 2 * width]
    return Candidates(totals.gather(1, order), places=order // k, ids=next_ids.flatten(1).gather(1, order))
