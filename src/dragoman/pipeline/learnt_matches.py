"""Matches of the memory that the model itself reads, of a run that has learnt it (`corpus.augment.fuzzy`).

Each sentence that the memory does not have is given to the model with the translation of the entry that is most like
it; and what entry it is, is told.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dragoman.alignment.learnt_markup import has_markup, items_of_line
from dragoman.alignment.learnt_memory import MIN_SIMILARITY, LinksOf, links_of_run, marked, with_match
from dragoman.alignment.markup import text_and_codes
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Translation
from dragoman.pipeline.memory import Match, Memory
from dragoman.quality.warnings import Warning, WarningKind
from dragoman.text.alike import most_alike, uncased
from dragoman.text.annotations import has_learnt, plain_text
from dragoman.text.message_format import parse
from dragoman.text.placeholders import without_spans

MAX_EQUAL_MATCHES = 8
"""The most entries with the same similarity that one is chosen from."""


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

    def with_matches(self, sentences: Sequence[str], lists: Sequence[list[Translation]]) -> list[list[Translation]]:
        """The translations with the matches that their sentence was read with."""
        out = []
        for sentence, items in zip(sentences, lists, strict=True):
            texts = [self.search.normalize(text) for text in self._read(sentence)]
            matches = (self._with_match(text, self.search.annotate(text))[1] for text in texts if text.strip())
            warnings = (Warning(WarningKind.LIKE_MEMORY, str(match)) for match in matches if match is not None)
            notes = tuple(dict.fromkeys(warnings))
            out.append([replace(item, warnings=(*item.warnings, *notes)) for item in items])
        return out

    def _read(self, sentence: str) -> list[str]:
        """The texts that the model reads of a sentence: arms of a message, and no tags where it has learnt codes."""
        message = parse(sentence)
        texts = [sentence] if message is None else [*message.sentences()]
        if not has_learnt("tags", self.search.tokenizers):
            return texts
        return [text_and_codes(items_of_line(text))[0] if has_markup(text) else text for text in texts]

    def _with_match(self, sentence: str, annotated: str) -> tuple[str, Match | None]:
        """(the annotated sentence with its match behind it, the match); the sentence as it is if no match fits."""
        plain = plain_text(sentence)
        match = self._best(plain)
        if match is None or not _words_alike(plain, match.src):
            return annotated, None
        src, tgt = (self.search.normalize(side.replace("\n", " ")) for side in (match.src, match.tgt))
        longer = with_match(annotated, marked(plain, src, tgt, self.links_of))
        fits = len(self.search.tokenizers.src.encode(longer)) <= self.search.max_src_tokens
        return (longer, match) if fits else (annotated, None)

    def _best(self, text: str) -> Match | None:
        """The most similar entry; of several the first by its letters, in whatever order they came into the memory."""
        matches = self.memory.like(text, MAX_EQUAL_MATCHES, MIN_SIMILARITY)
        best = (match for match in matches if match.similarity == matches[0].similarity)
        return min(best, key=lambda match: match.src, default=None)


def _words_alike(text: str, other: str) -> bool:
    """True if two texts are alike without their tags and placeholders, too."""
    one, two = (uncased(without_spans(side)[0]) for side in (text, other))
    return bool(most_alike(one, {0: two}, 1, MIN_SIMILARITY))
