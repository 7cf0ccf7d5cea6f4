"""Training pairs with the pieces of `text/annotations.py`: what a model learns codes, terms and matches from.

Codes that a pair has on both sides become pieces with the same numbers; a plain pair gets some around phrases that
translate each other (`alignment/phrases.py`), and beside them. Which ones is drawn from the random generator that is
given, which is keyed by (seed, epoch, row).
"""

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.alignment.learnt_markup import items_of_line, outside
from dragoman.alignment.learnt_memory import with_match
from dragoman.alignment.lexicon import MAX_PAIRS, WordAligner
from dragoman.alignment.markup import text_and_codes
from dragoman.alignment.phrases import Aligned, Phrase, WordLinks
from dragoman.formats.base import Code
from dragoman.text.annotations import (
    BREAK,
    NUM_CODES,
    PIECE,
    PIECES,
    Placed,
    alone,
    closing,
    in_context,
    opening,
    out_of_context,
    plain_text,
    with_pieces,
    without_pieces,
)
from dragoman.text.augment import ContextConfig, TextAugmentConfig
from dragoman.text.placeholders import unescaped
from dragoman.text.sources.base import Pair, PairSource, files_of, fingerprint
from dragoman.text.words import is_letter, split_words, words
from dragoman.training.annotated_matches import MAX_MATCHED_PAIRS, TrainingMatches
from dragoman.training.annotated_terms import TermAnnotator

MAX_DRAWN_CODES = 4
"""Codes that a plain pair gets, at most."""
MAX_PHRASE_WORDS = 6
"""Words of the source that a drawn pair of codes goes around, at most."""
MAX_DRAWS = 12
"""Draws of a phrase for the codes of a pair, at most: most words of a free translation are in none."""
PLAIN_SHARE = 0.3
"""Share of the epochs in which a pair with codes of its own is trained on without."""
LONE_CODE_SHARE = 0.3
"""Share of drawn codes that stand alone."""


def taught_by(augment: TextAugmentConfig, context: ContextConfig | None = None) -> list[str]:
    """The settings that put pieces of the vocabulary into pairs: names of `PIECES`."""
    shares: dict[str, Any] = {**vars(augment), "context": 0 if context is None else context.src}
    return [name for name in PIECES if shares[name]]


def pieces_of(augment: TextAugmentConfig, context: ContextConfig | None = None) -> tuple[str, ...]:
    """The pieces of the vocabulary that `corpus.augment` and `corpus.context` put into pairs."""
    return tuple(piece for name in taught_by(augment, context) for piece in PIECES[name])


TextAndCodes = tuple[str, list[tuple[int, Code]], list[str]]


