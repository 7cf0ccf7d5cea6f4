"""The batches of the next step, made while the device computes this one."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class BatchesAhead:
    """`make(step)`, with the step after it already under way on a thread of its own.

    As batches are a pure function of the step, these are the same ones, whatever is asked for next: after a rollback,
    say, what was made ahead is thrown away. An error on the thread is raised where its step is asked for, and nowhere
    if it never is. Never more than one step is made ahead. `make` has to be safe to call from several threads.

    `pin`: into memory from which a GPU fetches while the program goes on; without it every copy would be waited for.
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
        """Wait for what is under way and throw it away: no thread is left. It may be asked for more all the same."""
        self._thread.shutdown()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches")
        self._next = None

    def _submit(self, step: int) -> None:
        self._next = step, self._thread.submit(self._made, step)

    def _made(self, step: int) -> Sequence[Any]:
        batches = self._make(step)
        return [batch.pin_memory() for batch in batches] if self._pin else batches
