"""Learning rates against closed forms and against PyTorch's schedulers."""

import json
import math
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch.optim import lr_scheduler

from dragoman.tasks.announcement import never_falls
from dragoman.training.schedules import (
    ConstantConfig,
    CosineConfig,
    InverseSqrtConfig,
    LinearConfig,
    NoamConfig,
    PlateauConfig,
    PolynomialConfig,
    Schedule,
    TriStageConfig,
)

WITH_WARM_UP = [
    InverseSqrtConfig(lr=0.5, warmup_steps=8),
    LinearConfig(lr=0.5, warmup_steps=8),
    CosineConfig(lr=0.5, warmup_steps=8),
    PolynomialConfig(lr=0.5, warmup_steps=8),
    TriStageConfig(lr=0.5, warmup_steps=8, hold_steps=2),
    ConstantConfig(lr=0.5, warmup_steps=8),
    PlateauConfig(lr=0.5, warmup_steps=8),
]


def rates(schedule: Schedule, first: int, last: int) -> list[float]:
    return [schedule.rate(step) for step in range(first, last + 1)]


def pytorch_rates(make: Any, lr: float, count: int) -> list[float]:
    """`count` rates from the start on of one of PyTorch's schedulers."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)
    scheduler = make(optimizer)
    found = []
    for _ in range(count):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found


def test_noam_is_equation_3_of_vaswani_et_al() -> None:
    schedule = NoamConfig(warmup_steps=4000).build(100_000, 512)
    assert schedule.rate(1) == pytest.approx(512**-0.5 * 4000**-1.5, rel=1e-12)  # 1.7469e-7
    assert schedule.rate(1) == pytest.approx(1.7469e-7, rel=1e-4)
    assert schedule.rate(4000) == pytest.approx(6.9877e-4, rel=1e-4)
    assert schedule.rate(16_000) == pytest.approx(6.9877e-4 / 2, rel=1e-4)


def test_noam_is_scaled_by_its_factor_and_falls_with_the_width() -> None:
    plain = NoamConfig(warmup_steps=10)
    assert NoamConfig(factor=2.0, warmup_steps=10).build(99, 64).rate(7) == 2 * plain.build(99, 64).rate(7)
    assert plain.build(99, 64).rate(7) == pytest.approx(2 * plain.build(99, 256).rate(7))


def test_inverse_sqrt_is_noam_with_its_peak_given() -> None:
    noam = NoamConfig(factor=1.5, warmup_steps=30).build(500, 256)
    twin = InverseSqrtConfig(lr=noam.rate(30), warmup_steps=30).build(500, 256)
    assert rates(twin, 1, 500) == pytest.approx(rates(noam, 1, 500), rel=1e-12)


@pytest.mark.parametrize("settings", WITH_WARM_UP, ids=lambda settings: settings.type)
def test_a_warm_up_rises_in_equal_steps_to_the_peak(settings: Any) -> None:
    schedule = settings.build(40, 512)
    assert rates(schedule, 1, 8) == pytest.approx([0.5 * step / 8 for step in range(1, 9)])
    assert max(rates(schedule, 1, 40)) == schedule.rate(8)


@pytest.mark.parametrize("settings", [LinearConfig, CosineConfig, ConstantConfig, PlateauConfig])
def test_no_warm_up_begins_at_the_top(settings: Any) -> None:
    assert settings(lr=0.5, warmup_steps=0).build(1000, 512).rate(1) == pytest.approx(0.5, rel=2e-3)


def test_linear_is_pytorchs_linear_after_the_warm_up() -> None:
    schedule = LinearConfig(lr=0.8, warmup_steps=5, final=0.1).build(25, 512)
    expected = pytorch_rates(lambda o: lr_scheduler.LinearLR(o, 1.0, 0.1, total_iters=20), 0.8, 21)
    assert rates(schedule, 5, 25) == pytest.approx(expected, rel=1e-9)


def test_cosine_is_pytorchs_cosine_after_the_warm_up() -> None:
    schedule = CosineConfig(lr=0.8, warmup_steps=5, final=0.1).build(25, 512)
    expected = pytorch_rates(lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=20, eta_min=0.08), 0.8, 21)
    assert rates(schedule, 5, 25) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("settings", [LinearConfig, CosineConfig])
@pytest.mark.parametrize("final", [0.0, 0.25, 1.0])
def test_half_way_is_the_mean_of_both_ends_and_the_last_step_has_the_final_rate(settings: Any, final: float) -> None:
    schedule = settings(lr=0.8, warmup_steps=10, final=final).build(30, 512)
    assert schedule.rate(20) == pytest.approx(0.8 * (1 + final) / 2)
    assert schedule.rate(30) == pytest.approx(0.8 * final, abs=1e-15)
    assert schedule.rate(31) == pytest.approx(0.8 * final, abs=1e-15)


def test_polynomial_falls_by_a_power_of_what_is_left() -> None:
    """fairseq's `polynomial_decay`; with power 1 it is `linear`."""
    schedule = PolynomialConfig(lr=0.8, warmup_steps=5, power=2.0, final=0.25).build(25, 512)
    assert schedule.rate(5) == pytest.approx(0.8)
    assert schedule.rate(15) == pytest.approx(0.2 + 0.6 * 0.25)
    assert schedule.rate(25) == schedule.rate(90) == pytest.approx(0.2)
    line, straight = (
        settings.build(25, 512) for settings in (LinearConfig(final=0.1), PolynomialConfig(power=1.0, final=0.1))
    )
    assert [line.rate(step) for step in range(1, 30)] == pytest.approx([straight.rate(step) for step in range(1, 30)])


