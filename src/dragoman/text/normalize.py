"""Step 2, first half: one spelling for each character, whatever keys produced it.

An e with an acute accent may be one code point or two; NFC writes one wherever Unicode has it. NFKC in addition folds
forms that look different (ligatures, full-width letters, superscripts): more uniform, and not lossless.
"""

import unicodedata
from collections.abc import Callable


def none(text: str) -> str:
    return text


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def nfkc(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


NORMALIZERS: dict[str, Callable[[str], str]] = {"none": none, "nfc": nfc, "nfkc": nfkc}
