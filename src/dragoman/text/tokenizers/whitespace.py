"""For text that is tokenised already: tokens are separated by spaces."""

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from dragoman.config import settings
from dragoman.special_tokens import UNK_ID
from dragoman.text.tokenizers.base import Vocabulary, VocabularyTokenizer
from dragoman.text.tokenizers.symbols import Symbols


@settings
class WhitespaceConfig:
    """The `vocab_size` (specials included) most frequent tokens that occur at least `min_count` times are known."""

    type: Literal["whitespace"] = "whitespace"
    vocab_size: Annotated[int, Field(ge=5)] = 30_000  #: Largest vocabulary, specials included. [tokens]
    min_count: Annotated[int, Field(ge=1)] = 1  #: Rarer tokens become `<unk>`. [occurrences]
    user_defined_symbols: Symbols = field(default_factory=list)
    """Tokens that the vocabulary has however rare they are."""
    fold_marks: bool = False
    """Read a token that is not known as the known one that differs from it in marks alone: `mochte` as `möchte`."""


class WhitespaceTokenizer(VocabularyTokenizer):
    """`decode(encode(x)) == " ".join(x.split())` for text of known tokens."""

    config_class = WhitespaceConfig

    def __init__(self, config: Any, vocabulary: Vocabulary) -> None:
        super().__init__(config, vocabulary)
        pieces = self.pieces(range(len(vocabulary))) if getattr(config, "fold_marks", False) else []
        self._folded = {_folded(piece): vocabulary.encode(piece) for piece in reversed(pieces)}

    @classmethod
    def train(cls, config: WhitespaceConfig, lines: Iterator[str]) -> Self:
        tokens = (token for line in lines for token in line.split())
        sizes = {"max_size": config.vocab_size, "min_count": config.min_count}
        return cls(config, Vocabulary.of_tokens(tokens, **sizes, first=config.user_defined_symbols))

    def encode(self, text: str) -> list[int]:
        return [self._id(token) for token in text.split()]

    def letters(self, text: str) -> list[int]:
        return [len(token) for token in text.split()]

    def _id(self, token: str) -> int:
        known = self.vocabulary.encode(token)
        return self._folded.get(_folded(token), UNK_ID) if known == UNK_ID and self._folded else known

    def decode(self, ids: Iterable[int]) -> str:
        return " ".join(self.vocabulary.surfaces(ids))


def _folded(token: str) -> str:
    """A token without its marks.

    >>> _folded("möchte")
    'mochte'
    """
    letters = unicodedata.normalize("NFD", token)
    return "".join(letter for letter in letters if not unicodedata.combining(letter))
