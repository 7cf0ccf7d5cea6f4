"""Learning rates over the steps: Noam's for several sizes and warm-ups, and the other schedules."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.analysis.figure import Figure, line_style, new_figure, step_axis, styled
from dragoman.training import schedules

Curve = tuple[list[int], list[float]]


def learning_rates(settings: Any, max_steps: int, d_model: int, points: int = 400) -> Curve:
    """(steps, the schedule's rate at each of them), from step 1 to the last."""
    schedule = settings.build(max_steps, d_model)
    steps = sorted({1 + (max_steps - 1) * i // (points - 1) for i in range(points)})
    return steps, [schedule.rate(step) for step in steps]


def noam_curves(d_models: Sequence[int], warmups: Sequence[int], max_steps: int) -> dict[tuple[int, int], Curve]:
    """Noam's schedule for every (d_model, warmup_steps)."""
    return {
        (d_model, warmup): learning_rates(schedules.NoamConfig(warmup_steps=warmup), max_steps, d_model)
        for d_model, warmup in itertools.product(d_models, warmups)
    }


def other_curves(lr: float, warmup: int, max_steps: int) -> dict[str, Curve]:
    """The schedules whose peak is given, with one peak and one warm-up."""
    given: dict[str, Any] = {"lr": lr, "warmup_steps": warmup}
    settings: dict[str, Any] = {
        "inverse_sqrt": schedules.InverseSqrtConfig(lr=lr, warmup_steps=max(1, warmup)),
        "linear": schedules.LinearConfig(**given),
        "polynomial": schedules.PolynomialConfig(**given),
        "cosine": schedules.CosineConfig(**given),
        "tri_stage": schedules.TriStageConfig(**given, hold_steps=max_steps // 4),
        "constant": schedules.ConstantConfig(**given),
    }
    return {name: learning_rates(setting, max_steps, d_model=1) for name, setting in settings.items()}


def plateau_curve(lr: float, warmup: int, max_steps: int, validations: int = 20) -> Curve:
    """`plateau` for a run whose validations improve in its first half only."""
    schedule = schedules.PlateauConfig(lr=lr, warmup_steps=warmup).build(max_steps, d_model=1)
    steps, rates = list(range(1, max_steps + 1, max(1, max_steps // 400))), []
    validate_every = max(1, max_steps // validations)
    observed = 0
    for step in steps:
        while observed < step // validate_every:
            observed += 1
            schedule.observe(observed <= validations // 2)
        rates.append(schedule.rate(step))
    return steps, rates


@styled
def schedules_figure(noam: Mapping[tuple[int, int], Curve], others: Mapping[str, Curve], warmup: int) -> Figure:
    """Two panels: Noam's curves with their peaks, and the other schedules."""
    figure = new_figure(11, 4.6, "Learning-rate schedules")
    left, right = figure.subplots(1, 2)
    left.set_title("noam: d_model^-0.5 · min(step^-0.5, step · warmup_steps^-1.5)")
    d_models, warmups = (list(dict.fromkeys(column)) for column in zip(*noam, strict=True))
    for (d_model, warmup_steps), (steps, rates) in noam.items():
        style = line_style(d_models.index(d_model), warmups.index(warmup_steps))
        peak = (d_model * warmup_steps) ** -0.5
        label = f"d_model {d_model}, warm-up {warmup_steps:,}: {peak:.3g}"
        left.plot(steps, rates, label=label, **style)
        if warmup_steps <= steps[-1]:
            left.plot([warmup_steps], [peak], color=style["color"], marker="o", markersize=4)
    right.set_title(f"the others, one peak and a warm-up of {warmup:,} steps")
    for number, (name, (steps, rates)) in enumerate(others.items()):
        right.plot(steps, rates, label=name, **line_style(number))
    for axes, legend_title in ((left, "peak learning rate"), (right, None)):
        step_axis(axes)
        axes.set_ylabel("learning rate")
        axes.set_xlim(left=0)
        axes.set_ylim(0, axes.get_ylim()[1] * 1.4)
        axes.legend(loc="upper right", title=legend_title, alignment="right", handlelength=2.6)
    return figure
