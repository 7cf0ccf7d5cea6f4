"""What a training will take, measured on a few of its own batches before it starts."""

import resource
import sys
import time
from dataclasses import dataclass

import torch

from dragoman import checkpoint
from dragoman.device import autocast
from dragoman.training.loop import Trainer

TRIAL_STEPS = 4


@dataclass(frozen=True)
class Estimate:
    seconds_per_step: float
    peak_bytes: int
    """Of the process on the CPU, of the device's allocator on a GPU."""


def estimate(trainer: Trainer) -> Estimate:
    """Time and memory of training, from forward and backward passes that change nothing.

    Random numbers are keyed by step, so the trial leaves no trace in the run.
    """
    model, task, device = trainer.model, trainer.task, trainer.device
    model.train()
    times = []
    for step in range(1, TRIAL_STEPS + 1):
        start = time.monotonic()
        for batch in task.batches(step):
            with autocast(device, trainer.precision):
                loss, _, _ = task.loss(model, batch.to(device), trainer.config.label_smoothing)
            loss.backward()
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.monotonic() - start)
    model.zero_grad(set_to_none=True)
    # Two moments in the optimizer and one average, which the trial has not made yet.
    not_yet = 3 * sum(tensor.numel() * 4 for tensor in checkpoint.weights(model).values())
    return Estimate(sorted(times[1:])[(TRIAL_STEPS - 1) // 2], _peak_bytes(device) + not_yet)


def _peak_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
