"""Terms in training pairs: phrases of a source with their translation behind them (Dinu et al. 2019, "Training neural
machine translation to apply terminology constraints").

The translation is given as its lemma, so that a model learns to inflect it (Bergmanis and Pinnis 2021, "Facilitating
terminology translation with target lemma annotations").
"""

import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dragoman.alignment.phrases import Aligned, Phrase
from dragoman.text.annotations import with_term_pieces, without_pieces
from dragoman.text.inflection import MAX_ENDING_LETTERS, MIN_STEM_LETTERS, Inflection
from dragoman.text.placeholders import span_ranges
from dragoman.text.words import is_of_letters

MAX_TERMS = 4
"""Terms of a source, and words of a term, at most."""
MAX_DRAWS = 12
"""Draws of a phrase for the terms of a pair, at most."""
MAX_TRANSLATION_WORDS = 6
"""Words of a term's translation, at most."""
STOP_WORD_SHARE = 0.3
"""The share of all words of a text that its stop words, the most frequent words, make up."""
AS_WRITTEN = 0.5
"""Share of translations of several words that are given as they stand there: a glossary has such terms in the form of a
dictionary, whose words are not all lemmas."""
MIN_STEMS_OF_ENDINGS = 20
"""Stems that have two endings, at least, so that these are endings of the language."""


@dataclass(frozen=True)
class TermAnnotator:
    """Puts terms into pairs, by the words of a whole corpus."""

    stop_words: frozenset[str]
    """Of the source, in lower case."""
    counts: Mapping[str, int]
    """Of the words of all targets, as they are written."""
    forms: Mapping[str, str]
    """The most frequent form of words, where no lemmatiser knows the language."""
    inflection: Inflection

    @classmethod
    def of_words(cls, pairs: Sequence[tuple[Sequence[str], Sequence[str]]], language: str) -> "TermAnnotator":
        """An annotator of pairs that are split into words; `language`: of the targets."""
        src = Counter(word.lower() for words, _ in pairs for word in words if is_of_letters(word))
        tgt = Counter(word for _, words in pairs for word in words if is_of_letters(word))
        ranked = src.most_common()
        running = itertools.accumulate(count for _, count in ranked)
        common = (
            word for (word, _), so_far in zip(ranked, running, strict=True) if so_far <= STOP_WORD_SHARE * src.total()
        )
        inflection = Inflection(language)
        return cls(frozenset(common), tgt, {} if inflection.has_lemmas else frequent_forms(tgt), inflection)

    def __call__(self, pair: Aligned, annotated: str, rng: random.Random) -> str:
        """The source with terms. `annotated`: the source with the pieces that it has already."""
        chosen: list[Phrase] = []
        count = min(MAX_TERMS, 1 + int(rng.expovariate(0.9)))
        for _ in range(MAX_DRAWS if pair.src_words else 0):
            start = rng.randrange(len(pair.src_words))
            end = min(start + 1 + int(rng.expovariate(1.2)), start + MAX_TERMS, len(pair.src_words))
            phrase = pair.links.phrase(start, end)
            if phrase and self.is_term(pair, phrase) and not any(map(phrase.overlaps, chosen)):
                chosen.append(phrase)
            if len(chosen) == count:
                break
        terms = []
        for phrase in sorted(chosen):
            first, last = pair.src_words[phrase.src_start], pair.src_words[phrase.src_end - 1]
            terms.append((first.start, last.end, self._as_given(pair, phrase, rng)))
        return with_term_pieces(*without_pieces(annotated), terms) if terms else annotated

    def is_term(self, pair: Aligned, phrase: Phrase) -> bool:
        """True for a phrase that begins and ends in words that are no stop words, as the terms of a glossary do."""
        words = [pair.src[slice(*word)] for word in pair.src_words[phrase.src_start : phrase.src_end]]
        start, end = pair.src_words[phrase.src_start].start, pair.src_words[phrase.src_end - 1].end
        edges = words[0], words[-1], *(pair.tgt[slice(*pair.tgt_words[at])] for at in (phrase[2], phrase[3] - 1))
        return (
            all(map(is_of_letters, edges))
            and not any(word.lower() in self.stop_words for word in (words[0], words[-1]))
            and phrase.tgt_end - phrase.tgt_start <= MAX_TRANSLATION_WORDS
            and not any(begin < end and start < stop for begin, stop in span_ranges(pair.src))
        )

    def _as_given(self, pair: Aligned, phrase: Phrase, rng: random.Random) -> str:
        """The pieces behind a phrase: its translation."""
        first, last = (pair.tgt_words[at] for at in (phrase.tgt_start, phrase.tgt_end - 1))
        is_written = first != last and rng.random() < AS_WRITTEN
        return pair.tgt[first.start : last.end] if is_written else self.target(pair, phrase)

    def target(self, pair: Aligned, phrase: Phrase) -> str:
        """The translation of a phrase, each word its lemma."""
        text, done = "", pair.tgt_words[phrase.tgt_start].start
        for number in range(phrase.tgt_start, phrase.tgt_end):
            word = pair.tgt_words[number]
            form = pair.tgt[slice(*word)]
            if number == 0 and self.counts.get(form.lower(), 0) > self.counts.get(form, 0):
                form = form.lower()  # its capital was that of the sentence
            text += pair.tgt[done : word.start] + self.lemma(form)
            done = word.end
        return text

    def lemma(self, word: str) -> str:
        """The lemma of a word of a target, or its most frequent form."""
        return self.forms.get(word, word) if self.forms else self.inflection.lemma(word)


def frequent_forms(counts: Mapping[str, int]) -> dict[str, str]:
    """The most frequent of each word's forms, where that is another: forms have one stem, and endings that many stems
    have beside each other.

    >>> stems = [one + other for one in "bdfgklmnpr" for other in ("arto", "ilno")]
    >>> forms = frequent_forms({stem + ending: 2 - len(ending) for stem in stems for ending in ("", "x")})
    >>> forms["bartox"], "barto" in forms
    ('barto', False)
    """
    of_stem: dict[str, list[str]] = defaultdict(list)
    for word in sorted(counts):
        for at in range(max(MIN_STEM_LETTERS, len(word) - MAX_ENDING_LETTERS), len(word) + 1):
            of_stem[word[:at]].append(word[at:])
    usual = Counter(pair for endings in of_stem.values() for pair in _alternations(endings))
    best: dict[str, str] = {}
    for stem, endings in of_stem.items():
        for pair in _alternations(endings):
            if usual[pair] >= MIN_STEMS_OF_ENDINGS:
                one, other = sorted((stem + ending for ending in pair), key=lambda word: (-counts[word], word))
                best[other] = min(best.get(other, one), one, key=lambda word: (-counts[word], word))
    return best


def _alternations(endings: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Each two endings of a stem that do not begin alike: else the stem would be longer."""
    return (pair for pair in itertools.combinations(endings, 2) if pair[0][:1] != pair[1][:1])
