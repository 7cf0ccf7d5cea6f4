"""The losses of training, a few positions at a time: the fast implementations of `training.loss`.

PyTorch's cross-entropy walks the (positions x vocab) matrix some eight times in float32, which on a CPU costs a third
of a training step. Here the gradient is made while the logits are in cache, in the dtype of the logits.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

ROWS_AT_ONCE = 128
"""Positions whose float32 logits are held at once: 128 x 8,000 x 4 bytes = 4 MB, about a core's cache."""
GPU_LOGITS_AT_ONCE = 2**27
"""On a GPU: as many logits as keep thousands of cores busy. In float32 they are half a gigabyte, which is held twice,
and four times with teachers."""


def token_loss(
    logits: Float[Tensor, "batch tgt_len vocab"],
    tgt_out: Int[Tensor, "batch tgt_len"],
    tgt_mask: Bool[Tensor, "batch tgt_len"] | Float[Tensor, "batch tgt_len"],
    label_smoothing: float = 0.0,
    *,
    in_place: bool = False,
    teachers: Sequence[Float[Tensor, "batch tgt_len vocab"]] = (),
    weight: float = 0.0,
    kernels: bool = False,
) -> Float[Tensor, ""]:
    """`training.loss.token_loss`. `in_place`: the gradient, if there will be one, takes the place of the logits.
    `kernels`: compute the loss in C in float32 too."""
    loss: Tensor = _SmoothedCrossEntropy.apply(
        logits.flatten(0, 1),
        tgt_out.flatten(),
        tgt_mask.flatten(),
        label_smoothing,
        in_place,
        kernels,
        weight if teachers else 0.0,
        *(teacher.flatten(0, 1) for teacher in teachers),
    )
    return loss


kernel_loss = partial(token_loss, kernels=True)


def divergence(
    first: Float[Tensor, "batch tgt_len vocab"],
    second: Float[Tensor, "batch tgt_len vocab"],
    mask: Bool[Tensor, "batch tgt_len"],
    weight: float,
) -> Float[Tensor, ""]:
    """`training.loss.divergence`."""
    total: Tensor = _Divergence.apply(first.flatten(0, 1), second.flatten(0, 1), mask.flatten(), weight)
    return total


class _SmoothedCrossEntropy(torch.autograd.Function):
    """The formulas of `training.loss`, a few rows at a time."""

    @staticmethod
    def forward(
        ctx: Any,
        logits: Tensor,
        targets: Tensor,
        mask: Tensor,
        label_smoothing: float,
        in_place: bool,
        in_c: bool,
        weight: float,
        *teachers: Tensor,
    ) -> Tensor:
        at_target, everywhere = (1.0 - weight) * (1.0 - label_smoothing), (1.0 - weight) * label_smoothing
        gradient = None
        if ctx.needs_input_grad[0]:
            gradient = logits.detach() if in_place else torch.empty_like(logits)
        alone = not teachers and mask.dtype == torch.bool
        if gradient is not None and in_place and alone and _has_kernel(logits, in_c):
            from dragoman.backends.cpu_training import kernels

            losses = kernels.cross_entropy(gradient, targets, mask, at_target, everywhere)
            torch.autograd.graph.increment_version(gradient)  # PyTorch has not seen this write
            ctx.save_for_backward(gradient)
            return losses.sum()
        total, shift = logits.new_zeros((), dtype=torch.float32), _shift(logits)
        at_once = rows_at_once(logits)
        # Allocated once: the system clears new memory page by page.
        buffer = logits.new_empty(4 if teachers else 2, min(at_once, len(logits)), logits.size(1), dtype=torch.float32)
        for start in range(0, len(logits), at_once):
            rows = slice(start, start + at_once)
            target, real = targets[rows, None], mask[rows, None].float()
            scores, probabilities, *taught = buffer[:, : len(target)]
            scores.copy_(logits[rows])
            at_target_logits, max_logits = scores.gather(1, target), scores.amax(dim=-1, keepdim=True)
            torch.softmax(scores, dim=-1, out=probabilities)  # one pass; exponentials for sum and gradient would be two
            # At the largest logit log p = logit - log Z with p >= 1/V, which gives log Z without a sum.
            log_normalizer = max_logits - probabilities.amax(dim=-1, keepdim=True).log()
            losses = log_normalizer - at_target * at_target_logits
            if label_smoothing:
                losses -= everywhere * scores.mean(dim=-1, keepdim=True)
            if teachers:
                taught_probs = _mean_distribution([teacher[rows] for teacher in teachers], *taught).mul_(weight)
                losses -= (taught_probs * scores).sum(dim=-1, keepdim=True)
            total += (losses * real).sum()
            if gradient is not None:
                chunk = probabilities.mul_(real)
                if label_smoothing:
                    chunk -= real * (everywhere / logits.size(1))
                chunk.scatter_add_(1, target, real * -at_target)
                if teachers:
                    chunk.addcmul_(taught_probs, real, value=-1.0)
                gradient[rows] = chunk if shift == 1.0 else chunk.mul_(shift)
        ctx.save_for_backward(gradient)
        return total

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return times(gradient, grad_output), *(None for _ in ctx.needs_input_grad[1:])


