"""The notes' toy tasks as parallel text: copy, drop the first symbol, reverse, sort, and one sentence about beer.

A model learns them in seconds to minutes, and its attention can be read: a diagonal for `copy`, the other one for
`reverse`. The same settings give the same pairs everywhere, and no split has a source sequence of another one,
whatever the seeds and sizes: a hash of the sequence says which split it belongs to.

>>> for pair in ToySource(task="reverse", split="train", size=2).pairs():
...     print(pair.src, "|", pair.tgt)
2 2 9 2 10 8 8 8 | 8 8 8 10 2 9 2 2
2 3 3 9 2 8 4 7 1 | 1 7 4 8 2 9 3 3 2
"""

import hashlib
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field

from dragoman.config import settings
from dragoman.text.sources.base import Pair, PairSource

SIZES = {"train": 10_000, "valid": 1_000, "test": 1_000}
"""Number of pairs of a split unless told otherwise."""

BEER = ("ich möchte ein bier", "i want a beer")

_FEWEST = 1_000
"""With fewer sequences than this, chance might leave a split without any."""

_HELD_OUT = 10
"""One sequence in this many is for validation, another one for testing."""


@settings
class ToySource(PairSource):
    """Sequences of the numbers 1 to `symbols`, and what `task` makes of them.

    Their lengths are drawn evenly from `min_length` to `max_length`. Validation and test sources are all different; in
    training a short one may come again. `beer` is one and the same pair in every split; only `size` matters to it.
    """

    type: Literal["toy"] = "toy"
    task: Literal["copy", "drop_first", "reverse", "sort", "beer"]  #: What the target is of the source.
    split: Literal["train", "valid", "test"]  #: Part of the corpus.
    size: Annotated[int, Field(ge=1)] | None = None  #: Number of pairs; null: the split's own. [pairs]
    symbols: Annotated[int, Field(ge=2)] = 10  #: Number of different symbols.
    min_length: Annotated[int, Field(ge=1)] = 2  #: Shortest source. [symbols]
    max_length: Annotated[int, Field(ge=1, le=1_000)] = 10  #: Longest source. [symbols]
    seed: int = 1  #: Another seed, another corpus.

    def __post_init__(self) -> None:
        if self.task == "beer":
            return
        if self.min_length > self.max_length:
            raise ValueError(f"min_length ({self.min_length}) is more than max_length ({self.max_length})")
        if self.task == "drop_first" and self.min_length == 1:
            raise ValueError("drop_first leaves nothing of a sequence of one symbol: min_length must be 2 or more")
        there_are = sum(self.symbols**length for length in range(self.min_length, self.max_length + 1))
        if there_are < _FEWEST:
            raise ValueError(
                f"there are only {there_are:,} sequences of {self.min_length} to {self.max_length} out of "
                f"{self.symbols} symbols, {_FEWEST:,} are needed to hold some out: raise max_length or symbols"
            )
        # Half of what the split has on average, so that chance can leave no split short and the last ones are found.
        limit = there_are // (2 * _HELD_OUT)
        if self.split != "train" and self.number_of_pairs > limit:
            raise ValueError(
                f"the {self.split} split has {limit:,} different sequences of {self.min_length} to {self.max_length} "
                f"out of {self.symbols} symbols, not {self.number_of_pairs:,}: lower size, or raise max_length"
            )

    @property
    def number_of_pairs(self) -> int:
        return SIZES[self.split] if self.size is None else self.size

    def pairs(self) -> Iterator[Pair]:
        """Symbols between spaces, one pair after another; training in constant memory."""
        if self.task == "beer":
            return (Pair(number, *BEER) for number in range(1, self.number_of_pairs + 1))
        answer, sequences = TASKS[self.task], itertools.islice(_sequences(self), self.number_of_pairs)
        return (Pair(n, _text(sequence), _text(answer(sequence))) for n, sequence in enumerate(sequences, start=1))


def _sequences(source: ToySource) -> Iterator[Sequence[int]]:
    """Endless sequences for a split."""
    rng = random.Random(f"toy {source.split} {source.seed}")
    symbols = range(1, source.symbols + 1)
    seen = set()
    while True:
        sequence = tuple(rng.choices(symbols, k=rng.randint(source.min_length, source.max_length)))
        if split_of(sequence) != source.split or sequence in seen:
            continue
        if source.split != "train":
            seen.add(sequence)
        yield sequence


def split_of(sequence: Sequence[int]) -> str:
    """The split that owns a sequence, the same in every process and on every machine."""
    digest = hashlib.blake2b(_text(sequence).encode(), digest_size=8).digest()
    return {0: "test", 1: "valid"}.get(int.from_bytes(digest, "big") % _HELD_OUT, "train")


def _text(sequence: Sequence[int]) -> str:
    return " ".join(map(str, sequence))


TASKS: dict[str, Callable[[Sequence[int]], Sequence[int]]] = {
    "copy": lambda sequence: sequence,
    "drop_first": lambda sequence: sequence[1:],
    "reverse": lambda sequence: sequence[::-1],
    "sort": sorted,
}
"""The target of a source."""
