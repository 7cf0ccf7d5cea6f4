"""Prefetch: the batches of the next step are made while the device computes this one."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import torch

Batches = Sequence[tuple[int, Sequence[Any]]]
"""Micro-batches of a step: (number, its parts) of each."""


class Prefetcher:
    """`make(step)` for the step asked for, while a thread makes the batches of the step after it.

    Batches are a pure function of the step, so these are the same as without prefetching. A prefetched step that is not
    the next one asked for (after a rollback, say) is thrown away. An error on the thread is raised when its step is
    asked for. `make` must be safe to call from several threads.

    `gpu`: put them into pinned memory, from which that GPU copies without stopping the program.
    """

    def __init__(self, make: Callable[[int], Batches], gpu: torch.device | None = None) -> None:
        self._make, self._gpu = make, gpu
        self._thread = self._started()
        self._next: tuple[int, Future[Batches]] | None = None

    def of(self, step: int) -> Batches:
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
        self._thread = self._started()
        self._next = None

    def _submit(self, step: int) -> None:
        self._next = step, self._thread.submit(self._made, step)

    def _started(self) -> ThreadPoolExecutor:
        # A thread begins on the first GPU, whichever its process computes on, and would pin memory for that one.
        initializer = partial(torch.cuda.set_device, self._gpu) if self._gpu is not None else None
        return ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches", initializer=initializer)

    def _made(self, step: int) -> Batches:
        batches = self._make(step)
        if self._gpu is None:
            return batches
        return [(number, [part.pin_memory() for part in parts]) for number, parts in batches]
