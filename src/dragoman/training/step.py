"""One optimizer step: forward, backward, gradient accumulation, clipping, update. The place for a breakpoint.

The batches of a step come from a pure function of (seed, step), and the random numbers of each micro-batch are keyed by
(seed, step, micro-batch); so a step computes the same wherever and whenever it is taken, by however many processes.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.backends import chunked_loss
from dragoman.backends.accelerate import accelerate
from dragoman.backends.compile import compile_layers
from dragoman.data.random import hash64
from dragoman.device import autocast
from dragoman.models.stacks import checkpoint_layers
from dragoman.training import optim
from dragoman.training.config import TrainingConfig
from dragoman.training.distributed import Ranks, TorchRanks
from dragoman.training.fast_reduction import FastReduction
from dragoman.training.loss import TEXTBOOK, Losses
from dragoman.training.loss_scale import LossScale, Overflow
from dragoman.training.nonfinite import NotFinite, not_finite
from dragoman.training.prefetch import Prefetcher
from dragoman.training.summation import Sums, tree_sum
from dragoman.training.task import Task


def pick_losses(backend: str) -> Losses:
    """The losses of a training, for the setting `training.backend`."""
    token_loss = chunked_loss.kernel_loss if backend == "kernels" else chunked_loss.token_loss
    return TEXTBOOK if backend == "textbook" else Losses(token_loss, chunked_loss.divergence)


class TrainingStep:
    """Takes the optimizer steps of `model` on `task`; where a training stands is the caller's affair.

    `prefetch`: make the batches of the next step on a thread during this one; None: where the device is no CPU, whose
    cores have enough to do, or where the task reads them from a disk.
    """

    def __init__(
        self,
        config: TrainingConfig,
        model: nn.Module,
        task: Task,
        *,
        device: torch.device,
        precision: str,
        seed: int,
        prefetch: bool | None = None,
        ranks: Ranks | None = None,
    ) -> None:
        self.ranks = ranks or Ranks()
        self.config, self.model, self.task = config, model.to(device), task
        self.device, self.seed = device, seed
        self.set_precision(precision)
        self.parameters = list(self.model.parameters())  # once: to walk the modules costs a small model's step 2 %
        self.frozen = optim.frozen_parameters(self.model, config.freeze)
        self.optimizer = config.optimizer.build(self.model)
        if config.gradient_checkpointing:
            checkpoint_layers(model)
        self.compiled = compile_layers(self.model, config.compile, device)
        if prefetch is None:
            prefetch = device.type != "cpu" or getattr(task, "from_disk", False)
        self.prefetched = Prefetcher(self._made, device if device.type == "cuda" else None) if prefetch else None
        self.fast: FastReduction | None = None
        if config.reduce == "fast" and isinstance(self.ranks, TorchRanks):
            self.fast = FastReduction(self.model, self.parameters, self.ranks)

    def set_precision(self, precision: str) -> None:
        """Compute in `precision` from now on: a resumed run keeps the precision that it began in."""
        self.precision, self.loss_scale = precision, LossScale.of(precision)
        if self.config.backend != "textbook":
            accelerate(self.model, self.device, precision, kernels=self.config.backend == "kernels")

    def take(self, step: int, rate: float) -> tuple[Tensor, Tensor, int]:
        """One optimizer step: (mean loss in nats per target token, gradient norm, real tokens processed).

        Raises NotFinite, before anything is changed, where loss or gradient is no finite number.
        """
        loss_sum, count, processed = self.gradients(step)
        loss, norm = self.update(step, rate, loss_sum, count)
        return loss, norm, processed

    def batches(self, step: int) -> Sequence[tuple[int, Sequence[Any]]]:
        """The micro-batches of a step that this rank computes: (number, its parts) of each."""
        return self._made(step) if self.prefetched is None else self.prefetched.of(step)

    def _made(self, step: int) -> list[tuple[int, Sequence[Any]]]:
        mine = self.ranks.local_micro_batches(self.config.micro_batches, self.task.count(step))
        return [(number, self.task.micro_batch(step, number)) for number in mine]

    def gradients(self, step: int) -> tuple[Tensor, int, int]:
        """The gradients of a step, summed over target tokens, in `.grad`: (loss sum, target tokens, real tokens)."""
        if not self.model.training:
            self.model.train()
        planned, count = self.config.micro_batches, self.task.count(step)
        parts = [[(number, part, batch) for part, batch in enumerate(made)] for number, made in self.batches(step)]
        if self.fast is not None:
            self.clear_gradients()
            all_compute = count > planned - planned // self.ranks.world  # the last rank too
            total = self.fast.sum(
                list(chain(*parts)), all_compute, lambda it, model: self.backward(step, it[0], it[1], it[2], model)
            )
        else:
            own = tree_sum(self._leaf(step, one) for one in parts)
            total = self.ranks.all_reduce(own, self.parameters, planned, count)
        for parameter, gradient in zip(self.parameters, total.gradients, strict=True):
            parameter.grad = gradient
        return total.loss, total.tokens, total.processed

    def _leaf(self, step: int, parts: Sequence[tuple[int, int, Any]]) -> Sums:
        """The sums over parts that are computed one after the other; each is (micro-batch, part of it, batch)."""
        self.clear_gradients()
        if self.compiled == "graphs":  # a graph writes into its own memory each time it runs: add up outside of that
            for parameter in self.parameters:
                if parameter.requires_grad:  # one that has a gradient is decayed, be it zero
                    parameter.grad = torch.zeros_like(parameter)
        sums = Sums([], torch.zeros((), device=self.device), 0, 0)
        for number, part, batch in parts:
            loss, tokens, processed = self.backward(step, number, part, batch)
            sums.loss += loss
            sums.tokens, sums.processed = sums.tokens + tokens, sums.processed + processed
        sums.gradients = [parameter.grad for parameter in self.parameters]
        return sums

    def backward(
        self, step: int, number: int, part: int, batch: Any, model: nn.Module | None = None
    ) -> tuple[Tensor, int, int]:
        """Forward and backward of (a part of) a micro-batch (`Task.loss`): gradients are added to the existing
        gradients. `model`: the trained model, wrapped by a library that sums its gradients over ranks.
        """
        if self.compiled == "graphs":
            torch.compiler.cudagraph_mark_step_begin()
        seed_for(self.seed, step, number + part * self.config.micro_batches)
        with autocast(self.device, self.precision):
            loss, tokens, all_tokens = self.task.loss(
                model or self.model, batch.to(self.device), self.config.label_smoothing
            )
        if loss.requires_grad:  # not so where all that is trained is in layers that this pass drops
            (loss * self.loss_scale.value if self.loss_scale.is_dynamic else loss).backward()
        return loss.detach(), tokens, all_tokens

    def clear_gradients(self) -> None:
        """`optimizer.zero_grad()`, without the half millisecond that it takes for a small model."""
        for parameter in self.parameters:
            parameter.grad = None

    def update(self, step: int, rate: float, loss_sum: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Move the weights by what `gradients` left: (mean loss, norm of the gradient), both on the CPU.

        Raises NotFinite. To look at those two numbers is the one time in a step that the program waits for a GPU.
        """
        for parameter in self.frozen:
            parameter.grad = None  # which an optimizer passes over
        gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
        # The loss is a sum over tokens; it is divided here, once, by the number of tokens of the whole step.
        divisor = count * self.loss_scale.value
        norm = torch.nn.utils.get_total_norm(gradients) / divisor
        loss, shown_norm = torch.stack([loss_sum / count, norm]).cpu().unbind()
        if problem := not_finite(loss, shown_norm):
            self.clear_gradients()
            if loss.isfinite() and self.loss_scale.overflowed():
                raise Overflow(f"step {step:,}: a gradient overflows float16; the loss is scaled down", step)
            raise NotFinite(f"step {step:,}: {problem} ({self._culprit(step)})", step)
        self.loss_scale.passed()
        scale = torch.ones_like(norm) / divisor
        if self.config.clip_norm:
            scale *= (self.config.clip_norm / (norm + 1e-6)).clamp(max=1.0)
        if gradients:
            torch._foreach_mul_(gradients, scale)  # divided and clipped in one walk
        optim.set_rate(self.optimizer, rate)
        with autocast(self.device, self.precision):  # an optimizer may have matrix products of its own
            self.optimizer.step()
        return loss, shown_norm

    def _culprit(self, step: int) -> str:
        """The micro-batch of a step that gives no finite numbers by itself, with the lines that it is made of."""
        count = self.task.count(step)
        culprit = next(filter(None, self.ranks.all_gather(self._culprit_of_mine(step, count))), "")
        return culprit or f"the sum of its {count} micro-batches; none by itself"

    def _culprit_of_mine(self, step: int, count: int) -> str:
        for number, parts in self._made(step):
            for part, batch in enumerate(parts):
                loss, _, _ = self.backward(step, number, part, batch)
                gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
                problem = not_finite(loss, torch.nn.utils.get_total_norm(gradients))
                self.clear_gradients()
                if problem:
                    return f"micro-batch {number + 1} of {count}: {self.task.describe(batch)}"
        return ""

    def stop_prefetching(self) -> None:
        """Leave no thread behind."""
        if self.prefetched is not None:
            self.prefetched.stop()


def seed_for(seed: int, step: int, micro_batch: int) -> None:
    """Key torch's random numbers by (seed, step, micro-batch): the same wherever and whenever the batch is computed."""
    torch.manual_seed(hash64(f"{seed}/{step}/{micro_batch}") >> 1)
