"""Random numbers that depend on a key alone, (seed, epoch, row) for example: no generator state, nothing to resume.

Each function here stays the same in every version of Python, numpy and PyTorch.
"""

import hashlib
from collections.abc import Callable
from typing import Literal

import numpy as np
from jaxtyping import Float64, Int, UInt64


def keyed_uniform(
    seed: int, epoch: int, rows: Int[np.ndarray, " rows"], count: int
) -> Float64[np.ndarray, "rows count"]:
    """`count` numbers in [0, 1) for each row: SplitMix64 (Steele et al. 2014) as a hash of the key.

    >>> both = keyed_uniform(1, 0, np.array([5, 9]), 3)
    >>> bool((both[1] == keyed_uniform(1, 0, np.array([9]), 3)[0]).all())
    True
    """
    key = np.zeros(1, dtype=np.uint64)
    for number in (seed, epoch):
        key = _mix(key + np.uint64(number))
    keys = _mix(key + rows.astype(np.uint64))  # (rows,)
    words = _mix(keys[:, None] + _GOLDEN * np.arange(1, count + 1, dtype=np.uint64))
    return (words >> np.uint64(11)) * 2.0**-53


def random_uint64(seed: int, epoch: int) -> Callable[[int], UInt64[np.ndarray, " count"]]:
    """A function that returns the next `count` 64-bit words of an epoch, from a counter-based generator.

    numpy promises that raw words stay the same in every version, which it does not for `Generator.permutation`.
    """
    return np.random.Philox(key=np.array([seed, epoch], dtype=np.uint64)).random_raw


def hash64(key: str | bytes, byteorder: Literal["little", "big"] = "little") -> int:
    """Eight bytes of BLAKE2b of the key: a seed, or a number to choose by. 1M keys collide with probability 3e-8."""
    data = key.encode() if isinstance(key, str) else key
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), byteorder)


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mix(words: UInt64[np.ndarray, "*shape"]) -> UInt64[np.ndarray, "*shape"]:
    """The finaliser of SplitMix64: every bit of a word decides about every bit of the result. 0 does not stay 0."""
    words = words + _GOLDEN
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
