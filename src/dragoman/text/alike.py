"""Texts that are much like another one: found by the words that they share, rare ones first, and compared letter by
letter (RapidFuzz, indel distance)."""

import itertools
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from rapidfuzz import fuzz, process

from dragoman.text.lookup import lookup_form
from dragoman.text.words import folded

T = TypeVar("T")

_CANDIDATES = 400
"""The most texts that are compared letter by letter."""

_POSTINGS = 50_000
"""Texts of a word, at most, that are looked at once there are rarer ones."""


class AlikeTexts:
    """Which texts have which words."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self.forms = [uncased(text) for text in texts]
        ids: dict[str, int] = {}
        number_of = ids.setdefault
        words: list[int] = []
        counts = np.empty(len(texts), dtype=np.int32)
        self.lengths = np.empty(len(texts), dtype=np.int32)
        for row, form in enumerate(self.forms):
            numbers = {number_of(word, len(ids)) for word in _words(form)}
            counts[row], self.lengths[row] = len(numbers), len(form)
            words.extend(numbers)
        self.ids = ids
        flat = np.array(words, dtype=np.int32)
        rows = np.repeat(np.arange(len(texts), dtype=np.int32), counts)
        order = np.argsort(flat, kind="stable")
        self.rows = rows[order]
        self.starts = np.searchsorted(flat[order], np.arange(len(ids) + 1))

    def candidates(self, form: str, least: float) -> np.ndarray:
        """Rows of texts that may be so much like one, given by its form: of about its length, with most of its
        words."""
        known = {self.ids[word] for word in _words(form) if word in self.ids}
        postings = sorted((self.rows[self.starts[word] : self.starts[word + 1]] for word in known), key=len)
        total = itertools.accumulate(len(rows) for rows in postings)
        chosen = [
            rows
            for rows, seen in zip(postings, total, strict=True)
            if seen <= _POSTINGS or len(rows) == len(postings[0])
        ]
        if not chosen:
            return np.array([], dtype=np.int32)
        counts = np.bincount(np.concatenate(chosen))
        rows = np.flatnonzero(counts)
        # Indel similarity of texts of lengths m and n is at most 2 min(m, n) / (m + n).
        shortest, longest = least / (2 - least) * len(form), (2 - least) / least * len(form)
        lengths = self.lengths[rows]
        fits = (lengths >= shortest - 1) & (lengths <= longest + 1)
        rows = rows[fits]
        best = np.argsort(-counts[rows].astype(np.int16), kind="stable")[:_CANDIDATES]  # of so few bits it is fast
        return np.asarray(rows[best])


def most_alike(form: str, forms: Mapping[T, str], count: int | None, least: float) -> list[tuple[T, float]]:
    """(key, similarity) of the `count` most similar forms, best first; None: of all forms with a similarity of at least
    `least`."""
    matches = process.extract(form, forms, scorer=fuzz.ratio, limit=count, score_cutoff=100 * least)
    return [(key, score / 100) for _, score, key in matches]


def uncased(text: str) -> str:
    """The form in which a text is compared."""
    return lookup_form(text, cased=False)


def _words(form: str) -> list[str]:
    return [word for word in folded(form) if not word.isdigit()]
