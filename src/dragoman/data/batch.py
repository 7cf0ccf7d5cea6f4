"""The batch: the one place that pads, shifts targets and makes padding masks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from dragoman.data.movable import Movable
from dragoman.special_tokens import BOS_ID, EOS_ID, PAD_ID

Ids = Sequence[int] | np.ndarray[Any, np.dtype[Any]]

WIDTH_MULTIPLE = 8
"""The input of a finished model is padded to a multiple of this many positions, so that a sentence's width does not
depend on its neighbours: a CPU may round a sum over the same numbers and more zeros differently."""


@dataclass(frozen=True, eq=False)
class Batch(Movable):
    """Padded pairs, ready for a model.

    The decoder reads `tgt_in` and must say `tgt_out`: at each position, having seen <s> and the tokens before it, the
    next one. One mask serves both, as they are equally long. Masks are True at a real token, </s> included. The token
    counts are plain numbers, so that asking for them never waits for a GPU.

    >>> batch = collate([([7, 8, 9], [4, 5]), ([6], [4, 5, 6])])
    >>> batch.src                          # ends with </s> = 3, padded with <pad> = 0
    tensor([[7, 8, 9, 3],
            [6, 3, 0, 0]])
    >>> batch.src_mask.int()
    tensor([[1, 1, 1, 1],
            [1, 1, 0, 0]], dtype=torch.int32)
    >>> batch.tgt_in                       # begins with <s> = 2
    tensor([[2, 4, 5, 0],
            [2, 4, 5, 6]])
    >>> batch.tgt_out                      # the token after each of these
    tensor([[4, 5, 3, 0],
            [4, 5, 6, 3]])
    >>> batch.tgt_mask.int()
    tensor([[1, 1, 1, 0],
            [1, 1, 1, 1]], dtype=torch.int32)
    >>> batch.num_src_tokens, batch.num_tokens
    (6, 7)
    """

    src: Int[Tensor, "batch src_len"]
    src_mask: Bool[Tensor, "batch src_len"]
    tgt_in: Int[Tensor, "batch tgt_len"]
    tgt_out: Int[Tensor, "batch tgt_len"]
    tgt_mask: Bool[Tensor, "batch tgt_len"]
    rows: np.ndarray[Any, np.dtype[Any]]
    """The number of each pair in its corpus."""
    num_tokens: int
    """Real target tokens, </s> included: what a loss is divided by."""
    num_src_tokens: int
    """Real source tokens, </s> included."""
    alignment: Float[Tensor, "batch tgt_len src_len"] | None = None  #: Links of `training/guided_alignment.py`.
    weights: Float[Tensor, " batch"] | None = None  #: The multiplier of each pair's loss; None: 1.

    def __len__(self) -> int:
        return len(self.src)


def collate(pairs: Sequence[tuple[Ids, Ids]], rows: Ids | None = None) -> Batch:
    """Pad and shift pairs of (source ids, target ids), given without specials; `rows` says where they come from."""
    src, src_mask = collate_src([src for src, _ in pairs])
    flat, real = _layout([tgt for _, tgt in pairs])
    tgt_out, tgt_mask = _end(flat, real)
    return Batch(
        src=src,
        src_mask=src_mask,
        tgt_in=torch.from_numpy(_begin(flat, real)),
        tgt_out=torch.from_numpy(tgt_out),
        tgt_mask=torch.from_numpy(tgt_mask),
        rows=np.arange(len(pairs)) if rows is None else np.asarray(rows),
        num_tokens=int(tgt_mask.sum()),
        num_src_tokens=int(src_mask.sum()),
    )


def collate_src(
    sentences: Sequence[Ids], multiple: int = 1, longest: int | None = None
) -> tuple[Int[Tensor, "batch src_len"], Bool[Tensor, "batch src_len"]]:
    """(src, src_mask) of source sentences alone: each ends with </s>, then padding up to a `multiple` of positions.

    But to no more than `longest` tokens and their </s>, where that is given: a model may have no further positions.
    """
    src, mask = (torch.from_numpy(values) for values in _end(*_layout(sentences)))
    extra = -src.size(1) % multiple
    if longest is not None:
        extra = max(0, min(extra, longest + 1 - src.size(1)))
    return F.pad(src, (0, extra), value=PAD_ID), F.pad(mask, (0, extra), value=False)


def _layout(sentences: Sequence[Ids]) -> tuple[np.ndarray, np.ndarray]:
    """All ids in one row, and the (batch, longest) places that they take."""
    assert len(sentences), "a batch has at least one sentence"
    lengths = np.array([len(ids) for ids in sentences])
    flat = np.concatenate(sentences, dtype=np.int64, casting="unsafe")  # "unsafe" lets an empty list be integers
    return flat, np.arange(lengths.max()) < lengths[:, None]


def _begin(flat: np.ndarray, real: np.ndarray) -> np.ndarray:
    """Padded ids that begin with <s>: one column wider than `real`."""
    ids = np.full((real.shape[0], real.shape[1] + 1), PAD_ID, dtype=np.int64)
    ids[:, 0] = BOS_ID
    ids[:, 1:][real] = flat
    return ids


def _end(flat: np.ndarray, real: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Padded ids that end with </s>, and their mask: one column wider than `real`."""
    size, longest = real.shape
    ids = np.full((size, longest + 1), PAD_ID, dtype=np.int64)
    ids[:, :-1][real] = flat
    ids[np.arange(size), real.sum(axis=1)] = EOS_ID
    mask = np.ones((size, longest + 1), dtype=np.bool_)
    mask[:, 1:] = real  # the </s> makes each sentence one longer
    return ids, mask
