"""The recipe of a training that has a time to be done in (`--budget`): its steps, its warm-up, its validations."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman import config
from dragoman.runs import checkpoint
from dragoman.runs.atomic_io import read_yaml
from dragoman.runs.directory import CONFIG
from dragoman.training.schedules import NoamConfig

ANNEALED = ("linear", "polynomial", "cosine", "tri_stage")
"""Schedules whose rate ends at 0, or at what `final` says."""

WARM_UPS = 5
"""Steps of a training for each step of its warm-up, at least, where a time budget chooses their number."""

VALIDATE_SECONDS, VALIDATIONS = 60.0, 5
"""Where a recipe says nothing of it, a training in a time budget is validated after a minute or a fifth of the time."""


def validated_by_the_clock(recipe: Any, seconds: float) -> Any:
    """The recipe with an interval between validations, if it had none."""
    training = recipe.training
    if training.validate_seconds is None:
        training = replace(training, validate_seconds=min(VALIDATE_SECONDS, seconds / VALIDATIONS))
    return replace(recipe, training=training)


def with_batch_of_run(recipe: Any) -> Any:
    """The recipe with the `batch_tokens` that its run has found, if it has begun."""
    if recipe.training.workspace is None or not checkpoint.list_checkpoints(Path(recipe.run_dir)):
        return recipe
    begun = read_yaml(Path(recipe.run_dir) / CONFIG)["training"]
    return replace(recipe, training=replace(recipe.training, batch_tokens=begun["batch_tokens"]))


def with_epochs(recipe: Any, steps_per_epoch: int) -> Any:
    """The recipe with the steps of its epochs."""
    training = recipe.training
    return replace(recipe, training=replace(training, max_steps=training.max_epochs * steps_per_epoch))


def with_steps(recipe: Any, max_steps: int) -> Any:
    """The recipe with so many steps, and with a warm-up that leaves most of them for the rest."""
    schedule = recipe.training.schedule
    if max_steps < WARM_UPS * getattr(schedule, "warmup_steps", 0):
        shorter = replace(schedule, warmup_steps=max(1, max_steps // WARM_UPS))
        if isinstance(schedule, NoamConfig):  # whose peak is at one over the square root of its warm-up
            ratio = shorter.warmup_steps / schedule.warmup_steps
            shorter = replace(shorter, factor=schedule.factor * ratio**0.5)
        schedule = shorter
    if getattr(schedule, "hold_steps", 0) > max_steps // 2:
        schedule = replace(schedule, hold_steps=max_steps // 2)
    return replace(recipe, training=replace(recipe.training, max_steps=max_steps, max_epochs=None, schedule=schedule))


def with_steps_of_run(recipe: Any) -> Any:
    """The recipe with the steps that its run has, and with the run's warm-up where both have the same schedule."""
    begun = read_yaml(Path(recipe.run_dir) / CONFIG)["training"]
    if begun["schedule"] == config.to_dict(recipe)["training"]["schedule"]:
        return replace(recipe, training=replace(recipe.training, max_steps=begun["max_steps"]))
    return with_steps(recipe, begun["max_steps"])
