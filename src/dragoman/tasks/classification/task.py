"""Classification of texts or images: batches with a label for each row, cross-entropy, accuracy."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.data.batching import BatchPlan
from dragoman.data.eval_batches import eval_batches
from dragoman.data.examples import Split
from dragoman.data.inputs import Inputs, LabelledBatch
from dragoman.evaluation.translation import spread
from dragoman.inference.classifier import logits_of
from dragoman.quality.classification import score_labels
from dragoman.text.corpus import Pair
from dragoman.training.loss import TEXTBOOK, Losses, r_drop_loss, textbook_loss
from dragoman.training.nonfinite import listed
from dragoman.training.task import PlannedTask, Validation


@dataclass(eq=False)
class ClassificationTask(PlannedTask):
    """A `training.task.Task` over labelled inputs; what they are, texts or images, only they know."""

    train: Inputs
    train_split: Split
    plan: BatchPlan
    valid: Inputs
    valid_split: Split
    labels: list[str]
    _: KW_ONLY
    device: torch.device
    samples: int
    r_drop: float = 0.0
    losses: Losses = TEXTBOOK

    def __post_init__(self) -> None:
        self.examples = np.array(self.train_split.numbers or range(1, len(self.train_split) + 1))
        self.train_numbers = self._numbers(self.train_split.labels)
        self.valid_numbers = self._numbers(self.valid_split.labels)

    def micro_batch(self, step: int, number: int) -> list[LabelledBatch]:
        epoch, step_in_epoch = self.position(step)
        return self._batches(self.plan.step(epoch, step_in_epoch)[number], epoch)

    def _batches(self, rows: np.ndarray, epoch: int | None) -> list[LabelledBatch]:
        """The examples of a planned batch: one batch, or more where they were drawn longer than planned (as those of
        `TranslationTask` are)."""
        inputs = self.train.in_epoch(rows, epoch, self.plan.batch_tokens - 1)
        parts = map(np.sort, eval_batches(inputs.lengths, self.plan.batch_tokens))  # in the plan's order
        return [
            LabelledBatch(
                inputs.collate(part),
                torch.from_numpy(self.train_numbers[rows[part]]),
                num_positions=int((inputs.lengths[part] + 1).sum()),
                rows=rows[part],
            )
            for part in parts
        ]

    def loss(self, model: nn.Module, batch: LabelledBatch, label_smoothing: float) -> tuple[Tensor, int, int]:
        if self.r_drop and model.training:
            labels = batch.labels[:, None]  # as sentences of one token
            everything = torch.ones_like(labels, dtype=torch.bool)
            loss = r_drop_loss(
                lambda: model(*batch.inputs)[:, None], labels, everything, label_smoothing, self.r_drop, self.losses
            )
            return loss, 2 * len(batch), batch.num_positions
        loss = textbook_loss(model(*batch.inputs), batch.labels, label_smoothing)
        return loss, len(batch), batch.num_positions

    def worst_case_batch(self, batch_tokens: int) -> LabelledBatch:
        [batch] = self._batches(self.plan.worst_case_batch(batch_tokens), None)
        return batch

    def describe(self, batch: LabelledBatch) -> str:
        return listed("example", self.examples[batch.rows])

    def validate(self, model: nn.Module) -> Validation:
        """Loss without smoothing, in nats an example, and accuracy in percent, which is the score."""
        logits = logits_of(model, self.valid, self.device)
        loss = float(textbook_loss(logits, torch.from_numpy(self.valid_numbers), 0.0)) / len(logits)
        predicted = [self.labels[number] for number in logits.argmax(dim=-1).tolist()]
        accuracy = score_labels(predicted, self.valid_split.labels, self.labels).accuracy
        return Validation(
            score=accuracy,
            metrics={"loss": loss, "accuracy": accuracy},
            samples=shown(self.valid_split, predicted, self.samples),
        )

    def _numbers(self, labels: Sequence[str]) -> np.ndarray:
        number = {label: row for row, label in enumerate(self.labels)}
        return np.array([number[label] for label in labels])


def shown(split: Split, predicted: Sequence[str], count: int) -> list[dict[str, str]]:
    """Up to `count` examples for log and report: what it is, its label (ref), and what the model says (hyp)."""
    pairs = [Pair(0, title, label) for title, label in zip(split.titles, split.labels, strict=True)]
    return spread(pairs, predicted, count)
