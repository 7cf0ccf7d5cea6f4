"""A beam search of one sentence, step by step: every hypothesis, its next tokens, and what became of each candidate."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from dragoman.backends.cpu_search.fast_transformer import FastState
from dragoman.decoding.base import DecodingConfig, Hypothesis
from dragoman.decoding.beam import BeamStep, finishing, going_on
from dragoman.decoding.continuous_batching import search_together
from dragoman.decoding.search import default_max_lengths
from dragoman.errors import Error
from dragoman.inference.attention_maps import labels
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Segment
from dragoman.models.transformer import TransformerState
from dragoman.special_tokens import EOS_ID

GOES_ON, FINISHED, OUTRANKED, END_TOO_LOW = "goes on", "finished", "outranked", "</s> too low"
"""Fates of a candidate. The last one: a `</s>` that is not among the best `beam_size` is no reason to stop."""


@dataclass(frozen=True)
class Next:
    """A token that may come next, with the probability that the model gives it."""

    piece: str
    prob: float


@dataclass(frozen=True)
class Alive:
    """A hypothesis that a step goes on from."""

    pieces: list[str]
    log_prob: float
    next: list[Next]


@dataclass(frozen=True)
class Candidate:
    """A continuation that was ranked."""

    parent: int
    """The place of the hypothesis that it goes on from, among those alive."""
    piece: str
    log_prob: float
    """The log probability of all of its tokens, in nats."""
    fate: str
    place: int | None = None
    """Its place among those alive in the next step."""
    score: float | None = None
    """Of a finished one: its log probability over the divisor of its length."""
    has_heirs: bool = True
    """False for a hypothesis that goes on, and of which the next step keeps nothing."""
    wins: bool = False
    """It is the best translation, or the beginning of it."""


@dataclass(frozen=True)
class SearchStep:
    """A step: hypotheses of `length` tokens come out of it."""

    length: int
    divisor: float
    """Of the length penalty, for hypotheses that end here."""
    alive: list[Alive]
    candidates: list[Candidate]
    best_finished: float | None
    """The best score so far."""
    still_possible: float
    """The best score that any hypothesis that goes on can still reach: it loses nothing more and grows as long as may
    be."""
    cache: str
    """The decoder's memory after it."""


@dataclass(frozen=True)
class WatchedSearch:
    """A search from start to end, and why it stopped."""

    src: list[str]
    src_ids: list[int]
    beam_size: int
    steps: list[SearchStep]
    hypotheses: list[Hypothesis]
    pieces: list[list[str]]
    """The pieces of each hypothesis."""
    texts: list[str]
    longest: int
    stopped: str
    why: str
    """The same as one of WHY_STOPPED."""


WHY_STOPPED = ("bound", "longest", "greedy", "setting")


@torch.inference_mode()
def watch_search(translator: SearchTranslator, sentence: str, *, top: int = 10) -> WatchedSearch:
    """Search the translation of a sentence as the translator's settings say; a beam of 1 is the greedy search.

    `top`: next tokens told of each hypothesis. Raises DragomanError for a blank sentence, one that is too long, and for
    settings that search in another way.
    """
    decoding, tokenizers = translator.decoding, translator.tokenizers
    ids = tokenizers.src.encode(translator.normalize(sentence))
    if not ids:
        raise Error.BLANK("there is nothing to search for: the sentence is blank")
    if len(ids) > translator.max_src_tokens:
        raise Error.TOO_LONG(f"{len(ids)} tokens: more than the {translator.max_src_tokens} that are read at once")
    in_groups = decoding.diversity_groups > 1
    if decoding.sampling is not None or decoding.coverage_penalty or decoding.mbr != "none" or in_groups:
        raise Error.UNSUPPORTED("a plain beam search is shown: without sampling, coverage penalty, mbr and groups")
    if decoding.beam_size == 1:  # a greedy search ends with its first `</s>`
        translator = translator.with_decoding(stopping="first", patience=1.0)
    decoding, given = translator.decoding, list(tokenizers.tgt.before)
    watched: list[BeamStep] = []
    search = translator.search_steps([Segment(ids, given)], watch=watched.append)
    [[hypotheses]] = search_together(translator.model, [search], translator.device)
    longest = int(default_max_lengths(torch.ones(1, len(ids) + 1, dtype=torch.bool), decoding)) + len(given)
    longest = min(longest, translator.model.max_target_length or longest)
    steps = [_step(translator, one, decoding.length_penalty.divisor, longest, top) for one in watched]
    best = hypotheses[0]
    pieces = labels(tokenizers.tgt, best.ids if best.cut else [*best.ids, EOS_ID])
    why, stopped = _why_stopped(steps[-1], decoding, longest)
    return WatchedSearch(
        src=labels(tokenizers.src, ids),
        src_ids=ids,
        beam_size=decoding.beam_size,
        steps=_judged(steps, pieces, GOES_ON if best.cut else FINISHED),
        hypotheses=hypotheses,
        pieces=[labels(tokenizers.tgt, one.ids) for one in hypotheses],
        texts=[tokenizers.tgt.decode(one.ids) for one in hypotheses],
        longest=longest,
        stopped=stopped,
        why=why,
    )