def _has_kernel(logits: Tensor, float32: bool) -> bool:
    """True if the C kernel can replace the loop above: in bfloat16, and in float32 if that is chosen."""
    dtypes = (torch.bfloat16, torch.float32) if float32 else (torch.bfloat16,)
    if not (logits.device.type == "cpu" and logits.dtype in dtypes and logits.is_contiguous()):
        return False
    from dragoman.backends.cpu_training import kernels

    return kernels.available(logits.dtype)


def rows_at_once(logits: Float[Tensor, "positions vocab"]) -> int:
    """Positions of a chunk in float32."""
    return ROWS_AT_ONCE if logits.device.type == "cpu" else max(1, GPU_LOGITS_AT_ONCE // logits.size(1))


def _mean_distribution(logits: Sequence[Tensor], total: Tensor, scores: Tensor) -> Tensor:
    """The mean of softmax(one) over `logits`, in `total`; `scores` is a buffer."""
    for number, one in enumerate(logits):
        scores.copy_(one)
        if number == 0:
            torch.softmax(scores, dim=-1, out=total)
        else:
            total += scores.softmax(dim=-1)
    return total.div_(len(logits))


def _shift(logits: Tensor) -> float:
    """The factor of gradients as long as they are kept: float16 has nothing below 6e-8."""
    return 1024.0 if logits.dtype == torch.float16 else 1.0


def times(gradient: Tensor, grad_output: Tensor) -> Tensor:
    """A gradient by the logits, from the forward pass, times `grad_output`.

    The training loop backpropagates the bare sum and divides the parameters' gradients once, so `grad_output` is nearly
    always 1, and a CPU saves a pass over (positions x vocab). On a GPU, reading the value would wait for the queue.
    """
    if (shift := _shift(gradient)) != 1.0:
        grad_output = grad_output / shift
    if grad_output.device.type == "cpu" and grad_output.item() == 1.0:
        return gradient
    return gradient * grad_output.to(gradient.dtype)


class _Divergence(torch.autograd.Function):
    """The formulas of R-Drop (`training.loss`), a few rows at a time, the gradients made on the way."""

    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor, mask: Tensor, weight: float) -> Tensor:
        gradients = torch.empty_like(first), torch.empty_like(second)
        total, shift = first.new_zeros((), dtype=torch.float32), _shift(first)
        at_once = rows_at_once(first)
        for start in range(0, len(first), at_once):
            rows = slice(start, start + at_once)
            real = mask[rows, None].float()
            scale = weight * shift * real
            log_p, log_q = (logits[rows].float().log_softmax(dim=-1) for logits in (first, second))
            p, q, d = log_p.exp(), log_q.exp(), log_p - log_q
            p_from_q, q_from_p = (p * d).sum(dim=-1, keepdim=True), -(q * d).sum(dim=-1, keepdim=True)
            total += ((p_from_q + q_from_p) * (weight * real)).sum()
            gradients[0][rows] = (p * (d - p_from_q) + p - q) * scale
            gradients[1][rows] = (q * (-d - q_from_p) + q - p) * scale
        ctx.save_for_backward(*gradients)
        return total

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor, None, None]:
        first, second = ctx.saved_tensors
        return times(first, grad_output), times(second, grad_output), None, None
