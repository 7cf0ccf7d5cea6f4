"""Tokens for sentences where no run, and so no tokenizer, is at hand."""

from collections.abc import Sequence

from dragoman.text.tokenizers.pair import TokenizerPair, train_tokenizers
from dragoman.text.tokenizers.words import WordsConfig


def words_of(sentences: Sequence[str], vocab_size: int = 30_000) -> TokenizerPair:
    """A tokenizer that knows the words of these sentences and no others; each Han character or kana is a word."""
    config = WordsConfig(rules="characters", vocab_size=vocab_size)
    return train_tokenizers(config, lambda: iter(sentences), lambda: iter(()))
