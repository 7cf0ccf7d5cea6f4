"""Word-level knowledge distillation (Hinton et al. 2015, section 2; Kim and Rush 2016, section 3.1).

Runs that are trained already, the teachers, read each batch as well, and what they think of every next token is part of
what the model is to learn: with q the smoothed target distribution of `loss.py` and t the mean of the teachers'
distributions, it is trained towards

    (1 - weight) * q + weight * t

An ensemble is better than each of its models, and so many times as slow; this way one model comes closer to it (in its
loss: what is gained in BLEU has to be tried, benchmarks/log/2026-11.md, "word-level distillation"). Every teacher costs
a pass forward and a softmax of its own, on a CPU about half of what a step of such a model takes.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dragoman.config import Field, settings


@settings
class DistillationConfig:
    """Teachers that a model learns from beside the corpus."""

    teachers: list[str] = Field(default_factory=list)
    """Run directories of the same tokenizer, whose best weights teach."""
    weight: float = Field(default=0.5, gt=0, le=1)
    """Share of the teachers' distribution in the target; the corpus has the rest."""


class Teachers:
    """Trained models, in the precision that they compute in. Without any, nothing is distilled."""

    def __init__(self, models: Sequence[nn.Module] = (), weight: float = 0.0) -> None:
        self.models, self.weight = [model.eval().requires_grad_(False) for model in models], weight

    @torch.no_grad()
    def logits(self, *inputs: Tensor) -> list[Tensor]:
        """The logits of each teacher for the inputs of the model that learns."""
        with torch.autocast(inputs[0].device.type, enabled=False):
            return [model(*inputs) for model in self.models]
