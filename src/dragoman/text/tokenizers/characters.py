"""Every character is a token: no unknown words, long sequences, and a vocabulary of a hundred pieces."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Annotated, Literal, Self

from pydantic import Field

from dragoman.config import settings
from dragoman.text.tokenizers.base import Vocabulary, VocabularyTokenizer
from dragoman.text.tokenizers.symbols import Symbols, symbol_pattern

_SWAP = str.maketrans({" ": "▁", "▁": " "})
"""A space is shown as "▁"; swapping the two, rather than replacing one, loses nothing."""


@settings
class CharactersConfig:
    """Characters seen less than `min_count` times in the training text become unknown."""

    type: Literal["characters"] = "characters"
    min_count: Annotated[int, Field(ge=1)] = 1  #: Rarer characters become `<unk>`. [occurrences]
    user_defined_symbols: Symbols = field(default_factory=list)
    """Strings such as `<br>` that are a token of their own wherever a text has them."""


class CharactersTokenizer(VocabularyTokenizer):
    """Lossless: `decode(encode(x)) == x`, spaces included, for text of known characters."""

    config_class = CharactersConfig

    @classmethod
    def train(cls, config: CharactersConfig, lines: Iterator[str]) -> Self:
        tokens = (token for line in lines for token in _tokens(line, config))
        symbols = config.user_defined_symbols
        return cls(config, Vocabulary.of_tokens(tokens, min_count=config.min_count, first=symbols))

    def encode(self, text: str) -> list[int]:
        return [self.vocabulary.encode(token) for token in _tokens(text, self.config)]

    def letters(self, text: str) -> list[int]:
        return [len(token.translate(_SWAP).strip()) for token in _tokens(text, self.config)]

    def decode(self, ids: Iterable[int]) -> str:
        return "".join(self.vocabulary.surfaces(ids)).translate(_SWAP)


def _tokens(text: str, config: CharactersConfig) -> Iterable[str]:
    text = text.translate(_SWAP)
    if not config.user_defined_symbols:
        return text
    return re.findall(f"{symbol_pattern(config.user_defined_symbols)}|.", text, re.DOTALL)
