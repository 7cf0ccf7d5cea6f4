"""Probable translations of words or pieces, learnt from pairs of sentences: IBM model 1 (Brown et al. 1993).

Every target word was produced by some source word of its sentence. Expectation says which, maximisation counts; after a
few rounds of both, words that come together by chance have lost to those that translate each other.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dragoman.text.words import folded

IntArray = np.ndarray[Any, np.dtype[Any]]

ROUNDS = 4
FEWEST = 2
"""Sentences that a word must be in for anything to be said of it."""


def translation_probabilities(
    pairs: Iterable[tuple[IntArray, IntArray]], tgt_size: int, rounds: int = ROUNDS
) -> tuple[IntArray, IntArray, np.ndarray[Any, np.dtype[np.float64]]]:
    """(source id, target id, probability of the target given the source) of each two that stand in a pair, in order of
    both. `pairs` are (source ids, target ids); target ids are below `tgt_size`.
    """
    keys, tokens, so_far = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
    for src, tgt in pairs:
        once = np.unique(src).astype(np.int64)
        keys.append((once[:, None] * tgt_size + tgt.astype(np.int64)).ravel())
        tokens.append(np.tile(np.arange(so_far, so_far + len(tgt)), len(once)))
        so_far += len(tgt)
    links, which = np.unique(np.concatenate(keys), return_inverse=True)
    token = np.concatenate(tokens)
    src_ids, tgt_ids = links // tgt_size, links % tgt_size
    probability = np.ones(len(links))
    for _ in range(rounds if len(links) else 0):
        weights = probability[which]
        counts = np.bincount(which, weights=weights / np.bincount(token, weights=weights)[token], minlength=len(links))
        probability = counts / np.bincount(src_ids, weights=counts)[src_ids]
    return src_ids, tgt_ids, probability


class Lexicon:
    """Which words of a translation its source accounts for.

    >>> pairs = [("der hund", "the dog"), ("die katze", "the cat"), ("der hund bellt", "the dog barks")]
    >>> Lexicon([*pairs, ("katze", "cat")]).unsupported("die katze", ["the", "dog", "cat"], 0.1)
    ['dog']
    """

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        split = [(folded(src), folded(tgt)) for src, tgt in pairs]
        self._src, self._tgt = (_numbered(side) for side in zip(*split, strict=True)) if split else ({}, {})
        ids = (
            (
                np.array([self._src[word] for word in src], np.int64),
                np.array([self._tgt[word] for word in tgt], np.int64),
            )
            for src, tgt in split
            if src and tgt
        )
        src_ids, tgt_ids, probability = translation_probabilities(ids, max(1, len(self._tgt)))
        self._keys, self._probability = src_ids * max(1, len(self._tgt)) + tgt_ids, probability
        seen = np.zeros(len(self._tgt), dtype=np.int64)
        for _, tgt in split:
            seen[[self._tgt[word] for word in set(tgt)]] += 1
        self._seen = seen

    def frequency(self, word: str) -> int:
        """The number of target sentences that have the word."""
        return int(self._seen[self._tgt[word]]) if word in self._tgt else 0

    def probability(self, src: str, tgt: str) -> float:
        if src not in self._src or tgt not in self._tgt:
            return 0.0
        key = self._src[src] * len(self._tgt) + self._tgt[tgt]
        place = int(np.searchsorted(self._keys, key))
        return float(self._probability[place]) if place < len(self._keys) and self._keys[place] == key else 0.0

    def unsupported(self, source: str, words: Sequence[str], least: float) -> list[str]:
        """The words that no source word makes as probable as `least`; those that are hardly known are left out."""
        present = set(folded(source))
        known = [word for word in words if self.frequency(word) >= FEWEST]
        return [word for word in known if all(self.probability(src, word) < least for src in present)]


def _numbered(sentences: Iterable[Sequence[str]]) -> dict[str, int]:
    return {word: number for number, word in enumerate(dict.fromkeys(word for line in sentences for word in line))}
