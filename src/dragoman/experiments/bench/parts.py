"""Where the time of a training step goes: by its parts, and by what its operations are."""

import functools
import os
import re
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile, record_function

from dragoman.training.loop import Trainer

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler tells stderr when it starts and stops

PARTS = ("data", "forward", "loss", "backward", "optimizer", "other")


def synchronize(device: torch.device) -> None:
    """Wait until all that was asked of a GPU is done. A CPU has done it already."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


class Stopwatch:
    """Seconds by part, of a part without those that run inside it.

    `data`: making batches, or waiting for those made ahead. `forward`: the model. `loss`: what follows on it until
    there is a number. `backward`: the rest of `TrainingStep.gradients` (its clearing of old gradients and its seeds are
    a few microseconds). `optimizer`: norm, clipping, update, average.
    """

    def __init__(self, trainer: Trainer, *, waiting: bool) -> None:
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self._open: list[tuple[str, float]] = []
        self._last = 0.0
        self._trainer, self._waiting = trainer, waiting

    def __enter__(self) -> "Stopwatch":
        trainer = self._trainer
        self._undo: list[Callable[[], None]] = []
        for owner, method, part in (
            (trainer, "train_step", "other"),
            (trainer.training_step, "gradients", "backward"),
            (trainer.training_step, "update", "optimizer"),
            (trainer.averager, "update", "optimizer"),
            (trainer.training_step, "batches", "data"),
            (trainer.task, "loss", "loss"),
            (trainer.model, "forward", "forward"),
        ):
            setattr(owner, method, self._timed(getattr(owner, method), part))
            self._undo.append(functools.partial(delattr, owner, method))
        return self

    def __exit__(self, *_: object) -> None:
        for undo in self._undo:
            undo()

    def _timed(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            self._turn(part)
            try:
                return function(*args, **kwargs)
            finally:
                self._turn(None)

        return timed

    def _turn(self, part: str | None) -> None:
        """Enter a part; None leaves the part that was entered last."""
        if self._waiting:
            synchronize(self._trainer.device)
        now = time.perf_counter()
        if self._open:
            self.seconds[self._open[-1][0]] += now - self._last
        self._open.append((part, now)) if part else self._open.pop()
        self._last = now


PRODUCT = re.compile(
    r"(aten::(mm|addmm|bmm|baddbmm|mkldnn_\w+|_?convolution\w*|\w*(attention|rnn|lstm|gru)\w*)|mkldnn::\w+"
    r"|kernels::(multiply|pack|weight_gradient|attention_\w+))$",
    re.I,
)
INSIDE = {
    "softmax and loss": re.compile(r"CrossEntropy|softmax|logsumexp|nll_loss", re.I),
    "norms": re.compile(r"(layer|rms)_?norm|kernels::norm", re.I),
    "dropout": re.compile(r"dropout|aten::random_$", re.I),
    "embeddings": re.compile(r"embedding", re.I),
    "optimizer": re.compile(r"^update$|Optimizer\.", re.I),
}
ITSELF = {
    "copies and casts": re.compile(r"aten::(_to_copy|copy_|clone|cat|fill_|zero_|zeros|contiguous|stack)$"),
    "other": re.compile(
        r"^(?!aten::|triton_|kernels::)|aten::(empty|view|as_strided|transpose|t|expand|reshape|slice|select|unsqueeze)"
    ),
}
GROUPS = ("matrix products", *INSIDE, "copies and casts", "elementwise", "other")
"""Operations by what they are. `optimizer`: norm, clipping, update, average; `other`: Python and autograd between them.

Kernels of compiled layers are told by the names that torch.compile gives them on a GPU, after what is fused in them;
the first group that fits takes all. On a CPU they have none that the profiler sees and are in `other`.
"""


def group_of(event: FunctionEvent) -> str:
    """Products are told by their own name, then the groups of `INSIDE` by whatever they stand in."""
    if PRODUCT.search(event.name):
        return "matrix products"
    around: FunctionEvent | None = event
    while around is not None:
        for group, names in INSIDE.items():
            if names.search(around.name):
                return group
        around = around.cpu_parent
    return next((group for group, names in ITSELF.items() if names.search(event.name)), "elementwise")


def _recorded(update: Callable[..., Any]) -> Callable[..., Any]:
    def recorded(*args: Any) -> Any:
        with record_function("update"):
            return update(*args)

    return recorded


def time_by_group(trainer: Trainer, steps: range) -> dict[str, float] | None:
    """The share of each of `GROUPS` in the time of some steps, as `torch.profiler` sees it; the shares add up to 1.

    On a GPU it is the GPU's own time. None where the profiler cannot see it (MPS).
    """
    if trainer.device.type == "mps":
        return None
    on_gpu = trainer.device.type == "cuda"
    owners: list[Any] = [trainer.training_step, trainer.averager]
    for owner in owners:
        owner.update = _recorded(owner.update)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    try:
        with profile(activities=activities) as profiled:
            for step in steps:
                with record_function("step"):
                    trainer.train_step(step)
            synchronize(trainer.device)
    finally:
        for owner in owners:
            del owner.update
    times: Counter[str] = Counter()
    for event in profiled.events():
        took = event.self_device_time_total if on_gpu else event.self_cpu_time_total
        if event.device_type == torch.autograd.DeviceType.CPU:
            times[group_of(event)] += took
    total = sum(times.values()) or 1.0
    return {group: times[group] / total for group in GROUPS}
