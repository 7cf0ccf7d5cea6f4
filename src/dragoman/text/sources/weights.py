"""Weights of pairs, and of whole corpora: how often they come in an epoch, or what their loss counts."""

import itertools
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import Field

from dragoman.config import settings
from dragoman.errors import Error
from dragoman.text.lines import read_lines
from dragoman.text.sources.base import Pair, PairSource, say_left_out

MAX_WEIGHT = 1000.0
"""A pair that comes more often than that in an epoch is a mistake."""


@settings
class TemperatureWeights:
    """Weights by the sizes of the corpora: small ones come more often than once (Arivazhagan et al. 2019, section 4.2).

    A corpus of n pairs has a share of n^(1/T) in an epoch. The largest comes once, so that no pair is left out: 1
    leaves all as they are, a large T makes them equally frequent; 5 is usual. The corpora are counted first.
    """

    temperature: float = Field(default=5.0, ge=1)  #: T.

    def passes(self, counts: list[int]) -> list[float]:
        """Passes over corpora of so many pairs.

        >>> TemperatureWeights(temperature=2.0).passes([10_000, 100])
        [1.0, 10.0]
        """
        largest = max(counts)
        power = 1.0 - 1.0 / self.temperature
        return [min(MAX_WEIGHT, (largest / count) ** power) if count else 0.0 for count in counts]


def _weights_of(path: Path) -> Iterator[float]:
    for number, line in enumerate(read_lines(path), start=1):
        try:
            weight = float(line)
        except ValueError as error:
            raise Error.WRONG_SHAPE(f"{line[:40]!r} is not a number", file=path, line=number) from error
        if not 0 <= weight <= MAX_WEIGHT:  # nor NaN, which is not between them either
            raise Error.OUT_OF_RANGE(
                f"a weight of {weight:g}", f"give one from 0 to {MAX_WEIGHT:g}", file=path, line=number
            )
        yield weight


def paired(pairs: Iterator[Pair], weights: Path) -> Iterator[tuple[Pair, float]]:
    """Pairs, each with the number on its line of a file. Raises DragomanError for a file that does not fit them."""
    for pair, weight in itertools.zip_longest(pairs, _weights_of(weights)):
        if pair is None or weight is None:
            than = "more" if pair is None else "fewer"
            raise Error.UNEQUAL_COUNTS(
                f" has {than} lines than there are pairs", "give each pair one number", file=weights
            )
        yield pair, weight


def repeated(source: PairSource, weighted: Iterable[tuple[Pair, float]]) -> Iterator[Pair]:
    """Each pair as often as its weight says; a fraction is added to the next weight: with 0.5, every other pair."""
    read, total, given, left_out = 0, 0.0, 0, 0
    for pair, weight in weighted:
        read, total = read + 1, total + weight
        times = math.floor(total + 1e-9) - given
        given += times
        left_out += times == 0
        yield from itertools.repeat(pair, times)
    say_left_out(source, left_out, read, "by their weights")
