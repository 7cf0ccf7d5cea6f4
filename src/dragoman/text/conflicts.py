"""The rule for several translations of one source, in a corpus or in a memory: which translation is kept."""

from collections import Counter
from collections.abc import Sequence
from typing import Protocol, TypeVar

RULE = "the approved one was kept, else the newest, the most frequent, the first"


class Translated(Protocol):
    """A translation, and what its file says about it."""

    @property
    def tgt(self) -> str: ...
    @property
    def approved(self) -> bool: ...
    @property
    def changed(self) -> str: ...


T = TypeVar("T", bound=Translated)


def preferred(translations: Sequence[T]) -> tuple[T, Counter[str]]:
    """(the translation of one source that the rule keeps, how often each text comes)."""
    times = Counter(one.tgt for one in translations)
    return max(translations, key=lambda one: (one.approved, one.changed, times[one.tgt])), times
