"""Pretrained word vectors, to begin an embedding with."""

from typing import Any

from dragoman.config import settings
from dragoman.nn.embeddings import TokenEmbedding
from dragoman.text.tokenizers.base import Tokenizer
from dragoman.text.tokenizers.words import JOINER
from dragoman.text.vectors import read_vectors


@settings
class VectorsConfig:
    """A file of word vectors in word2vec's or GloVe's text format."""

    path: str  #: The file, plain or `.gz`.
    freeze: bool = False  #: Keep the whole embedding, and what is tied to it, as it begins.


def require_words(tokenizer: Any) -> None:
    """Raises ValueError when the settings `tokenizer` do not cut text into words."""
    if tokenizer.type not in ("words", "whitespace"):
        raise ValueError(f"vectors are of words, but tokenizer.type is {tokenizer.type}: take words")


def load_vectors(embedding: TokenEmbedding, tokenizer: Tokenizer, vectors: VectorsConfig) -> None:
    """Put the vectors of the words that the file has into `embedding`; other words keep theirs.

    Raises DragomanError when the file cannot be read or its vectors have another size.
    """
    words = {row: piece.strip(JOINER) for row, piece in enumerate(tokenizer.pieces(range(tokenizer.vocab_size)))}
    found = read_vectors(vectors.path, {word for word in words.values() if word})
    embedding.load_vectors({row: found[word] for row, word in words.items() if word in found})
    embedding.embedding.weight.requires_grad_(not vectors.freeze)
