"""Greedy search: the most probable token, again and again. What a beam of 1 means here."""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from dragoman.decoding.base import DecodingConfig, Hypothesis, banned_ids, best_tokens, divisors
from dragoman.decoding.continuous_batching import Search
from dragoman.decoding.rows import Slots, check_finite
from dragoman.decoding.rules import Rule
from dragoman.models.base import DecoderState
from dragoman.special_tokens import BOS_ID, EOS_ID


def greedy_search(
    state: DecoderState,
    config: DecodingConfig,
    max_lengths: Int[Tensor, " batch"],
    padding_slots: int = 0,
    rules: Sequence[Rule] = (),
) -> Search:
    """One hypothesis for each sentence, one row of `state`: finished by `</s>`, or cut at its `max_lengths`.

    The last `padding_slots` rows hold no sentence.

    Raises DragomanError when the model's logits are not numbers.
    """
    batch, device = max_lengths.size(0), max_lengths.device
    slots = Slots(batch - padding_slots, 1, padding_slots, state.pads_rows)
    results: list[list[Hypothesis]] = [[] for _ in range(batch - padding_slots)]
    longest = int(max_lengths.max())
    divisor = divisors(config.length_penalty, max_lengths, longest)
    tokens = torch.full((batch, 1), BOS_ID, dtype=torch.long, device=device)  # (slots, length)
    log_probs = torch.zeros(batch, device=device)

    for length in range(1, longest + 1):
        logits, state = yield tokens[:, -1], state
        banned = banned_ids(config, length)
        step_log_probs, ids = best_tokens(logits, 1, banned, rules, tokens, slots.sentences)
        log_probs = log_probs + step_log_probs[:, 0]
        tokens = torch.cat([tokens, ids], dim=1)

        done = (ids[:, 0] == EOS_ID) | (max_lengths <= length)
        closing = slots.close(done.tolist())
        if not closing:
            continue
        columns = tokens[:, 1:].tolist(), (log_probs / divisor[length]).tolist(), log_probs.tolist()
        for slot, sentence in closing:
            sequence, score, log_prob = (column[slot] for column in columns)
            check_finite(log_prob, sentence)
            written = [token for token in sequence if token != EOS_ID]
            results[sentence] = [Hypothesis(written, score, log_prob, cut=len(written) == length)]

        kept = slots.shrink()
        if not kept:
            break
        if len(kept) < tokens.size(0):
            rows = torch.tensor(kept, device=device)
            state = state.reorder(rows)
            tokens, log_probs, max_lengths = tokens[rows], log_probs[rows], max_lengths[rows]
    return results
