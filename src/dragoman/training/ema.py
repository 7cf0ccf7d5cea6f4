"""Averages of the weights, which translate better than the weights of any single step."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import torch
from torch import Tensor, nn

from dragoman.config import Field, by_type, settings
from dragoman.device import float64_device
from dragoman.progress import say
from dragoman.runs import checkpoint


@settings
class NoAveragingConfig:
    """The weights of the last step, as they are."""

    type: Literal["none"] = "none"

    def build(self, model: nn.Module, run_dir: Path) -> "Averager":
        return Averager()


@settings
class EmaConfig:
    """An exponential moving average: after each step, average = decay * average + (1 - decay) * weights.

    The decay starts lower, min(decay, (1 + step) / (10 + step)), so that the random first weights are soon forgotten.
    """

    type: Literal["ema"] = "ema"
    decay: float = Field(default=0.999, gt=0, lt=1)  #: Share of the old average in the new one.

    def build(self, model: nn.Module, run_dir: Path) -> "Averager":
        return EmaAverager(model, self.decay)


@settings
class LastConfig:
    """The mean of the last `checkpoints` checkpoints (Vaswani et al. 2017, section 6.1)."""

    type: Literal["last"] = "last"
    checkpoints: int = Field(default=5, ge=2)  #: Checkpoints whose mean is taken.

    def build(self, model: nn.Module, run_dir: Path) -> "Averager":
        return LastAverager(run_dir, self.checkpoints)


class Averager:
    """Keeps nothing: validation and translation use the weights themselves."""

    def update(self, step: int) -> None:
        """Called after every optimizer step on the model that this was built for."""

    def average(self, model: nn.Module, step: int) -> dict[str, Tensor] | None:
        """The averaged weights of a step, to validate, save and translate with; None when there is no average."""
        return None

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Go on from the average that a checkpoint holds."""


class EmaAverager(Averager):
    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.current = checkpoint.weights(model)  # in the model's own memory
        self.averages = {name: tensor.clone() for name, tensor in self.current.items()}

    def update(self, step: int) -> None:
        decay = min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(list(self.averages.values()), list(self.current.values()), 1.0 - decay)

    def average(self, model: nn.Module, step: int) -> dict[str, Tensor] | None:
        return self.averages

    def load(self, tensors: dict[str, Tensor]) -> None:
        for name, tensor in self.averages.items():
            tensor.copy_(tensors[name])


class LastAverager(Averager):
    """Reads the earlier (validated) checkpoints back from disk: no memory between saves, nothing to resume."""

    def __init__(self, run_dir: Path, count: int) -> None:
        self.run_dir, self.count = run_dir, count
        self.made: tuple[int, dict[str, Tensor]] | None = None
        """The average at a step, which is validated and then saved."""

    def update(self, step: int) -> None:
        self.made = None

    def average(self, model: nn.Module, step: int) -> dict[str, Tensor] | None:
        if self.made is None or self.made[0] != step:
            self.made = step, self._mean(model, step)
        return self.made[1]

    def _mean(self, model: nn.Module, step: int) -> dict[str, Tensor]:
        # One of this step or a later one is left from where a damaged checkpoint made the run go back.
        before = [path for path in checkpoint.validated(self.run_dir) if checkpoint.step_of(path) < step]
        whole = checkpoint.verified(reversed(before), say, "left out of the average")
        earlier = list(itertools.islice(whole, self.count - 1))
        read = (checkpoint.load_group(path, "model") for path in reversed(earlier))
        return mean(itertools.chain([checkpoint.weights(model)], read))


def mean(groups: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of each tensor of groups alike, in float32; they are added up in float64, one group after the other."""
    total: dict[str, Tensor] = {}
    count = 0
    for group in groups:
        count += 1
        for name, tensor in group.items():
            if name in total:
                total[name] += tensor.to(total[name].device)
            else:
                total[name] = tensor.to(float64_device(tensor.device)).to(torch.float64, copy=True)
    return {name: (tensor / count).float() for name, tensor in total.items()}


@contextmanager
def applied(model: nn.Module, averages: dict[str, Tensor] | None) -> Iterator[None]:
    """Inside, the model has the averaged weights; after it, its own again."""
    if averages is None:
        yield
        return
    own = {name: tensor.clone() for name, tensor in checkpoint.weights(model).items()}
    checkpoint.load_weights(model, averages, "the average")
    try:
        yield
    finally:
        checkpoint.load_weights(model, own, "the weights")


AveragingConfig = Annotated[NoAveragingConfig | EmaConfig | LastConfig, by_type]
