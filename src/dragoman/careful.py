"""Translation for people who cannot read the target language: placeholders survive, and what looks wrong is said.

It stands over a `Translator` and works with any model: it looks at texts, asks again, and chooses.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from dragoman.alignment import links
from dragoman.errors import DragomanError
from dragoman.guards import warnings_of
from dragoman.placeholders import Word, put_back, spans, survive, without_spans, words
from dragoman.translator import STREAM_LINES, Translation, Translator, in_chunks

FALLBACK = {"beam_size": 5, "no_repeat_ngram": 3}
"""What a sentence is searched with again when all that was found looks wrong."""


class CarefulTranslator:
    """A translator whose translations keep the placeholders of their sources, or are watched by guards, or both.

    `keep`: spans that must survive (`placeholders.py`) do, as they are and as many. `guard`: of the `beam_size` best
    translations the first with the fewest warnings (`guards.py`) is taken; where all have some, the sentence is
    searched again with no three tokens in a row twice. Every translation carries the warnings it is left with.
    """

    def __init__(self, translator: Translator, *, keep: bool = True, guard: bool = True) -> None:
        self.translator, self.keep, self.guard = translator, keep, guard
        decoding = translator.decoding
        if keep and decoding.n_best > 1:
            raise DragomanError("placeholders are kept in the best translation alone: leave n_best at 1")
        self._wide = translator.with_decoding(n_best=decoding.num_candidates) if guard else translator
        self._again = translator.with_decoding(
            **{**FALLBACK, "beam_size": max(FALLBACK["beam_size"], decoding.beam_size)}, sampling=None, mbr="none"
        )

    def stream(self, lines: Iterable[str], buffer: int = STREAM_LINES) -> Iterator[list[Translation]]:
        """`n_best` for input of any length: reads `buffer` lines ahead and keeps the order."""
        for chunk in in_chunks(lines, buffer):
            yield from self.n_best(chunk)

    def n_best(self, sentences: Sequence[str]) -> list[list[Translation]]:
        """As `Translator.n_best`."""
        found = self._watched(sentences)
        if not self.keep:
            return found
        lost = [
            row for row, item in enumerate(found) if spans(sentences[row]) and not survive(sentences[row], item[0].text)
        ]
        bare = [without_spans(sentences[row]) for row in lost]
        for row, (text, removed), item in zip(lost, bare, self._watched([text for text, _ in bare]), strict=True):
            translation = item[0].text
            src_words, tgt_words = words(text), words(translation)
            where = self._links(text, translation, src_words, tgt_words)
            kept = put_back(translation, removed, src_words, where, self.translator.join)
            found[row] = [replace(item[0], text=kept)]
        return found

    def _watched(self, sentences: Sequence[str]) -> list[list[Translation]]:
        """Translations with their warnings, those with the fewest first."""
        found = [
            [self._with_warnings(src, item) for item in of_sentence]
            for src, of_sentence in zip(sentences, self._wide.n_best(sentences), strict=True)
        ]
        if not self.guard:
            return found
        found = [sorted(of_sentence, key=lambda item: len(item.warnings)) for of_sentence in found]
        bad = [row for row, of_sentence in enumerate(found) if of_sentence[0].warnings]
        for row, again in zip(bad, self._again.n_best([sentences[row] for row in bad]), strict=True):
            other = self._with_warnings(sentences[row], again[0])
            if len(other.warnings) < len(found[row][0].warnings):
                found[row].insert(0, replace(other, warnings=(*other.warnings, "searched again without repetitions")))
        return [of_sentence[: self.translator.decoding.n_best] for of_sentence in found]

    @staticmethod
    def _with_warnings(src: str, item: Translation) -> Translation:
        return replace(item, warnings=tuple(warnings_of(src, item.text)))

    def _links(self, src: str, tgt: str, src_words: Sequence[Word], tgt_words: Sequence[Word]) -> np.ndarray:
        """Where words went; in the order they came for a model that has no attention to tell it."""
        try:
            return links(self.translator, src, tgt, src_words, tgt_words)
        except DragomanError:
            places = np.linspace(0, max(len(tgt_words) - 1, 0), len(src_words)).round().astype(int)
            return (np.arange(len(tgt_words))[:, None] == places).astype(float)
