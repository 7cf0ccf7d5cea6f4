"""Links of words by attention: where the model looked when it wrote a word."""

from collections.abc import Sequence

import numpy as np
import torch

from dragoman.alignment.links import AlignedPair, Links, no_links, token_ids, token_shares
from dragoman.cancellation import check
from dragoman.data.batch import collate
from dragoman.decoding.coverage import cross_attention
from dragoman.errors import DragomanError
from dragoman.inference.search_translator import SearchTranslator
from dragoman.text.words import spaced_words


@torch.inference_mode()
def attention_links(translator: SearchTranslator, pair: AlignedPair) -> Links:
    """The attention of each target word's pieces, added up over each source word's pieces.

    All are 0 for a pair that cannot be read at once. Raises DragomanError for a model without attention.
    """
    check()
    ids = token_ids(translator, pair)
    if ids is None:
        return no_links(pair)
    batch = collate([ids]).to(translator.device)
    attention = cross_attention(translator.model.eval(), batch.src, batch.src_mask, batch.tgt_in)[0]
    src_shares = token_shares(translator.tokenizers.src, pair.src, pair.src_words, translator.normalize)
    tgt_shares = token_shares(translator.tokenizers.tgt, pair.tgt, pair.tgt_words, translator.normalize)
    links: Links = tgt_shares.T @ attention.float().cpu().numpy()[: len(ids[1]), : len(ids[0])] @ src_shares
    return links


def attention_links_if_any(translator: SearchTranslator, pair: AlignedPair) -> Links:
    """The same; all are 0 for a model without attention, too."""
    try:
        return attention_links(translator, pair)
    except DragomanError:
        return no_links(pair)


def head_links(translator: SearchTranslator, pair: AlignedPair) -> Links:
    """The attention of the run's trained head, of a word of several pieces their mean.

    A source word to which many words attend a little is no word's own: a link is the geometric mean of its attention
    and of the share that it has in all attention to the source word (benchmarks/log/2026-11.md, "guided alignment, and
    capitals as tokens").
    """
    links = attention_links_if_any(translator, pair)
    if not links.any():
        return links
    pieces = token_shares(translator.tokenizers.tgt, pair.tgt, pair.tgt_words, translator.normalize).sum(axis=0)
    links = links / np.maximum(pieces, 1)[:, None]
    links = np.sqrt(links * links / np.maximum(links.sum(axis=0, keepdims=True), 1e-9))
    shares: Links = links / np.maximum(links.sum(axis=1, keepdims=True), 1)
    return shares


def align(translator: SearchTranslator, src: str, tgt: str) -> list[tuple[int, int]]:
    """(source word, target word) of each target word, words being what stands between spaces.

    None for a line that was translated in parts, as it is too long, or whose translation is longer than what the model
    reads. Raises DragomanError for a model without attention.
    """
    src_words, tgt_words = spaced_words(src), spaced_words(tgt)
    pair = AlignedPair(src, tgt, src_words, tgt_words)
    if not (src_words and tgt_words) or token_ids(translator, pair) is None:
        return []
    return sorted((int(row.argmax()), place) for place, row in enumerate(attention_links(translator, pair)))


def pharaoh(pairs: Sequence[tuple[int, int]]) -> str:
    """Links as other tools write them, from 0.

    >>> pharaoh([(0, 0), (2, 1)])
    '0-0 2-1'
    """
    return " ".join(f"{src}-{tgt}" for src, tgt in pairs)
