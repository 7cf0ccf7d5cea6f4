"""Which of a run's validations is the best one: for the training loop, its checkpoints and its report alike."""

import math
from collections.abc import Mapping
from typing import Any

Rank = tuple[float, float]

UNRANKED: Rank = (-math.inf, -math.inf)
"""The rank of what was never validated: below every other."""


def rank(validation: Mapping[str, Any]) -> Rank:
    """The key to compare validations by: the higher `score` is better, and of equal scores the lower `loss`.

    Scores do tie: a small validation set that is answered without a fault is answered so again and again, while the
    loss still falls. Either figure may be missing.

    >>> max({"score": 100.0, "loss": 0.3}, {"score": 100.0, "loss": 0.1}, {"score": 99.0, "loss": 0.0}, key=rank)
    {'score': 100.0, 'loss': 0.1}
    """
    score, loss = validation.get("score"), validation.get("loss")
    return (-math.inf if score is None else float(score), -math.inf if loss is None else -float(loss))
