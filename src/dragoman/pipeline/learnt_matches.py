"""Matches of the memory that the model itself reads, of a run that has learnt it (`corpus.augment.fuzzy`).

Each sentence that the memory does not have is given to the model with the translation of the entry that is most like
it; and what entry it is, is told.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dragoman.alignment.learnt_memory import LEAST, LinksOf, links_of_run, marked, with_match
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Translation
from dragoman.pipeline.memory import Match, Memory
from dragoman.quality.warnings import Warning, WarningKind
from dragoman.text.alike import most_alike, uncased
from dragoman.text.annotations import has_learnt, plain_text
from dragoman.text.placeholders import without_spans


@dataclass(frozen=True)
class LearntMatches:
    """The matches of a memory for the model of a search. The memory is asked at each sentence, as it may change."""

    memory: Memory
    search: SearchTranslator
    links_of: LinksOf

    @classmethod
    def of(cls, memory: Memory | None, search: SearchTranslator, run: Path | None) -> "LearntMatches | None":
        """The matches for a search; None where there is no memory, or its model has not learnt to read them."""
        if memory is None or not has_learnt("fuzzy", search.tokenizers):
            return None
        return cls(memory, search, links_of_run(run))

    def read_by(self, search: SearchTranslator) -> SearchTranslator:
        """A search of the same model that reads the matches, behind what else it reads."""
        other, annotate = copy.copy(search), search.annotate
        other.annotate = lambda sentence: self._with_match(sentence, annotate(sentence))[0]
        return other

    def told(self, sentences: Sequence[str], found: Sequence[list[Translation]]) -> list[list[Translation]]:
        """The translations with the match that their sentence was read with."""
        out = []
        for sentence, items in zip(sentences, found, strict=True):
            sentence = self.search.normalize(sentence)
            match = self._with_match(sentence, self.search.annotate(sentence))[1] if sentence.strip() else None
            notes = () if match is None else (Warning(WarningKind.LIKE_MEMORY, str(match)),)
            out.append([replace(item, warnings=(*item.warnings, *notes)) for item in items])
        return out

    def _with_match(self, sentence: str, annotated: str) -> tuple[str, Match | None]:
        """(the annotated sentence with its match behind it, the match); as it is where there is none that fits."""
        plain = plain_text(sentence)
        found = self.memory.like(plain, 1, LEAST)
        if not found or not _words_alike(plain, found[0].src):
            return annotated, None
        src, tgt = (self.search.normalize(side.replace("\n", " ")) for side in (found[0].src, found[0].tgt))
        longer = with_match(annotated, marked(plain, src, tgt, self.links_of))
        fits = len(self.search.tokenizers.src.encode(longer)) <= self.search.max_src_tokens
        return (longer, found[0]) if fits else (annotated, None)


def _words_alike(text: str, other: str) -> bool:
    """True if two texts are alike without their tags and placeholders, too."""
    one, two = (uncased(without_spans(side)[0]) for side in (text, other))
    return bool(most_alike(one, {0: two}, 1, LEAST))
