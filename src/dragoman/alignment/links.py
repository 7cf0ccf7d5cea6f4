"""Links of words: which word of a translation comes from which word of its source.

An alignment takes a pair of texts with their words and gives links, whatever it goes by: where the model looked
(`attention.py`), what gets improbable without a source word (`erasure.py`), or the order of the words (`proportional`).
"""

import itertools
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from dragoman.inference.search_translator import SearchTranslator
from dragoman.text.glossary import Glossary
from dragoman.text.tokenizers.base import Tokenizer
from dragoman.text.words import Word, words

Links = np.ndarray[Any, np.dtype[np.float64]]
"""(target words, source words), not negative: how much of a target word comes from a source word. A row adds up to at
most 1, and to little for a word that the source hardly decides."""


class AlignedPair(NamedTuple):
    """A source and its translation, with the words of each between which there may be links."""

    src: str
    tgt: str
    src_words: Sequence[Word]
    tgt_words: Sequence[Word]


def aligned_pair(src: str, tgt: str) -> AlignedPair:
    """A pair of texts with the words that codes may go around.

    Two words without a space between them are known by the capital in the middle, if the other text has no such word.

    >>> pair = aligned_pair("Command Ctrl, CreateChart", "BefehlStrg, CreateChart")
    >>> [pair.tgt[slice(*word)] for word in pair.tgt_words]
    ['Befehl', 'Strg', ',', 'CreateChart']
    """
    src_words, tgt_words = words(src), words(tgt)
    in_src, in_tgt = (
        {text[slice(*word)] for word in of_text} for text, of_text in ((src, src_words), (tgt, tgt_words))
    )
    return AlignedPair(src, tgt, _unglued(src, src_words, in_tgt), _unglued(tgt, tgt_words, in_src))


def _unglued(text: str, of_text: Sequence[Word], whole: Collection[str]) -> list[Word]:
    """The words of a text. Words that are not in `whole` are cut before a capital that follows a small letter."""
    parts = []
    for start, end in of_text:
        cuts = [at for at in range(start + 1, end) if text[at - 1].islower() and text[at].isupper()]
        cuts = [] if text[start:end] in whole else cuts
        parts += [Word(*ends) for ends in itertools.pairwise([start, *cuts, end])]
    return parts


MAX_LINKS = 25_000_000
"""Links of a text, at most: 5,000 words. Of a longer one there are none, and its codes go around the whole."""


def no_links(pair: AlignedPair) -> Links:
    """Links of nothing to nothing; of more than MAX_LINKS no array."""
    shape = len(pair.tgt_words), len(pair.src_words)
    return np.zeros(shape if shape[0] * shape[1] <= MAX_LINKS else (0, 0))


def proportional(num_tgt: int, num_src: int) -> Links:
    """Links of words that are as far from the beginning as each other, for texts of which nothing else is known.

    >>> proportional(3, 2)
    array([[1. , 0. ],
           [0.5, 0. ],
           [0. , 1. ]])
    """
    links = np.zeros((num_tgt, num_src))
    if links.size:
        # Half a link from each target word to the nearest source word, and half a link the other way round.
        links[np.arange(num_tgt), np.linspace(0, num_src - 1, num_tgt).round().astype(int)] += 0.5
        links[np.linspace(0, num_tgt - 1, num_src).round().astype(int), np.arange(num_src)] += 0.5
    return links


def with_terms_linked(pair: AlignedPair, links: Links, glossary: Glossary | None) -> Links:
    """Links in which the words of each term of the source are linked to its target term, and to nothing else.

    A model knows nothing of a target term that took the place of its own words. Where a target term stands in the
    translation more often, that with the most links counts.
    """
    if glossary is None or not links.size:
        return links
    links = links.copy()
    free = np.ones(len(pair.tgt_words), dtype=bool)
    for term in glossary.find(pair.src):
        columns = [number for number, word in enumerate(pair.src_words) if term.start <= word.start < term.end]
        rows = [
            [row for row, word in enumerate(pair.tgt_words) if start <= word.start < end and free[row]]
            for start, end in glossary.written(term.target, pair.tgt)
        ]
        best = max(rows, key=lambda of_place: links[np.ix_(of_place, columns)].sum(), default=[])
        if best and columns:
            links[:, columns] = 0
            links[best] = 0
            links[np.ix_(best, columns)] = 1 / len(columns)
            free[best] = False
    return links


def strong(links: Links, least: float) -> list[tuple[int, int]]:
    """(target word, source word) of the links of at least `least` and half of the best one of their target word.

    >>> strong(np.array([[0.5, 0.3, 0.1], [0.1, 0.0, 0.0]]), 0.15)
    [(0, 0), (0, 1)]
    """
    best = links.max(axis=1, keepdims=True, initial=0.0)
    cells = np.argwhere(links >= np.maximum(best / 2, least))
    return [(int(row), int(column)) for row, column in cells]


def token_ids(translator: SearchTranslator, pair: AlignedPair) -> tuple[list[int], list[int]] | None:
    """The tokens of both sides; None where a side has none, or more than the model reads at once."""
    src = translator.tokenizers.src.encode(translator.normalize(pair.src))
    tgt = translator.tokenizers.tgt.encode(translator.normalize(pair.tgt))
    too_long = len(src) > translator.max_src_tokens or len(tgt) > translator.max_tgt_tokens
    return None if too_long or not (src and tgt) else (src, tgt)


def token_shares(
    tokenizer: Tokenizer, text: str, words: Sequence[Word], normalize: Callable[[str], str] = str
) -> np.ndarray:
    """Which word each token of a text is a piece of, (tokens, words), as shares of the token's letters.

    `normalize` is what comes before the tokenizer; words are places in the text as it was before.
    """
    word_of: list[int] = []  # of each letter of the normalised text, -1 between words
    done = 0
    for number, word in enumerate(words):
        word_of += [-1] * _letters(normalize(text[done : word.start]))
        word_of += [number] * _letters(normalize(text[word.start : word.end]))
        done = word.end
    word_of += [-1] * _letters(normalize(text[done:]))
    letters = tokenizer.letters(normalize(text))
    tokens = np.repeat(np.arange(len(letters)), letters)[: len(word_of)]
    owners = np.array(word_of[: len(tokens)], dtype=np.int64)
    shares = np.zeros((len(letters), len(words)))
    np.add.at(shares, (tokens[owners >= 0], owners[owners >= 0]), 1)
    return shares / np.maximum(shares.sum(axis=1, keepdims=True), 1)


def _letters(text: str) -> int:
    """Tokenizers deal with spaces in their own ways, so they are not counted."""
    return sum(not letter.isspace() for letter in text)
