"""Prefetch: the batches of the next step are made while the device computes this one."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class Prefetcher:
    """`make(step)` for the step asked for, while a thread makes the batches of the step after it.

    Batches are a pure function of the step, so these are the same as without prefetching. A prefetched step that is not
    the next one asked for (after a rollback, say) is thrown away. An error on the thread is raised when its step is
    asked for. `make` must be safe to call from several threads.

    `pin`: put them into pinned memory, from which a GPU copies without stopping the program.
    """

    def __init__(self, make: Callable[[int], Sequence[Any]], *, pin: bool = False) -> None:
        self._make, self._pin = make, pin
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches")
        self._next: tuple[int, Future[Sequence[Any]]] | None = None

    def of(self, step: int) -> Sequence[Any]:
        """The micro-batches of a step."""
        if self._next is None or self._next[0] != step:
            self.stop()
            self._submit(step)
        assert self._next is not None
        batches = self._next[1].result()
        self._submit(step + 1)
        return batches

    def stop(self) -> None:
        """Wait for the thread and throw its batches away; `of` may be called again afterwards."""
        self._thread.shutdown()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches")
        self._next = None

    def _submit(self, step: int) -> None:
        self._next = step, self._thread.submit(self._made, step)

    def _made(self, step: int) -> Sequence[Any]:
        batches = self._make(step)
        return [batch.pin_memory() for batch in batches] if self._pin else batches
