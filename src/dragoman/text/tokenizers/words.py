"""Words as tokens, with a mark where there is no space, so that the text can be put together again.

"Don't (really)." becomes `Don't (￭ really ￭) ￭.`: "￭" says that the token is joined to its neighbour on that side.
Between two Han characters or kana, joined is what is expected and a space is a token of its own, "￮".
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import field
from typing import Annotated, Literal, Self

from pydantic import Field

from dragoman.config import settings
from dragoman.special_tokens import UNK_ID
from dragoman.text.tokenizers.base import Vocabulary, VocabularyTokenizer
from dragoman.text.tokenizers.segmenters import CJK, Words, segmenter
from dragoman.text.tokenizers.symbols import Symbols, WhiteSpace, symbol_pattern, unknown_white_space

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
    user_defined_symbols: Symbols = field(default_factory=list)
    """Strings such as `<br>` that are a word of their own wherever a text has them, in the case that they have here."""
    white_space: WhiteSpace = "normalize"
    """`normalize`: any white space is one space, none at the ends; `keep`: as the text has it, with a token for each
    kind of it (tab, no-break space ...) in the text that is learnt from; other kinds are a space."""


class WordsTokenizer(VocabularyTokenizer):
    """`decode(encode(x)) == " ".join(x.split())` for text of known words, lower-cased if so set; `x` itself with
    `white_space: keep`."""

    config_class = WordsConfig

    def __init__(self, config: WordsConfig, vocabulary: Vocabulary) -> None:
        super().__init__(config, vocabulary)
        self.check(config)  # fail now, not at the first sentence
        self._spaces = unknown_white_space(lambda letter: self.id_of(letter) != UNK_ID)

    @classmethod
    def check(cls, config: WordsConfig) -> None:
        segmenter(config.rules, config.lang)

    @classmethod
    def train(cls, config: WordsConfig, lines: Iterator[str]) -> Self:
        tokens = (token for line in lines for token in tokens_of(line, config))
        symbols = config.user_defined_symbols
        if symbols or config.white_space == "keep":
            symbols = [*symbols, SPACE]
        sizes = {"max_size": config.vocab_size, "min_count": config.min_count}
        return cls(config, Vocabulary.of_tokens(tokens, **sizes, first=symbols))

    def encode(self, text: str) -> list[int]:
        return [self.vocabulary.encode(token) for token in self._tokens(text)]

    def letters(self, text: str) -> list[int]:
        return [0 if token == SPACE else len(token.strip(JOINER).strip()) for token in self._tokens(text)]

    def decode(self, ids: Iterable[int]) -> str:
        return join(self.vocabulary.surfaces(ids), self.config.user_defined_symbols)

    def _tokens(self, text: str) -> list[str]:
        return tokens_of(text.translate(self._spaces), self.config)


def tokens_of(text: str, config: WordsConfig) -> list[str]:
    """The words of a text with their marks."""
    text = text.translate(_UNMARKED)
    if config.white_space == "normalize":
        text = " ".join(text.split())
    words: Words = []
    spaced = False
    for place, part in enumerate(re.split(f"({_apart(config)})", text)):
        if place % 2:
            words.append((part, not spaced))
            spaced = False
        elif part:
            segments = segmenter(config.rules, config.lang)(part.lower() if config.lowercase else part)
            words += [(word, part[0] != " ") for word, _ in segments[:1]] + segments[1:]
            spaced = part[-1] == " "
    return _mark(words, config.user_defined_symbols)


def join(tokens: Iterable[str], symbols: Collection[str] = ()) -> str:
    """The text of marked tokens."""
    text = before = ""
    joined, spaced = True, False
    for token in tokens:
        word = token.strip(JOINER)
        if not word or word == SPACE:
            spaced = spaced or word == SPACE
            continue
        joined = joined or token.startswith(JOINER) or (not spaced and _joined_by_default(before, word, symbols))
        text += word if joined else " " + word
        joined, spaced, before = token.endswith(JOINER), False, word
    return text


def _apart(config: WordsConfig) -> str:
    """A regular expression for what stands for itself: symbols, and kept white space other than a single space."""
    kept = "|[^\\S ]|(?<=\\s) |^ | $" if config.white_space == "keep" else ""
    return symbol_pattern(config.user_defined_symbols) + kept


def _mark(words: Words, symbols: Collection[str] = ()) -> list[str]:
    marked: list[str] = []
    before = ""
    for word, joined in words:
        token = word
        if before and joined != _joined_by_default(before, word, symbols):
            if not joined:
                marked.append(SPACE)
            elif _mark_goes_before(before, word):
                marked[-1] += JOINER
            else:
                token = JOINER + word
        marked.append(token)
        before = word
    return marked


def _joined_by_default(before: str, word: str, symbols: Collection[str]) -> bool:
    """Symbols and kept white space are joined with their neighbours, as Han characters and kana with each other."""
    if not before:
        return False
    apart = any(one in symbols or one.isspace() for one in (before, word))
    return apart or bool(_CJK.match(before[-1]) and _CJK.match(word[0]))


def _mark_goes_before(before: str, word: str) -> bool:
    """Marks go to punctuation rather than words and to words rather than Han characters: fewer variants to learn."""
    if _CJK.match(before[-1]):
        return False
    return bool(_CJK.match(word[0])) or (word[0].isalnum() and not before[-1].isalnum())
