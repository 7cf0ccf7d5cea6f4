"""For text that is tokenised already: tokens are separated by spaces."""

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Annotated, Literal, Self

from pydantic import Field

from dragoman.config import settings
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


class WhitespaceTokenizer(VocabularyTokenizer):
    """`decode(encode(x)) == " ".join(x.split())` for text of known tokens."""

    config_class = WhitespaceConfig

    @classmethod
    def train(cls, config: WhitespaceConfig, lines: Iterator[str]) -> Self:
        tokens = (token for line in lines for token in line.split())
        sizes = {"max_size": config.vocab_size, "min_count": config.min_count}
        return cls(config, Vocabulary.of_tokens(tokens, **sizes, first=config.user_defined_symbols))

    def encode(self, text: str) -> list[int]:
        return [self.vocabulary.encode(token) for token in text.split()]

    def letters(self, text: str) -> list[int]:
        return [len(token) for token in text.split()]

    def decode(self, ids: Iterable[int]) -> str:
        return " ".join(self.vocabulary.surfaces(ids))
