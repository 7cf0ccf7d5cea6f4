"""The language of a few words: a linear classifier over hashed n-grams of letters.

As fastText's (Joulin et al. 2017, "Bag of Tricks for Efficient Text Classification"), without a hidden layer: the mean
of the weights of all n-grams of one to four letters, words with a mark at both ends. The model was made by
`benchmarks/language_id.py` from LibreOffice's help (MPL-2.0) and words of spelling dictionaries.
"""

import functools
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dragoman.languages.codes import language_of

MODEL = Path(__file__).with_name("ngrams.npz")
BUCKETS = 1 << 14
LONGEST = 4
MOST_LETTERS = 1000
"""Letters of a text that are looked at."""

_WORD = re.compile(r"[^\W\d_]+")


class _Model(NamedTuple):
    weights: np.ndarray  # (buckets, languages), int8
    scale: np.ndarray
    bias: np.ndarray
    languages: list[str]


def features(text: str) -> list[int]:
    """The buckets of a text's n-grams.

    >>> len(features("Guten Tag")), features("12 + 3")
    (32, [])
    """
    found = []
    for word in _WORD.findall(text[:MOST_LETTERS].lower()):
        marked = f"<{word}>"
        for size in range(1, LONGEST + 1):
            grams = range(len(marked) - size + 1) if size > 1 else range(1, len(marked) - 1)
            found += [zlib.crc32(marked[start : start + size].encode()) % BUCKETS for start in grams]
    return found


def knows(code: str) -> bool:
    """True for a language that the model knows."""
    return language_of(code) in _model().languages


def language_probabilities(text: str, among: Sequence[str]) -> list[tuple[str, float]]:
    """The languages of `among`, all of which the model `knows`, with their probabilities, best first.

    >>> language_probabilities("kleine Kinder", ["en", "de", "fr"])[0][0]
    'de'
    """
    model = _model()
    columns = [model.languages.index(language_of(code)) for code in among]
    buckets = features(text)
    if not buckets:
        return [(code, 1 / len(among)) for code in among]
    logits = model.weights[np.array(buckets)][:, columns].mean(axis=0) * model.scale[columns] + model.bias[columns]
    shares = np.exp(logits - logits.max())
    shares /= shares.sum()
    return [(among[place], float(shares[place])) for place in np.argsort(-shares, kind="stable")]


@functools.cache
def _model() -> _Model:
    with np.load(MODEL) as kept:
        return _Model(kept["weights"], kept["scale"], kept["bias"], [str(code) for code in kept["languages"]])
