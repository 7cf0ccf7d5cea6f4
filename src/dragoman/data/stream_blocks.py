"""Training on a stream: which block of it a step is in, and that block as ids with a batch plan of its own."""

import bisect
import itertools
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass

from dragoman.data.batching import BatchPlan
from dragoman.data.store import IdCorpus
from dragoman.errors import Error
from dragoman.runs import atomic_io
from dragoman.text.sources.stream import Stream
from dragoman.text.sources.tsv import TsvSource

KEPT_BLOCKS = 4
"""Blocks on the disk: the one that is trained on, and those before it, to which a rollback may go."""
TABLE = "blocks.json"


@dataclass(frozen=True)
class Block:
    """A block, ready to train on."""

    number: int
    corpus: IdCorpus
    plan: BatchPlan


class StreamBlocks:
    """Steps to blocks. Each block is one epoch; how many steps each had is kept in a file, so the step says it all."""

    def __init__(
        self, stream: Stream, encode: Callable[[str, TsvSource], IdCorpus], plan: Callable[[IdCorpus], BatchPlan]
    ) -> None:
        self.stream, self._encode, self._plan = stream, encode, plan
        self._table = stream.folder / TABLE
        self.steps: list[int] = json.loads(self._table.read_text(encoding="utf-8")) if self._table.exists() else []
        self._kept: dict[int, Block] = {}
        self._lock = threading.RLock()  # batches may be made on a thread

    def first(self) -> Block:
        """The oldest block on the disk, or the first of the stream."""
        if not self.steps:
            self._add()
        numbers = [number for number in self.stream.numbers() if number < len(self.steps)]
        if not numbers:
            raise Error.MISSING_CORPUS("the blocks that this run was trained on are gone", file=self.stream.folder)
        return self._block(numbers[0])

    def position(self, step: int) -> tuple[int, int]:
        """(block, step within it), both from 0, of step `step`, counted from 1. Raises StreamEnded."""
        with self._lock:
            while sum(self.steps) < step:
                self._add()
            begins = list(itertools.accumulate(self.steps, initial=0))  # steps before each block
            number = bisect.bisect_left(begins, step) - 1
            return number, step - 1 - begins[number]

    def at(self, step: int) -> tuple[Block, int]:
        """The block of a step, and the step within it.

        The trial before a training takes its first steps; where those are gone, they are of the oldest block there is.
        """
        with self._lock:
            number, within = self.position(step)
            if number in self._kept or self.stream.path(number).exists():
                return self._block(number), within
            oldest = self.first()
            return oldest, within % oldest.plan.steps_per_epoch

    def _add(self) -> None:
        number = len(self.steps)
        self.stream.block(number)
        self.steps.append(self._block(number).plan.steps_per_epoch)
        atomic_io.replace_text(self._table, json.dumps(self.steps))
        for old in [one for one in self.stream.numbers() if one <= number - KEPT_BLOCKS]:
            self._kept.pop(old, None)
            atomic_io.remove(self.stream.path(old))
            atomic_io.remove(self.stream.path(old).with_suffix(""))

    def _block(self, number: int) -> Block:
        if number not in self._kept:
            corpus = self._encode(self.stream.path(number).stem, self.stream.block(number))
            self._kept = {one: block for one, block in self._kept.items() if one >= number - 1}
            self._kept[number] = Block(number, corpus, self._plan(corpus))
        return self._kept[number]
