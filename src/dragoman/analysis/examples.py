"""Tokens as labels, and tokens for sentences where no run, and so no tokenizer, is at hand."""

from collections.abc import Iterable, Sequence

from dragoman.text.tokenizers.base import Tokenizer
from dragoman.text.tokenizers.pair import TokenizerPair, train_tokenizers
from dragoman.text.tokenizers.words import JOINER, SPACE, WordsConfig

_SHOWN = str.maketrans({" ": "␣", "\t": "⇥", "\n": "⏎", SPACE: "␣", JOINER: ""})


def label(piece: str) -> str:
    """A piece as it can be read on an axis: blanks are visible, the joiner of the words tokenizer is left out.

    >>> label(" "), label("▁Haus"), label("</s>")
    ('␣', '▁Haus', '</s>')
    """
    return piece.translate(_SHOWN) or piece


def labels(tokenizer: Tokenizer, ids: Iterable[int]) -> list[str]:
    """The label of each id."""
    return [label(piece) for piece in tokenizer.pieces(ids)]


def words_of(sentences: Sequence[str], vocab_size: int = 30_000) -> TokenizerPair:
    """A tokenizer that knows the words of these sentences and no others; each Han character or kana is a word."""
    config = WordsConfig(rules="characters", vocab_size=vocab_size)
    return train_tokenizers(config, lambda: iter(sentences), lambda: iter(()))
