"""Texts of several sentences translated one sentence at a time, with the white space between them kept."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from dragoman.inference.translation import Translation
from dragoman.languages.codes import written_without_spaces
from dragoman.text.message_format import is_message
from dragoman.text.segment import Span, sentences

SEVERAL = 0.5
"""A corpus of which a larger share of lines has several sentences teaches to translate such lines as a whole.

Where fewer have, sentence by sentence is better all the same: LibreOffice's help, a fifth of whose lines have several,
gains 1.5 BLEU by it (docs/log.md).
"""

_LETTER = re.compile(r"[^\W\d_]")
_NO_SENTENCE = re.compile(r"(?:https?://|www\.)\S+|\S+@\S+\.\w+|[\w./\\-]+\.\w{2,5}|--?\w[\w-]*")
"""Addresses, files, options of commands: nothing to translate."""


class Piece(NamedTuple):
    """A sentence of a text, and whether there is anything in it to translate."""

    span: Span
    text: str
    is_text: bool


class Joined(NamedTuple):
    """The translation of a text, and (sentence, where its translation begins, that translation) of each sentence."""

    text: str
    places: list[tuple[Piece, int, str]]


class NBest(Protocol):
    """A translator, or guards around one."""

    def n_best(self, sentences: Sequence[str]) -> list[list[Translation]]: ...


class SentenceTranslator:
    """Translates texts sentence by sentence; each different sentence once.

    `is_whole`: of a text that is not to be cut, as all of it has a translation already.
    """

    def __init__(
        self, translator: NBest, languages: tuple[str, str], is_whole: Callable[[str], bool] = lambda _: False
    ) -> None:
        self.translator, (self.src_lang, self.tgt_lang) = translator, languages
        self.is_whole = is_whole

    def n_best(self, texts: Sequence[str]) -> list[list[Translation]]:
        """The translations of each text; of one of several sentences one, of the best of each."""
        pieces = [self.pieces(text) for text in texts]
        wanted = dict.fromkeys(
            part
            for text, of_text in zip(texts, pieces, strict=True)
            for part in ([piece.text for piece in of_text if piece.is_text] if len(of_text) > 1 else [text])
        )
        found = dict(zip(wanted, self.translator.n_best(list(wanted)), strict=True)) if wanted else {}
        said = {text: items[0].text for text, items in found.items()}
        results = []
        for text, of_text in zip(texts, pieces, strict=True):
            if len(of_text) < 2:
                results.append(found[text])
                continue
            items = [found[piece.text][0] for piece in of_text if piece.is_text]
            warnings = tuple(dict.fromkeys(warning for item in items for warning in item.warnings))
            score, log_prob = sum(item.score for item in items), sum(item.log_prob for item in items)
            joined = self.joined(text, of_text, said).text.strip()
            results.append([Translation(joined, score / max(len(items), 1), log_prob, warnings)])
        return results

    def translations(self, texts: Iterable[str]) -> dict[str, Translation]:
        """The best translation of each sentence."""
        wanted = list(dict.fromkeys(texts))
        return dict(zip(wanted, (items[0] for items in self.translator.n_best(wanted)), strict=True)) if wanted else {}

    def pieces(self, text: str) -> list[Piece]:
        """The sentences of a text; a message with arms stays whole."""
        spans = sentences(text, self.src_lang)
        if is_message(text) or (len(spans) > 1 and self.is_whole(text)):
            return self.whole(text)
        return [Piece(span, text[slice(*span)], _is_text(text[slice(*span)])) for span in spans]

    @staticmethod
    def lines(text: str) -> list[Piece]:
        """The lines of a text."""
        spans = (Span(*match.span()) for match in re.finditer(r"\S(?:[^\n\r]*\S)?", text))
        return [Piece(span, text[slice(*span)], _is_text(text[slice(*span)])) for span in spans]

    @staticmethod
    def whole(text: str) -> list[Piece]:
        """A text as one piece."""
        start = len(text) - len(text.lstrip())
        span = Span(start, start + len(text.strip()))
        return [Piece(span, text[slice(*span)], _is_text(text[slice(*span)]))]

    def joined(self, text: str, pieces: Sequence[Piece], said: dict[str, str]) -> Joined:
        """The translation of a text from those of its sentences."""
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
        if written_without_spaces(self.tgt_lang):
            return gap if len(gap) > 1 else ""
        return gap or " "


def are_single_sentences(lines: Iterable[str], language: str) -> bool:
    """True if most lines of a corpus are one sentence each."""
    counts = [len(sentences(line, language)) > 1 for line in lines if line.strip()]
    return bool(counts) and sum(counts) / len(counts) <= SEVERAL


def _is_text(text: str) -> bool:
    return bool(_LETTER.search(text)) and not _NO_SENTENCE.fullmatch(text.strip())
