"""Which training pairs are in a test set: exactly, or but for case, punctuation and a word or two."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

_WORD = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|\w+")
GRAM = 3
"""Words that are compared together."""
NEAR = 0.7
"""The share of these that two sentences of which one is nearly the other have in common."""
FEWEST = 5
"""Grams below which a sentence is only compared as a whole: short ones resemble each other honestly."""


def key(text: str) -> str:
    """What is left of a sentence without case, punctuation and spaces.

    >>> key("A man, walking. "), key("你好！")
    ('a man walking', '你 好')
    """
    return " ".join(_WORD.findall(text.casefold()))


class Leakage:
    """Sentences of one language of a test set, and the question whether another one is among them."""

    def __init__(self, sentences: Iterable[str]) -> None:
        self.keys: set[str] = set()
        self.grams: list[int] = []
        """How many grams each longer sentence has."""
        self.having: defaultdict[int, list[int]] = defaultdict(list)
        """Which of these have a gram."""
        for found in {key(sentence) for sentence in sentences} - {""}:
            self.keys.add(found)
            grams = _grams(found.split())
            if len(grams) >= FEWEST:
                for gram in grams:
                    self.having[gram].append(len(self.grams))
                self.grams.append(len(grams))

    def exactly(self, sentence_key: str) -> bool:
        return sentence_key in self.keys

    def nearly(self, sentence_key: str) -> bool:
        """Whether a sentence shares most of its grams with one of the test set (Jaccard index of at least `NEAR`)."""
        grams = _grams(sentence_key.split())
        if len(grams) < FEWEST:
            return False
        shared: defaultdict[int, int] = defaultdict(int)
        for gram in grams:
            for number in self.having.get(gram, ()):
                shared[number] += 1
        return any(
            count >= NEAR * (len(grams) + self.grams[number] - count)
            for number, count in shared.items()
            if count > GRAM
        )


def _grams(words: Sequence[str]) -> set[int]:
    return {hash(tuple(words[start : start + GRAM])) for start in range(len(words) - GRAM + 1)}
