"""Shortlists: the few pieces of a large vocabulary that a translation of these source pieces may need.

The output layer of a small model is most of its work: a score for each piece of the vocabulary, at each step. Which
pieces a sentence needs can be told beforehand from its words (L'Hostis et al. 2016, "Vocabulary Selection Strategies
for Neural Machine Translation"): those that are often the translation of one of its pieces, and the most frequent ones
of all. CTranslate2 reads such a list from the file `vmap.txt` of a model and computes the scores of those pieces alone.

What translates what is learnt from training pairs by IBM model 1 (Brown et al. 1993, "The Mathematics of Statistical
Machine Translation", section 4.1): with t(w | v) the probability that piece v is translated by w, at first the same for
all that ever stand in one pair,

    c(w, v) = the sum, over all pairs, of t(w | v) / (the sum of t(w | v') over the v' of the pair)    (expectation)
    t(w | v) = c(w, v) / (the sum of c(w', v) over all w')                                             (maximisation)
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

import numpy as np

from dragoman.alignment.lexicon import translation_probabilities
from dragoman.data.store import IdCorpus
from dragoman.errors import Error
from dragoman.special_tokens import SPECIALS
from dragoman.text.annotations import ON_BOTH_SIDES, PIECES, has_learnt
from dragoman.text.tokenizers.pair import TokenizerPair, pieces_of

FILE = "vmap.txt"
"""The name that CTranslate2 looks for in the folder of a model."""

NUM_FREQUENT_PIECES = 100
"""Pieces that are candidates for every sentence."""
CANDIDATES_PER_PIECE = 60
"""Candidates for each source piece."""
EM_ROUNDS = 4
"""Of expectation and maximisation."""
MAX_PIECES = 100
"""The most pieces of a side. A longer pair says little about which piece translates which, and costs much."""
MAX_LINKS = 40_000_000
"""The most pairs of pieces that are counted. Of a larger corpus, sentences are taken that are spread over all of it."""


def write_shortlist(prepared: Path, folder: Path, tokenizers: TokenizerPair) -> None:
    """Write `vmap.txt` into `folder`, learnt from the training pairs that a run keeps as ids in `prepared`.

    Raises DragomanError where it keeps none.
    """
    always, by_source = learnt(prepared, tokenizers)
    src_pieces, tgt_pieces = pieces_of(tokenizers.src), pieces_of(tokenizers.tgt)
    same = set(tgt_pieces)
    with (folder / FILE).open("w", encoding="utf-8", newline="\n") as file:
        _write(file, "", [tgt_pieces[index] for index in always])
        for src, targets in sorted(by_source.items()):
            piece = src_pieces[src]
            copied = [piece] if piece in same else []  # names and numbers stay as they are
            _write(file, piece, list(dict.fromkeys(copied + [tgt_pieces[index] for index in targets])))


def learnt(prepared: Path, tokenizers: TokenizerPair) -> tuple[list[int], dict[int, list[int]]]:
    """(target ids that every translation may need, those that each source id may need), of a run's training pairs.

    Raises DragomanError where it keeps none.
    """
    if not prepared.is_dir():
        raise Error.EMPTY(
            "no training pairs to learn a shortlist from, as of a run that was imported",
            "have it teach a small one first (dragoman distil)",
            file=prepared,
        )
    sizes = tokenizers.src.vocab_size, tokenizers.tgt.vocab_size
    corpus = IdCorpus(prepared, sizes)
    by_source = shortlist(corpus, sizes[1])
    for src, tgt in _copied(tokenizers):
        by_source[src] = list(dict.fromkeys([tgt, *by_source.get(src, [])]))
    return frequent(corpus, sizes[1]), by_source


def _copied(tokenizers: TokenizerPair) -> list[tuple[int, int]]:
    """(source id, target id) of the pieces that stand in sources as they are to be written, which training pairs are
    kept without: codes, and the words of terms and of matches."""
    is_copied: Callable[[str], bool] = set(PIECES["tags"] if has_learnt("tags", tokenizers) else ()).__contains__
    if any(has_learnt(setting, tokenizers) for setting in PIECES.keys() - ON_BOTH_SIDES):
        is_copied = bool
    of_tgt = {piece: index for index, piece in enumerate(pieces_of(tokenizers.tgt)) if index >= len(SPECIALS)}
    of_src = enumerate(pieces_of(tokenizers.src))
    return [(index, of_tgt[piece]) for index, piece in of_src if piece in of_tgt and is_copied(piece)]


def _write(file: TextIO, key: str, values: Sequence[str]) -> None:
    """A line of the file: a source piece, a tab, target pieces with spaces between. One that holds either is left out:
    it cannot be written."""
    kept = [value for value in values if not set(value) & {" ", "\t", "\n", "\r"}]
    if not set(key) & {" ", "\t", "\n", "\r"} and kept:
        file.write(f"{key}\t{' '.join(kept)}\n")


def frequent(corpus: IdCorpus, vocab_size: int, count: int = NUM_FREQUENT_PIECES) -> list[int]:
    """The target ids that come most often."""
    counts = np.zeros(vocab_size, dtype=np.int64)
    for row in range(len(corpus)):
        np.add.at(counts, corpus.tgt(row), 1)
    return _best(counts.astype(np.float64), np.arange(vocab_size), count)


def shortlist(corpus: IdCorpus, vocab_size: int, count: int = CANDIDATES_PER_PIECE) -> dict[int, list[int]]:
    """The most probable translations of each source id, at most `count`."""
    src, tgt, probability = translation_probabilities(_sentences(corpus), vocab_size, EM_ROUNDS)
    by_source = {}
    starts = np.flatnonzero(np.r_[True, src[1:] != src[:-1]]) if len(src) else np.zeros(0, dtype=np.int64)
    for start, end in zip(starts, [*starts[1:], len(src)], strict=True):
        by_source[int(src[start])] = _best(probability[start:end], tgt[start:end], count)
    return by_source


def _sentences(corpus: IdCorpus) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs that are not too long: all of them, or a sample spread over the corpus."""
    lengths = np.stack([np.asarray(corpus.src_lengths), np.asarray(corpus.tgt_lengths)]).astype(np.int64)
    rows = np.flatnonzero(lengths.max(axis=0) <= MAX_PIECES)
    if not len(rows):
        rows = np.arange(len(corpus))
    links = int(lengths[:, rows].prod(axis=0).sum())
    for row in map(int, rows[:: max(1, -(-links // MAX_LINKS))]):
        yield corpus.src(row), corpus.tgt(row)


def _best(values: np.ndarray, ids: np.ndarray, count: int) -> list[int]:
    """The ids of the largest values, largest first; specials are candidates anyway, and what is 0 is none."""
    order = np.argsort(-values, kind="stable")
    chosen = [int(ids[place]) for place in order[: count + len(SPECIALS)] if values[place] > 0]
    return [index for index in chosen if index >= len(SPECIALS)][:count]
