"""One long text as windows of `block_len` tokens: what a language model is trained and measured on.

As with sentence pairs (`batching.py`), which windows go together in which step is a pure function of (seed, epoch,
step).
"""

import itertools
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from dragoman.data.movable import Movable
from dragoman.data.random import random_uint64
from dragoman.data.row_order import IntArray
from dragoman.errors import Error


@dataclass(frozen=True, eq=False)
class Windows(Movable):
    """Rows of consecutive tokens: having read `tgt_in` up to a position, the model must say `tgt_out` there.

    There is nothing to pad; `tgt_mask` is True where a prediction counts. `num_tokens` counts those. `starts` is where
    each row begins in the text.
    """

    tgt_in: Int[Tensor, "batch block_len"]
    tgt_out: Int[Tensor, "batch block_len"]
    tgt_mask: Bool[Tensor, "batch block_len"]
    num_tokens: int
    starts: IntArray


def cut(ids: IntArray, starts: IntArray, block_len: int, first: IntArray | int = 0) -> Windows:
    """The windows that start at `starts`; their predictions count from the position `first` of each on.

    >>> windows = cut(np.arange(10, 20), np.array([0, 4]), block_len=3, first=np.array([0, 2]))
    >>> windows.tgt_in
    tensor([[10, 11, 12],
            [14, 15, 16]])
    >>> windows.tgt_out                     # the token after each of these
    tensor([[11, 12, 13],
            [15, 16, 17]])
    >>> windows.tgt_mask.int(), windows.num_tokens
    (tensor([[1, 1, 1],
            [0, 0, 1]], dtype=torch.int32), 4)
    """
    rows = torch.from_numpy(ids[starts[:, None] + np.arange(block_len + 1)].astype(np.int64))  # (batch, block_len + 1)
    mask = np.arange(block_len) >= np.broadcast_to(first, len(starts))[:, None]
    # Not views of the same rows: what has gaps goes to a GPU by way of a copy, for which everything waits.
    inputs, outputs = rows[:, :-1].contiguous(), rows[:, 1:].contiguous()
    return Windows(inputs, outputs, torch.from_numpy(mask), int(mask.sum()), starts)


class WindowPlan:
    """The windows of every epoch over a text of `num_tokens` tokens.

    An epoch cuts the text into windows side by side, from an offset of its own, and shuffles them: each token is
    predicted once, but for up to `block_len` at the start and less than twice as many at the end. Batches hold as many
    windows as `batch_tokens` allows or a few less, so that they are equally large. A step has `micro_batches` of them.

    >>> plan = WindowPlan(num_tokens=14, block_len=3, batch_tokens=6, seed=1)
    >>> [[starts.tolist() for starts in plan.step(0, step)] for step in range(plan.steps_per_epoch)]
    [[[8, 5]], [[2]]]

    Raises DragomanError when the text is shorter than two windows, or a window longer than `batch_tokens`.
    """

    def __init__(
        self, num_tokens: int, block_len: int, *, batch_tokens: int, micro_batches: int = 1, seed: int = 1
    ) -> None:
        assert micro_batches >= 1, f"micro_batches is {micro_batches}, a step needs at least one"
        if num_tokens < 2 * block_len:
            raise Error.TOO_FEW(
                f"the training text has {num_tokens:,} tokens, and windows of {block_len} need at least "
                f"{2 * block_len:,}",
                "take more text or lower corpus.block_len",
            )
        if batch_tokens < block_len:
            raise Error.TOO_LONG(
                f"a window of {block_len} tokens does not fit into a batch of {batch_tokens}",
                f"raise training.batch_tokens to {block_len} or more, or lower corpus.block_len",
            )
        self.block_len, self.micro_batches, self.seed = block_len, micro_batches, seed
        self.num_windows = (num_tokens - block_len) // block_len
        self.windows_per_batch = batch_tokens // block_len
        self.steps_per_epoch = -(-self.num_windows // (self.windows_per_batch * micro_batches))
        num_batches = min(self.num_windows, self.steps_per_epoch * micro_batches)
        self._cuts = np.linspace(0, self.num_windows, num_batches + 1).round().astype(np.int64)
        self._epoch: tuple[int, IntArray] | None = None

    def step(self, epoch: int, step: int) -> list[IntArray]:
        """Where the windows of each micro-batch start; `step` counts from 0 within the epoch."""
        if not 0 <= step < self.steps_per_epoch:
            raise IndexError(f"step {step} of epoch {epoch}, which has {self.steps_per_epoch} steps")
        starts = self._starts(epoch)
        cuts = self._cuts[step * self.micro_batches : (step + 1) * self.micro_batches + 1]
        return [starts[begin:end] for begin, end in itertools.pairwise(cuts)]

    def worst_case_batch(self, batch_tokens: int) -> IntArray:
        """Where the windows of a full batch under such a budget start."""
        return self._starts(0)[: max(1, batch_tokens // self.block_len)]

    def _starts(self, epoch: int) -> IntArray:
        """The starts of an epoch's windows in their order; only the latest epoch asked for is kept."""
        kept = self._epoch  # as in `BatchPlan`: other threads may ask too
        if kept is None or kept[0] != epoch:
            words = random_uint64(self.seed, epoch)
            offset = int(words(1)[0]) % self.block_len
            order = np.argsort(words(self.num_windows), kind="stable")
            self._epoch = kept = epoch, offset + order * self.block_len
        return kept[1]


def covering(num_predictions: int, block_len: int, min_context: int) -> tuple[IntArray, IntArray]:
    """Windows in which each prediction of a text counts exactly once: (their starts, the first that counts in each).

    A window's prediction at position i has seen i + 1 tokens. Each prediction that counts has seen `min_context` to
    `block_len` tokens, or fewer at the start of the text. `min_context` 1: windows side by side.

    >>> starts, first = covering(10, block_len=4, min_context=3)
    >>> starts.tolist(), first.tolist()
    ([0, 2, 4, 6], [0, 2, 2, 2])
    """
    block_len = min(block_len, num_predictions)
    stride = max(1, block_len - min_context + 1)
    last = num_predictions - block_len
    starts = np.append(np.arange(0, last, stride), last)
    ends = starts + block_len
    return starts, np.concatenate([[0], ends[:-1] - starts[1:]])
