"""Faults that make one translation of a sentence worse than another, by class, told from the reference."""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from dragoman.quality import faults
from dragoman.quality.faults import FAULTS, Line, beyond_references, length_ratio, negation_added, negation_lost
from dragoman.quality.metrics import FloatArray
from dragoman.quality.test_set import TestSet
from dragoman.quality.warnings import Warning, WarningKind
from dragoman.text.glossary import Glossary
from dragoman.text.lookup import occurrences
from dragoman.text.words import folded, is_of_letters, split_words, words

MAX_LENGTH_RATIO = 1.35
"""A translation this many times as long as its reference, or as short, is too long or too short."""
MIN_SAME_WORDS_SHARE = 0.75
MIN_ORDER_LOSS = 0.4
"""Word order differs where this share of the words is the reference's and the share of pairs of words is lower by so
much."""
MIN_SUPPORT_PROBABILITY = 0.005
"""A word is made up where no source word makes it as probable as that."""
MIN_CONTENT_LETTERS = 4
"""The least letters of a content word."""


class Lexicon(Protocol):
    """Which words of a translation its source accounts for (`alignment/lexicon.py`)."""

    def unsupported(self, source: str, words: Sequence[str], least: float) -> list[str]:
        """The words that no source word makes as probable as `least`."""
        ...


@dataclass(frozen=True)
class TranslatedSentence:
    """A translation beside its source and its references."""

    src: str
    hyp: str
    refs: tuple[str, ...]
    languages: tuple[str, str]
    lexicon: Lexicon | None = field(default=None, repr=False)
    terms: Glossary | None = field(default=None, repr=False)

    @property
    def line(self) -> Line:
        return Line(self.src, self.hyp, self.languages)


Fault = Callable[[TranslatedSentence], str]
"""The fault in a few words; "" where there is none."""


def too_long_or_short(it: TranslatedSentence) -> str:
    """Longer or shorter than every reference."""
    nearest = min((length_ratio(it.hyp, ref, room=8) for ref in it.refs), key=lambda ratio: abs(math.log(ratio)))
    if nearest > MAX_LENGTH_RATIO:
        return "too long"
    return "too short" if nearest < 1 / MAX_LENGTH_RATIO else ""


def negation(it: TranslatedSentence) -> str:
    """Says no where no reference does, or the other way round."""
    refs = [Line(ref, it.hyp, (it.languages[1],) * 2) for ref in it.refs]
    if all(negation_added(line) is not None for line in refs):
        return "negation added"
    return "negation lost" if all(negation_lost(line) is not None for line in refs) else ""


def number(it: TranslatedSentence) -> str:
    """A number of the source is missing or another one is there, unlike in the reference."""
    for kind in (WarningKind.NUMBERS_LOST, WarningKind.NUMBERS_ADDED):
        detail = beyond_references(FAULTS[kind], it.line, it.refs)
        if detail is not None:
            return str(Warning(kind, detail))
    return ""


def name(it: TranslatedSentence) -> str:
    """A word with a capital that the source has and every reference keeps as it is."""
    kept = _names(it.src).intersection(*(_names(ref) for ref in it.refs))
    lost = sorted(kept - set(split_words(it.hyp)))
    return f"names lost: {' '.join(lost)}" if lost else ""


def term(it: TranslatedSentence) -> str:
    """A term of the glossary that a reference has."""
    if it.terms is None:
        return ""
    targets = [entry.target for entry in it.terms.find(it.src)]
    lost = [
        target
        for target in dict.fromkeys(targets)
        if any(any(occurrences(target, ref)) for ref in it.refs) and not any(occurrences(target, it.hyp))
    ]
    return f"terms lost: {', '.join(lost)}" if lost else ""


def word_order(it: TranslatedSentence) -> str:
    """The words of a reference in another order."""
    words = folded(it.hyp)
    for ref in it.refs:
        expected = folded(ref)
        if len(words) >= 4 and len(expected) >= 4:
            alone, paired = _overlap(words, expected, 1), _overlap(words, expected, 2)
            if alone >= MIN_SAME_WORDS_SHARE and alone - paired >= MIN_ORDER_LOSS:
                return "other order of words"
    return ""


def repetition(it: TranslatedSentence) -> str:
    """The same words again and again, or one twice in a row, unlike in source and reference."""
    for fault in (faults.repetition, faults.doubled):
        detail = beyond_references(fault, it.line, it.refs)
        if detail is not None:
            return f"repeats {detail}"
    return ""


def untranslated(it: TranslatedSentence) -> str:
    """Words of the source that no reference has."""
    left = [word for word in _content(it) if word in folded(it.src)]
    return f"left as in the source: {' '.join(left)}" if left else ""


