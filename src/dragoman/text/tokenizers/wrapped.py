"""The base of tokenizers around another."""

import random
from collections.abc import Iterable
from typing import Any

from dragoman.text.tokenizers.base import Tokenizer


class WrappedTokenizer(Tokenizer):
    """A tokenizer around another, with its ids and pieces."""

    def __init__(self, config: Any, inner: Tokenizer) -> None:
        super().__init__(config)
        self.inner, self.sampling = inner, inner.sampling

    @property
    def vocab_size(self) -> int:
        return self.inner.vocab_size

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return self.inner.pieces(ids)

    def id_of(self, piece: str) -> int:
        return self.inner.id_of(piece)

    def sample_segmentation(self, ids: list[int], rng: random.Random) -> list[int]:
        return self.inner.sample_segmentation(ids, rng)
