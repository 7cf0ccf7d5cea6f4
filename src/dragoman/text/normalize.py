"""Step 2, first half: one spelling for each character, whatever keys produced it.

An e with an acute accent may be one code point or two; NFC writes one wherever Unicode has it. NFKC in addition folds
forms that look different (ligatures, full-width letters, superscripts): more uniform, and not lossless.
"""

import functools
import unicodedata
from collections.abc import Callable
from typing import Any

NORMALIZERS: dict[str, Callable[[str], str]] = {
    "none": str,
    "nfc": functools.partial(unicodedata.normalize, "NFC"),
    "nfkc": functools.partial(unicodedata.normalize, "NFKC"),
}


def spelling_of(corpus: Any) -> Callable[[str], str]:
    """A function that prepares a text for the tokenizer, by the settings `normalize` and `lowercase` of a corpus, which
    pairs do not have."""
    normalize = NORMALIZERS[corpus.normalize]
    return (lambda text: normalize(text).lower()) if getattr(corpus, "lowercase", False) else normalize
