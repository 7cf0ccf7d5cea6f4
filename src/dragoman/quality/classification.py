"""Scores of a classifier: accuracy, precision, recall, F1, and which label was taken for which."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int

from dragoman.errors import Error


@dataclass(frozen=True)
class LabelScores:
    """The figures of one label, in percent; 0 where there is nothing to divide by."""

    precision: float
    """The share of predictions of this label that are right."""
    recall: float
    """The share of examples of this label that were predicted as such."""
    f1: float
    """The harmonic mean of the two."""
    examples: int
    predicted: int


@dataclass(frozen=True, eq=False)
class ClassScores:
    """All follows from `confusion[i, j]`: how many examples of label i were said to be of label j."""

    labels: tuple[str, ...]
    confusion: Int[np.ndarray, "labels labels"]

    @property
    def examples(self) -> int:
        return int(self.confusion.sum())

    @property
    def accuracy(self) -> float:
        """Percent."""
        return 100.0 * int(self.confusion.trace()) / self.examples

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the labels that occur among the right or the predicted ones, in percent: a rare one counts
        as much as a frequent one, and one that was said without cause counts as 0."""
        return float(np.mean([scores.f1 for scores in self.per_label.values() if scores.examples or scores.predicted]))

    @property
    def per_label(self) -> dict[str, LabelScores]:
        sums = self.confusion.diagonal(), self.confusion.sum(axis=1), self.confusion.sum(axis=0)
        rows = zip(self.labels, *(counts.tolist() for counts in sums), strict=True)
        return {
            label: LabelScores(
                precision=100.0 * right / max(1, predicted),
                recall=100.0 * right / max(1, examples),
                f1=200.0 * right / max(1, examples + predicted),
                examples=examples,
                predicted=predicted,
            )
            for label, right, examples, predicted in rows
        }

    def figures(self) -> dict[str, str]:
        """The columns of a table."""
        return {
            "examples": f"{self.examples:,}",
            "accuracy": f"{self.accuracy:.2f}",
            "macro F1": f"{self.macro_f1:.2f}",
        }

    def notes(self) -> list[str]:
        """The lines below the table: each label's figures, and its row of the confusion matrix."""
        width = max(len("label"), *map(len, self.labels))
        columns = [max(6, len(label)) for label in self.labels]
        heads = "  ".join(f"{label:>{column}}" for label, column in zip(self.labels, columns, strict=True))
        lines = [f"{'label':<{width}}  precision  recall      F1  | said to be: {heads}"]
        for (label, scores), row in zip(self.per_label.items(), self.confusion.tolist(), strict=True):
            counts = "  ".join(f"{count:>{column},}" for count, column in zip(row, columns, strict=True))
            figures = f"{scores.precision:>9.2f}  {scores.recall:>6.2f}  {scores.f1:>6.2f}"
            lines.append(f"{label:<{width}}  {figures}  | {'':>11} {counts}")
        return lines

    def to_dict(self) -> dict[str, Any]:
        return {
            "examples": self.examples,
            "accuracy": self.accuracy,
            "macro_f1": self.macro_f1,
            "labels": list(self.labels),
            "per_label": {label: vars(scores) for label, scores in self.per_label.items()},
            "confusion": self.confusion.tolist(),
        }


def score_labels(predicted: Sequence[str], right: Sequence[str], labels: Sequence[str]) -> ClassScores:
    """Score one predicted label against the right one for each example.

    Raises DragomanError when the counts differ, there is nothing to score, or a right label is none of `labels`.
    """
    if len(predicted) != len(right):
        raise Error.UNEQUAL_COUNTS(f"{len(predicted):,} labels cannot be scored against {len(right):,} references")
    if not right:
        raise Error.EMPTY("there is nothing to score: no examples")
    unknown = sorted(set(right) - set(labels))
    if unknown:
        raise Error.UNKNOWN_NAME(f"the label {unknown[0]!r} is none that the model was trained on: {', '.join(labels)}")
    number = {label: row for row, label in enumerate(labels)}
    confusion = np.zeros((len(labels), len(labels)), dtype=np.int64)
    np.add.at(confusion, ([number[label] for label in right], [number[label] for label in predicted]), 1)
    return ClassScores(tuple(labels), confusion)
