"""The rows of a corpus ordered by their lengths, and that order anew for each epoch: in bounded memory.

A hundred million rows in memory, sorted by NumPy, take 6 GB in each process. Here they are sorted block by block into
an array that may be a file, which all processes of a machine map. Each process holds a table of the lengths that there
are, some ten thousand. The results are the same as from one stable sort of all rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dragoman.errors import Error, writing
from dragoman.runs import atomic_io
from dragoman.runs.lock import held

IntArray = np.ndarray[Any, np.dtype[Any]]

BLOCK_ROWS = 2**20
"""Rows that are held at a time."""
MIN_ROWS_ON_DISK = 2**22
"""A corpus of more rows has its orders on the disk, where there is a folder for them."""


class Lengths(Protocol):
    """A length for each row: an array, or something that makes slices of one (`store.Lengths`)."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice, /) -> IntArray: ...


@dataclass(frozen=True)
class Groups:
    """The pairs of (source, target) length that there are, in the order of the rows, and where each group begins."""

    src: IntArray
    tgt: IntArray
    starts: IntArray
    """Of each group, and the number of rows last."""

    def __len__(self) -> int:
        return len(self.src)

    def of(self, places: IntArray) -> IntArray:
        """The group at each place of the order."""
        return np.searchsorted(self.starts, places, side="right") - 1

    @property
    def widths(self) -> IntArray:
        """The positions that a row of each group takes, </s> included."""
        return np.maximum(self.src, self.tgt) + 1

    def cuts(self, batch_tokens: int, most_rows: int | None = None) -> IntArray:
        """Where batches start and the last one ends, over all rows; a batch is as wide as its first row."""
        widths, total = self.widths, int(self.starts[-1])
        cuts, place = [np.zeros(1, dtype=np.int64)], 0
        for group, end in enumerate(self.starts[1:].tolist()):
            if place >= end:
                continue
            size = max(1, batch_tokens // int(widths[group]))
            size = size if most_rows is None else min(size, most_rows)
            count = -(-(end - place) // size)  # batches that begin in this group
            cuts.append(np.minimum(place + size * np.arange(1, count + 1, dtype=np.int64), total))
            place += count * size
        return np.concatenate(cuts)

    def longest(self, cuts: IntArray) -> tuple[IntArray, IntArray]:
        """The longest source and target of each batch."""
        first, last = self.of(cuts[:-1]), self.of(cuts[1:] - 1)
        bounds = np.stack([first, last + 1], axis=1).ravel()
        # `reduceat` wants its last bound inside.
        src, tgt = (np.maximum.reduceat(np.append(side, 0), bounds)[::2] for side in (self.src, self.tgt))
        return src, tgt

    def fill(self, cuts: IntArray) -> float:
        """The share of the positions of all batches, both sides, that hold real tokens."""
        real, padded = 0, 0
        counts, sizes = np.diff(self.starts), np.diff(cuts)
        for lengths, longest in zip((self.src, self.tgt), self.longest(cuts), strict=True):
            real += int(((lengths + 1) * counts).sum())
            padded += int(((longest + 1) * sizes).sum())
        return real / padded


def sorted_by_length(src: Lengths, tgt: Lengths, path: Path | None) -> tuple[IntArray, Groups]:
    """(row numbers, int32, widest first; their groups); in the file `path`, if there is one.

    The width is the longer side. Within a width rows go from (long target, short source) to the opposite; every other
    width runs backwards, so that neighbours resemble each other across a change of width as well. Rows of equal
    lengths keep their order.
    """
    counts: dict[int, int] = {}
    for _, keys in _keys(src, tgt):
        for key, count in zip(*np.unique(keys, return_counts=True), strict=True):
            counts[int(key)] = counts.get(int(key), 0) + int(count)
    present = np.array(sorted(counts), dtype=np.int64)
    ends = np.cumsum([counts[int(key)] for key in present])
    starts = np.concatenate([[0], ends]).astype(np.int64)
    places = starts[:-1].copy()

    def fill(rows: IntArray) -> None:
        for begin, keys in _keys(src, tgt):
            order = np.argsort(keys, kind="stable")
            numbers = np.searchsorted(present, keys[order])
            unique, first, count = np.unique(numbers, return_index=True, return_counts=True)
            within = np.arange(len(order)) - np.repeat(first, count)
            rows[places[numbers] + within] = begin + order
            places[unique] += count

    rows = load_or_fill(path, len(src), fill)
    at_starts = rows[starts[:-1]]
    lengths = [np.array([side[int(row) : int(row) + 1][0] for row in at_starts], dtype=np.int64) for side in (src, tgt)]
    return rows, Groups(lengths[0], lengths[1], starts)


def shuffled(rows: IntArray, groups: Groups, words: Callable[[int], IntArray], path: Path | None) -> IntArray:
    """The rows, in a random order where their lengths are equal: by `words`, 64 random bits for each row. The upper
    half of the bits counts. In the file `path`, if there is one."""

    def fill(out: IntArray) -> None:
        for first, last in _runs(groups):
            begin, end = int(groups.starts[first]), int(groups.starts[last])
            keys = words(end - begin) >> np.uint64(32)
            numbers = np.repeat(np.arange(last - first), np.diff(groups.starts[first : last + 1]))
            keys |= numbers.astype(np.uint64) << np.uint64(32)
            out[begin:end] = rows[begin:end][np.argsort(keys, kind="stable")]

    return load_or_fill(path, len(rows), fill)


def refuse_too_long(groups: Groups, rows: IntArray, batch_tokens: int, lines: IntArray | None) -> None:
    """Raises DragomanError, naming the row, where one does not fit into a batch by itself."""
    widths = groups.widths
    group = int(widths.argmax())
    if (needed := int(widths[group])) > batch_tokens:
        row = int(rows[groups.starts[:-1][widths == needed]].min())
        group = int(groups.of(np.flatnonzero(rows == row))[0])
        shorter = f", or have no row of more than {batch_tokens - 1} (of text, that is corpus.max_tokens)"
        name = f"row {row}" if lines is None else f"line {lines[row]:,} of the corpus"
        raise Error.TOO_LONG(
            f"{name} is too long for a batch: {groups.src[group]} source and {groups.tgt[group]} target tokens need "
            f"{needed} positions with </s>, and batch_tokens is {batch_tokens}",
            f"raise batch_tokens to {needed} or more{shorter if batch_tokens > 1 else ''}",
        )


def load_or_fill(path: Path | None, count: int, fill: Callable[[IntArray], None]) -> IntArray:
    """So many int32 that `fill` has written: in memory, or in a file that is mapped and made only if it is not there.

    Of several processes that want the file, one makes it and the others wait.
    """
    if path is None:
        numbers = np.empty(count, dtype=np.int32)
        fill(numbers)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        with held(path.parent / "lock"):
            if not path.exists() or path.stat().st_size != 4 * count:
                with writing(path), atomic_io.replaced(path) as partial:
                    whole = np.memmap(partial, dtype=np.int32, mode="w+", shape=(count,))
                    fill(whole)
                    whole.flush()
                    del whole  # Windows renames no file that is mapped
        numbers = np.asarray(np.memmap(path, dtype=np.int32, mode="r"))
    numbers.flags.writeable = False
    return numbers


def _keys(src: Lengths, tgt: Lengths) -> Iterator[tuple[int, IntArray]]:
    """Block by block: (its first row, what its rows are sorted by)."""
    for begin in range(0, len(src), BLOCK_ROWS):
        one, other = (side[begin : begin + BLOCK_ROWS].astype(np.int64) for side in (src, tgt))
        width = np.maximum(one, other) + 1
        lean = one - other
        np.negative(lean, where=width % 2 == 0, out=lean)
        yield begin, (-width << 32) + lean


def _runs(groups: Groups) -> Iterator[tuple[int, int]]:
    """Neighbouring groups, [first, last), of a block of rows together or a little more."""
    first = 0
    while first < len(groups):
        last = int(np.searchsorted(groups.starts, groups.starts[first] + BLOCK_ROWS))
        last = min(max(last, first + 1), len(groups))
        yield first, last
        first = last
