"""The speed of a recipe on this machine, its share of what the machine can do, and where the rest goes."""

import os
import time
from collections import Counter
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from dragoman.device import peak_bytes, reset_peak
from dragoman.errors import Error
from dragoman.experiments.bench.batches import RANDOM, RandomPairs, subject
from dragoman.experiments.bench.parts import Stopwatch, synchronize, time_by_group
from dragoman.experiments.bench.products import Counted, Product, peak_flops
from dragoman.models.base import count_parameters
from dragoman.progress import say, size_text
from dragoman.tasks.announcement import circumstances
from dragoman.training.loop import Trainer
from dragoman.training.nonfinite import NotFinite
from dragoman.version import __version__

WARM_UP_STEPS = 3
ROUNDS = 3
"""Steps and their products are timed in turn so many times: a machine that others use too has good and bad moments."""
PROFILED_STEPS = 5


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The result of `bench`. Seconds, bytes and floating-point operations without prefix."""

    machine: str
    cores: int
    threads: int
    device: str
    torch: str
    dragoman: str
    commit: str
    precision: str
    compiled: str
    """The effect of `training.compile`."""
    model: str
    parameters: int
    batches: str
    batch_tokens: int
    micro_batches: int
    steps: int
    tokens_per_s: float
    """Real source and target tokens (of other tasks: real tokens), </s> included, pads left out."""
    padded_tokens_per_s: float
    fill: float
    """Real tokens by positions."""
    s_per_step: float
    """The mean of all rounds, as `tokens_per_s` is."""
    best_s_per_step: float
    """The mean of the same steps, each at the best of its rounds."""
    flops_per_step: float
    flops_per_s: float
    peak_flops_per_s: dict[str, float]
    """Of the best square matrix product, by dtype, measured just now."""
    utilisation: float
    """`flops_per_s` by the peak in the dtype of the training's products."""
    products_s_per_step: float
    """The matrix products of a step, each timed alone at its best."""
    step_by_products: float
    """The time of the whole step, at its best too, as a multiple."""
    mean_step_by_products: float
    """The same of `s_per_step`."""
    uncounted: list[str]
    """Kernels that hold products which are in neither figure."""
    peak_bytes: int
    parts: dict[str, float]
    """Seconds of a step by `bench.parts.PARTS`; on a GPU measured apart, waiting after each."""
    groups: dict[str, float] | None
    """Shares of a step's time by `bench.parts.GROUPS`; None where the profiler cannot see it."""

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "line": self.line}

    @property
    def line(self) -> str:
        """To be pasted into a report."""
        return (
            f"{self.machine}; {self.threads} threads; torch {self.torch}; {self.precision}; compiled: {self.compiled}; "
            f"{self.model}, {self.parameters / 1e6:.1f}M parameters, "
            f"{self.batch_tokens:,} x {self.micro_batches} tokens a step; "
            f"{self.tokens_per_s:,.0f} tokens/s; {100 * self.utilisation:.1f} % of "
            f"{self._peak / 1e9:,.0f} GFLOP/s; {self.step_by_products:.2f} x its products "
            f"(mean {self.mean_step_by_products:.2f}); commit {self.commit}"
        )

    @property
    def _peak(self) -> float:
        return self.peak_flops_per_s[self.precision]

    def table(self) -> list[str]:
        """The same for people, line by line."""
        peaks = ", ".join(f"{name} {peak / 1e9:,.0f}" for name, peak in self.peak_flops_per_s.items())
        uncounted = f"; not counted: {', '.join(self.uncounted)}" if self.uncounted else ""
        rows = {
            "model": f"{self.model}, {self.parameters:,} parameters, {self.precision} on {self.device}, compiled: "
            f"{self.compiled}",
            "batches": f"{self.batches}; {self.batch_tokens:,} tokens x {self.micro_batches}, {self.steps} steps, "
            f"{ROUNDS} times",
            "tokens/s": f"{self.tokens_per_s:,.0f} real, {self.padded_tokens_per_s:,.0f} with pads (fill "
            f"{self.fill:.3f})",
            "s/step": f"{self.s_per_step:.4f}, at its best {self.best_s_per_step:.4f}",
            "model FLOP/s": f"{self.flops_per_s / 1e9:,.1f} G; {self.flops_per_step / 1e9:,.2f} G a step, matrix "
            f"products of forward and backward, from their shapes (torch.utils.flop_counter){uncounted}",
            "of the peak": f"{100 * self.utilisation:.1f} %; measured now, GFLOP/s: {peaks}",
            "of its products": f"the step takes {self.step_by_products:.2f} times its matrix products timed alone "
            f"({1000 * self.products_s_per_step:.1f} ms), both at their best; in the mean "
            f"{self.mean_step_by_products:.2f} times",
            "peak memory": size_text(self.peak_bytes),
            "by part, ms": ", ".join(f"{name} {1000 * seconds:.1f}" for name, seconds in self.parts.items()),
            "by operation, %": ", ".join(f"{name} {100 * share:.1f}" for name, share in (self.groups or {}).items())
            or "not to be seen on this device",
        }
        return [f"{name:<16} {text}" for name, text in rows.items()]


