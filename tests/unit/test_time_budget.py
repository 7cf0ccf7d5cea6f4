"""The time budget of a training is kept whatever the machine does; what the clock decided is done again."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.errors import raises_error

from dragoman.config import parse
from dragoman.errors import Error
from dragoman.training.config import TrainingConfig
from dragoman.training.time_budget import TIME_BUDGET_FILE, Deadline, ScheduleStretch, TimeBudget


class Clock:
    """A clock that work moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def config(**changes: Any) -> TrainingConfig:
    return parse(TrainingConfig, {"max_steps": 100, "validate_every": 10_000, **changes})


def trained(
    run_dir: Path,
    settings: TrainingConfig,
    clock: Clock,
    budget: Deadline | None,
    step_s: Callable[[float], float],
    *,
    begin: int = 0,
    stop: int | None = None,
    validation_s: float = 2.0,
) -> tuple[TimeBudget, list[int], list[float]]:
    """A training whose steps take `step_s` (of the clock): its time budget, validations, places on the schedule."""
    time_budget = TimeBudget(settings, run_dir, budget, clock)
    time_budget.start(begin, 0.0)
    step, validations, places = begin, [], []
    while step < (stop or time_budget.end):
        places.append(time_budget.schedule_step(step + 1))
        clock.now += step_s(clock.now - 1000.0)
        step += 1
        time_budget.reestimate(step)
        if time_budget.should_validate(step):
            validations.append(step)
            clock.now += validation_s
            time_budget.validated(validation_s)
    return time_budget, validations, places


def steady(seconds: float) -> float:
    return 0.1


def neighbour(seconds: float) -> float:
    """A neighbour takes two thirds of the speed for a while, goes, and comes back near the end."""
    return 0.3 if 40 < seconds < 90 or 200 < seconds < 235 else 0.1


def slower(seconds: float) -> float:
    return 0.1 + 0.3 * (seconds > 60)


@pytest.mark.parametrize("step_s", [steady, neighbour, slower])
@pytest.mark.parametrize("estimate", [0.03, 0.1, 0.4])
def test_a_budget_is_kept_within_two_percent(tmp_path: Path, step_s: Callable[[float], float], estimate: float) -> None:
    clock = Clock()
    budget = Deadline(clock.now + 240, estimate, 1.0, after=lambda slower: 5.0 * slower)
    time_budget, validations, places = trained(tmp_path, config(validate_seconds=30.0), clock, budget, step_s)
    assert clock.now + 10.0 - 1000.0 == pytest.approx(240, rel=0.02)  # the tests take twice as long, as validations do
    assert places[-1] == 100
    assert all(0 < later - earlier < 3 for earlier, later in pairwise(places))
    assert validations[-1] == time_budget.end
    assert len(validations) >= 4


def test_without_a_budget_a_step_is_a_step_and_nothing_is_written(tmp_path: Path) -> None:
    _, validations, places = trained(tmp_path, config(validate_every=40), Clock(), None, steady)
    assert places == [*range(1, 101)]
    assert validations == [40, 80, 100]
    assert not (tmp_path / TIME_BUDGET_FILE).exists()


def test_validations_by_the_clock_come_early_and_then_more_rarely(tmp_path: Path) -> None:
    settings = config(max_steps=40_000, validate_seconds=60.0, validate_every=39_000)
    _, validations, _ = trained(tmp_path, settings, Clock(), None, steady)
    assert [round(step / 10) for step in validations[:4]] == [60, 120, 180, 240]
    assert validations[-2:] == [39_000, 40_000]
    assert len(validations) < 25


def test_validations_that_take_long_come_rarely(tmp_path: Path) -> None:
    _, validations, _ = trained(tmp_path, config(max_steps=6000, validate_seconds=20.0), Clock(), None, steady,
                                validation_s=15.0)  # fmt: skip
    assert validations == [200, 1701, 3202, 4703, 6000]


def test_a_killed_training_takes_the_same_steps_again(tmp_path: Path) -> None:
    clock = Clock()
    settings = config(validate_seconds=30.0)
    budget = Deadline(clock.now + 240, 0.1, 1.0)
    _, validations, places = trained(tmp_path, settings, clock, budget, neighbour, stop=1000)
    decided = json.loads((tmp_path / TIME_BUDGET_FILE).read_text())
    last = max(decided["marks"][-1]["step"], decided["validations"][-1])
    # It goes on from step 300, on a machine of another speed, and without a budget at first.
    time_budget, again, places_again = trained(
        tmp_path, settings, Clock(), None, lambda seconds: 0.01, begin=300, stop=last
    )
    assert again == [step for step in validations if 300 < step <= last]
    assert places_again == places[300:last]
    assert json.loads((tmp_path / TIME_BUDGET_FILE).read_text()) == decided
    assert time_budget.end == decided["marks"][-1]["end"]
    # With the time that is left it decides anew, about what nobody has decided.
    clock.now = 1000.0 + 150
    budget = Deadline(clock.now + 90, 0.1, 1.0)
    begun = clock.now
    time_budget, _, more = trained(tmp_path, settings, clock, budget, lambda seconds: 0.05, begin=300)
    assert more[: last - 300] == places[300:last]
    assert more[-1] == 100
    assert clock.now - begun == pytest.approx(90, rel=0.05)


def test_another_length_goes_on_from_where_the_schedule_stands(tmp_path: Path) -> None:
    (tmp_path / TIME_BUDGET_FILE).write_text(
        json.dumps({"marks": [vars(ScheduleStretch(0, 0.0, 50, 100))], "validations": []})
    )
    assert TimeBudget(config(), tmp_path).end == 50
    longer = TimeBudget(config(max_steps=150), tmp_path)
    assert longer.end == 100
    longer.start(20, 0.0)  # which stands at step 40 of its schedule
    assert longer.end == 130
    assert [longer.schedule_step(step) for step in (20, 21, 130)] == [40, 41, 150]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / TIME_BUDGET_FILE).write_text('{"marks": [{}], "validations": []}')
    with raises_error(Error.DAMAGED, "pace.json"):
        TimeBudget(config(), tmp_path)


def test_checkpoints_by_the_clock(tmp_path: Path) -> None:
    clock = Clock()
    time_budget = TimeBudget(config(), tmp_path, clock=clock)
    time_budget.start(0, 0.0)
    saved = []
    while clock.now < 1000 + 7200:
        clock.now += 1.0
        if time_budget.should_save():
            saved.append(clock.now - 1000)
            time_budget.saved(0.5)
    assert saved[:3] == [30, 60, 90]
    assert all(later - earlier <= max(31, 0.05 * later + 1) for earlier, later in pairwise(saved))
