"""Shared by the embedded grammars: random choices that repeat everywhere, and the split that a derivation belongs to.

A derivation names the lexical combinations that it uses (`read+book`, `red+apple`, `boy+because`). A stable hash holds
some combinations out: a sentence with none of those is training material, a sentence with a held-out one belongs to the
split of that combination. So the splits cannot share a sentence, at any size and with any seed, and every held-out
sentence combines words that training shows only apart.
"""

import functools
import hashlib
import random
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")

_TEST_PERCENT, _VALID_PERCENT = 6, 3


class Derivation(NamedTuple):
    """A sentence pair with the lexical combinations that made it; they must follow from either sentence alone."""

    source: str
    target: str
    combinations: tuple[str, ...]


@functools.cache
def split_of_combination(combination: str) -> str:
    """The split that owns a combination: a hash of its text, and so the same in every process and on every machine."""
    value = int.from_bytes(hashlib.blake2b(combination.encode(), digest_size=8).digest(), "big") % 100
    return "test" if value < _TEST_PERCENT else "valid" if value < _TEST_PERCENT + _VALID_PERCENT else "train"


def split_of(combinations: Sequence[str]) -> str | None:
    """The split of a derivation; None when held-out combinations of two splits meet in it, so that no split has it."""
    found = "train"
    for combination in combinations:
        split = split_of_combination(combination)
        if split != "train":
            if found not in ("train", split):
                return None
            found = split
    return found


def spread(weighted: dict[T, int]) -> tuple[T, ...]:
    """Each key as often as its weight says: a tuple to `Chooser.pick` from."""
    return tuple(key for key, weight in weighted.items() for _ in range(weight))


class Chooser:
    """Random choices from one seeded stream; cheaper than `random.choice`, and the same on every platform."""

    def __init__(self, rng: random.Random) -> None:
        self._random = rng.random

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self._random() * len(options))]

    def chance(self, probability: float) -> bool:
        return self._random() < probability


def join(*words: str) -> str:
    """The words that are there, with single spaces."""
    return " ".join([word for word in words if word])


def sentence(text: str, mark: str = ".") -> str:
    """The text with a capital at its start and its final mark."""
    return text[0].upper() + text[1:] + mark
