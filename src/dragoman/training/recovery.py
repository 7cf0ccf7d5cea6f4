"""Checkpoints of a training: what they hold, and how a training goes on from them."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from dragoman.runs import checkpoint
from dragoman.training import optim
from dragoman.training.ema import Averager
from dragoman.training.schedules import Schedule
from dragoman.training.state import TrainingState


def tensors(
    state: TrainingState, model: nn.Module, optimizer: Optimizer, averager: Averager
) -> dict[str, dict[str, Tensor]]:
    """The tensors of a checkpoint, by group."""
    groups = {"model": checkpoint.weights(model), "optimizer": optim.state_tensors(optimizer, model)}
    averages = averager.average(model, state.step)
    return groups if averages is None else {**groups, "averaged": averages}


def plain(state: TrainingState, position: tuple[int, int], ranked_by: Mapping[str, float]) -> dict[str, Any]:
    """The rest that a checkpoint must hold for a run to go on from it as if it had never stopped.

    `position`: (epoch, step within it), for people who look: it follows from the step. `ranked_by`: the figures of the
    validation at this step, empty where there was none.
    """
    first = {"step": state.step, "epoch": position[0], "step_in_epoch": position[1]}
    return {**first, "score": ranked_by.get("score"), "loss": ranked_by.get("loss"), **state.to_dict()}


def restore(
    path: Path, model: nn.Module, optimizer: Optimizer, averager: Averager, schedule: Schedule
) -> TrainingState:
    """Load all tensors of a verified checkpoint; the state of the training there."""
    checkpoint.load_weights(model, checkpoint.load_group(path, "model"), str(path))
    optim.load_state_tensors(optimizer, model, checkpoint.load_group(path, "optimizer"))
    if (path / "averaged.safetensors").exists():
        averager.load(checkpoint.load_group(path, "averaged"))
    return TrainingState.from_dict(checkpoint.load_state(path), schedule)


def last_validated(run_dir: Path, complain: Callable[[str], None]) -> str:
    """The checkpoint to roll back to, nothing where there is none.

    A checkpoint that a stop left is passed over: a run that was never stopped does not have it.
    """
    return str(checkpoint.newest(run_dir, complain, among=checkpoint.validated(run_dir)) or "")


def digest(model: nn.Module) -> str:
    """SHA-256 of a model's weights."""
    found = hashlib.sha256()
    for tensor in checkpoint.weights(model).values():
        found.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    return found.hexdigest()