def hallucinated(it: TranslatedSentence) -> str:
    """Words that the source does not account for: in no reference, and improbable by the alignment of training text."""
    if it.lexicon is None:
        return ""
    words = [word for word in _content(it) if word not in folded(it.src)]
    unsupported = it.lexicon.unsupported(it.src, words, MIN_SUPPORT_PROBABILITY)
    return f"not in the source: {' '.join(unsupported)}" if unsupported else ""


def _content(it: TranslatedSentence) -> list[str]:
    """The long words of a translation that are in no reference, each once."""
    known = {word for ref in it.refs for word in folded(ref)}
    return [
        word
        for word in dict.fromkeys(folded(it.hyp))
        if len(word) >= MIN_CONTENT_LETTERS and word not in known and is_of_letters(word)
    ]


CLASSES: dict[str, Fault] = {
    "length": too_long_or_short,
    "negation": negation,
    "numbers": number,
    "names": name,
    "terms": term,
    "word order": word_order,
    "repetition": repetition,
    "untranslated": untranslated,
    "hallucinated": hallucinated,
}
"""By the name that a table has for it."""


def faults_of(
    test: TestSet, hypotheses: Sequence[str], lexicon: Lexicon | None = None, terms: Glossary | None = None
) -> list[dict[str, str]]:
    """Of each line the faults of its translation: class -> what is wrong."""
    line_faults = []
    for row, (src, hyp) in enumerate(zip(test.sources, hypotheses, strict=True)):
        refs = tuple(lines[row] for lines in test.references)
        it = TranslatedSentence(src, hyp, refs, test.languages, lexicon, terms)
        line_faults.append({kind: text for kind, fault in CLASSES.items() if (text := fault(it))})
    return line_faults


@dataclass(frozen=True)
class FaultCounts:
    """The numbers of sentences with a class of faults: in each of two systems, and in only one of them."""

    first: int
    second: int
    first_alone: int
    second_alone: int

    @property
    def p_value(self) -> float:
        """The p-value of an exact sign test on the sentences with a fault in only one system."""
        count, fewer = self.first_alone + self.second_alone, min(self.first_alone, self.second_alone)
        return min(1.0, 2 * sum(math.comb(count, k) for k in range(fewer + 1)) / 2**count) if count else 1.0


def fault_counts(first: Sequence[dict[str, str]], second: Sequence[dict[str, str]]) -> dict[str, FaultCounts]:
    """The classes in which two systems have faults."""
    counts = {}
    for kind in CLASSES:
        pairs = [(kind in one, kind in other) for one, other in zip(first, second, strict=True)]
        ones, others = sum(one for one, _ in pairs), sum(other for _, other in pairs)
        if ones or others:
            alone = sum(one and not other for one, other in pairs), sum(other and not one for one, other in pairs)
            counts[kind] = FaultCounts(ones, others, *alone)
    return counts


def top_examples(
    differences: FloatArray, first: Sequence[dict[str, str]], second: Sequence[dict[str, str]], count: int = 50
) -> list[int]:
    """The rows that say most of how two systems differ: large differences, and faults that one has alone; wins and
    losses in turn, as far as there are both."""
    classes = np.array([len(set(one) ^ set(other)) for one, other in zip(first, second, strict=True)])
    weight = np.abs(differences) + 10.0 * classes
    order = np.argsort(-weight, kind="stable").tolist()
    wins = [row for row in order if differences[row] > 0]
    losses = [row for row in order if differences[row] < 0]
    even = [row for row in order if differences[row] == 0 and classes[row]]
    half = count // 2
    chosen = wins[: max(half, count - len(losses))] + losses[: max(half, count - len(wins))]
    return sorted([*chosen, *even][:count], key=lambda row: (-weight[row], row))


def _names(text: str) -> set[str]:
    """Words with a capital that do not begin a sentence, and those with capitals inside."""
    names = set()
    for start, end in words(text):
        word = text[start:end]
        begins = not re.search(r"\w", text[:start]) or re.search(r"[.!?:]\W*$", text[:start])
        if (word[0].isupper() and not begins and len(word) > 1) or re.search(r"\w[A-ZÄÖÜ]", word):
            names.add(word)
    return names


def _overlap(one: Sequence[str], other: Sequence[str], size: int) -> float:
    """F1 of n-grams."""
    grams = [Counter(zip(*(side[start:] for start in range(size)), strict=False)) for side in (one, other)]
    shared = (grams[0] & grams[1]).total()
    return 2 * shared / max(1, grams[0].total() + grams[1].total())
