"""Characters that nobody sees: a model that has not met them in a word takes the word for another one.

Soft hyphens, and zero-width spaces and joiners, come from web pages and word processors. They are left out of what the
model reads, but for the scripts that are written with them, and in emoji.
"""

import re
from collections.abc import Sequence

from dragoman.inference.translation import NBest, Translation

_OTHERS = "[^\0-\u058f\u1e00-\u206f\u2c60-\u2c7f\ua720-\ua7ff]"
"""Characters of scripts other than Latin, Greek, Cyrillic and Armenian, which may need joiners."""
_INVISIBLE = re.compile(f"(?<!{_OTHERS})[\xad\u200b-\u200d\u2060\ufeff]+(?!{_OTHERS})")


def visible(text: str) -> str:
    """The text without characters that nobody sees.

    >>> visible("Wasch\\xadmaschine\\u200b"), visible("می\\u200cخواهم") == "می\\u200cخواهم"
    ('Waschmaschine', True)
    """
    return _INVISIBLE.sub("", text)


def as_it_looks(n_best: NBest, sentences: Sequence[str]) -> list[list[Translation]]:
    """The translations of each sentence as it looks."""
    return n_best([visible(text) for text in sentences])
