"""One optimizer step: forward, backward, gradient accumulation, clipping, update. The place for a breakpoint.

The batches of a step come from a pure function of (seed, step), and the random numbers of each micro-batch are keyed by
(seed, step, micro-batch); so a step computes the same wherever and whenever it is taken.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.backends import chunked_loss
from dragoman.backends.accelerate import accelerate
from dragoman.backends.compile import compile_layers
from dragoman.data.random import hash64
from dragoman.device import autocast
from dragoman.errors import DragomanError
from dragoman.training import optim
from dragoman.training.config import TrainingConfig
from dragoman.training.loss import TEXTBOOK, Losses
from dragoman.training.nonfinite import NotFinite, not_finite
from dragoman.training.prefetch import Prefetcher
from dragoman.training.task import Task


def pick_losses(backend: str) -> Losses:
    """The losses of a training, for the setting `training.backend`."""
    return TEXTBOOK if backend == "textbook" else Losses(chunked_loss.token_loss, chunked_loss.divergence)


EMBEDDINGS = ("src_embedding", "tgt_embedding", "embedding")
"""The names of a model's parts that `embeddings` stands for."""


def frozen_parameters(model: nn.Module, parts: Sequence[str]) -> list[Tensor]:
    """The parameters of some parts of a model, for the setting `training.freeze`.

    Raises DragomanError for a part that there is not, and where nothing is left to train.
    """
    named = dict(model.named_parameters())
    frozen: dict[str, Tensor] = {}
    for part in parts:
        wanted = EMBEDDINGS if part == "embeddings" else (part,)
        found = {name: one for name, one in named.items() if any(f"{name}.".startswith(f"{w}.") for w in wanted)}
        if not found:
            there = ", ".join(dict.fromkeys(name.split(".")[0] for name in named))
            raise DragomanError(f"training.freeze: no part {part!r} in this model; it has {there}, and `embeddings`")
        frozen |= found
    if len(frozen) == len(named):
        raise DragomanError("training.freeze: all of the model is frozen: leave something to train")
    return list(frozen.values())


class TrainingStep:
    """Takes the optimizer steps of `model` on `task`; where a training stands is the caller's affair.

    `prefetch`: make the batches of the next step on a thread during this one; None: where the device is no CPU, whose
    cores have enough to do.
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
    ) -> None:
        self.config, self.model, self.task = config, model.to(device), task
        self.device, self.seed = device, seed
        self.set_precision(precision)
        self.parameters = list(self.model.parameters())  # once: to walk the modules costs a small model's step 2 %
        self.frozen = frozen_parameters(self.model, config.freeze)
        self.optimizer = config.optimizer.build(self.model)
        self.compiled = compile_layers(self.model, config.compile, device)
        prefetch = device.type != "cpu" if prefetch is None else prefetch
        self.prefetched = Prefetcher(task.batches, pin=device.type == "cuda") if prefetch else None

    def set_precision(self, precision: str) -> None:
        """Compute in `precision` from now on: a run that goes on keeps the one that it began in."""
        self.precision = precision
        if self.config.backend == "auto":
            accelerate(self.model, self.device, precision)

    def take(self, step: int, rate: float) -> tuple[Tensor, Tensor, int]:
        """One optimizer step: (mean loss in nats per target token, gradient norm, real tokens processed).

        Raises NotFinite, before anything is changed, where loss or gradient is no finite number.
        """
        loss_sum, count, processed = self.gradients(step)
        loss, norm = self.update(step, rate, loss_sum, count)
        return loss, norm, processed

    def batches(self, step: int) -> Sequence[Any]:
        """The micro-batches of a step."""
        return self.task.batches(step) if self.prefetched is None else self.prefetched.of(step)

    def gradients(self, step: int) -> tuple[Tensor, int, int]:
        """Those of a step, summed over its target tokens, in `.grad`: (loss sum, target tokens, real tokens)."""
        if not self.model.training:
            self.model.train()
        self.clear_gradients()
        if self.compiled == "graphs":  # a graph writes into its own memory each time it runs: add up outside of that
            for parameter in self.parameters:
                if parameter.requires_grad:  # one that has a gradient is decayed, be it zero
                    parameter.grad = torch.zeros_like(parameter)
        loss_sum = torch.zeros((), device=self.device)
        count = processed = 0
        for number, batch in enumerate(self.batches(step)):
            loss, tokens, all_tokens = self.backward(step, number, batch)
            loss_sum += loss
            count, processed = count + tokens, processed + all_tokens
        return loss_sum, count, processed

    def backward(self, step: int, number: int, batch: Any) -> tuple[Tensor, int, int]:
        """Forward and backward of a micro-batch, whose gradients are added to those there are: `Task.loss` of it."""
        if self.compiled == "graphs":
            torch.compiler.cudagraph_mark_step_begin()
        seed_for(self.seed, step, number)
        with autocast(self.device, self.precision):
            loss, tokens, all_tokens = self.task.loss(self.model, batch.to(self.device), self.config.label_smoothing)
        loss.backward()
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
        norm = torch.nn.utils.get_total_norm(gradients) / count
        loss, shown_norm = torch.stack([loss_sum / count, norm]).cpu().unbind()
        if problem := not_finite(loss, shown_norm):
            self.clear_gradients()
            raise NotFinite(f"step {step:,}: {problem} ({self._culprit(step)})", step)
        scale = torch.ones_like(norm) / count
        if self.config.clip_norm:
            scale *= (self.config.clip_norm / (norm + 1e-6)).clamp(max=1.0)
        torch._foreach_mul_(gradients, scale)  # divided and clipped in one walk
        optim.set_rate(self.optimizer, rate)
        with autocast(self.device, self.precision):  # an optimizer may have matrix products of its own
            self.optimizer.step()
        return loss, shown_norm

    def _culprit(self, step: int) -> str:
        """The micro-batch of a step that gives no finite numbers by itself, with the lines that it is made of."""
        batches = self.task.batches(step)
        for number, batch in enumerate(batches):
            loss, _, _ = self.backward(step, number, batch)
            gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
            problem = not_finite(loss, torch.nn.utils.get_total_norm(gradients))
            self.clear_gradients()
            if problem:
                return f"micro-batch {number + 1} of {len(batches)}: {self.task.describe_batch(step, number)}"
        return f"the sum of its {len(batches)} micro-batches; none by itself"

    def stop_prefetching(self) -> None:
        """Leave no thread behind."""
        if self.prefetched is not None:
            self.prefetched.stop()


def seed_for(seed: int, step: int, micro_batch: int) -> None:
    """Key torch's random numbers by (seed, step, micro-batch): the same wherever and whenever the batch is computed."""
    torch.manual_seed(hash64(f"{seed}/{step}/{micro_batch}") >> 1)
