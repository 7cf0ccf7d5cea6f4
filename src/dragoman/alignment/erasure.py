"""Links of words by erasure: which words of a translation lose probability when a word of the source is taken away.

The prediction difference of Li et al. 2019, "On the word alignment from neural machine translation". It needs no
attention, so every family of models has it, and it places inline codes better than attention does
(benchmarks/log/2026-11.md, "inline codes by erasure, not by attention"). It reads the pair once for each word of the
source; where these are too many, attention, which reads it once, has to say which word comes from which.
"""

from collections.abc import Sequence

import numpy as np

from dragoman.alignment.attention import attention_links_if_any
from dragoman.alignment.links import AlignedPair, Links, no_links, token_ids, token_shares
from dragoman.cancellation import check
from dragoman.inference.scoring import token_log_probs
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Ids
from dragoman.special_tokens import UNK_ID

SURE_LINK_LOSS_NATS = 1.0
"""A word that loses so much (nats) has more than half of a sure link."""

PAIRS_AT_A_TIME = 128
MAX_TOKENS = 16_384
"""Tokens that are read for the links of a pair, at most: about 80 words on each side."""


def erasure_links(translator: SearchTranslator, pairs: Sequence[AlignedPair]) -> list[Links]:
    """The links of each pair, of one that would take more than MAX_TOKENS by attention; all are 0 for a pair that
    cannot be read at once.
    """
    links = [no_links(pair) for pair in pairs]
    readable: list[tuple[int, Ids]] = []
    for row, pair in enumerate(pairs):
        check()
        if not links[row].size or (ids := token_ids(translator, pair)) is None:
            continue
        if len(pair.src_words) * (len(ids[0]) + len(ids[1])) <= MAX_TOKENS:
            readable.append((row, ids))
        else:
            links[row] = attention_links_if_any(translator, pair)
    for start in range(0, len(readable), PAIRS_AT_A_TIME):
        chunk = readable[start : start + PAIRS_AT_A_TIME]
        erased = [_without_each_word(translator, pairs[row], src) for row, (src, _) in chunk]
        losses = word_losses(translator, [pairs[row] for row, _ in chunk], [ids for _, ids in chunk], erased)
        for (row, _), of_pair in zip(chunk, losses, strict=True):
            links[row] = _links_of(np.clip(of_pair, 0, None))
    return links


def word_losses(
    translator: SearchTranslator,
    pairs: Sequence[AlignedPair],
    ids: Sequence[Ids],
    erased: Sequence[Sequence[list[int]]],
) -> list[np.ndarray]:
    """Losses (nats) of each target word with each other source in the place of its own, (target words, sources).

    `ids`: the tokens of both sides of each pair; `erased`: its other sources.
    """
    readings = [(src, tgt) for (own, tgt), others in zip(ids, erased, strict=True) for src in (own, *others)]
    values = iter(token_log_probs(translator, readings))
    losses = []
    for pair, (_, tgt), others in zip(pairs, ids, erased, strict=True):
        whole, *without = (np.array(next(values)[:-1]) for _ in range(1 + len(others)))  # not of </s>
        difference = whole[None] - np.reshape(without, (len(others), len(tgt)))
        shares = token_shares(translator.tokenizers.tgt, pair.tgt, pair.tgt_words, translator.normalize)
        losses.append((shares > 0).T.astype(float) @ difference.T)
    return losses


def _without_each_word(translator: SearchTranslator, pair: AlignedPair, src: list[int]) -> list[list[int]]:
    """For each word, the tokens of the source without the tokens of that word."""
    shares = token_shares(translator.tokenizers.src, pair.src, pair.src_words, translator.normalize)
    owner = np.where(shares.any(axis=1), shares.argmax(axis=1), -1) if shares.size else np.full(len(src), -1)
    return [
        [token for token, of_word in zip(src, owner, strict=True) if of_word != word] or [UNK_ID]
        for word in range(len(pair.src_words))
    ]


def _links_of(losses: np.ndarray) -> Links:
    if not losses.size:
        return losses
    # A word that loses a little by whatever is taken away has that taken off; a source word that everything depends on
    # a little is no word's own.
    others = (losses.sum(axis=1, keepdims=True) - losses) / max(losses.shape[1] - 1, 1)
    losses = np.clip(losses - others, 0, None)
    mutual = losses * losses / np.maximum(losses.sum(axis=0, keepdims=True), 1e-9)
    rows = mutual / np.maximum(mutual.sum(axis=1, keepdims=True), 1e-9)
    links: Links = rows * (1 - np.exp(-losses.max(axis=1, keepdims=True) / SURE_LINK_LOSS_NATS))
    return links
