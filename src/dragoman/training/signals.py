"""Ctrl-C and SIGTERM in a training: the first finishes the step and saves, the second ends it at once."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def stop_on_signals(ask: Callable[[], None]) -> Iterator[None]:
    """Call `ask` at the first signal inside, and raise KeyboardInterrupt at the second."""
    asked = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        ask()

    previous: dict[int, Any] = {}
    try:
        for wanted in (signal.SIGINT, signal.SIGTERM):
            previous[wanted] = signal.signal(wanted, handle)
    except ValueError:  # not in the main thread: whoever runs us there handles signals
        pass
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
