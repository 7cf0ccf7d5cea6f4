"""Words as tokens, with a mark where there is no space, so that the text can be put together again.

"Don't (really)." becomes `Don't (￭ really ￭) ￭.`: "￭" says that the token is joined to its neighbour on that side.
Between two Han characters or kana, joined is what is expected and a space is a token of its own, "￮".
"""

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Literal, Self

from pydantic import Field

from dragoman.config import settings
from dragoman.text.tokenizers.base import Vocabulary, VocabularyTokenizer
from dragoman.text.tokenizers.segmenters import CJK, Words, segmenter

JOINER, SPACE = "￭", "￮"

_UNMARKED = str.maketrans({JOINER: "■", SPACE: "○"})
"""The marks are half-width forms; in text they are replaced by the full forms, as NFKC would."""

_CJK = re.compile(rf"[{CJK}\u3000-\u303f\uff01-\uff65]")


@settings
class WordsConfig:
    """`rules` says where words end: `rule` (any language with spaces), `characters` (the same, and each Han character
    or kana by itself), `spacy` (the tokenizer of the language `lang`), `jieba` (Chinese words).

    The `vocab_size` (specials included) most frequent words that occur at least `min_count` times are known.
    """

    type: Literal["words"] = "words"
    vocab_size: Annotated[int, Field(ge=5)] = 30_000  #: Largest vocabulary, specials included. [tokens]
    min_count: Annotated[int, Field(ge=1)] = 1  #: Rarer words become `<unk>`. [occurrences]
    lowercase: bool = False  #: Lower-case the text.
    rules: Literal["rule", "spacy", "jieba", "characters"] = "rule"  #: Rules of word boundaries.
    lang: str = "en"  #: Language code, for `rules: spacy`.


class WordsTokenizer(VocabularyTokenizer):
    """`decode(encode(x)) == " ".join(x.split())` for text of known words, lower-cased if so set."""

    config_class = WordsConfig

    def __init__(self, config: WordsConfig, vocabulary: Vocabulary) -> None:
        super().__init__(config, vocabulary)
        self.check(config)  # fail now, not at the first sentence

    @classmethod
    def check(cls, config: WordsConfig) -> None:
        segmenter(config.rules, config.lang)

    @classmethod
    def train(cls, config: WordsConfig, lines: Iterator[str]) -> Self:
        tokens = (token for line in lines for token in tokens_of(line, config))
        return cls(config, Vocabulary.of_tokens(tokens, max_size=config.vocab_size, min_count=config.min_count))

    def encode(self, text: str) -> list[int]:
        return [self.vocabulary.encode(token) for token in tokens_of(text, self.config)]

    def letters(self, text: str) -> list[int]:
        return [0 if token == SPACE else len(token.strip(JOINER)) for token in tokens_of(text, self.config)]

    def decode(self, ids: Iterable[int]) -> str:
        return join(self.vocabulary.surfaces(ids))


def tokens_of(text: str, config: WordsConfig) -> list[str]:
    """The words of a text with their marks."""
    text = " ".join(text.translate(_UNMARKED).split())
    words = segmenter(config.rules, config.lang)(text.lower() if config.lowercase else text)
    return _mark(words)


def join(tokens: Iterable[str]) -> str:
    """The text of marked tokens."""
    text = ""
    joined, spaced = True, False
    for token in tokens:
        word = token.strip(JOINER)
        if not word or word == SPACE:
            spaced = spaced or word == SPACE
            continue
        joined = joined or token.startswith(JOINER) or (not spaced and _joined_by_default(text, word))
        text += word if joined else " " + word
        joined, spaced = token.endswith(JOINER), False
    return text


def _mark(words: Words) -> list[str]:
    marked: list[str] = []
    before = ""
    for word, joined in words:
        token = word
        if before and joined != _joined_by_default(before, word):
            if not joined:
                marked.append(SPACE)
            elif _mark_goes_before(before, word):
                marked[-1] += JOINER
            else:
                token = JOINER + word
        marked.append(token)
        before = word
    return marked


def _joined_by_default(before: str, word: str) -> bool:
    return bool(before) and bool(_CJK.match(before[-1]) and _CJK.match(word[0]))


def _mark_goes_before(before: str, word: str) -> bool:
    """Marks go to punctuation rather than words and to words rather than Han characters: fewer variants to learn."""
    if _CJK.match(before[-1]):
        return False
    return bool(_CJK.match(word[0])) or (word[0].isalnum() and not before[-1].isalnum())