@dataclass(frozen=True)
class Annotator:
    """The changes of `corpus.augment`: messy texts, and pieces in them. What stands before a sentence stays plain."""

    config: TextAugmentConfig
    aligner: WordAligner
    terms: TermAnnotator | None = None
    matches: TrainingMatches | None = None
    fits: Callable[[str], bool] = lambda src: True
    """The check of a source that it is short enough to be trained on; a match that makes it longer is left out."""
    context: ContextConfig = field(default_factory=ContextConfig)

    @classmethod
    def of_pairs(cls, config: TextAugmentConfig, pairs: Iterable[tuple[str, str]], tgt_lang: str = "") -> "Annotator":
        """An annotator that learns its links from the first pairs, and finds matches among all."""
        if not (config.tags or config.terms or config.fuzzy):
            return cls(config, WordAligner([]))
        pairs = list(itertools.islice(pairs, MAX_MATCHED_PAIRS if config.fuzzy else MAX_PAIRS))
        plain = (tuple(_read(side, tags_only=False)[0] for side in pair) for pair in pairs[:MAX_PAIRS])
        split = [(split_words(src), split_words(tgt)) for src, tgt in plain]
        terms = TermAnnotator.of_words(split, tgt_lang) if config.terms else None
        annotator = cls(config, WordAligner(split), terms)
        if not config.fuzzy:
            return annotator
        bare = itertools.starmap(annotator.without_tags, pairs)
        return replace(annotator, matches=TrainingMatches(bare, annotator.aligner.links))

    @property
    def is_on(self) -> bool:
        return self.config.is_on or bool(self.context.src)

    def __call__(
        self, src: str, tgt: str, rng: random.Random, languages: tuple[str | None, str | None] | None = None
    ) -> tuple[str, str]:
        """The pair as `corpus.augment` changes it, behind the sentences before it or without them."""
        if BREAK in src:
            (src_before, src), (tgt_before, tgt) = out_of_context(src), out_of_context(tgt)
            is_read = rng.random() < self.context.share
            src, tgt = self._changed(src, tgt, rng, languages)
            if not is_read:
                return src, tgt
            while src_before and not self.fits(in_context(src_before, src)):
                src_before = src_before[1:]
            return in_context(src_before, src), in_context(tgt_before[max(0, len(tgt_before) - len(src_before)) :], tgt)
        return self._changed(src, tgt, rng, languages)

    def _changed(
        self, src: str, tgt: str, rng: random.Random, languages: tuple[str | None, str | None] | None
    ) -> tuple[str, str]:
        """The pair as `corpus.augment` changes it."""
        marked_src, marked_tgt = self.annotated(*self.config(src, tgt, rng, languages), rng)
        return self._with_match(src, marked_src, rng), marked_tgt

    def _with_match(self, src: str, marked_src: str, rng: random.Random) -> str:
        """The source, as it was changed, with a match behind it, or most as they are."""
        if self.matches is None or rng.random() >= self.config.fuzzy:
            return marked_src
        match = self.matches(plain_text(src), rng)
        longer = marked_src if match is None else with_match(marked_src, match)
        return longer if self.fits(longer) else marked_src

    def with_tags(self, src: str, tgt: str) -> tuple[str, str]:
        """The pair with pieces in the place of its tags, where both sides have the same; else without tags. Text with
        tags is markup, and so are its entities (`&lt;`)."""
        if not self.config.tags:
            return src, tgt
        if "<" not in src and "<" not in tgt:
            return unescaped(src), unescaped(tgt)
        sides = [_read(text, tags_only=True) for text in (src, tgt)]
        return self._with_own_codes(*sides) or (sides[0][0], sides[1][0])

    def without_tags(self, src: str, tgt: str) -> tuple[str, str]:
        """The pair without its tags, as it is scored."""
        marked_src, marked_tgt = self.with_tags(src, tgt)
        return plain_text(marked_src), plain_text(marked_tgt)

    def annotated(self, src: str, tgt: str, rng: random.Random) -> tuple[str, str]:
        """The pair with pieces of codes and of terms in it, or as it is."""
        src, tgt = self._with_codes(src, tgt, rng)
        if self.terms is None or rng.random() >= self.config.terms:
            return src, tgt
        return self.terms(self._aligned(without_pieces(src)[0], plain_text(tgt)), src, rng), tgt

    def _with_codes(self, src: str, tgt: str, rng: random.Random) -> tuple[str, str]:
        """The pair with pieces of codes, or as it is. A pair with codes of its own loses them in some epochs."""
        drawn = rng.random()
        if PIECE.search(src):
            return (plain_text(src), plain_text(tgt)) if drawn < PLAIN_SHARE else (src, tgt)
        if drawn >= self.config.tags:
            return src, tgt
        sides = [_read(text, tags_only=False) for text in (src, tgt)]
        return (self._with_own_codes(*sides) if sides[0][1] else None) or self._with_drawn_codes(src, tgt, rng)

    def _aligned(self, src: str, tgt: str) -> Aligned:
        src_words, tgt_words = words(src), words(tgt)
        texts = ([text[slice(*word)] for word in of_text] for text, of_text in ((src, src_words), (tgt, tgt_words)))
        return Aligned(src, tgt, src_words, tgt_words, WordLinks(self.aligner.links(*texts)))

    def _with_own_codes(self, src: TextAndCodes, tgt: TextAndCodes) -> tuple[str, str] | None:
        """The pair with pieces for the codes that both sides have; None where they have others, or too many."""
        (src_text, src_codes, _), (tgt_text, tgt_codes, _) = src, tgt
        if sorted(code[:2] for _, code in src_codes) != sorted(code[:2] for _, code in tgt_codes):
            return None
        pair = self._aligned(src_text, tgt_text)
        ours, theirs = (_spans(codes) for codes in (src_codes, tgt_codes))
        numbers: list[tuple[_Span, _Span]] = []
        for span in ours:
            same = [other for other in theirs if other.raw == span.raw]
            if not same:  # one side has the two halves crossed
                return None
            best = max(same, key=lambda other: _shared(pair, span, other))
            theirs.remove(best)
            numbers.append((span, best))
        if len(numbers) > NUM_CODES:
            return None
        needed = {(at, code.raw) for at, code in outside(src_text, src_codes)[1]}
        numbers = [(span, other) for span, other in numbers if (span.start, span.raw) in needed]
        src_spans, tgt_spans = ([spans[side] for spans in numbers] for side in (0, 1))
        return with_pieces(src_text, _placed(src_spans)), with_pieces(tgt_text, _placed(tgt_spans))

    def _with_drawn_codes(self, src: str, tgt: str, rng: random.Random) -> tuple[str, str]:
        """The pair with pieces around some of its phrases, and beside some."""
        pair = self._aligned(src, tgt)
        count = min(MAX_DRAWN_CODES, 1 + int(rng.expovariate(0.9)))
        chosen: list[Phrase] = []
        for _ in range(MAX_DRAWS):
            if len(chosen) == count or not pair.src_words:
                break
            start = rng.randrange(len(pair.src_words))
            end = min(start + 1 + int(rng.expovariate(0.7)), start + MAX_PHRASE_WORDS, len(pair.src_words))
            phrase = pair.links.phrase(start, end)
            if phrase is not None and _has_letters(pair, phrase) and all(map(phrase.fits, chosen)):
                chosen.append(phrase)
        first = 1 if rng.random() < 0.5 else rng.randint(1, NUM_CODES + 1 - max(1, len(chosen)))
        chosen.sort(key=lambda one: (one.src_start, -one.src_end))
        sides: list[list[_Span]] = [[], []]
        for phrase in chosen:
            kind = rng.choice(("before", "behind")) if rng.random() < LONE_CODE_SHARE else "around"
            for side, (of_side, ends) in enumerate(((pair.src_words, phrase[:2]), (pair.tgt_words, phrase[2:]))):
                start, end = of_side[ends[0]].start, of_side[ends[1] - 1].end
                start, end = {"around": (start, end), "before": (start, start), "behind": (end, end)}[kind]
                sides[side].append(_Span(start, end, "", kind == "around"))
        return with_pieces(src, _placed(sides[0], first)), with_pieces(tgt, _placed(sides[1], first))


