"""Paragraphs of a document and of its translation, paired: by order where there are equally many, else by length.

The lengths of texts that translate each other agree (Gale and Church 1993): the most probable way to put one paragraph
beside one, or beside none, or beside two, found by dynamic programming. Pairs of one and one are handed on, cut into
sentences where both sides have equally many.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from dragoman.text.segment import sentences

VARIANCE = 6.8
"""Variance of the length of a translation, per character of the text (Gale and Church 1993, section 3.2)."""
PENALTIES = {(1, 1): 0.0, (1, 0): 4.5, (0, 1): 4.5, (2, 1): 2.3, (1, 2): 2.3}
"""-log of how much rarer a step is than one beside one (Gale and Church 1993, table 5)."""
BAND = 200
"""Paragraphs that a text may be away from its share of the document."""


def aligned(src: Sequence[str], tgt: Sequence[str], languages: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """The pairs of two lists of paragraphs, in their order."""
    pairs = zip(src, tgt, strict=True) if len(src) == len(tgt) else _by_length(src, tgt)
    for one, other in pairs:
        parts = [
            [text[span.start : span.end] for span in sentences(text, code)]
            for text, code in zip((one, other), languages, strict=True)
        ]
        if len(parts[0]) == len(parts[1]):
            yield from zip(*parts, strict=True)
        else:
            yield one, other


def _by_length(src: Sequence[str], tgt: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The pairs of paragraphs that stand one beside one on the cheapest way through both documents."""
    rows, columns = len(src), len(tgt)
    if not rows or not columns:
        return
    lengths = [[len(text) for text in side] for side in (src, tgt)]
    ratio = max(1, sum(lengths[1])) / max(1, sum(lengths[0]))
    costs = np.full((rows + 1, columns + 1), np.inf, dtype=np.float32)
    steps = np.zeros((rows + 1, columns + 1), dtype=np.int8)
    costs[0, 0] = 0
    kinds = list(PENALTIES)
    for row in range(rows + 1):
        middle = round(row * columns / rows)
        for column in range(max(0, middle - BAND), min(columns, middle + BAND) + 1):
            for number, (down, right) in enumerate(kinds):
                if down > row or right > column or not row + column:
                    continue
                own = sum(lengths[0][row - down : row])
                other = sum(lengths[1][column - right : column])
                cost = costs[row - down, column - right] + PENALTIES[down, right] + _distance(own * ratio, other)
                if cost < costs[row, column]:
                    costs[row, column], steps[row, column] = cost, number
    if not math.isfinite(costs[rows, columns]):
        return
    pairs = []
    row, column = rows, columns
    while row or column:
        down, right = kinds[steps[row, column]]
        row, column = row - down, column - right
        if (down, right) == (1, 1):
            pairs.append((src[row], tgt[column]))
    yield from reversed(pairs)


def _distance(expected: float, length: float) -> float:
    """-log of how probable it is that a text of the expected length is at least so far from it."""
    mean = (expected + length) / 2
    if not mean:
        return 0.0
    deviation = abs(expected - length) / math.sqrt(VARIANCE * mean)
    return -math.log(max(1e-12, math.erfc(deviation / math.sqrt(2))))
