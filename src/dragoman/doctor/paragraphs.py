"""Paragraphs of a document and of its translation, paired: by order where there are equally many, else by length.

The lengths of texts that translate each other agree (Gale and Church 1993): the most probable way to put one paragraph
beside one, or beside none, or beside two, found by dynamic programming. Pairs of one and one are handed on.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dragoman.pipeline.sentence_pairs import LENGTH_VARIANCE_PER_CHAR

PENALTIES = {(1, 1): 0.0, (1, 0): 4.5, (0, 1): 4.5, (2, 1): 2.3, (1, 2): 2.3}
"""-log of how much rarer each kind of step is than a step of one paragraph on both sides (Gale and Church 1993, table
5)."""
BAND_PARAGRAPHS = 200
"""Paragraphs that a text may be away from its share of the document."""


def aligned(src: Sequence[str], tgt: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The numbers of the paragraphs of two lists that translate each other, in their order."""
    return zip(range(len(src)), range(len(tgt)), strict=True) if len(src) == len(tgt) else _by_length(src, tgt)


def _by_length(src: Sequence[str], tgt: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The pairs of paragraphs that the cheapest way through both documents matches one to one."""
    rows, columns = len(src), len(tgt)
    if not rows or not columns:
        return
    own, other = (np.array([0, *map(len, side)], dtype=np.float64) for side in (src, tgt))
    own *= max(1.0, other.sum()) / max(1.0, own.sum())
    totals = np.cumsum(other)
    beside_none = PENALTIES[0, 1] + _distance(0.0, other)
    kinds = list(PENALTIES)
    bands: list[_Band] = []
    steps = np.zeros((rows + 1, 2 * BAND_PARAGRAPHS + 1), dtype=np.int8)
    for row in range(rows + 1):
        low = max(0, round(row * columns / rows) - BAND_PARAGRAPHS)
        places = np.arange(low, min(columns, low + 2 * BAND_PARAGRAPHS) + 1)
        costs = np.full((len(kinds), len(places)), np.inf)
        for number, (down, right) in enumerate(kinds):
            if 0 < down <= row:
                expected, lengths = own[row - down + 1 : row + 1].sum(), totals[places] - totals[places - right]
                before = bands[row - down].at(places - right)
                costs[number] = before + PENALTIES[down, right] + _distance(expected, lengths)
        if not row:
            costs[0, 0] = 0.0
        cheapest = costs.min(axis=0)
        # A step beside none comes from the place before in the same row: the least of all ways along it, at once.
        along = np.cumsum(beside_none[places])
        reached = along + np.minimum.accumulate(cheapest - along)
        steps[row, : len(places)] = np.where(reached < cheapest - 1e-9, kinds.index((0, 1)), costs.argmin(axis=0))
        bands.append(_Band(low, np.minimum(reached, cheapest)))
        if row > 1:
            bands[row - 2] = bands[row - 2]._replace(costs=_NONE)
    if not math.isfinite(bands[rows].at(np.array([columns]))[0]):
        return
    pairs = []
    row, column = rows, columns
    while row or column:
        down, right = kinds[steps[row, column - bands[row].low]]
        row, column = row - down, column - right
        if (down, right) == (1, 1):
            pairs.append((row, column))
    yield from reversed(pairs)


_NONE = np.zeros(0)


class _Band(NamedTuple):
    """The costs of a row from the column `low` on."""

    low: int
    costs: np.ndarray

    def at(self, columns: np.ndarray) -> np.ndarray:
        """The costs at some columns, infinite outside of the band."""
        costs = np.full(len(columns), np.inf)
        inside = (columns >= self.low) & (columns < self.low + len(self.costs))
        costs[inside] = self.costs[columns[inside] - self.low]
        return costs


_DEVIATIONS = np.linspace(0.0, 8.0, 8001)
_COSTS = np.array([-math.log(max(1e-12, math.erfc(deviation / math.sqrt(2)))) for deviation in _DEVIATIONS])


def _distance(expected: float, lengths: np.ndarray) -> np.ndarray:
    """-log of how probable it is that texts of the expected length are at least so far from it."""
    mean = np.maximum((expected + lengths) / 2, 1e-9)
    return np.interp(np.abs(expected - lengths) / np.sqrt(LENGTH_VARIANCE_PER_CHAR * mean), _DEVIATIONS, _COSTS)
