"""Which word of a translation comes from which word of its source, told from where the model looked."""

import math
import re
from collections.abc import Callable, Sequence

import numpy as np
import torch

from dragoman.data.batch import collate
from dragoman.decoding.coverage import cross_attention
from dragoman.inference.search_translator import SearchTranslator
from dragoman.text.tokenizers.base import Tokenizer
from dragoman.text.words import Word

_SPACED = re.compile(r"\S+")


@torch.inference_mode()
def links(
    translator: SearchTranslator, src: str, tgt: str, src_words: Sequence[Word], tgt_words: Sequence[Word]
) -> np.ndarray:
    """Attention of each target word to each source word, (target words, source words): the attention of its pieces,
    added up over the source word's pieces.

    Raises DragomanError for a model without attention, and for a source that is too long to be read at once.
    """
    tokenizers = translator.tokenizers
    ids = tokenizers.src.encode(translator.normalize(src)), tokenizers.tgt.encode(translator.normalize(tgt))
    if not (ids[0] and ids[1]):
        return np.zeros((len(tgt_words), len(src_words)))
    batch = collate([ids]).to(translator.device)
    attention = (
        cross_attention(translator.model.eval(), batch.src, batch.src_mask, batch.tgt_in)[0].float().cpu().numpy()
    )
    src_of = owners(tokenizers.src, src, src_words, translator.normalize)
    tgt_of = owners(tokenizers.tgt, tgt, tgt_words, translator.normalize)
    return tgt_of.T @ attention[: len(ids[1]), : len(ids[0])] @ src_of


def align(translator: SearchTranslator, src: str, tgt: str) -> list[tuple[int, int]]:
    """(source word, target word) of each target word, words being what stands between spaces.

    None for a line that was translated in parts, as it is too long, or whose translation is longer than what the model
    reads. Raises DragomanError for a model without attention.
    """
    src_words, tgt_words = ([Word(*match.span()) for match in _SPACED.finditer(text)] for text in (src, tgt))
    if not (src_words and tgt_words):
        return []
    tokenizers, longest = translator.tokenizers, translator.model.max_target_length or math.inf
    src_len, tgt_len = (
        len(tokenizers.src.encode(translator.normalize(src))),
        len(tokenizers.tgt.encode(translator.normalize(tgt))),
    )
    if src_len > translator.max_src_tokens or 1 + tgt_len > longest:  # <s> is read, too
        return []
    found = links(translator, src, tgt, src_words, tgt_words)
    return sorted((int(row.argmax()), place) for place, row in enumerate(found))


def pharaoh(pairs: Sequence[tuple[int, int]]) -> str:
    """Links as other tools write them, from 0.

    >>> pharaoh([(0, 0), (2, 1)])
    '0-0 2-1'
    """
    return " ".join(f"{src}-{tgt}" for src, tgt in pairs)


def owners(tokenizer: Tokenizer, text: str, words: Sequence[Word], normalize: Callable[[str], str] = str) -> np.ndarray:
    """Which word each token of a text is a piece of, (tokens, words), as shares of the token's letters.

    `normalize` is what comes before the tokenizer; words are places in the text as it was before.
    """
    word_of: list[int] = []  # of each letter of the normalised text, -1 between words
    done = 0
    for number, word in enumerate(words):
        word_of += [-1] * _letters(normalize(text[done : word.start]))
        word_of += [number] * _letters(normalize(text[word.start : word.end]))
        done = word.end
    word_of += [-1] * _letters(normalize(text[done:]))
    letters = tokenizer.letters(normalize(text))
    shares = np.zeros((len(letters), len(words)))
    done = 0
    for token, count in enumerate(letters):
        for owner in word_of[done : done + count]:
            if owner >= 0:
                shares[token, owner] += 1
        done += count
    return shares / np.maximum(shares.sum(axis=1, keepdims=True), 1)


def _letters(text: str) -> int:
    """Tokenizers deal with spaces in their own ways, so they are not counted."""
    return sum(not letter.isspace() for letter in text)