class _Span(NamedTuple):
    """Characters that a pair of codes is around, or the place of a code that stands alone."""

    start: int
    end: int
    raw: str
    is_pair: bool


def _spans(codes: Sequence[tuple[int, Code]]) -> list[_Span]:
    """The pairs and single codes of a text, in the order in which they begin."""
    ends = {code.pair: at for at, code in codes if code.kind == "close"}
    return [
        _Span(at, ends[code.pair] if code.kind == "open" else at, code.raw, code.kind == "open")
        for at, code in codes
        if code.kind != "close"
    ]


def _shared(pair: Aligned, src: _Span, tgt: _Span) -> float:
    """The share of the links of the words in two pairs of codes that are between both; an order, for single codes."""
    rows = {number for number, word in enumerate(pair.tgt_words) if tgt.start <= word.start < tgt.end}
    linked = [
        row
        for number, word in enumerate(pair.src_words)
        if src.start <= word.start < src.end
        for row in pair.links.of_src.get(number, ())
    ]
    return sum(row in rows for row in linked) / max(1, len(linked), len(rows))


def _placed(spans: Sequence[_Span], first: int = 1) -> list[Placed]:
    """The pieces of pairs and single codes, numbered in their order, those at one place in an order that nests."""
    placed: list[tuple[tuple[int, int, int, int], Placed]] = []
    for number, (start, end, _, is_pair) in enumerate(spans):
        if not is_pair:
            placed.append(((start, 1, number, 0), Placed(start, alone(first + number))))
        elif start == end:  # a pair around nothing: its two halves together
            halves = opening(first + number) + closing(first + number)
            placed.append(((start, 1, number, 0), Placed(start, halves)))
        else:
            # At one place what ends comes before what begins; the outer begins first and ends last.
            placed.append(((start, 2, -end, number), Placed(start, opening(first + number))))
            placed.append(((end, 0, -start, -number), Placed(end, closing(first + number))))
    return [one for _, one in sorted(placed, key=lambda pair: pair[0])]


def _has_letters(pair: Aligned, phrase: Phrase) -> bool:
    sides = (pair.src, pair.src_words, phrase[:2]), (pair.tgt, pair.tgt_words, phrase[2:])
    return all(any(is_letter(text[word.start]) for word in of_text[slice(*ends)]) for text, of_text, ends in sides)


def _read(text: str, *, tags_only: bool) -> TextAndCodes:
    return text_and_codes(items_of_line(text, tags_only=tags_only))


def changed_pairs(
    source: PairSource, change: Callable[[str, str], tuple[str, str]], *, numbered: bool = False
) -> PairSource:
    """The pairs of a source as a method of an annotator changes them; `numbered`: the line of each is its number."""

    @dataclass(frozen=True)
    class Changed(PairSource):
        source: Any
        type: str = f"{change.__name__}, numbered" if numbered else change.__name__

        def paths(self) -> dict[str, list[Path]]:
            return {"source": files_of(self.source)}

        def contents(self) -> dict[str, str]:
            return {"source": fingerprint(self.source)}

        def pairs(self) -> Iterator[Pair]:
            for number, pair in enumerate(self.source.pairs(), start=1):
                src, tgt = change(pair.src, pair.tgt)
                yield pair._replace(src=src, tgt=tgt, line=number if numbered else pair.line)

        def unweighted(self) -> "Changed":
            return Changed(self.source.unweighted())

    return Changed(source)
