"""Beam search for translations that hold given terms (Post and Vilar 2018, "Fast Lexically Constrained Decoding with
Dynamic Beam Allocation").

A term is a sequence of tokens that must stand in the translation as it is. Left to themselves, hypotheses that have
written a term would lose to those that put it off, as its tokens cost. So the beam of a sentence is divided among
banks: bank n holds the hypotheses that have written n tokens of the terms. Every bank has its own best ones, whatever
they cost beside those of the others, and `</s>` is open only to a hypothesis that has written all terms.

How far a hypothesis is with the terms (4, 5) and (6,):

>>> begun = ConstraintState(((4, 5), (6,))).after(4)
>>> begun.written, begun.next_tokens(), begun.complete
(1, [5], False)
>>> begun.after(7).written, begun.after(7).next_tokens()        # 5 did not follow: the term has to begin again
(0, [4, 6])
>>> begun.after(5).after(6).complete
True
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from dragoman.decoding.base import DecodingConfig, Hypothesis, banned_ids
from dragoman.decoding.continuous_batching import Search
from dragoman.decoding.rows import FoundNothing, Slots, check_finite
from dragoman.decoding.rules import Rule, Step
from dragoman.errors import Error
from dragoman.models.base import ROW_MULTIPLE, DecoderState
from dragoman.special_tokens import BOS_ID, EOS_ID

Terms = tuple[tuple[int, ...], ...]
"""The terms that one translation must hold, each at a place of its own; a term that stands twice must be held twice."""


@dataclass(frozen=True)
class ConstraintState:
    """The terms that a hypothesis has written, and the term that it is in the middle of."""

    terms: Terms
    ids: tuple[int, ...] = ()
    """All that it has written."""
    written_terms: frozenset[int] = frozenset()
    place: int = 0
    """Number of tokens at the end that begin a term; 0: none."""
    free: int = 0
    """Number of tokens at the end that no written term holds."""

    @property
    def whole(self) -> int:
        """Number of tokens of the terms that are written to their ends."""
        return sum(len(self.terms[term]) for term in self.written_terms)

    @property
    def written(self) -> int:
        """Number of tokens of the terms that are written: the number of the hypothesis' bank."""
        return self.whole + self.place

    @property
    def complete(self) -> bool:
        return len(self.written_terms) == len(self.terms)

    @property
    def just_written(self) -> bool:
        """True if a term ends with the last token."""
        return any(self.ids[-len(self.terms[term]) :] == self.terms[term] for term in self.written_terms)

    def next_tokens(self) -> list[int]:
        """The tokens that would write one more token of the terms."""
        tail = self.ids[len(self.ids) - self.place :]
        begun = [term for term in self._open() if self.terms[term][: self.place] == tail]
        return list(dict.fromkeys(self.terms[term][self.place] for term in begun))

    def after(self, token: int) -> "ConstraintState":
        """Where the hypothesis stands with one more token."""
        ids, free, is_open = (*self.ids, token), self.free + 1, self._open()
        ends = [term for term in is_open if ids[-len(self.terms[term]) :] == self.terms[term]]
        if not ends:
            place = _begun([self.terms[term] for term in is_open], ids, free)
            return ConstraintState(self.terms, ids, self.written_terms, place, free)
        term = max(ends, key=lambda term: len(self.terms[term]))
        if len(self.terms[term]) > free:  # it takes tokens of another one, which may stand elsewhere
            return _read(self.terms, ids)
        return ConstraintState(self.terms, ids, self.written_terms | {term})

    def _open(self) -> list[int]:
        return [term for term in range(len(self.terms)) if term not in self.written_terms]


def _read(terms: Terms, ids: tuple[int, ...]) -> ConstraintState:
    """Find terms in a text, longer ones first, each at the first place that no other has."""
    taken = [False] * len(ids)
    written = set()
    for term in sorted(range(len(terms)), key=lambda number: -len(terms[number])):
        size = len(terms[term])
        for start in range(len(ids) - size + 1):
            if ids[start : start + size] == terms[term] and not any(taken[start : start + size]):
                taken[start : start + size] = [True] * size
                written.add(term)
                break
    free = [*reversed(taken), True].index(True)
    place = _begun([term for number, term in enumerate(terms) if number not in written], ids, free)
    return ConstraintState(terms, ids, frozenset(written), place, free)


def _begun(terms: Sequence[tuple[int, ...]], ids: tuple[int, ...], free: int) -> int:
    """The number of tokens at the end of a text that begin a term; at most `free` tokens count."""
    longest = min(max(map(len, terms), default=1) - 1, free)
    tails = (ids[len(ids) - place :] for place in range(longest, 0, -1))
    return next((len(tail) for tail in tails if any(term[: len(tail)] == tail for term in terms)), 0)


class Prefix(NamedTuple):
    """The continuation by one token of the hypothesis at `place`."""

    log_prob: float
    place: int
    progress: ConstraintState


class Candidate(NamedTuple):
    """A hypothesis that may go on: a token behind the prefix at `place`, and the number of its bank."""

    log_prob: float
    place: int
    token: int
    bank: int


