"""Links of words by erasure: which words of a translation lose probability when a word of the source is taken away.

The prediction difference of Li et al. 2019, "On the word alignment from neural machine translation". It needs no
attention, so every family of models has it, and it places inline codes better than attention does (docs/log.md). It
takes one forward pass for each word of the source.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from dragoman.alignment.attention import owners
from dragoman.alignment.markup import Pairing
from dragoman.inference.scoring import token_log_probs
from dragoman.inference.search_translator import SearchTranslator
from dragoman.text.tokenizers.base import UNK_ID

SURE = 1.0
"""A word that loses so much (nats) has more than half of a sure link."""

PASSES_AT_A_TIME = 4096


def word_links(translator: SearchTranslator, pairings: Sequence[Pairing]) -> list[np.ndarray]:
    """Links of each pair, (target words, source words): rows add up to at most 1, and to little for a word that the
    source hardly decides. None between words of a pair that is too long to be read at once: its links are all 0.

    A word that stands on both sides equally often, a name or a number, links to itself for certain.
    """
    links = [np.zeros((len(pair.tgt_words), len(pair.src_words))) for pair in pairings]
    readable = {row: ids for row, pair in enumerate(pairings) if (ids := _encoded(translator, pair)) is not None}
    rows: list[int] = []
    passes, last = 0, max(readable, default=-1)
    for row in readable:
        rows.append(row)
        passes += 1 + len(pairings[row].src_words)
        if passes >= PASSES_AT_A_TIME or row == last:
            found = _erased(translator, [pairings[row] for row in rows], [readable[row] for row in rows])
            for done, matrix in zip(rows, found, strict=True):
                links[done] = matrix
            rows, passes = [], 0
    for pair, matrix in zip(pairings, links, strict=True):
        _link_identical(pair, matrix)
    return links


def _encoded(translator: SearchTranslator, pair: Pairing) -> tuple[list[int], list[int]] | None:
    src = translator.tokenizers.src.encode(translator.normalize(pair.src))
    tgt = translator.tokenizers.tgt.encode(translator.normalize(pair.tgt))
    longest = translator.model.max_target_length
    too_long = len(src) > translator.max_src_tokens or (longest is not None and len(tgt) + 1 > longest)
    return None if too_long or not (src and tgt) else (src, tgt)


def _erased(
    translator: SearchTranslator, pairings: Sequence[Pairing], encoded: Sequence[tuple[list[int], list[int]]]
) -> list[np.ndarray]:
    tokenizers = translator.tokenizers
    variants: list[tuple[list[int], list[int]]] = []
    for pair, (src, tgt) in zip(pairings, encoded, strict=True):
        shares = owners(tokenizers.src, pair.src, pair.src_words, translator.normalize)
        owner = np.where(shares.sum(axis=1) > 0, shares.argmax(axis=1), -1) if shares.size else np.full(len(src), -1)
        variants.append((src, tgt))
        for word in range(len(pair.src_words)):
            left = [token for token, of_word in zip(src, owner, strict=True) if of_word != word]
            variants.append((left or [UNK_ID], tgt))
    values = iter(token_log_probs(translator, variants))
    links = []
    for pair, (_, tgt) in zip(pairings, encoded, strict=True):
        whole = np.array(next(values))[:-1]  # not of </s>
        without = np.array([next(values)[:-1] for _ in pair.src_words]).reshape(len(pair.src_words), len(tgt))
        of_word = owners(tokenizers.tgt, pair.tgt, pair.tgt_words, translator.normalize) > 0  # (tokens, target words)
        losses = np.clip(of_word.T.astype(float) @ (whole[None] - without).T, 0, None)
        links.append(_normalised(losses))
    return links


def _normalised(losses: np.ndarray) -> np.ndarray:
    """Links of losses in nats, (target words, source words)."""
    if not losses.size:
        return losses
    # A source word that everything depends on a little is no word's own.
    mutual = losses * losses / np.maximum(losses.sum(axis=0, keepdims=True), 1e-9)
    rows = mutual / np.maximum(mutual.sum(axis=1, keepdims=True), 1e-9)
    return rows * (1 - np.exp(-losses.max(axis=1, keepdims=True) / SURE))


def _link_identical(pair: Pairing, matrix: np.ndarray) -> None:
    """Link words that stand on both sides equally often, first to first and so on, and to nothing else."""
    src = [pair.src[word.start : word.end] for word in pair.src_words]
    tgt = [pair.tgt[word.start : word.end] for word in pair.tgt_words]
    counts = Counter(src), Counter(tgt)
    places: dict[str, list[int]] = {}
    for place, word in enumerate(src):
        places.setdefault(word, []).append(place)
    seen = Counter[str]()
    for row, word in enumerate(tgt):
        if (
            counts[0][word] == counts[1][word]
            and not word.isspace()
            and any(char.isalnum() or _is_private(char) for char in word)
        ):
            matrix[row] = 0.0
            matrix[row, places[word][seen[word]]] = 1.0
            seen[word] += 1


def _is_private(char: str) -> bool:
    """True for a character that stands for a piece of a document (`alignment/markup.py`)."""
    return "\ue100" <= char <= "\uf8ff"
