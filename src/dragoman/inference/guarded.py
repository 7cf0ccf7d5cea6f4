"""Translation for people who cannot read the target language: placeholders survive, and what looks wrong is said.

It stands over a `Translator` and works with any model: it looks at texts, asks again, and chooses.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from dragoman.errors import DragomanError
from dragoman.inference.alignment import links
from dragoman.inference.placeholders import Word, put_back, spans, survive, without_spans, words
from dragoman.inference.translation import Translation
from dragoman.inference.translator import STREAM_LINES, Translator
from dragoman.inference.warnings import source_warnings, warnings_of
from dragoman.text.lines import in_chunks
from dragoman.text.tokenizers.base import UNK_ID, Tokenizer

FALLBACK = {"beam_size": 5, "no_repeat_ngram": 3}
"""Settings of the second search of a sentence, if all translations of the first look wrong."""

NOT_THE_FIRST = "not the most probable translation, which looks worse"
SEARCHED_AGAIN = "searched again without repetitions"
PUT_BACK = "placeholders put back"
NOTES = (NOT_THE_FIRST, SEARCHED_AGAIN, PUT_BACK)
"""Notes on what was done, beside the warnings that are left."""


class GuardedTranslator:
    """A translator whose translations keep the placeholders of their sources, or are watched by guards, or both.

    `keep`: spans that must survive (`placeholders.py`) do, as they are and as many. `guard`: of the `beam_size` best
    translations the first with the fewest warnings (`warnings.py`) is taken; where all have some, the sentence is
    searched again with no three tokens in a row twice. Every translation carries the warnings it is left with.
    """

    def __init__(
        self, translator: Translator, *, keep: bool = True, guard: bool = True, fallback: Translator | None = None
    ) -> None:
        """`fallback`: what searches again, where the translator is one that cannot do everything (another engine)."""
        self.translator, self.keep, self.guard = translator, keep, guard
        decoding = translator.decoding
        if keep and decoding.n_best > 1:
            raise DragomanError("placeholders are kept in the best translation alone: leave n_best at 1")
        self._wide = translator.with_decoding(n_best=decoding.num_candidates) if guard else translator
        wider = {**FALLBACK, "beam_size": max(FALLBACK["beam_size"], decoding.beam_size)}
        self._again = (fallback or translator).with_decoding(**wider, n_best=1, sampling=None, mbr="none")

    def stream(self, lines: Iterable[str], buffer: int = STREAM_LINES) -> Iterator[list[Translation]]:
        """`n_best` for input of any length: reads `buffer` lines ahead and keeps the order."""
        for chunk in in_chunks(lines, buffer):
            yield from self.n_best(chunk)

    def n_best(self, sentences: Sequence[str]) -> list[list[Translation]]:
        """As `Translator.n_best`."""
        results = self._kept(sentences)
        if not self.guard:
            return results
        return [self._with_source_warnings(src, item) for src, item in zip(sentences, results, strict=True)]

    def _kept(self, sentences: Sequence[str]) -> list[list[Translation]]:
        """The translations with the placeholders of their sources."""
        found = self._watched(sentences)
        if not self.keep:
            return found
        lost = [
            row for row, item in enumerate(found) if spans(sentences[row]) and not survive(sentences[row], item[0].text)
        ]
        bare = [without_spans(sentences[row]) for row in lost]
        for row, (text, removed), item in zip(lost, bare, self._watched([text for text, _ in bare]), strict=True):
            translation = without_spans(item[0].text)[0]  # those that the model made up
            src_words, tgt_words = words(text), words(translation)
            where = self._links(text, translation, src_words, tgt_words)
            kept = put_back(
                translation, removed, src_words, where, self.translator.join, self._terms(text, translation)
            )
            notes = [note for note in item[0].warnings if note in NOTES]
            again = self._with_warnings(sentences[row], replace(item[0], text=kept))
            found[row] = [replace(again, warnings=(*again.warnings, *notes, PUT_BACK))]
        return found

    def _watched(self, sentences: Sequence[str]) -> list[list[Translation]]:
        """Translations with their warnings, those with the fewest first."""
        found = [
            [self._with_warnings(src, item) for item in of_sentence]
            for src, of_sentence in zip(sentences, self._wide.n_best(sentences), strict=True)
        ]
        if not self.guard:
            return found
        for row, of_sentence in enumerate(found):
            best = min(of_sentence, key=lambda item: len(item.warnings))
            if best is not of_sentence[0]:
                found[row] = [replace(best, warnings=(*best.warnings, NOT_THE_FIRST)), *of_sentence]
            elif best.warnings and (again := self._searched_again(sentences[row], len(best.warnings))):
                found[row] = [again, *of_sentence]
        return [_unique(of_sentence)[: self.translator.decoding.n_best] for of_sentence in found]

    def _searched_again(self, src: str, num_warnings: int) -> Translation | None:
        """A translation without repetitions that has fewer warnings; None: there is none."""
        try:
            other = self._with_warnings(src, self._again.n_best([src])[0][0])
        except DragomanError:  # nothing is found without repetitions
            return None
        return (
            replace(other, warnings=(*other.warnings, SEARCHED_AGAIN)) if len(other.warnings) < num_warnings else None
        )

    def _with_warnings(self, src: str, item: Translation) -> Translation:
        return replace(item, warnings=(*item.warnings, *warnings_of(src, item.text, self.translator.languages)))

    def _with_source_warnings(self, src: str, translations: Sequence[Translation]) -> list[Translation]:
        """The translations with the reasons why the model may not understand their source."""
        reasons = source_warnings(src, self.translator.languages)
        if unknown := unknown_words(self.translator.tokenizers.src, self.translator.normalize(without_spans(src)[0])):
            reasons.append(f"unknown to the model: {' '.join(unknown)}")
        return [replace(item, warnings=(*item.warnings, *reasons)) for item in translations]

    def _links(self, src: str, tgt: str, src_words: Sequence[Word], tgt_words: Sequence[Word]) -> np.ndarray:
        """Where words went; in the order they came for a model that has no attention to tell it."""
        try:
            return links(self.translator, src, tgt, src_words, tgt_words)
        except DragomanError:
            places = np.linspace(0, max(len(tgt_words) - 1, 0), len(src_words)).round().astype(int)
            return (np.arange(len(tgt_words))[:, None] == places).astype(float)

    def _terms(self, src: str, tgt: str) -> list[tuple[int, int]]:
        """Where the glossary's terms stand in a translation."""
        glossary = self.translator.glossary
        return glossary.said(self.translator.normalize(src), tgt) if glossary else []


def unknown_words(tokenizer: Tokenizer, text: str) -> list[str]:
    """The words of a text that a tokenizer has no token for, each once."""
    return [word for word in dict.fromkeys(text.split()) if UNK_ID in tokenizer.encode(word)]


def _unique(translations: Sequence[Translation]) -> list[Translation]:
    """Each text once, where it comes first."""
    found: dict[str, Translation] = {}
    for item in translations:
        found.setdefault(item.text, item)
    return list(found.values())