def beam_for(config: DecodingConfig, terms: Terms) -> int:
    """Number of hypotheses that the search for one sentence keeps: at least two for each bank.

    >>> beam_for(DecodingConfig(beam_size=5), ((4, 5), (6,)))
    8
    """
    return max(config.beam_size, 2 * (1 + sum(map(len, terms))))


def rows_for(config: DecodingConfig, terms: Sequence[Terms]) -> int:
    """Rows of the model's batch that each of these sentences has, as many as the widest beam of them needs."""
    widest = max(beam_for(config, of_sentence) for of_sentence in terms)
    return math.ceil(widest / ROW_MULTIPLE) * ROW_MULTIPLE


class ConstrainedSearch:
    """The search for one sentence: its hypotheses and its terms. Its rows in the model's batch are `alive`'s places."""

    def __init__(self, terms: Terms, limit: int, config: DecodingConfig, glue: Bool[Tensor, " vocab"] | None) -> None:
        self.config, self.glue = config, glue
        self.tokens = frozenset(token for term in terms for token in term)
        self.num_tokens = sum(map(len, terms))
        self.width, self.limit = beam_for(config, terms), limit + self.num_tokens
        self.alive = [Prefix(0.0, 0, ConstraintState(terms))]
        self.finished: list[Hypothesis] = []

    def advance(self, log_probs: Float[Tensor, "rows vocab"], length: int) -> list[int]:
        """Choose the hypotheses with `length` tokens; `log_probs` are of the rows of `alive`, changed by rules alone.

        Returns the place of each one's parent.
        """
        eos_log_probs = log_probs[:, EOS_ID].tolist()
        candidates = self._candidates(log_probs, length)
        if length > self.config.min_length:
            self._finish(eos_log_probs, candidates, length)
        self.alive = [
            Prefix(one.log_prob, one.place, self.alive[one.place].progress.after(one.token))
            for one in allocated(candidates, self.width, self.num_tokens)
        ]
        if length == self.limit and not self.finished:
            self._add([(p.progress.ids, p.log_prob) for p in self.alive if p.progress.complete], length, cut=True)
        return [prefix.place for prefix in self.alive]

    def is_done(self, length: int) -> bool:
        """True if going on can change nothing: as in the plain search, log probabilities only fall and divisors only
        grow."""
        if length >= self.limit or not self.alive:
            return True
        if len(self.finished) < self.config.n_best:
            return False
        best_still_possible = self.alive[0].log_prob / self.config.length_penalty.divisor(self.limit)
        return self.finished[-1].score >= best_still_possible

    def _candidates(self, log_probs: Float[Tensor, "rows vocab"], length: int) -> list[Candidate]:
        """Each prefix' most probable continuations and all that write a term, best first; among equals the better
        prefix, then the smaller id."""
        writes_term = torch.zeros_like(log_probs, dtype=torch.bool)
        for place, prefix in enumerate(self.alive):
            writes_term[place, prefix.progress.next_tokens()] = True
        banned = torch.zeros(log_probs.size(1), dtype=torch.bool, device=log_probs.device)
        banned[[*banned_ids(self.config, length), EOS_ID]] = True
        log_probs = log_probs.masked_fill(banned & ~writes_term, -math.inf)  # a term may hold <unk>
        if self.glue is not None:
            ended = torch.tensor([prefix.progress.just_written for prefix in self.alive], device=log_probs.device)
            log_probs = log_probs.masked_fill(ended[:, None] & self.glue, -math.inf)
        likely = log_probs.topk(min(self.width, log_probs.size(1)), dim=1).indices
        places, tokens = writes_term.scatter(1, likely, True).nonzero(as_tuple=True)
        values, places, tokens = (column.cpu() for column in (log_probs[places, tokens], places, tokens))
        totals = torch.tensor([prefix.log_prob for prefix in self.alive], dtype=torch.float64)[places] + values
        totals, order = totals.sort(descending=True, stable=True)
        wholes = [prefix.progress.whole for prefix in self.alive]
        room = dict.fromkeys(wholes, self.width)  # of those that end with no token of a term, as many are of use
        candidates: list[Candidate] = []
        for total, place, token in zip(totals.tolist(), places[order].tolist(), tokens[order].tolist(), strict=True):
            whole = wholes[place]
            if not total > -math.inf or (token not in self.tokens and not room[whole]):
                continue
            if token in self.tokens:
                candidates.append(Candidate(total, place, token, self.alive[place].progress.after(token).written))
            else:
                room[whole] -= 1
                candidates.append(Candidate(total, place, token, whole))
        return candidates

    def _finish(self, eos_log_probs: Sequence[float], candidates: Sequence[Candidate], length: int) -> None:
        """Keep the hypotheses that end here: they hold all terms, and among the continuations that do so their `</s>`
        is one of the best `beam_size`. At the last moment each may end."""
        complete = [item.log_prob for item in candidates if item.bank == self.num_tokens]
        ends = [
            (prefix.progress.ids, prefix.log_prob + value)
            for prefix, value in zip(self.alive, eos_log_probs, strict=True)
            if prefix.progress.complete and value > -math.inf
        ]
        better = [sum(one > total for one in complete) + sum(one > total for _, one in ends) for _, total in ends]
        last = length == self.limit
        self._add(
            [end for end, n in zip(ends, better, strict=True) if last or n < self.config.beam_size],
            length,
        )

    def _add(self, ends: Sequence[tuple[tuple[int, ...], float]], length: int, cut: bool = False) -> None:
        divisor = self.config.length_penalty.divisor(length)
        new = [Hypothesis(list(ids), total / divisor, total, cut) for ids, total in ends]
        best = sorted([*self.finished, *new], key=lambda item: -item.score)  # stable: the earlier one is first
        self.finished = best[: self.config.n_best]


