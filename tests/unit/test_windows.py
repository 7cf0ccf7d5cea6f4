"""Windows of a long text: trained on in any order, measured on so that every token counts once."""

import doctest

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.errors import raises_error

from dragoman.data import windows
from dragoman.data.windows import WindowPlan, covering, cut
from dragoman.errors import Error


def epoch_of(plan: WindowPlan, epoch: int) -> list[list[np.ndarray]]:
    return [plan.step(epoch, step) for step in range(plan.steps_per_epoch)]


def test_examples() -> None:
    assert doctest.testmod(windows).failed == 0


# -- training ------------------------------------------------------------------------------------------------------


@given(
    block_len=st.integers(1, 9),
    extra=st.integers(0, 300),
    windows_per_batch=st.integers(1, 7),
    micro_batches=st.integers(1, 3),
    seed=st.integers(0, 2**63),
    epoch=st.integers(0, 1000),
)
def test_an_epoch_predicts_each_token_once_but_at_the_ends(
    block_len: int, extra: int, windows_per_batch: int, micro_batches: int, seed: int, epoch: int
) -> None:
    num_tokens, batch_tokens = 2 * block_len + extra, block_len * windows_per_batch + block_len // 2
    plan = WindowPlan(num_tokens, block_len, batch_tokens=batch_tokens, micro_batches=micro_batches, seed=seed)
    steps = epoch_of(plan, epoch)
    batches = [starts for step in steps for starts in step]
    predicted = sorted(start + 1 + i for starts in batches for start in starts.tolist() for i in range(block_len))
    assert predicted == list(range(predicted[0], predicted[-1] + 1))
    assert 1 <= predicted[0] <= block_len
    assert num_tokens - 2 * block_len < predicted[-1] < num_tokens
    sizes = [len(starts) for starts in batches]
    assert max(sizes) * block_len <= batch_tokens
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= 1
    assert all(1 <= len(step) <= micro_batches for step in steps)


def test_the_plan_is_a_pure_function_of_seed_epoch_and_step() -> None:
    one, other = (WindowPlan(1000, 8, batch_tokens=64, micro_batches=2, seed=5) for _ in range(2))
    epoch_of(other, 0)  # what was asked before must not matter
    for epoch, step in [(3, 7), (0, 0), (3, 7), (1, 2)]:
        for a, b in zip(one.step(epoch, step), other.step(epoch, step), strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_plan_stays_what_it_is() -> None:
    """A resumed run on a newer version must meet the same batches: these numbers may never change."""
    plan = WindowPlan(40, 5, batch_tokens=15, seed=7)
    assert [step[0].tolist() for step in epoch_of(plan, 2)] == [[25, 30], [15, 0, 20], [10, 5]]


def test_epochs_and_seeds_differ_in_order_and_in_where_they_cut() -> None:
    plans = [(WindowPlan(5000, 16, batch_tokens=64, seed=seed), epoch) for seed in (1, 2) for epoch in range(8)]
    orders = [np.concatenate([starts for step in epoch_of(plan, epoch) for starts in step]) for plan, epoch in plans]
    assert len({order.tobytes() for order in orders}) == 16
    assert len({int(order.min()) for order in orders}) > 4


@pytest.mark.parametrize(
    ("num_tokens", "block_len", "batch_tokens", "error"),
    [(15, 8, 64, Error.TOO_FEW), (100, 8, 7, Error.TOO_LONG)],
)
def test_what_does_not_fit_is_refused(num_tokens: int, block_len: int, batch_tokens: int, error: Error) -> None:
    with raises_error(error):
        WindowPlan(num_tokens, block_len, batch_tokens=batch_tokens)


# -- measuring -----------------------------------------------------------------------------------------------------


@given(num_predictions=st.integers(1, 200), block_len=st.integers(1, 20), data=st.data())
def test_every_prediction_counts_once_and_has_its_context(
    num_predictions: int, block_len: int, data: st.DataObject
) -> None:
    min_context = data.draw(st.integers(1, block_len))
    starts, first = covering(num_predictions, block_len, min_context)
    length = min(block_len, num_predictions)
    counted = []
    for start, begin in zip(starts.tolist(), first.tolist(), strict=True):
        assert 0 <= start <= num_predictions - length
        for i in range(begin, length):
            counted.append(start + i)
            assert i + 1 >= min(min_context, start + i + 1)
    assert counted == list(range(num_predictions))


def test_side_by_side_windows_are_as_few_as_can_be() -> None:
    starts, first = covering(64, 16, 1)
    assert starts.tolist() == [0, 16, 32, 48]
    assert not first.any()
    assert len(covering(64, 16, 16)[0]) == 49  # a full window for each prediction


def test_windows_keep_their_counts_and_move() -> None:
    ids = np.arange(50, dtype=np.uint16)
    made = cut(ids, np.array([3, 20]), 4)
    assert made.num_tokens == 8
    assert made.tgt_mask.all()
    assert made.tgt_in.dtype == torch.int64
    assert torch.equal(made.tgt_in + 1, made.tgt_out)
    assert made.to("cpu").num_tokens == 8
