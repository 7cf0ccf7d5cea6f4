"""Every character is a token: no unknown words, long sequences, and a vocabulary of a hundred pieces."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal, Self

from pydantic import Field

from dragoman.config import settings
from dragoman.text.tokenizers.base import Vocabulary, VocabularyTokenizer

_SWAP = str.maketrans({" ": "▁", "▁": " "})
"""A space is shown as "▁"; swapping the two, rather than replacing one, loses nothing."""


@settings
class CharactersConfig:
    """Characters seen less than `min_count` times in the training text become unknown."""

    type: Literal["characters"] = "characters"
    min_count: Annotated[int, Field(ge=1)] = 1  #: Rarer characters become `<unk>`. [occurrences]


class CharactersTokenizer(VocabularyTokenizer):
    """Lossless: `decode(encode(x)) == x`, spaces included, for text of known characters."""

    config_class = CharactersConfig

    @classmethod
    def train(cls, config: CharactersConfig, lines: Iterator[str]) -> Self:
        characters = (character for line in lines for character in line.translate(_SWAP))
        return cls(config, Vocabulary.of_tokens(characters, min_count=config.min_count))

    def encode(self, text: str) -> list[int]:
        return [self.vocabulary.encode(character) for character in text.translate(_SWAP)]

    def letters(self, text: str) -> list[int]:
        return [int(not character.isspace()) for character in text]

    def decode(self, ids: Iterable[int]) -> str:
        return "".join(self.vocabulary.surfaces(ids)).translate(_SWAP)
