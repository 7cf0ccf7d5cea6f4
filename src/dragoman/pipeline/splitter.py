"""Texts cut into the pieces that are translated, and put together again with the white space between them kept."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dragoman.languages.codes import written_without_spaces
from dragoman.text.message_format import is_message
from dragoman.text.segment import Span, sentences

SEVERAL = 0.5
"""A corpus of which a larger share of lines has several sentences teaches to translate such lines as a whole.

Where fewer have, sentence by sentence is better all the same: LibreOffice's help, a fifth of whose lines have several,
gains 1.5 BLEU by it (docs/log.md).
"""

_LETTER = re.compile(r"[^\W\d_]")
_LINE = re.compile(r"\S(?:[^\n\r]*\S)?")
_NO_SENTENCE = re.compile(r"(?:https?://|www\.)\S+|\S+@\S+\.\w+|[\w./\\-]+\.\w{2,5}|--?\w[\w-]*")
"""Addresses, files, options of commands: nothing to translate."""


class Piece(NamedTuple):
    """A piece of a text, and whether there is anything in it to translate."""

    span: Span
    text: str
    is_text: bool


class Joined(NamedTuple):
    """The translation of a text, and (piece, where its translation begins, that translation) of each piece."""

    text: str
    places: list[tuple[Piece, int, str]]


@dataclass(frozen=True)
class Splitter:
    """The rules by which texts are cut: into sentences, or else into lines."""

    languages: tuple[str, str] = ("", "")
    sentences: bool = True
    numbers: bool = False
    """Pieces without letters are translated too: the run was trained on such text."""
    is_whole: Callable[[str], bool] = lambda _: False
    """True for a text that is not to be cut, as all of it has a translation already."""

    def pieces(self, text: str) -> list[Piece]:
        """The pieces of a text, in order, without the white space around them; a message with arms stays whole."""
        if self.sentences:
            spans = sentences(text, self.languages[0])
        else:
            spans = [Span(*match.span()) for match in _LINE.finditer(text)]
        if text.strip() and (is_message(text) or (len(spans) > 1 and self.is_whole(text))):
            start = len(text) - len(text.lstrip())
            spans = [Span(start, start + len(text.strip()))]
        return [Piece(span, text[slice(*span)], self.is_text(text[slice(*span)])) for span in spans]

    def is_text(self, piece: str) -> bool:
        """True if there is anything to translate."""
        return bool(self.numbers or _LETTER.search(piece)) and not _NO_SENTENCE.fullmatch(piece)

    def joined(self, text: str, pieces: Sequence[Piece], said: Mapping[str, str]) -> Joined:
        """The translation of a text from those of its pieces."""
        out, at = "", 0
        places: list[tuple[Piece, int, str]] = []
        for piece in pieces:
            gap = text[at : piece.span.start]
            out += self._gap(gap) if places else gap
            translation = said[piece.text] if piece.is_text else piece.text
            places.append((piece, len(out), translation))
            out += translation
            at = piece.span.end
        return Joined(out + text[at:], places)

    def _gap(self, gap: str) -> str:
        """White space between two sentences, as the target language writes it."""
        if "\n" in gap:
            return gap
        if written_without_spaces(self.languages[1]):
            return gap if len(gap) > 1 else ""
        return gap or " "


def are_single_sentences(lines: Iterable[str], language: str) -> bool:
    """True if most lines of a corpus are one sentence each."""
    counts = [len(sentences(line, language)) > 1 for line in lines if line.strip()]
    return bool(counts) and sum(counts) / len(counts) <= SEVERAL


def are_numbers(lines: Iterable[str]) -> bool:
    """True if most lines of a corpus have no letter."""
    counts = [_LETTER.search(line) is None for line in lines if line.strip()]
    return bool(counts) and sum(counts) / len(counts) > SEVERAL
