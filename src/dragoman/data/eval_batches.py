"""Batches of row numbers where nothing is learnt: for validation, and for translation with equal bits in any batch."""

from collections.abc import Iterator

import numpy as np

from dragoman.data.row_order import IntArray

BATCH_TOKENS = 2048
"""Source positions of a batch in decoding, pads included (times beam_size rows in the decoder)."""


def eval_batches(lengths: IntArray | list[int], batch_tokens: int) -> Iterator[IntArray]:
    """Batches of row numbers for inference, from long to short, by source lengths alone.

    A row that is longer than the budget gets a batch of its own: no row is left out.

    >>> [rows.tolist() for rows in eval_batches([2, 30, 3, 2], batch_tokens=8)]
    [[1], [2, 0], [3]]
    """
    widths = np.asarray(lengths, dtype=np.int64) + 1
    rows = np.argsort(-widths, kind="stable")
    start = 0
    while start < len(rows):
        stop = start + max(1, batch_tokens // int(widths[rows[start]]))
        yield rows[start:stop]
        start = stop


def even_batches(lengths: IntArray | list[int], batch_tokens: int, multiple: int) -> Iterator[IntArray]:
    """As `eval_batches`, but all rows of a batch are padded to one width, their own up to a `multiple`.

    So what a row is padded to does not depend on its neighbours, nor does anything that is computed of it. The
    price: where few rows are of about the same length, batches are small.

    >>> [rows.tolist() for rows in even_batches([3, 20, 5, 7, 1], batch_tokens=24, multiple=8)]
    [[1], [0, 2, 3], [4]]
    """
    widths = -(-(np.asarray(lengths, dtype=np.int64) + 1) // multiple) * multiple
    for width in np.unique(widths)[::-1]:
        rows = np.flatnonzero(widths == width)
        size = max(1, batch_tokens // int(width))
        yield from (rows[start : start + size] for start in range(0, len(rows), size))