def test_tri_stage_rises_holds_and_falls() -> None:
    """fairseq's `tri_stage`: an equal factor for each step of the fall."""
    schedule = TriStageConfig(lr=0.8, warmup_steps=4, hold_steps=6, final=0.01).build(20, 512)
    assert [schedule.rate(step) for step in (2, 4, 7, 10)] == pytest.approx([0.4, 0.8, 0.8, 0.8])
    assert schedule.rate(15) == pytest.approx(0.08)
    assert schedule.rate(20) == schedule.rate(50) == pytest.approx(0.008)


@pytest.mark.parametrize("settings", [NoamConfig, InverseSqrtConfig])
def test_a_rate_does_not_fall_below_the_lowest(settings: Any) -> None:
    free, held = (settings(warmup_steps=10, lowest=lowest).build(100, 512) for lowest in (0.0, 6e-4))
    rates = {step: (free.rate(step), held.rate(step)) for step in range(1, 9_000, 7)}
    assert all(low == (rate if step < 10 else max(rate, 6e-4)) for step, (rate, low) in rates.items())
    assert min(rate for rate, _ in rates.values()) < 6e-4


def test_a_plateau_ends_at_the_lowest_rate() -> None:
    schedule = PlateauConfig(lr=1.0, warmup_steps=2, patience=1, lowest=0.3).build(100, 512)
    rates = []
    for step in range(1, 6):
        rates.append(schedule.rate(step))
        schedule.observe(False)
    assert rates == [0.5, 0.5, 0.3, 0.3, 0.3]


def test_constant_stays() -> None:
    assert set(rates(ConstantConfig(lr=0.5).build(20, 512), 1, 40)) == {0.5}


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (LinearConfig(warmup_steps=25_000), ["rising", "warmup_steps are 25,000"]),
        (TriStageConfig(), ["at its peak", "warmup_steps and hold_steps are 2,400"]),
        (TriStageConfig(hold_steps=1199), []),
        (ConstantConfig(), []),
        (InverseSqrtConfig(warmup_steps=1599), []),
    ],
)
def test_a_rate_that_never_falls_is_told(schedule: Any, words: list[str]) -> None:
    """neural_sp#137: a curve "which went straight up until the end of the training"."""
    text = never_falls(schedule, 1600)
    assert bool(text) == bool(words)
    assert all(word in text for word in words)


@pytest.mark.parametrize("settings", [LinearConfig, CosineConfig])
def test_a_warm_up_longer_than_the_training_is_only_a_warm_up(settings: Any) -> None:
    schedule = settings(lr=0.5, warmup_steps=100).build(10, 512)
    assert rates(schedule, 1, 10) == pytest.approx([0.005 * step for step in range(1, 11)])


@pytest.mark.parametrize("settings", WITH_WARM_UP[:-1], ids=lambda settings: settings.type)
def test_all_but_plateau_go_by_the_step_alone(settings: Any) -> None:
    schedule = settings.build(40, 512)
    before = rates(schedule, 1, 40)
    for better in (True, False, False, False):
        schedule.observe(better)
    assert rates(schedule, 1, 40) == before
    assert schedule.state_dict() == {}


SCORES = [1.0, 0.5, 2.0, 2.0, 1.5, 2.5, 2.4, 2.3, 2.2, 2.1, 2.0, 1.9, 3.0]


def plateau_rates(schedule: Schedule, scores: list[float], best: float = -math.inf) -> list[float]:
    found = []
    for score in scores:
        schedule.observe(score > best)
        best = max(best, score)
        found.append(schedule.rate(100))
    return found


def test_plateau_reduces_after_so_many_validations_without_a_better_score() -> None:
    by_hand = [1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125, 0.0625, 0.0625]
    schedule = PlateauConfig(lr=1.0, warmup_steps=0, factor=0.5, patience=2).build(100, 512)
    assert plateau_rates(schedule, SCORES) == by_hand


def test_plateau_equals_pytorchs() -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    # PyTorch counts the bad ones that it tolerates, one fewer than those after which the rate falls.
    twin = lr_scheduler.ReduceLROnPlateau(optimizer, "max", factor=0.5, patience=1, threshold=0.0, eps=0.0)
    expected = []
    for score in SCORES:
        twin.step(score)
        expected.append(optimizer.param_groups[0]["lr"])
    schedule = PlateauConfig(lr=1.0, warmup_steps=0, factor=0.5, patience=2).build(100, 512)
    assert plateau_rates(schedule, SCORES) == expected


@pytest.mark.parametrize("cut", range(len(SCORES)))
def test_plateau_goes_on_from_its_state_as_if_never_stopped(cut: int) -> None:
    settings = PlateauConfig(lr=1.0, warmup_steps=0, patience=2)
    whole, first, second = (settings.build(100, 512) for _ in range(3))
    expected = plateau_rates(whole, SCORES)
    plateau_rates(first, SCORES[:cut])
    second.load_state_dict(json.loads(json.dumps(first.state_dict(), allow_nan=False)))
    assert second.rate(100) == first.rate(100)
    assert plateau_rates(second, SCORES[cut:], max(SCORES[:cut], default=-math.inf)) == expected[cut:]


def test_impossible_settings_are_refused() -> None:
    for make in (lambda: LinearConfig(lr=0.0), lambda: NoamConfig(warmup_steps=0), lambda: CosineConfig(final=1.5),
                 lambda: PlateauConfig(factor=1.0), lambda: LinearConfig(lr=math.inf)):  # fmt: skip
        with pytest.raises(ValidationError):
            make()
