"""Characters that clients have had translated this month: reserved before the work, counted when it is done.

They are counted in memory and written down every second, so that a store that is locked, or slow, holds nobody up.
"""

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from dragoman.errors import DragomanError
from dragoman.serve.errors import ApiError
from dragoman.serve.store import Key, Store, this_month

Month = tuple[str, str]
"""A month, and the name of a key."""


class Usage:
    """The characters of all keys."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._written: dict[Month, int] = {}
        self._unwritten: Counter[Month] = Counter()
        self._reserved: Counter[Month] = Counter()
        self._read()

    def characters(self, name: str) -> int:
        """Characters that a key has had translated this month."""
        month = this_month(), name
        with self._lock:
            return self._written.get(month, 0) + self._unwritten[month]

    def reserve(self, key: Key | None, characters: int) -> "Reservation":
        """Reserve characters. Raises ApiError (456, as DeepL says it) where the month's are used up."""
        if key is None:
            return Reservation(self, ("", ""), 0)
        month = this_month(), key.name
        with self._lock:
            used = self._written.get(month, 0) + self._unwritten[month] + self._reserved[month]
            if key.per_month is not None and used + characters > key.per_month:
                raise ApiError(456, "Quota exceeded: the characters of this key for this month are used up")
            self._reserved[month] += characters
        return Reservation(self, month, characters)

    @contextlib.contextmanager
    def reserved(self, key: Key | None, characters: int) -> Iterator[None]:
        """Reserve characters for some work; they are counted if it does not raise. Raises what `reserve` does."""
        reservation = self.reserve(key, characters)
        is_done = False
        try:
            yield
            is_done = True
        finally:
            reservation.settle(is_done)

    def settle(self, month: Month, characters: int, is_done: bool) -> None:
        with self._lock:
            self._reserved[month] -= characters
            if is_done:
                self._unwritten[month] += characters

    def write(self, patience: float = 0.0) -> None:
        """Write down what was counted since the last time. What cannot be written now is kept for the next time."""
        with contextlib.suppress(DragomanError):
            with self._lock:
                counted = dict(self._unwritten)
            if counted:
                self.store.count(counted, patience)
            with self._lock:
                self._unwritten -= Counter(counted)
                for month, characters in counted.items():
                    self._written[month] = self._written.get(month, 0) + characters
            self._read()

    def _read(self) -> None:
        """Another server may count in the same store."""
        month = this_month()
        written = {(month, name): characters for name, characters in self.store.usage(month).items()}
        with self._lock:
            self._written = written
            self._reserved = Counter({key: number for key, number in self._reserved.items() if number})


@dataclass
class Reservation:
    """Characters that are reserved until their use is certain."""

    usage: Usage
    month: Month
    characters: int

    def settle(self, is_done: bool) -> None:
        """Count the characters, or give them back. The first time counts."""
        if self.characters:
            self.usage.settle(self.month, self.characters, is_done)
            self.characters = 0
