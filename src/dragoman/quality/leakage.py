"""Training pairs that are in a test set: exactly, or but for case, punctuation and a word or two."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from dragoman.quality.test_set import TestSet
from dragoman.text.lookup import lookup_form
from dragoman.text.words import folded

NGRAM_WORDS = 3  # words of an n-gram
MIN_JACCARD = 0.7  # Jaccard index of the n-grams of two sentences from which on one is nearly the other
MIN_NGRAMS = 5  # a sentence of fewer n-grams is compared as a whole only: short sentences are alike by chance


def key(text: str) -> str:
    """The words of a sentence without case, punctuation and spaces, in the form in which texts are looked up.

    >>> key("A man, walking. "), key("你好！")
    ('a man walking', '你 好')
    """
    return " ".join(folded(lookup_form(text, cased=False)))


class Leakage:
    """The sentences of one side of a test set, to be searched by `key`."""

    def __init__(self, sentences: Iterable[str]) -> None:
        self.keys = {key(sentence) for sentence in sentences} - {""}
        long = [grams for sentence in self.keys if len(grams := _grams(sentence)) >= MIN_NGRAMS]
        self.num_grams = [len(grams) for grams in long]
        self.having: defaultdict[int, list[int]] = defaultdict(list)
        """Numbers of the long sentences that have an n-gram."""
        for number, grams in enumerate(long):
            for gram in grams:
                self.having[gram].append(number)

    def exactly(self, sentence_key: str) -> bool:
        return sentence_key in self.keys

    def nearly(self, sentence_key: str) -> bool:
        """True if a sentence's n-grams have a Jaccard index of at least `MIN_JACCARD` with those of a sentence in the
        set."""
        grams = _grams(sentence_key)
        if len(grams) < MIN_NGRAMS:
            return False
        shared = Counter(number for gram in grams for number in self.having.get(gram, ()))
        return any(
            count >= MIN_JACCARD * (len(grams) + self.num_grams[number] - count)
            for number, count in shared.items()
            if count > NGRAM_WORDS
        )


class Leaks:
    """Test sets, both sides of each, to be searched for pairs."""

    def __init__(self, tests: Sequence[TestSet]) -> None:
        self.sides = [(test.name, Leakage(test.sources), Leakage(test.references[0])) for test in tests]

    def of(self, src: str, tgt: str) -> tuple[str, str] | None:
        """(kind of finding, name of the test set) where one side of a pair is in a test set, exactly or nearly."""
        if not self.sides or not src or not tgt:
            return None
        src, tgt = key(src), key(tgt)
        for kind, matches in (("in the test set", Leakage.exactly), ("nearly in the test set", Leakage.nearly)):
            for name, sources, targets in self.sides:
                if matches(sources, src) or matches(targets, tgt):
                    return kind, name
        return None


def _grams(sentence_key: str) -> set[int]:
    words = sentence_key.split()
    return {hash(tuple(words[start : start + NGRAM_WORDS])) for start in range(len(words) - NGRAM_WORDS + 1)}
