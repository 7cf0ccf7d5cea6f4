"""Capitals as tokens of their own: a tokenizer of lower-cased text, with marks for what was capital.

`Hund`, `hund` and `HUND` are one piece, the first after `<capital>`, the last between `<upper>` and `</upper>`, which
may hold several words (the inline features of OpenNMT's Tokenizer). Only words whose capitals the marks give back are
lower-cased: a capital first letter, or capitals throughout. All others keep their letters: `iPhone`, and letters that
no mapping gives back (`İ`, `ẞ`, the Kelvin sign, titlecase digraphs).
"""

import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, Self

from dragoman.config import settings
from dragoman.special_tokens import BOS_ID, EOS_ID, PAD_ID
from dragoman.text.tokenizers.resampling import WORD_START
from dragoman.text.tokenizers.sentencepiece import SentencePieceConfig, SentencePieceTokenizer
from dragoman.text.tokenizers.wrapped import WrappedTokenizer
from dragoman.text.words import LETTERS

CAPITAL, UPPER, END = MARKS = ("<capital>", "<upper>", "</upper>")
"""The next letter is a capital; all letters up to the end are."""
_WORD = re.compile(LETTERS)


@settings
class CasedConfig(SentencePieceConfig):
    """SentencePiece over lower-cased text, with marks for capitals; its other settings are those of `sentencepiece`."""

    type: Literal["cased"] = "cased"  # type: ignore[assignment]
    marks: ClassVar[tuple[str, ...]] = MARKS


class CaseMark(NamedTuple):
    """A mark before (`</upper>`: after) so many letters of a text, spaces not counted."""

    place: int
    piece: str


@functools.cache
def lower_of(char: str) -> str:
    """The small letter from which `upper_of` makes this capital again; the character itself where there is none.

    >>> lower_of("Ä"), lower_of("İ"), lower_of("ß")
    ('ä', 'İ', 'ß')
    """
    small = char.lower()
    return small if len(small) == 1 and small != char and upper_of(small) == char else char


@functools.cache
def upper_of(char: str) -> str:
    """The capital of a letter, where its small letter is this one (or it is a final sigma)."""
    capital = char.upper()
    return capital if len(capital) == 1 and (char == "ς" or capital.lower() == char) else char


def marked(text: str, kept: frozenset[int] = frozenset()) -> tuple[str, list[CaseMark]]:
    """The text in lower case, and its marks. The words that begin at the characters `kept` stay as they are.

    >>> marked("Der NEUE TISCH vom iPhone")
    ('der neue tisch vom iPhone', [CaseMark(place=0, piece='<capital>'), CaseMark(place=3, piece='<upper>'), \
CaseMark(place=12, piece='</upper>')])
    """
    out, marks = list(text), []
    before = [0]
    for char in text:
        before.append(before[-1] + (not char.isspace()))
    for start, end in _regions(text, kept):
        # The last letter of a Greek word has a form of its own, where it is small.
        small = (lower_of(char) for char in text[start:end])
        out[start:end] = re.sub(r"(?<=\w)σ(?!\w)", "ς", "".join(small)) if "Σ" in text[start:end] else small
        marks += [CaseMark(before[start], UPPER), CaseMark(before[end], END)]
    for match in _WORD.finditer("".join(out)):
        word, start = match.group(), match.start()
        if start not in kept and lower_of(word[0]) != word[0] and not any(map(_is_capital, word[1:])):
            out[start] = lower_of(word[0])
            marks.append(CaseMark(before[start], CAPITAL))
    return "".join(out), sorted(marks)


def _regions(text: str, kept: frozenset[int]) -> Iterator[tuple[int, int]]:
    """(start, end) of each row of words in capitals of two letters or more, in which nothing is a small letter."""
    start = end = capitals = 0
    for match in _WORD.finditer(text):
        word = match.group()
        is_upper = match.start() not in kept and any(map(_is_capital, word)) and not any(map(_is_small, word))
        if capitals and (not is_upper or any(map(_is_small, text[end : match.start()]))):
            if capitals > 1:
                yield start, end
            capitals = 0
        if is_upper:
            start = start if capitals else match.start()
            end, capitals = match.end(), capitals + sum(map(_is_capital, word))
    if capitals > 1:
        yield start, end


def _is_capital(char: str) -> bool:
    return lower_of(char) != char


def _is_small(char: str) -> bool:
    return upper_of(char) != char


class CasedTokenizer(WrappedTokenizer):
    """A SentencePiece tokenizer of lower-cased text, and marks between its pieces.

    `decode(encode(x))` is what it is for SentencePiece. Marks that a model has put where no letter follows, or has not
    closed, are borne.
    """

    config_class = CasedConfig
    inner: SentencePieceTokenizer

    def __init__(self, inner: SentencePieceTokenizer) -> None:
        super().__init__(inner.config, inner)
        self._marks = {self.inner.id_of(piece): piece for piece in MARKS}

    @classmethod
    def train(cls, config: CasedConfig, lines: Iterator[str]) -> Self:
        return cls(SentencePieceTokenizer.train(config, (marked(line)[0] for line in lines)))

    def encode(self, text: str) -> list[int]:
        return [index for index, _ in self._encoded(text)]

    def letters(self, text: str) -> list[int]:
        return [count for _, count in self._encoded(text)]

    def _encoded(self, text: str) -> list[tuple[int, int]]:
        """(id, letters) of each token; words whose marks would stand inside of a piece keep their letters."""
        kept: frozenset[int] = frozenset()
        while True:
            lowered, marks = marked(text, kept)
            tokens = list(zip(self.inner.encode(lowered), self.inner.letters(lowered), strict=True))
            at, ends = 0, {0: 0}  # letters so far -> tokens so far, bytes and spaces after a letter left out
            for number, (_, count) in enumerate(tokens, start=1):
                at += count
                if count or not self._is_space(tokens[number - 1][0]):
                    ends[at] = number
            if all(mark.place in ends for mark in marks):
                break
            places = [place for place, char in enumerate(text) if not char.isspace()]
            inside = {places[mark.place - (mark.piece == END)] for mark in marks if mark.place not in ends}
            kept |= {match.start() for match in _WORD.finditer(text) if inside & set(range(*match.span()))}
        for mark in reversed(marks):
            tokens.insert(ends[mark.place], (self.inner.id_of(mark.piece), 0))
        return tokens

    def _is_space(self, index: int) -> bool:
        return self.inner.pieces([index]) == [WORD_START]

    def decode(self, ids: Iterable[int]) -> str:
        kept = [index for index in self._checked(ids) if index not in (PAD_ID, BOS_ID, EOS_ID)]
        tokens: list[int] = []
        marks: list[tuple[int, str]] = []  # (tokens before it, mark)
        for index in kept:
            if index in self._marks:
                marks.append((len(tokens), self._marks[index]))
            else:
                tokens.append(index)
        text, start = list(self.inner.decode(tokens)), -1
        for count, piece in [*marks, (len(tokens), END)]:
            at = len(self.inner.decode(tokens[:count]))
            if piece == CAPITAL:
                letter = next((place for place in range(at, len(text)) if not text[place].isspace()), None)
                if letter is not None:
                    text[letter] = upper_of(text[letter])
            elif piece == UPPER:
                start = at if start < 0 else start
            elif start >= 0:
                text[start:at] = map(upper_of, text[start:at])
                start = -1
        return "".join(text)

    def _save_model(self, directory: Path) -> None:
        self.inner._save_model(directory)

    @classmethod
    def _load_model(cls, config: CasedConfig, directory: Path) -> Self:
        return cls(SentencePieceTokenizer._load_model(config, directory))
