"""The contract between the training loop and the things that it trains: what a batch, a loss and a score are."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor, nn

from dragoman.runs.events import goodness


@dataclass(frozen=True)
class Validation:
    """The result of a validation; of `score` higher is better."""

    score: float
    metrics: dict[str, float]
    samples: list[dict[str, str]] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)  #: What to call a metric that is not as its name says.

    def ranked_by(self, names: Sequence[str]) -> dict[str, Any]:
        """The figures as a checkpoint's state keeps them. `rank` has the metrics `names` (or `score`) and then the
        loss, as numbers of which higher is better."""
        figures = {**self.metrics, "score": self.score}
        by = [goodness(figures, name) for name in (*(names or ["score"]), "loss")]
        return {"score": self.score, "loss": self.metrics["loss"], "rank": by}


class Task(Protocol):
    """Batches, loss and validation of one kind of model. A task with `ranks` is validated by all ranks, which share the
    work; other tasks by the first rank alone. With `from_disk` true it reads each example when a step needs it.
    """

    def position(self, step: int) -> tuple[int, int]:
        """(epoch, step within it), both from 0, of optimizer step `step`, counted from 1."""
        ...

    def count(self, step: int) -> int:
        """The number of micro-batches of an optimizer step: fewer than `training.micro_batches` at an epoch's end."""
        ...

    def micro_batch(self, step: int, number: int) -> Sequence[Any]:
        """Micro-batch `number`, from 0, of an optimizer step: one batch, or several that stay within the budget where
        sampling made one longer than planned. A pure function of the seed, step and number, and safe to be called from
        several threads (`training/prefetch.py`). Batches are `data.movable.Movable`."""
        ...

    def loss(self, model: nn.Module, batch: Any, label_smoothing: float) -> tuple[Tensor, int, int]:
        """(loss summed over the tokens that count, their number, all real tokens processed)."""
        ...

    def worst_case_batch(self, batch_tokens: int) -> Any:
        """The batch that takes the most memory under a budget of `batch_tokens`, as `micro_batch` would make it."""
        ...

    def describe(self, batch: Any) -> str:
        """The lines of the training corpus that a batch is made of, for a person to look up."""
        ...

    def validate(self, model: nn.Module) -> Validation: ...

    def dry_run_validation(self, model: nn.Module) -> float:
        """Do all that a validation does, if on fewer examples, with a model that may know nothing yet; the seconds that
        a whole one will take."""
        ...


class PlannedTask(Task):
    """The part of a task that numbers its steps by a plan, `BatchPlan` or `WindowPlan`."""

    plan: Any

    def position(self, step: int) -> tuple[int, int]:
        # Batches are cut from sorted lengths, so every epoch has the same number of steps.
        epoch, step_in_epoch = divmod(step - 1, self.plan.steps_per_epoch)
        return epoch, step_in_epoch

    def count(self, step: int) -> int:
        return len(self.plan.step(*self.position(step)))

    def dry_run_validation(self, model: nn.Module) -> float:
        started = time.monotonic()
        self.validate(model)
        return time.monotonic() - started

    def batches(self, step: int) -> list[Any]:
        """All batches of a step, for whoever wants to look at them."""
        return [batch for number in range(self.count(step)) for batch in self.micro_batch(step, number)]
