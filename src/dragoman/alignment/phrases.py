"""Phrases of a sentence and of its translation that translate each other, by links of words.

A phrase pair is consistent if no word of either is linked to a word outside of the other (Och et al. 1999, "Improved
alignment models for statistical machine translation").
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dragoman.text.words import Word


class Phrase(NamedTuple):
    """Words `src_start` to `src_end` of a source and `tgt_start` to `tgt_end` of its translation, ends not included."""

    src_start: int
    src_end: int
    tgt_start: int
    tgt_end: int

    def fits(self, other: "Phrase") -> bool:
        """True if the two are apart on both sides, or one is inside of the other on both sides."""
        if self.src_end <= other.src_start or other.src_end <= self.src_start:
            return self.tgt_end <= other.tgt_start or other.tgt_end <= self.tgt_start
        inner, outer = (self, other) if other.holds(self) else (other, self)
        return outer.holds(inner) and (inner[:2] != outer[:2] or inner[2:] == outer[2:])

    def overlaps(self, other: "Phrase") -> bool:
        """True if the two share a word of either side."""
        src = self.src_start < other.src_end and other.src_start < self.src_end
        return src or (self.tgt_start < other.tgt_end and other.tgt_start < self.tgt_end)

    def holds(self, other: "Phrase") -> bool:
        """True if another phrase is inside of this one, or the same."""
        src = self.src_start <= other.src_start and other.src_end <= self.src_end
        return src and self.tgt_start <= other.tgt_start and other.tgt_end <= self.tgt_end


@dataclass(frozen=True)
class WordLinks:
    """Links of the words of a pair, by source word and by target word."""

    pairs: Iterable[tuple[int, int]]
    """(source word, target word), from 0."""
    of_src: dict[int, list[int]] = field(default_factory=dict)
    of_tgt: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for src, tgt in self.pairs:
            self.of_src.setdefault(src, []).append(tgt)
            self.of_tgt.setdefault(tgt, []).append(src)

    def phrase(self, start: int, end: int) -> Phrase | None:
        """The phrase pair of source words `start` to `end`, the first and the last of which have links; None if it is
        not consistent.

        >>> links = WordLinks([(0, 0), (1, 2), (2, 1)])
        >>> links.phrase(1, 3), links.phrase(0, 2)
        (Phrase(src_start=1, src_end=3, tgt_start=1, tgt_end=3), None)
        """
        if not (self.of_src.get(start) and self.of_src.get(end - 1)):
            return None
        linked = [tgt for src in range(start, end) for tgt in self.of_src.get(src, ())]
        first, last = min(linked), max(linked)
        inside = range(start, end)
        if any(src not in inside for tgt in range(first, last + 1) for src in self.of_tgt.get(tgt, ())):
            return None
        return Phrase(start, end, first, last + 1)


class Aligned(NamedTuple):
    """A pair with its words and the links of them."""

    src: str
    tgt: str
    src_words: Sequence[Word]
    tgt_words: Sequence[Word]
    links: WordLinks
