"""Cancellation of long work: whoever waits for it says by what it is checked, and every long loop asks `check`.

A server's request is checked by its deadline, by whether its client has gone, and by whether the server stops. What
nobody checks, the work of a command, goes on to its end.
"""

import contextvars
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

TURN_SECONDS = 0.1
"""Seconds between two looks of work that waits for its turn at whether it is to end."""
_check: contextvars.ContextVar[Callable[[], None]] = contextvars.ContextVar("checks", default=lambda: None)


def check() -> None:
    """Raise what ends the work under way, if it is to end. Loops ask at least every 100 ms; it costs a microsecond."""
    _check.get()()


@contextmanager
def checked_by(check: Callable[[], None]) -> Iterator[None]:
    """Within, in this thread and in those of `device.side_by_side`, `check` decides whether work goes on.

    >>> def gone():
    ...     raise TimeoutError
    >>> with checked_by(gone):
    ...     check()
    Traceback (most recent call last):
    TimeoutError
    """
    before = _check.set(check)
    try:
        yield
    finally:
        _check.reset(before)


@contextmanager
def turn(places: threading.Semaphore) -> Iterator[None]:
    """A place among those that may do some work at the same time. Raises what `check` raises while it waits."""
    while not places.acquire(timeout=TURN_SECONDS):
        check()
    try:
        check()
        yield
    finally:
        places.release()
