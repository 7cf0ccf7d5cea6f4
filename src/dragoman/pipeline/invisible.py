"""Texts are read as they look: a model that has not met a mark that nobody sees in a word takes the word for another.

The same goes for an accent as a character of its own, for full-width letters and half-width kana. A model that knows a
spelling better than the usual one, as it was trained on it, reads that.
"""

from collections.abc import Sequence

from dragoman.inference.translation import NBest, Translation
from dragoman.languages.invisible import as_seen, visible
from dragoman.text.tokenizers.base import Tokenizer


def read_as(text: str, tokenizer: Tokenizer) -> str:
    """The text without what nobody sees; as it looks, where that is of no more tokens."""
    if text.isascii():
        return text
    seen, written = as_seen(text), visible(text)
    if seen == written:
        return written
    return seen if len(tokenizer.encode(seen)) <= len(tokenizer.encode(written)) else written


def as_it_looks(n_best: NBest, tokenizer: Tokenizer, sentences: Sequence[str]) -> list[list[Translation]]:
    """The translations of each sentence as it looks."""
    return n_best([read_as(text, tokenizer) for text in sentences])
