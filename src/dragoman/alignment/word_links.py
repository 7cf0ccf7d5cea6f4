"""Links of words by the best that a run has: the head that was trained to align, or else erasure."""

from collections import Counter
from collections.abc import Sequence

from dragoman.alignment.attention import head_links
from dragoman.alignment.erasure import erasure_links
from dragoman.alignment.links import AlignedPair, Links
from dragoman.alignment.markup import is_protected
from dragoman.inference.search_translator import SearchTranslator


def word_links(translator: SearchTranslator, pairs: Sequence[AlignedPair]) -> list[Links]:
    """The links of each pair; all are 0 for a pair that cannot be read at once.

    A word that stands on both sides equally often, a name or a number, links to itself for certain.
    """
    if translator.model.alignment_head is None:
        links = erasure_links(translator, pairs)
    else:
        links = [head_links(translator, pair) for pair in pairs]
    return [with_identical(*of_pair) for of_pair in zip(pairs, links, strict=True)]


def with_identical(pair: AlignedPair, links: Links) -> Links:
    """The links, words that stand on both sides equally often linked first to first and so on, and to nothing else."""
    if not links.size:
        return links
    links = links.copy()
    src, tgt = ([text[slice(*word)] for word in words] for text, words in zip(pair[:2], pair[2:], strict=True))
    counts = Counter(src), Counter(tgt)
    columns: dict[str, list[int]] = {}
    for column, word in enumerate(src):
        columns.setdefault(word, []).append(column)
    for row, word in enumerate(tgt):
        if counts[0][word] == counts[1][word] and any(char.isalnum() or is_protected(char) for char in word):
            links[row] = 0.0
            links[row, columns[word].pop(0)] = 1.0
    return links
