"""Probable translations of words or pieces, learnt from pairs of sentences: IBM model 1 (Brown et al. 1993).

Every target word was produced by some source word of its sentence. Expectation says which, maximisation counts; after a
few rounds of both, words that come together by chance have lost to those that translate each other.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from dragoman.errors import Error, writing
from dragoman.runs.atomic_io import replace_bytes
from dragoman.text.words import folded

IntArray = np.ndarray[Any, np.dtype[Any]]

EM_ROUNDS = 4
MIN_SENTENCES = 2
"""Sentences that a word must be in for anything to be said of it."""

MIN_SAVED_PROBABILITY = 0.01
"""The least probability that is kept in a file."""

MAX_PAIRS = 100_000
"""Pairs that an aligner learns its lexicons from, at most: all their words beside each other are held in memory."""
DIAGONAL_TENSION, NULL_WORD_SHARE, MIN_LINK_POSTERIOR = 4.0, 0.08, 0.2
"""Sharpness of the diagonal, share of the null word, and least posterior of a link: by the code pairs of LibreOffice's
help (benchmarks/log/2026-11.md, "2026-11-29: guided alignment, and capitals as tokens")."""
_NULL = ""


def translation_probabilities(
    pairs: Iterable[tuple[IntArray, IntArray]], tgt_size: int, rounds: int = EM_ROUNDS
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
        self._learn([(folded(src), folded(tgt)) for src, tgt in pairs])

    @classmethod
    def of_words(cls, split: Sequence[tuple[Sequence[str], Sequence[str]]]) -> Self:
        """A lexicon of pairs that are split into words already."""
        lexicon = cls([])
        lexicon._learn(split)
        return lexicon

    def _learn(self, split: Sequence[tuple[Sequence[str], Sequence[str]]]) -> None:
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

    def arrays(self, name: str) -> dict[str, np.ndarray[Any, Any]]:
        """The lexicon for a file, without what is improbable: arrays whose names begin with `name`."""
        probable = self._probability >= MIN_SAVED_PROBABILITY
        texts = ("\n".join(side).encode() for side in (self._src, self._tgt))
        src, tgt = (np.frombuffer(text, np.uint8) for text in texts)
        values = self._keys[probable], self._probability[probable].astype(np.float32), self._seen
        return dict(zip(_arrays(name), (src, tgt, *values), strict=True))

    @classmethod
    def of_arrays(cls, stored: Mapping[str, np.ndarray[Any, Any]], name: str) -> Self:
        """A lexicon that `arrays` wrote."""
        lexicon = cls([])
        src, tgt, lexicon._keys, lexicon._probability, lexicon._seen = (stored[one] for one in _arrays(name))
        lexicon._src, lexicon._tgt = (
            {word: number for number, word in enumerate(side.tobytes().decode().split("\n"))} for side in (src, tgt)
        )
        return lexicon

    def frequency(self, word: str) -> int:
        """The number of target sentences that have the word."""
        return int(self._seen[self._tgt[word]]) if word in self._tgt else 0

    def probability(self, src: str, tgt: str) -> float:
        return float(self.probabilities([src], [tgt])[0, 0])

    def probabilities(self, src: Sequence[str], tgt: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The probability of each target word given each source word, (target words, source words)."""
        ids = [
            np.array([known.get(word, -1) for word in side], np.int64)
            for known, side in ((self._src, src), (self._tgt, tgt))
        ]
        keys = ids[0][None] * max(1, len(self._tgt)) + ids[1][:, None]
        if not len(self._keys):
            return np.zeros(keys.shape)
        places = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        known = (self._keys[places] == keys) & (ids[0] >= 0)[None] & (ids[1] >= 0)[:, None]
        return np.where(known, self._probability[places], 0.0)

    def unsupported(self, source: str, words: Sequence[str], least: float) -> list[str]:
        """The words that no source word makes as probable as `least`; those that are hardly known are left out."""
        present = set(folded(source))
        known = [word for word in words if self.frequency(word) >= MIN_SENTENCES]
        return [word for word in known if all(self.probability(src, word) < least for src in present)]


class WordAligner:
    """Links of the words of pairs, by a lexicon in each direction and by their distance from the diagonal.

    A link is sure where both directions choose it: the harmonic mean of both posteriors (after Liang et al. 2006,
    "Alignment by agreement"), with a null word in each and the diagonal of Dyer et al. 2013.

    >>> aligner = WordAligner([(["das", "haus"], ["the", "house"]), (["das", "buch"], ["the", "book"])] * 3)
    >>> aligner.links(["das", "buch"], ["the", "book"])
    [(0, 0), (1, 1)]
    """

    def __init__(self, pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> None:
        pairs = pairs[:MAX_PAIRS]
        self._to_tgt = Lexicon.of_words([([_NULL, *_lower(src)], _lower(tgt)) for src, tgt in pairs])
        self._to_src = Lexicon.of_words([([_NULL, *_lower(tgt)], _lower(src)) for src, tgt in pairs])

    def save(self, path: Path) -> None:
        """Write the lexicons. Raises DragomanError when the disk refuses."""
        arrays = {**self._to_tgt.arrays("to_tgt"), **self._to_src.arrays("to_src")}
        with writing(path):
            replace_bytes(path, save(arrays))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote. Raises DragomanError for a damaged file."""
        aligner = cls([])
        try:
            stored = load(path.read_bytes())
            aligner._to_tgt, aligner._to_src = (Lexicon.of_arrays(stored, name) for name in ("to_tgt", "to_src"))
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            raise Error.DAMAGED(f"cannot be read: {error}", "train the run again", file=path) from error
        return aligner

    def links(self, src: Sequence[str], tgt: Sequence[str]) -> list[tuple[int, int]]:
        """(source word, target word), from 0, of each link."""
        if not (src and tgt):
            return []
        src, tgt = _lower(src), _lower(tgt)
        forward = _posterior(self._to_tgt, src, tgt)
        backward = _posterior(self._to_src, tgt, src).T
        agreed = 2 * forward * backward / np.maximum(forward + backward, 1e-12)
        best = (agreed == agreed.max(axis=1, keepdims=True)) | (agreed == agreed.max(axis=0, keepdims=True))
        return [(int(column), int(row)) for row, column in np.argwhere(best & (agreed >= MIN_LINK_POSTERIOR))]


def _arrays(name: str) -> list[str]:
    return [f"{name}_{part}" for part in ("src", "tgt", "keys", "probability", "seen")]


def _posterior(lexicon: Lexicon, src: Sequence[str], tgt: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Probability that each target word comes from each source word, (target words, source words)."""
    table = lexicon.probabilities([_NULL, *src], tgt)
    at_src, at_tgt = (np.arange(1, len(words) + 1) / len(words) for words in (src, tgt))
    near = np.exp(-DIAGONAL_TENSION * np.abs(at_tgt[:, None] - at_src[None]))
    table[:, 1:] *= near / near.sum(axis=1, keepdims=True)
    table[:, 0] *= NULL_WORD_SHARE
    return table[:, 1:] / np.maximum(table.sum(axis=1, keepdims=True), 1e-12)


def _lower(words: Sequence[str]) -> list[str]:
    return [word.lower() for word in words]


def _numbered(sentences: Iterable[Sequence[str]]) -> dict[str, int]:
    return {word: number for number, word in enumerate(dict.fromkeys(word for line in sentences for word in line))}