def constrained_search(
    state: DecoderState,
    config: DecodingConfig,
    max_lengths: Int[Tensor, " batch"],
    padding_slots: int,
    rules: Sequence[Rule],
    terms: Sequence[Terms],
    glue: Bool[Tensor, " vocab"] | None = None,
    max_target_length: int | None = None,
) -> Search:
    """Up to n_best hypotheses for each sentence, one row of `state`, best score first; each holds all of its terms.

    `terms` has one entry for each sentence; the last `padding_slots` rows of `state` hold no sentence. The width of a
    sentence's beam follows from its own terms (`beam_for`), and its `max_lengths` grow by the length of the terms.
    `glue`: the tokens that would go on with a word; none of them follows a term. `max_target_length`: the model's.

    Raises DragomanError when the model's logits are not numbers, or a rule or the model's longest target leave no room
    for a term.
    """
    device, batch = max_lengths.device, max_lengths.size(0)
    sentences = [
        ConstrainedSearch(of_sentence, limit, config, glue)
        for of_sentence, limit in zip(terms, max_lengths.tolist()[: batch - padding_slots], strict=True)
    ]
    for sentence in sentences:
        sentence.limit = min(sentence.limit, max_target_length or sentence.limit)
    rows_per_slot = rows_for(config, terms)
    state = state.reorder(torch.arange(batch, device=device).repeat_interleave(rows_per_slot))
    slots = Slots(batch - padding_slots, rows_per_slot, padding_slots, state.pads_rows)

    for length in range(1, max(sentence.limit for sentence in sentences) + 1):
        prefixes = torch.full((len(slots.sentences), rows_per_slot, length), BOS_ID, device=device)
        for slot, number in enumerate(slots.sentences):
            if number >= 0:
                written = [(BOS_ID, *prefix.progress.ids) for prefix in sentences[number].alive]
                prefixes[slot, : len(written)] = torch.tensor(written, device=device)
        logits, state = yield prefixes[:, :, -1].flatten(), state
        log_probs = logits.log_softmax(dim=-1, dtype=torch.float32)
        for rule in rules:
            rule(Step(log_probs, prefixes.flatten(0, 1), slots.of_rows(), logits))

        done = [True] * len(slots.sentences)
        parents = torch.zeros(len(slots.sentences), rows_per_slot, dtype=torch.long, device=device)  # places
        for slot, number in enumerate(slots.sentences):
            if number >= 0:
                sentence = sentences[number]
                rows = log_probs[slot * rows_per_slot :][: len(sentence.alive)]
                places = sentence.advance(rows, length)
                parents[slot, : len(places)] = torch.tensor(places, dtype=torch.long, device=device)
                done[slot] = sentence.is_done(length)
                if done[slot]:
                    _check_found(sentence, number, rows)
        first_rows = torch.arange(0, logits.size(0), rows_per_slot, device=device)
        slots.close(done)
        kept = slots.shrink()
        if not kept:
            break
        state = state.reorder((first_rows[:, None] + parents)[kept].flatten())
    return [sentence.finished for sentence in sentences]


def allocated(candidates: Sequence[Candidate], width: int, num_tokens: int) -> list[Candidate]:
    """Divide a beam among the banks 0 to `num_tokens`: an equal share for each, what is over for the furthest one.

    What a bank cannot fill goes to the best of all that are left. Candidates are in order, best first, as is the
    result.
    """
    banks: list[list[int]] = [[] for _ in range(num_tokens + 1)]
    for rank, item in enumerate(candidates):
        banks[item.bank].append(rank)
    share = width // len(banks)
    shares = [share] * num_tokens + [width - share * num_tokens]
    chosen = {rank for bank, size in zip(banks, shares, strict=True) for rank in bank[:size]}
    left = [rank for rank in range(len(candidates)) if rank not in chosen]
    chosen.update(left[: width - len(chosen)])
    return [candidates[rank] for rank in sorted(chosen)]


def _check_found(sentence: ConstrainedSearch, number: int, log_probs: Float[Tensor, "rows vocab"]) -> None:
    if not sentence.finished and not bool(log_probs.isnan().any()):
        raise FoundNothing(
            Error.SEARCH_FAILED,
            number,
            "no translation can hold its terms: a rule of the search forbids one, or the model's longest target has no "
            "room for them; lift the rule, or leave the term",
        )
    check_finite(sentence.finished[0].log_prob if sentence.finished else math.nan, number)
