"""Subword regularisation: draw another segmentation of a sentence from its ids, with a random generator of ours.

A piece never crosses a word boundary (only its first character may be the word mark), so each word is drawn for
itself, and what does not depend on chance is worked out once per word and kept.
"""

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Mapping

WORD_START = "▁"

Pieces = Mapping[int, tuple[str, float]]
"""Text and score of each piece that may be drawn, by id."""

_CACHE_WORDS = 200_000
_CACHE_WORD_LENGTH = 24
"""Longer words hardly come again; in a script without spaces a word is a whole sentence."""


class Resampler(ABC):
    """Maps the ids of a sentence to the ids of another segmentation of the same text.

    Ids that are not among the pieces (unknown, bytes, specials) stay where they are.
    """

    def __init__(self, pieces: Pieces, amount: float) -> None:
        self._texts = {index: text for index, (text, _) in pieces.items()}
        self._ids = {text: index for index, text in self._texts.items()}
        self._scores = dict(pieces.values())
        self._amount = amount
        self._is_start = {index for index, text in self._texts.items() if text.startswith(WORD_START)}

    def __call__(self, ids: list[int], rng: random.Random) -> list[int]:
        result: list[int] = []
        word = ""
        for index in ids:
            text = self._texts.get(index)
            if text is None or index in self._is_start:
                if word:
                    result += self._draw(word, rng)
                word = ""
            if text is None:
                result.append(index)
            else:
                word += text
        if word:
            result += self._draw(word, rng)
        return result

    @abstractmethod
    def _draw(self, word: str, rng: random.Random) -> list[int]: ...


class BpeDropout(Resampler):
    """Byte-pair merges, each left out with probability `amount` at each step (Provilkov et al. 2020, algorithm 1).

    Of the merges left, the one with the best score goes first, the leftmost of equals, as in SentencePiece: with
    `amount` 0 the result is SentencePiece's own.
    """

    def _draw(self, word: str, rng: random.Random) -> list[int]:
        amount, scores, chance = self._amount, self._scores, rng.random
        symbols = list(word)
        while len(symbols) > 1:
            best, place = -math.inf, -1
            for i in range(len(symbols) - 1):
                score = scores.get(symbols[i] + symbols[i + 1])
                if score is not None and score > best and chance() >= amount:
                    best, place = score, i
            if place < 0:
                break
            symbols[place : place + 2] = [symbols[place] + symbols[place + 1]]
        return [self._ids[symbol] for symbol in symbols]


class UnigramSampling(Resampler):
    """Draws a segmentation with probability proportional to P(pieces) ** amount (Kudo 2018, section 3.2).

    Forward filtering, backward sampling: the sums over all ways to reach each position are taken once per word, then a
    path is drawn from the end, each last piece in proportion to the ways that it ends.
    """

    def __init__(self, pieces: Pieces, amount: float) -> None:
        super().__init__(pieces, amount)
        self._longest = max((len(text) for text in self._texts.values()), default=1)
        self._lattices: dict[str, list[tuple[list[tuple[int, int]], list[float]]]] = {}

    def _draw(self, word: str, rng: random.Random) -> list[int]:
        lattice = self._lattices.get(word)
        if lattice is None:
            lattice = self._lattice(word)
            if len(word) <= _CACHE_WORD_LENGTH and len(self._lattices) < _CACHE_WORDS:
                self._lattices[word] = lattice
        ids: list[int] = []
        end = len(word)
        while end > 0:
            arcs, cumulative = lattice[end]
            start, index = arcs[0] if len(arcs) == 1 else rng.choices(arcs, cum_weights=cumulative)[0]
            ids.append(index)
            end = start
        ids.reverse()
        return ids

    def _lattice(self, word: str) -> list[tuple[list[tuple[int, int]], list[float]]]:
        """For each end position the pieces (start, id) that may end there and their cumulative weights."""
        log_sums = [0.0]
        lattice: list[tuple[list[tuple[int, int]], list[float]]] = [([], [])]
        for end in range(1, len(word) + 1):
            arcs: list[tuple[int, int]] = []
            logs: list[float] = []
            for start in range(max(0, end - self._longest), end):
                text = word[start:end]
                if text in self._ids and log_sums[start] > -math.inf:
                    arcs.append((start, self._ids[text]))
                    logs.append(log_sums[start] + self._amount * self._scores[text])
            top = max(logs, default=-math.inf)
            cumulative: list[float] = []
            total = 0.0
            for value in logs:
                total += math.exp(value - top)
                cumulative.append(total)
            log_sums.append(top + math.log(total) if arcs else -math.inf)
            lattice.append((arcs, cumulative))
        return lattice


RESAMPLERS: dict[str, type[Resampler]] = {"bpe": BpeDropout, "unigram": UnigramSampling}