def _why_stopped(last: SearchStep, decoding: DecodingConfig, longest: int) -> tuple[str, str]:
    """One of WHY_STOPPED, and a sentence with its numbers."""
    if last.best_finished is not None and last.best_finished >= last.still_possible:
        return "bound", (
            f"none of those that go on can still reach the {decoding.n_best} best: at most {last.still_possible:.4f}, "
            f"were they {longest} tokens long and no less probable"
        )
    if last.length == longest:
        return "longest", f"the longest length is reached: {longest} tokens"
    if decoding.beam_size == 1:
        return "greedy", "`</s>` is the most probable next token: with a beam of 1 that is the end"
    return "setting", f"decoding.stopping={decoding.stopping} ends it here"


def _judged(steps: Sequence[SearchStep], best: Sequence[str], end: str) -> list[SearchStep]:
    """The steps, their candidates with `has_heirs` and `wins`. `best`: the pieces of the best translation; `end`: the
    fate of its last one."""
    judged, heirs = list[SearchStep](), set[int]()
    winner: int | None = None  # the place of the best one among those alive in the next step
    for number, step in reversed(list(enumerate(steps))):
        candidates = []
        for one in step.candidates:
            if number == len(best) - 1:
                wins = one.fate == end and [*step.alive[one.parent].pieces[1:], one.piece] == list(best)
            else:
                wins = one.fate == GOES_ON and one.place == winner
            has_heirs = number == len(steps) - 1 or one.fate != GOES_ON or one.place in heirs
            candidates.append(replace(one, has_heirs=has_heirs, wins=wins))
        heirs = {one.parent for one in candidates if one.fate in (GOES_ON, FINISHED)}
        winner = next((one.parent for one in candidates if one.wins), None)
        judged.append(replace(step, candidates=candidates))
    return judged[::-1]


def _step(
    translator: SearchTranslator, step: BeamStep, divisor: Callable[[int], float], longest: int, top: int
) -> SearchStep:
    """The first slot of a step, in words."""
    tgt, beam = translator.tokenizers.tgt, step.beams.log_probs.size(1)
    ends, goes = finishing(step.ranked, EOS_ID)[0].tolist(), going_on(step.ranked, EOS_ID)
    kept = list(zip(goes.places[0].tolist(), goes.ids[0].tolist(), strict=True))
    by = divisor(step.length)
    candidates = []
    columns = (step.ranked.places[0].tolist(), step.ranked.ids[0].tolist(), step.ranked.log_probs[0].tolist())
    for rank, (parent, token, log_prob) in enumerate(zip(*columns, strict=True)):
        if not math.isfinite(log_prob):
            continue
        place = kept.index((parent, token)) if (parent, token) in kept else None
        is_end = token == EOS_ID
        finished = is_end and rank < beam and ends[rank]
        fate = FINISHED if finished else END_TOO_LOW if is_end else GOES_ON if place is not None else OUTRANKED
        [piece] = labels(tgt, [token])
        candidates.append(
            Candidate(parent, piece, log_prob, fate, None if is_end else place, log_prob / by if finished else None)
        )
    alive = []
    probs = step.logits.float().softmax(dim=-1)
    for row, (prefix, log_prob) in enumerate(
        zip(step.beams.prefixes[0].tolist(), step.beams.log_probs[0].tolist(), strict=True)
    ):
        if math.isfinite(log_prob):
            best = probs[row].topk(min(top, probs.size(1)))
            following = [
                Next(piece, prob)
                for piece, prob in zip(labels(tgt, best.indices.tolist()), best.values.tolist(), strict=True)
            ]
            alive.append(Alive(labels(tgt, prefix), log_prob, following))
    score = float(step.finished.scores[0, -1])
    return SearchStep(
        length=step.length,
        divisor=by,
        alive=alive,
        candidates=candidates,
        best_finished=score if math.isfinite(score) else None,
        still_possible=float(goes.log_probs[0].amax()) / divisor(longest),
        cache=_cache(step),
    )


def _cache(step: BeamStep) -> str:
    """The decoder's memory of a hypothesis's tokens so far."""
    state = step.state
    if isinstance(state, TransformerState):
        return f"keys and values of {state.past[0].length} tokens in {len(state.past)} layers"
    if isinstance(state, FastState):
        return f"keys and values of {state.paths.size(1)} tokens in {len(state.cells.keys)} layers"
    return "one state, however many tokens there were"
