"""Parts that tasks have in common: steps numbered by a plan, and validation that ranks share."""

import time
from abc import ABC, abstractmethod
from typing import Any, Protocol, runtime_checkable

from torch import nn

from dragoman.training.distributed import Ranks
from dragoman.training.task import Validation


@runtime_checkable
class InShards(Protocol):
    """A task whose `validate` is called on all ranks, which share the work. Others are validated by the first alone."""

    ranks: Ranks


@runtime_checkable
class FromDisk(Protocol):
    """A task that may have so many examples that it reads each from the disk when a step asks for it."""

    @property
    def from_disk(self) -> bool: ...


class Planned(ABC):
    """The part of a task that numbers its steps by a plan, `BatchPlan` or `WindowPlan`."""

    plan: Any

    def position(self, step: int) -> tuple[int, int]:
        # Batches are cut from sorted lengths, so every epoch has the same number of steps.
        epoch, step_in_epoch = divmod(step - 1, self.plan.steps_per_epoch)
        return epoch, step_in_epoch

    def count(self, step: int) -> int:
        return len(self.plan.step(*self.position(step)))

    @abstractmethod
    def micro_batch(self, step: int, number: int) -> list[Any]: ...

    def validate(self, model: nn.Module) -> Validation:
        raise NotImplementedError

    def dry_run_validation(self, model: nn.Module) -> float:
        started = time.monotonic()
        self.validate(model)
        return time.monotonic() - started

    def batches(self, step: int) -> list[Any]:
        """All batches of a step, for whoever wants to look at them."""
        return [batch for number in range(self.count(step)) for batch in self.micro_batch(step, number)]
