"""Records that pass between a translator, its search and those who ask it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from dragoman.decoding.base import DecodingConfig, Hypothesis
from dragoman.decoding.constrained import Terms, rows_for
from dragoman.quality.warnings import Warning
from dragoman.text.glossary import Glossary


@dataclass(frozen=True)
class Translation:
    """One translation: its text, the score it was ranked by, its log-probability in nats."""

    text: str
    score: float
    log_prob: float
    warnings: tuple[Warning, ...] = ()
    """Faults that are visible, and notes on how it came about (`quality/warnings.py`)."""
    confidence: float | None = None
    """The share of its words that a human's translation is expected to have, where that was asked for."""
    words: tuple[tuple[int, int, float], ...] = ()
    """Of each word where it begins and ends in the text, and its confidence."""


NBest = Callable[[Sequence[str]], list[list[Translation]]]
"""A search, or a stage around one: the translations of each sentence, best first."""

Reranker = Callable[[Sequence[str], Sequence[list[Translation]]], list[list[Translation]]]
"""Reorders all translations of each source, and gives them the scores of the new order."""


class Segment(NamedTuple):
    """The unit of a search: a sentence, or a part of a sentence that is too long."""

    ids: list[int]
    prefix: list[int]
    """Tokens that its translation begins with."""
    text: str = ""
    """The ids as text."""
    terms: Terms = ()
    """Terms that the search must hold its translation to."""
    banned: tuple[tuple[int, ...], ...] = ()
    """Sequences of tokens that its translation does not hold."""
    read: tuple[int, ...] = ()
    """Tokens before its translation that are no part of it: the translations of earlier sentences."""

    def form(self, config: DecodingConfig) -> tuple[int, int]:
        """The form that the parts of a batch share: the rows of a beam with terms, and the tokens that are read before
        the translation."""
        return rows_for(config, [self.terms]) if self.terms else 0, len(self.read)


class Searcher(Protocol):
    """A search in the place of PyTorch's own (`SearchTranslator.searched_by`)."""

    def hypotheses(self, translator: Any, parts: Sequence[Segment]) -> list[list[Hypothesis]]:
        """The hypotheses for each part, as `SearchTranslator.hypotheses`."""
        ...


ApplyGlossary = Callable[[Any, Glossary, Sequence[Segment], Sequence[list[Translation]]], list[list[Translation]]]
"""A way to put the terms of a glossary into the translations of parts (`alignment/term_placement.py`)."""

Ids = tuple[list[int], list[int]]
"""Tokens of a source and of its translation."""


class Scored(NamedTuple):
    """The probability of a given translation."""

    score: float
    """Its log probability under the length penalty: what a search would have ranked it by."""
    log_prob: float
    """In nats, `</s>` counted."""
    tokens: list[tuple[str, float]]
    """Each token and its log probability after those before it, `</s>` the last."""
