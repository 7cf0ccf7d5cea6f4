import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.errors import raises_error
from tests.steps import steps_of

from dragoman.data.batching import BatchPlan
from dragoman.data.eval_batches import eval_batches
from dragoman.errors import Error


def lengths(n, seed=0):
    rng = np.random.default_rng(seed)
    src = np.clip(np.exp(rng.normal(2.5, 0.5, n)), 1, 256).astype(np.int32)
    tgt = np.clip(src * np.exp(rng.normal(0, 0.25, n)), 1, 256).astype(np.int32)
    return src, tgt


def epoch_of(plan, epoch):
    return [plan.step(epoch, step) for step in range(plan.steps_per_epoch)]


@given(
    pairs=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=60),
    batch_tokens=st.integers(31, 200),
    micro_batches=st.integers(1, 4),
    seed=st.integers(0, 2**63),
    epoch=st.integers(0, 1000),
)
def test_each_row_once_and_never_over_the_budget(pairs, batch_tokens, micro_batches, seed, epoch):
    src, tgt = np.array(pairs).T
    plan = BatchPlan(src, tgt, batch_tokens=batch_tokens, micro_batches=micro_batches, seed=seed)
    steps = epoch_of(plan, epoch)
    batches = [rows for step in steps for rows in step]
    assert sorted(np.concatenate(batches)) == list(range(len(pairs)))
    for rows in batches:
        assert len(rows) * max(src[rows].max() + 1, tgt[rows].max() + 1) <= batch_tokens
    assert [len(step) for step in steps[:-1]] == [micro_batches] * (len(steps) - 1)
    assert 1 <= len(steps[-1]) <= micro_batches
    assert plan.num_batches == len(batches)


@given(
    pairs=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=60),
    batch_sentences=st.integers(1, 9),
)
def test_a_batch_has_no_more_sentences_than_it_may(pairs, batch_sentences):
    src, tgt = np.array(pairs).T
    plan = BatchPlan(src, tgt, batch_tokens=10_000).with_sentences(batch_sentences)
    batches = [rows for step in epoch_of(plan, 0) for rows in step]
    assert sorted(np.concatenate(batches)) == list(range(len(pairs)))
    assert sorted(map(len, batches))[1:] == [batch_sentences] * (len(batches) - 1)
    assert len(plan.worst_case_batch(10_000)) <= batch_sentences


def test_the_plan_is_a_pure_function_of_seed_epoch_and_step():
    src, tgt = lengths(2000)
    one, other = (BatchPlan(src, tgt, batch_tokens=512, micro_batches=2, seed=5) for _ in range(2))
    epoch_of(other, 0)  # what was asked before must not matter
    for epoch, step in [(3, 7), (0, 0), (3, 7), (1, 2)]:
        for a, b in zip(one.step(epoch, step), other.step(epoch, step), strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_plan_stays_what_it_is():
    """A resumed run on a newer version must meet the same batches: these numbers may never change."""
    src, tgt = np.array([5, 5, 5, 5, 3, 3, 3, 9, 9, 2]), np.array([5, 5, 5, 5, 4, 4, 4, 8, 8, 2])
    plan = BatchPlan(src, tgt, batch_tokens=20, seed=7)
    assert [step[0].tolist() for step in epoch_of(plan, 2)] == [[7, 8], [0, 1, 2], [4, 9], [3, 6, 5]]


def test_epochs_and_seeds_differ():
    src, tgt = lengths(2000)

    def first(seed, epoch):
        return [rows.tolist() for [rows] in epoch_of(BatchPlan(src, tgt, batch_tokens=512, seed=seed), epoch)]

    plans = [first(1, 0), first(1, 1), first(2, 0), first(2, 1)]
    assert all(a != b for i, a in enumerate(plans) for b in plans[:i])
    assert len({tuple(sorted(rows)) for plan in plans for rows in plan}) > len(plans[0])  # other neighbours as well


def test_the_micro_batches_of_a_step_do_not_depend_on_how_many_there_are():
    src, tgt = lengths(1000)
    single = BatchPlan(src, tgt, batch_tokens=512, seed=1)
    by_four = BatchPlan(src, tgt, batch_tokens=512, micro_batches=4, seed=1)
    flat = [rows.tolist() for step in epoch_of(by_four, 1) for rows in step]
    assert flat == [rows.tolist() for [rows] in epoch_of(single, 1)]
    assert by_four.steps_per_epoch == -(-single.steps_per_epoch // 4)


def test_without_shuffle_every_epoch_is_the_same():
    plan = BatchPlan(*lengths(500), batch_tokens=512, seed=1, shuffle=False)
    for a, b in zip(epoch_of(plan, 0), epoch_of(plan, 4), strict=True):
        np.testing.assert_array_equal(a[0], b[0])


def test_fill_counts_real_positions_and_is_high():
    src, tgt = lengths(29_000)
    plan = BatchPlan(src, tgt, batch_tokens=2048, seed=1)
    assert plan.fill > 0.94
    for epoch in (0, 3):
        batches = [rows for [rows] in epoch_of(plan, epoch)]
        padded = sum(len(rows) * (side[rows].max() + 1) for rows in batches for side in (src, tgt))
        assert plan.fill == pytest.approx((src.sum() + tgt.sum() + 2 * len(src)) / padded)


def test_a_plan_takes_no_step_for_a_row():
    def steps(rows: int) -> int:
        src, tgt = lengths(rows)
        return steps_of(lambda: BatchPlan(src, tgt, batch_tokens=2048, seed=1).step(0, 0))

    assert steps(100_000) < steps(1000) + 100_000 / 4


def test_a_row_longer_than_the_budget_is_named():
    with raises_error(Error.TOO_LONG):
        BatchPlan([3, 3], [3, 20], batch_tokens=20, seed=1)
    with raises_error(Error.TOO_LONG):
        BatchPlan([3, 3], [3, 20], batch_tokens=20, seed=1, lines=np.array([2, 1007]))
    assert BatchPlan([3, 3], [3, 20], batch_tokens=21, seed=1).num_batches == 2


def test_no_rows_and_no_such_step():
    with raises_error(Error.EMPTY):
        BatchPlan([], [], batch_tokens=10, seed=1)
    plan = BatchPlan([1], [1], batch_tokens=10, seed=1)
    for step in (-1, 1):
        with pytest.raises(IndexError):
            plan.step(0, step)


def test_rows_cannot_be_changed_by_mistake():
    rows = BatchPlan([1, 2], [1, 2], batch_tokens=10, seed=1).step(0, 0)[0]
    with pytest.raises(ValueError, match="read-only"):
        rows[0] = 1


@given(st.lists(st.integers(0, 40), max_size=50), st.integers(1, 100))
def test_eval_batches(lengths, batch_tokens):
    batches = [rows.tolist() for rows in eval_batches(lengths, batch_tokens)]
    assert sorted(row for rows in batches for row in rows) == list(range(len(lengths)))
    in_order = [lengths[row] for rows in batches for row in rows]
    assert in_order == sorted(lengths, reverse=True)
    for rows in batches:
        assert len(rows) == 1 or len(rows) * (max(lengths[row] for row in rows) + 1) <= batch_tokens
