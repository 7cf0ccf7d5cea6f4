"""Chapter 0: before you begin."""

import torch

from dragoman.learn.exercise import Exercise


def predict_shape() -> tuple[int, ...]:
    """Predict what this code returns: a shape, as (2, 3). Write `return` and your prediction, then run the code."""
    a = torch.zeros(2, 3, 1)
    b = torch.zeros(4)
    return tuple((a + b).shape)


def predict_columns() -> list[float]:
    """Predict what this code returns: a list of numbers."""
    x = torch.tensor([[1.0, 2.0, 3.0], [5.0, 6.0, 7.0]])
    return x.mean(dim=0).tolist()


EXERCISES = [Exercise(0, predict_shape), Exercise(0, predict_columns)]
