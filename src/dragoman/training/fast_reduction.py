"""`training.reduce: fast`: the sum of gradients by PyTorch's DistributedDataParallel, while they are computed.

It sends gradients in buckets as soon as they are there, so that little is left to wait for after the backward pass. The
order of its sums depends on the number of processes: equal to those of `summation.py` up to rounding.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from dragoman.models.stacks import refuse_dropped
from dragoman.training.distributed import TorchRanks, flattened, unflattened
from dragoman.training.summation import Sums

Backward = Callable[[Any, nn.Module], tuple[Tensor, int, int]]
"""Forward and backward of a part through a model: (loss, tokens, tokens processed)."""


class FastReduction:
    """Sums gradients over all ranks. The first step, which shows what parameters take part, is summed in one piece."""

    def __init__(self, model: nn.Module, parameters: Sequence[Tensor], ranks: TorchRanks) -> None:
        refuse_dropped(model)
        self.model, self.parameters, self.ranks = model, parameters, ranks
        self.wrapped: DistributedDataParallel | None = None

    def sum(self, parts: Sequence[Any], all_compute: bool, backward: Backward) -> Sums:
        """The sums over the parts of all ranks; `all_compute`: each rank has one at least, in this step."""
        overlapped = self.wrapped is not None and all_compute
        model = self.wrapped or self.model
        model.train()
        sums = Sums([], torch.zeros((), device=self.parameters[0].device), 0, 0)
        for place, part in enumerate(parts):
            alone = self.wrapped is not None and not (overlapped and place == len(parts) - 1)
            with self.wrapped.no_sync() if alone and self.wrapped is not None else contextlib.nullcontext():
                loss, tokens, processed = backward(part, model)
            sums.loss, sums.tokens, sums.processed = sums.loss + loss, sums.tokens + tokens, sums.processed + processed
        sums.gradients = [parameter.grad for parameter in self.parameters]
        if overlapped:
            torch._foreach_mul_([one for one in sums.gradients if one is not None], float(self.ranks.world))
            figures = torch.tensor([float(sums.loss), sums.tokens, sums.processed], dtype=torch.float64)
            dist.all_reduce(figures, group=self.ranks.gradients_group)
            return Sums(sums.gradients, figures[0].to(sums.loss), int(figures[1]), int(figures[2]))
        flags = self.ranks.flags(sums if parts else None, len(self.parameters))
        flat = flattened(sums, self.parameters)
        dist.all_reduce(flat, group=self.ranks.gradients_group)
        there = flags[:, 3:].any(dim=0)
        gradients, loss = unflattened(flat, self.parameters, there)
        if self.wrapped is None:
            self.wrapped = DistributedDataParallel(
                self.model,
                process_group=self.ranks.gradients_group,
                broadcast_buffers=False,
                find_unused_parameters=not bool(there.all()),
            )
        return Sums(gradients, loss, int(flags[:, 1].sum()), int(flags[:, 2].sum()))
