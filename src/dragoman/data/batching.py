"""Which rows go together in which step: batches under a token budget, as a pure function of (seed, epoch, step).

There is no shuffle buffer and no iterator state. A run that stops after step 812 of epoch 3 resumes by asking for
step 813 of epoch 3.

Rows of about the same length go together, so that little of a batch is padding. As the rows are sorted from long to
short, the first row of a batch is its widest, and the number of rows that fit is one division: no search, and the
same cuts in every epoch. What an epoch's key shuffles is which rows of equal lengths meet, and the order of batches.
"""

import copy
from pathlib import Path

import numpy as np

from dragoman.data.random import random_uint64
from dragoman.data.row_order import MIN_ROWS_ON_DISK, IntArray, Lengths, refuse_too_long, shuffled, sorted_by_length
from dragoman.errors import Error


class BatchPlan:
    """The batches of every epoch over pairs of known lengths (in tokens, without specials).

    A micro-batch costs `rows x max(longest source + 1, longest target + 1)`, pads and the </s> of each side included,
    and never more than `batch_tokens`. A step has `micro_batches` of them, but for the last step of an epoch, which
    takes what is left: at least one. Each epoch has every row exactly once.

    >>> plan = BatchPlan([3, 9, 3, 2], [3, 8, 2, 3], batch_tokens=12, micro_batches=2, seed=1, shuffle=False)
    >>> [[rows.tolist() for rows in plan.step(0, step)] for step in range(plan.steps_per_epoch)]
    [[[1], [2, 0, 3]]]

    Row 1 is 9 + 1 positions wide and fills the budget of 12 alone; the other three are 3 + 1 wide, and 3 x 4 = 12.

    `folder`: where the orders of a large corpus lie, for all processes of a machine (`row_order.py`).

    Raises DragomanError when there are no rows, or when the longest row does not fit into `batch_tokens` by itself;
    it is named by its line in the corpus where `lines` has those.
    """

    def __init__(
        self,
        src_lengths: Lengths | list[int],
        tgt_lengths: Lengths | list[int],
        *,
        batch_tokens: int,
        micro_batches: int = 1,
        seed: int = 1,
        shuffle: bool = True,
        lines: IntArray | None = None,
        folder: Path | None = None,
    ) -> None:
        src, tgt = (
            np.asarray(side, dtype=np.int32) if isinstance(side, list) else side for side in (src_lengths, tgt_lengths)
        )
        assert len(src) == len(tgt), "a source and a target length for each row"
        assert micro_batches >= 1, f"micro_batches is {micro_batches}, a step needs at least one"
        if not len(src):
            raise Error.EMPTY("no sentence pairs to make batches of")
        self.batch_tokens, self.micro_batches, self.seed, self.shuffle = batch_tokens, micro_batches, seed, shuffle
        self._folder = folder if len(src) > MIN_ROWS_ON_DISK else None
        self._rows, self._groups = sorted_by_length(src, tgt, self._file("sorted"))
        refuse_too_long(self._groups, self._rows, batch_tokens, lines)
        self._most_rows: int | None = None
        self._cuts = self._groups.cuts(batch_tokens)
        self.fill = self._groups.fill(self._cuts)
        """The share of the positions of both sides that hold real tokens; the rest is padding. Equal for all epochs."""
        self._epoch: tuple[int, IntArray, IntArray] | None = None

    def with_sentences(self, most: int | None) -> "BatchPlan":
        """The plan whose micro-batches have so many rows at most."""
        other = copy.copy(self)
        other._most_rows, other._cuts = most, self._groups.cuts(self.batch_tokens, most)
        other.fill = self._groups.fill(other._cuts)
        return other

    def _file(self, name: str) -> Path | None:
        return None if self._folder is None else self._folder / f"{name}.bin"

    @property
    def num_batches(self) -> int:
        """Micro-batches in an epoch."""
        return len(self._cuts) - 1

    @property
    def steps_per_epoch(self) -> int:
        """Steps in an epoch: ceil(batches / micro_batches), so that the last step may be a smaller one."""
        return -(-self.num_batches // self.micro_batches)

    def step(self, epoch: int, step: int) -> list[IntArray]:
        """The row numbers of the micro-batches of one step; `step` counts from 0 within the epoch."""
        if not 0 <= step < self.steps_per_epoch:
            raise IndexError(f"step {step} of epoch {epoch}, which has {self.steps_per_epoch} steps")
        rows, order = self._plan(epoch)
        batches = order[step * self.micro_batches : (step + 1) * self.micro_batches]
        return [rows[self._cuts[batch] : self._cuts[batch + 1]] for batch in batches]

    def worst_case_batch(self, batch_tokens: int) -> IntArray:
        """The row numbers of the batch of most positions, both sides together, that such a budget leads to."""
        groups = self._groups
        cuts = groups.cuts(max(batch_tokens, int(groups.widths[0])), self._most_rows)
        src, tgt = groups.longest(cuts)
        batch = int((np.diff(cuts) * (src + tgt + 2)).argmax())
        return self._rows[cuts[batch] : cuts[batch + 1]]

    def _plan(self, epoch: int) -> tuple[IntArray, IntArray]:
        """(rows, order of the batches) of an epoch; only the latest epoch asked for is kept."""
        kept = self._epoch  # another thread may put its own there: each reads what it has seen or made
        if kept is None or kept[0] != epoch:
            rows, order = self._rows, np.arange(self.num_batches, dtype=np.int32)
            if self.shuffle:
                words = random_uint64(self.seed, epoch)
                order = np.argsort(words(self.num_batches), kind="stable").astype(np.int32)
                path = self._file(f"epoch-{epoch}-seed-{self.seed}-batches-{self.num_batches}")
                rows = shuffled(rows, self._groups, words, path)
                if self._folder is not None and path is not None:
                    for old in self._folder.glob("epoch-*.bin"):
                        if int(old.name.split("-")[1]) < epoch - 1:  # another process may be an epoch behind
                            old.unlink(missing_ok=True)
            self._epoch = kept = epoch, rows, order
        return kept[1:]
