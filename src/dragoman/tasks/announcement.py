"""The announcement of a training: the nine steps with the run's own numbers, and the machine, said and logged."""

import platform
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from dragoman.device import machine_name
from dragoman.models.base import count_parameters
from dragoman.progress import clock, say, size_text
from dragoman.training.loop import Trainer
from dragoman.training.preflight import Estimate
from dragoman.version import __version__, commit

COMPILED = {"none": "", "layers": ", layers compiled", "graphs": ", layers compiled and recorded as CUDA graphs"}
"""The words of the plan for each way to compile."""


def announce(
    titles: Sequence[str],
    lines: Mapping[int, str],
    fields: Mapping[str, Any],
    trainer: Trainer,
    took: Estimate,
    busy: int,
) -> None:
    """Say the nine steps and log `start` and `plan`; `lines` and `fields` are those of `Job.plan`.

    `busy`: the threads of other programs that kept the machine busy while `took` was measured.
    """
    left = took.seconds(trainer.time_budget.end - trainer.step, trainer.config.validate_every)
    lines = {**lines, 7: _training_line(trainer, fields, took, left, busy)}
    for number, text in sorted(lines.items()):
        say(f"{f'{number} {titles[number - 1].lower()}':<25} {text}")
    if late := never_falls(trainer.config.schedule, trainer.time_budget.end):
        say(late)
    trainer.log.event(
        "start",
        **circumstances(trainer.device, trainer.precision),
        compiled=trainer.training_step.compiled,
        elapsed_s=trainer.elapsed_before,
    )
    trainer.log.event(
        "plan",
        **fields,
        parameters=count_parameters(trainer.model),
        max_steps=trainer.time_budget.end,
        estimated_s=left,
        other_busy_threads=busy,
        estimated_bytes=took.peak_bytes,
        estimated_disk_bytes=took.disk_bytes,
        elapsed_s=trainer.elapsed_before,
    )


def circumstances(device: torch.device, precision: str) -> dict[str, Any]:
    """The versions and the machine that a result depends on."""
    return {
        "dragoman": __version__,
        "commit": commit(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": machine_name(device),
        "threads": torch.get_num_threads(),
        "device": str(device),
        "precision": precision,
    }


def _training_line(trainer: Trainer, fields: Mapping[str, Any], took: Estimate, left: float, busy: int) -> str:
    max_steps, deadline = trainer.time_budget.end, trainer.time_budget.deadline
    load = f" beside {busy} other busy thread{'s' * (busy > 1)}" if busy else ""
    clocked = "" if deadline is None else ", or as many as the time allows,"
    return (
        f"{max_steps:,} steps{clocked} = {max_steps / fields['steps_per_epoch']:.1f} epochs on {trainer.device} in "
        f"{trainer.precision}{COMPILED[trainer.training_step.compiled]}; about {clock(left)} "
        f"({1000 * took.seconds_per_step:,.0f} ms a step{load}), {size_text(took.peak_bytes)} of memory, "
        f"{size_text(took.disk_bytes)} on disk"
    )


def never_falls(schedule: Any, max_steps: int) -> str:
    """A line that says so where a warm-up, with the steps at its peak, lasts as long as the training; else nothing."""
    rising, held = getattr(schedule, "warmup_steps", 0), getattr(schedule, "hold_steps", 0)
    if not rising + held or rising + held < max_steps:
        return ""
    ends = "rising" if rising >= max_steps else "at its peak"
    names = " and ".join(["warmup_steps"] * bool(rising) + ["hold_steps"] * bool(held))
    return f"training.schedule: the rate is still {ends} after the {max_steps:,} steps; {names} are {rising + held:,}"
