"""The orders of rows in blocks and on the disk: those of one sort of all rows in memory."""

import multiprocessing
from pathlib import Path

import numpy as np
import pytest

from dragoman.data import batching, eval_batches, row_order
from dragoman.data.batching import BatchPlan
from dragoman.data.random import random_uint64
from dragoman.data.store import Lengths

BATCH_TOKENS = 300


def lengths(count: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    src = np.clip(np.exp(draw.normal(2.3, 0.7, count)), 1, 200).astype(np.int32)
    return src, np.clip(src + draw.integers(-9, 10, count), 1, 210).astype(np.int32)


def expected(src: np.ndarray, tgt: np.ndarray, epoch: int, cuts: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(sorted rows, shuffled rows, order of the batches), by sorts of everything at once."""
    width = np.maximum(src, tgt) + 1
    lean = np.where(width % 2 == 0, tgt - src, src - tgt)
    rows = np.lexsort((lean, -width))
    one, other = src[rows], tgt[rows]
    alike = np.concatenate([[0], np.cumsum((one[1:] != one[:-1]) | (other[1:] != other[:-1]))])
    words = random_uint64(1, epoch)
    order = np.argsort(words(cuts), kind="stable")
    ties = words(len(rows)) >> np.uint64(32) | alike.astype(np.uint64) << np.uint64(32)
    return rows, rows[np.argsort(ties, kind="stable")], order


@pytest.mark.parametrize("block", [7, 1000, 10**6])
@pytest.mark.parametrize("on_disk", [False, True])
def test_blocks_give_the_order_of_one_sort(
    block: int, on_disk: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_order, "BLOCK_ROWS", block)
    monkeypatch.setattr(batching, "MIN_ROWS_ON_DISK", 0 if on_disk else 10**9)
    src, tgt = lengths(3000)
    for name, side in (("src", src), ("tgt", tgt)):
        np.concatenate([[0], np.cumsum(side)]).astype(np.int64).tofile(tmp_path / name)
    sides = Lengths(tmp_path / "src"), Lengths(tmp_path / "tgt")
    plan = BatchPlan(*sides, batch_tokens=BATCH_TOKENS, seed=1, folder=tmp_path / "orders")
    rows, mixed, order = expected(src, tgt, 5, plan.num_batches)
    assert (plan._rows == rows).all()
    found, batches = plan._plan(5)
    assert (found == mixed).all()
    assert (batches == order).all()
    assert (tmp_path / "orders" / "sorted.bin").exists() == on_disk
    widths = np.maximum(src, tgt)[rows] + 1
    assert np.diff(plan._cuts).tolist() == [len(batch) for batch in eval_batches.eval_batches(widths - 1, BATCH_TOKENS)]
    real, padded = 0, 0
    for begin, end in zip(plan._cuts[:-1], plan._cuts[1:], strict=True):
        for side in (src[rows[begin:end]], tgt[rows[begin:end]]):
            real, padded = real + int((side + 1).sum()), padded + int(side.max() + 1) * len(side)
    assert plan.fill == real / padded
    worst = max(
        (
            (end - begin) * (src[rows[begin:end]].max() + tgt[rows[begin:end]].max() + 2)
            for begin, end in zip(plan._cuts[:-1], plan._cuts[1:], strict=True)
        )
    )
    batch = plan.worst_case_batch(BATCH_TOKENS)
    assert len(batch) * (src[batch].max() + tgt[batch].max() + 2) == worst


def test_an_epoch_that_is_over_is_dropped_and_one_that_is_there_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "MIN_ROWS_ON_DISK", 0)
    src, tgt = lengths(500)

    def plan() -> BatchPlan:
        return BatchPlan(src, tgt, batch_tokens=BATCH_TOKENS, seed=1, folder=tmp_path)

    first = plan()
    steps = [np.concatenate(first.step(epoch, 3)).tolist() for epoch in range(4)]
    assert sorted(int(path.name.split("-")[1]) for path in tmp_path.glob("epoch-*")) == [2, 3]
    made = (tmp_path / next(tmp_path.glob("epoch-3*")).name).stat().st_mtime_ns
    assert np.concatenate(plan().step(3, 3)).tolist() == steps[3]
    assert next(tmp_path.glob("epoch-3*")).stat().st_mtime_ns == made
    in_memory = BatchPlan(src, tgt, batch_tokens=BATCH_TOKENS, seed=1)
    assert [np.concatenate(in_memory.step(epoch, 3)).tolist() for epoch in range(4)] == steps


def make(folder: Path) -> list[int]:
    batching.MIN_ROWS_ON_DISK = 0
    plan = BatchPlan(*lengths(20000), batch_tokens=BATCH_TOKENS, seed=1, folder=folder)
    return [int(row) for row in plan.step(0, 0)[0]]


def test_several_processes_want_it_at_once(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        found = pool.map(make, [tmp_path] * 6, chunksize=1)
    assert len({tuple(rows) for rows in found}) == 1
    assert not list(tmp_path.glob("*.tmp"))
