"""Pretrained word vectors, to begin an embedding with."""

from typing import Any

from dragoman.config import settings
from dragoman.nn.embeddings import TokenEmbedding
from dragoman.text.tokenizers.base import Tokenizer
from dragoman.text.tokenizers.resampling import WORD_START
from dragoman.text.tokenizers.words import JOINER
from dragoman.text.vectors import read_vectors


@settings
class VectorsConfig:
    """A file of word vectors in word2vec's or GloVe's text format."""

    path: str  #: The file, plain or `.gz`.
    freeze: bool = False  #: Keep the whole embedding, and what is tied to it, as it begins.


def require_words(tokenizer: Any) -> None:
    """Raises ValueError when the settings `tokenizer` have no pieces that are words."""
    tokenizer = getattr(tokenizer, "inner", tokenizer)
    if tokenizer.type not in ("words", "whitespace", "sentencepiece", "pieces", "subword_nmt"):
        raise ValueError(f"vectors are of words, but tokenizer.type is {tokenizer.type}: take words or sentencepiece")


def load_vectors(embedding: TokenEmbedding, tokenizer: Tokenizer, vectors: VectorsConfig) -> None:
    """Put the vectors of the words that the file has into `embedding`; other words keep theirs.

    A piece gets its own vector where the file has pieces (`▁un`, `un@@`). Else a piece that begins a word gets the
    vector of the word that it is by itself.

    Raises DragomanError when the file cannot be read or its vectors have another size.
    """
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    words = [
        list(dict.fromkeys((word, word.removeprefix(WORD_START)))) for word in (one.strip(JOINER) for one in pieces)
    ]
    by_word = read_vectors(vectors.path, {word for of_piece in words for word in of_piece if word})
    of_pieces = {row: [by_word[word] for word in of_piece if word in by_word] for row, of_piece in enumerate(words)}
    embedding.load_vectors({row: known[0] for row, known in of_pieces.items() if known})
    embedding.embedding.weight.requires_grad_(not vectors.freeze)