def bench(recipe: Any, *, steps: int = 20, synthetic: bool = False) -> Measured:
    """Train a few steps of a recipe and measure them; nothing is kept.

    `synthetic`: on random ids even where the recipe's corpus is there. Raises DragomanError where it cannot be built
    or a step has no finite loss.
    """
    with subject(recipe, synthetic=synthetic) as trainer:
        try:
            return _measure(trainer, recipe, steps)
        except NotFinite as error:
            raise Error.DIVERGED(f"{error}: nothing to measure", "lower training.schedule's rate") from error


def _measure(trainer: Trainer, recipe: Any, steps: int) -> Measured:
    device = trainer.device
    say(f"{WARM_UP_STEPS} steps to warm up, then {ROUNDS} times {steps} steps and their matrix products by themselves")
    for step in range(1, WARM_UP_STEPS + 1):
        trainer.train_step(step)
    timed = range(WARM_UP_STEPS + 1, WARM_UP_STEPS + 1 + steps)
    reset_peak(device)
    seconds, tokens, watch = _timed_steps(trainer, timed, waiting=False)
    peak_memory = _peak_bytes(device)
    positions = sum(
        _positions(batch) for step in timed for _, parts in trainer.training_step.batches(step) for batch in parts
    )
    with Counted() as counted:
        for step in timed:
            trainer.training_step.gradients(step)
    step_s, product_s, parts = [seconds], [_alone(counted.products, device)], Counter(watch.seconds)
    for _ in range(1, ROUNDS):
        seconds, _, watch = _timed_steps(trainer, timed, waiting=False)
        step_s.append(seconds)
        product_s.append(_alone(counted.products, device))
        parts.update(watch.seconds)
    if device.type != "cpu":
        say("once more, waiting for each part")
        _, _, watch = _timed_steps(trainer, timed, waiting=True)
        parts = Counter({name: ROUNDS * part for name, part in watch.seconds.items()})
    dtypes = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    peaks = {name: peak_flops(device, dtypes[name]) for name in dict.fromkeys(["float32", trainer.precision])}
    say("their operations, through the profiler")
    groups = time_by_group(trainer, timed[:PROFILED_STEPS])
    flops, all_s = counted.flops / steps, sum(map(sum, step_s))
    per_step, best, products_s = all_s / steps / ROUNDS, _sum_of_best(step_s) / steps, _sum_of_best(product_s) / steps
    return Measured(
        **_circumstances(trainer, recipe),
        batches=RANDOM if isinstance(trainer.task, RandomPairs) else "the recipe's own corpus",
        steps=steps,
        tokens_per_s=ROUNDS * tokens / all_s,
        padded_tokens_per_s=ROUNDS * positions / all_s,
        fill=tokens / positions,
        s_per_step=per_step,
        best_s_per_step=best,
        flops_per_step=flops,
        flops_per_s=flops / per_step,
        peak_flops_per_s=peaks,
        utilisation=flops / per_step / peaks[trainer.precision],
        products_s_per_step=products_s,
        step_by_products=best / products_s,
        mean_step_by_products=per_step / products_s,
        uncounted=sorted(counted.uncounted),
        peak_bytes=peak_memory,
        parts={name: part / steps / ROUNDS for name, part in parts.items()},
        groups=groups,
    )


def _circumstances(trainer: Trainer, recipe: Any) -> dict[str, Any]:
    """Machine, versions, model and batch sizes of a measurement."""
    facts = circumstances(trainer.device, trainer.precision)
    del facts["python"]
    return {
        **facts,
        "commit": facts["commit"] or f"dragoman {__version__}",
        "cores": os.cpu_count() or 1,
        "compiled": trainer.training_step.compiled,
        "model": recipe.model.type,
        "parameters": count_parameters(trainer.model),
        "batch_tokens": trainer.config.batch_tokens,
        "micro_batches": trainer.config.micro_batches,
    }


def _timed_steps(trainer: Trainer, steps: range, *, waiting: bool) -> tuple[list[float], int, Stopwatch]:
    """(seconds of each step, real tokens of all, seconds by part)."""
    tokens, ends = 0, []
    with Stopwatch(trainer, waiting=waiting) as watch:
        synchronize(trainer.device)
        ends.append(time.perf_counter())
        for step in steps:
            tokens += trainer.train_step(step)[2]
            if step == steps[-1]:
                synchronize(trainer.device)
            ends.append(time.perf_counter())
    return [end - start for start, end in pairwise(ends)], tokens, watch


@torch.no_grad()
def _alone(products: Counter[Product], device: torch.device) -> list[float]:
    """Seconds of so many products, of each kind together, timed by itself."""
    return [count * product.seconds(device) for product, count in products.items()]


def _sum_of_best(rounds: list[list[float]]) -> float:
    """Each at its best of all rounds."""
    return sum(map(min, zip(*rounds, strict=True)))


def _positions(batch: Any) -> int:
    """Of all that a model reads in a batch, pads included. (A batch of images has no pads.)"""
    sides = [getattr(batch, name, None) for name in ("src", "tgt_in")] + [*getattr(batch, "inputs", ())[:1]]
    ids = [side.numel() for side in sides if isinstance(side, Tensor) and not side.is_floating_point()]
    return sum(ids) or int(batch.num_positions)


def _peak_bytes(device: torch.device) -> int:
    return int(torch.mps.driver_allocated_memory()) if device.type == "mps" else peak_bytes(device)
