"""Rules of a search: what the next token may not be, or is made less probable for, whatever the model says.

A rule changes the log probabilities of each row's next tokens in place, having seen the row's prefix. It leaves none
above the model's own, as the beam search's stopping rule relies on it, and looks at each row by itself, so that a
translation does not depend on what is translated beside it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor


class Step(NamedTuple):
    """One step of a search, as a rule sees it."""

    log_probs: Float[Tensor, "rows vocab"]
    """Of each row's next token; rules change them in place."""
    prefixes: Int[Tensor, "rows length"]
    """Tokens that each row has written, `<s>` first."""
    sentences: Sequence[int]
    """The number of each row's sentence in the call of the search, -1 for rows that hold none."""
    logits: Float[Tensor, "rows vocab"]
    """The model's scores of each row's next token; no rule changes them."""


Rule = Callable[[Step], None]
"""Lowers `step.log_probs` where the rule wants it."""


@dataclass(frozen=True)
class NoRepeatNgram:
    """No `size` tokens in a row may come twice in a hypothesis (Paulus et al. 2017, section 2.5)."""

    size: int

    def __call__(self, step: Step) -> None:
        written = step.prefixes[:, 1:]
        length, size = written.size(1), self.size
        if length < size:
            return
        windows = written.unfold(1, size, 1)  # (rows, length - size + 1, size): all n-grams there are
        last = written[:, length - size + 1 :]  # the beginning of the one that the next token would end
        rows, places = (windows[:, :, :-1] == last[:, None, :]).all(dim=2).nonzero(as_tuple=True)
        step.log_probs[rows, windows[rows, places, -1]] = -math.inf


@dataclass(frozen=True)
class RepetitionPenalty:
    """A token that stands in the hypothesis already has `factor` times its log probability (after Keskar et al. 2019,
    section 4.1, who divide logits; a log probability is never positive, so one formula does)."""

    factor: float

    def __call__(self, step: Step) -> None:
        written = step.prefixes[:, 1:]
        step.log_probs.scatter_(1, written, step.log_probs.gather(1, written) * self.factor)


@dataclass(frozen=True)
class WordPenalty:
    """Each token loses `penalty` nats: so (log prob - penalty * length) / divisor(length) ranks the hypotheses."""

    penalty: float

    def __call__(self, step: Step) -> None:
        step.log_probs.sub_(self.penalty)


@dataclass(frozen=True)
class Ban:
    """Sequences of tokens that may not be written."""

    sequences: tuple[tuple[int, ...], ...]
    sentence: int | None = None
    """The number of the sentence that they are banned in; None: in all."""

    def __call__(self, step: Step) -> None:
        device = step.prefixes.device
        chosen = torch.tensor([self.sentence in (None, sentence) for sentence in step.sentences], device=device)
        for *start, last in self.sequences:
            if len(start) < step.prefixes.size(1):
                written = step.prefixes[:, step.prefixes.size(1) - len(start) :]
                begun = (written == torch.tensor(start, dtype=torch.long, device=device)).all(dim=1)
                step.log_probs[chosen & begun, last] = -math.inf


def ngrams(ids: Sequence[int], size: int) -> tuple[tuple[int, ...], ...]:
    """All n-grams, for a `Ban`.

    >>> ngrams([4, 5, 6], 2)
    ((4, 5), (5, 6))
    """
    return tuple(tuple(ids[start : start + size]) for start in range(len(ids) - size + 1))


@dataclass(frozen=True)
class BeginWith:
    """Hypotheses of a sentence begin with these tokens; other sentences are free.

    These tokens are as probable as the model says, whatever the rules before this rule do to them: a repetition in a
    given beginning is no repetition by the search.
    """

    prefixes: Mapping[int, Sequence[int]]
    """By the number of the sentence."""
    given: Mapping[int, int] = field(default_factory=dict)
    """Number of first tokens, by the number of the sentence, that cost nothing because they are no part of the
    translation: the tag of a language, the sentences before."""

    def __call__(self, step: Step) -> None:
        place = step.prefixes.size(1) - 1
        for row, sentence in enumerate(step.sentences):
            prefix = self.prefixes.get(sentence, ())
            if place < len(prefix):
                own = step.logits[row].log_softmax(dim=-1, dtype=torch.float32)
                step.log_probs[row] = -math.inf
                step.log_probs[row, prefix[place]] = own[prefix[place]] if place >= self.given.get(sentence, 0) else 0.0
