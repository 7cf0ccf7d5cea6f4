"""Cancellation of a server's requests: whoever waits for long work gives a check, and every long loop calls `check`.

A server's request is checked by its deadline, by whether its client has gone, and by whether the server stops. The
work of a command is not checked. Ctrl-C in a training is another matter (`training/loop.py`).
"""

import contextvars
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

Idle = Callable[[], AbstractContextManager[None]]
"""A block in which work needs no processor."""

TURN_SECONDS = 0.1
"""Seconds between two looks of work that waits for its turn at whether it is to end."""
_check: contextvars.ContextVar[Callable[[], None]] = contextvars.ContextVar("checks", default=lambda: None)
_idle: contextvars.ContextVar[Idle] = contextvars.ContextVar("idle", default=nullcontext)


def check() -> None:
    """Raise what ends the work under way, if it is to end. Loops ask at least every 100 ms; it costs a microsecond."""
    _check.get()()


def idle() -> AbstractContextManager[None]:
    """Within, the work under way waits for something else than a processor: for a file, or another process."""
    return _idle.get()()


@contextmanager
def checked_by(check: Callable[[], None], idle: Idle = nullcontext) -> Iterator[None]:
    """Within, in this thread and in those of `device.side_by_side`, `check` decides whether work goes on, and whoever
    gives processors to it is told by `idle` that it needs none.

    >>> def gone():
    ...     raise TimeoutError
    >>> with checked_by(gone):
    ...     check()
    Traceback (most recent call last):
    TimeoutError
    """
    before, idle_before = _check.set(check), _idle.set(idle)
    try:
        yield
    finally:
        _check.reset(before)
        _idle.reset(idle_before)


@contextmanager
def turn(places: threading.Semaphore) -> Iterator[None]:
    """A place among those that may do some work at the same time. Raises what `check` raises while it waits."""
    with idle():
        while not places.acquire(timeout=TURN_SECONDS):
            check()
    try:
        check()
        yield
    finally:
        places.release()
