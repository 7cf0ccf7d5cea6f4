"""Batches made a step prefetcher are the same ones, errors come where their step is asked for, and no thread stays."""

import threading
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from dragoman.data.batch import Batch, collate
from dragoman.data.batching import BatchPlan
from dragoman.data.inputs import LabelledBatch
from dragoman.data.movable import Movable
from dragoman.data.windows import WindowPlan, Windows, cut
from dragoman.training.prefetch import Prefetcher


def threads() -> int:
    return sum(thread.name.startswith("batches") for thread in threading.enumerate())


def test_any_order_of_steps_gives_what_they_are_made_of() -> None:
    prefetcher = Prefetcher(lambda step: [step, threading.current_thread().name])
    for step in (1, 2, 3, 3, 1, 2, 40, 41, 41):
        found, thread = prefetcher.of(step)
        assert found == step
        assert thread != threading.current_thread().name
    prefetcher.stop()
    assert threads() == 0
    assert prefetcher.of(42)[0] == 42
    prefetcher.stop()
    assert threads() == 0


def test_never_more_than_one_step_is_made_ahead() -> None:
    made: list[int] = []
    prefetcher = Prefetcher(lambda step: made.append(step) or [step])  # type: ignore[func-returns-value]
    for step in (1, 2, 3):
        prefetcher.of(step)
        assert set(made) <= set(range(1, step + 2))
    prefetcher.stop()
    assert made == [1, 2, 3, 4]


def test_an_error_is_raised_where_its_step_is_asked_for_and_nowhere_else() -> None:
    def make(step: int) -> list[int]:
        if step == 3:
            raise OSError("the disk is gone")
        return [step]

    prefetcher = Prefetcher(make)
    assert [prefetcher.of(step) for step in (1, 2)] == [[1], [2]]
    with pytest.raises(OSError, match="the disk is gone"):
        prefetcher.of(3)
    assert prefetcher.of(4) == [4]
    assert prefetcher.of(2) == [2]
    prefetcher.stop()  # what was under way for step 3 is nobody's concern
    assert threads() == 0


def test_epochs_asked_for_from_two_threads_stay_apart() -> None:
    """A plan keeps one epoch: at its end one thread is in the next while another may still look into the last."""
    lengths = np.random.default_rng(0).integers(1, 9, 300)
    pairs = BatchPlan(lengths, lengths, batch_tokens=64)
    windows = WindowPlan(3000, 10, batch_tokens=64)
    for plan in (pairs, windows):
        expected = {epoch: plan.step(epoch, 3)[0].tolist() for epoch in range(2)}
        wrong: list[Any] = []

        def ask(epoch: int, plan: Any = plan, expected: Any = expected, wrong: list[Any] = wrong) -> None:
            for _ in range(300):
                if plan.step(epoch, 3)[0].tolist() != expected[epoch]:
                    wrong.append(epoch)

        asking = [threading.Thread(target=ask, args=(epoch,)) for epoch in range(2)]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
        assert not wrong


BATCHES = {
    "translation": collate([([7, 8, 9], [4, 5]), ([6], [4, 5, 6])]),
    "language modelling": cut(np.arange(10, 20), np.array([0, 4]), block_len=3),
    "classification": LabelledBatch(
        (torch.ones(2, 3), torch.ones(2, 3, dtype=torch.bool)), torch.tensor([0, 1]), 6, np.arange(2)
    ),
}


def tensors(batch: Movable) -> list[Tensor]:
    values = [part for value in vars(batch).values() for part in (value if isinstance(value, tuple) else (value,))]
    return [value for value in values if isinstance(value, Tensor)]


@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
def test_every_kind_of_batch_is_pinned_and_moved_whole(batch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pinned: list[Tensor] = []
    monkeypatch.setattr(Tensor, "pin_memory", lambda tensor: pinned.append(tensor) or tensor.clone())
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    prefetcher = Prefetcher(lambda _: [(0, [batch])], torch.device("cuda", 0))
    [(_, [found])] = prefetcher.of(1)
    prefetcher.stop()
    assert type(found) is type(batch)
    assert len(tensors(batch)) == {Batch: 5, Windows: 3, LabelledBatch: 3}[type(batch)]
    assert [tensor.data_ptr() for tensor in pinned[: len(tensors(batch))]] == [t.data_ptr() for t in tensors(batch)]
    assert all(map(torch.equal, tensors(found), tensors(batch)))
    away = batch.to("meta")
    assert type(away) is type(batch)
    assert all(tensor.device.type == "meta" for tensor in tensors(away))
    for name, value in vars(batch).items():
        if isinstance(value, int):
            assert getattr(away, name) == value
