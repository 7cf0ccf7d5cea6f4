"""R-Drop: two passes with other dropout shall say the same (Liang et al. 2021, equations 1 to 4).

For one position, with p and q the distributions that the two passes give the next token, the loss is

    (cross-entropy of p + cross-entropy of q) / 2  +  weight / 4 * (KL(p || q) + KL(q || p))

which is half of the paper's, so that its size is that of a single pass and `weight` is still the paper's alpha. With
d = log p - log q the sum of both divergences is sum((p - q) * d), and its gradient by the logits of p is
p * (d - KL(p || q)) + p - q; that of q is the same with p and q exchanged.
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from dragoman.training.loss import rows_at_once, times, token_loss


def r_drop_loss(
    passes: Callable[[], Tensor],
    tgt_out: Int[Tensor, "batch tgt_len"],
    tgt_mask: Bool[Tensor, "batch tgt_len"],
    label_smoothing: float,
    weight: float,
) -> Float[Tensor, ""]:
    """Twice the loss above, summed over the real tokens: the caller divides by twice their number.

    `passes` runs the model forward, (batch, tgt_len, vocab) logits, and draws its dropout anew each time. Both passes
    are held for the way back, so a batch takes about twice the memory and time of one without R-Drop.
    """
    first, second = passes(), passes()
    loss = token_loss(first, tgt_out, tgt_mask, label_smoothing) + token_loss(
        second, tgt_out, tgt_mask, label_smoothing
    )
    return loss + divergence(first, second, tgt_mask, weight / 2)


def textbook_divergence(
    first: Float[Tensor, "positions vocab"], second: Float[Tensor, "positions vocab"]
) -> Float[Tensor, ""]:
    """KL(p || q) + KL(q || p), summed over positions, by PyTorch's own function: the readable twin of `divergence`."""
    p, q = (logits.float().log_softmax(dim=-1) for logits in (first, second))
    one, other = (F.kl_div(b, a, reduction="sum", log_target=True) for a, b in ((p, q), (q, p)))
    return one + other


def divergence(
    first: Float[Tensor, "batch tgt_len vocab"],
    second: Float[Tensor, "batch tgt_len vocab"],
    mask: Bool[Tensor, "batch tgt_len"],
    weight: float,
) -> Float[Tensor, ""]:
    """`weight` times the sum of both divergences over the real tokens, in nats."""
    total: Tensor = _Divergence.apply(first.flatten(0, 1), second.flatten(0, 1), mask.flatten(), weight)
    return total


class _Divergence(torch.autograd.Function):
    """The formulas above, a few rows at a time and with the gradients made on the way, as in `loss.py`."""

    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor, mask: Tensor, weight: float) -> Tensor:
        gradients = torch.empty_like(first), torch.empty_like(second)
        total = first.new_zeros((), dtype=torch.float32)
        at_once = rows_at_once(first)
        for start in range(0, len(first), at_once):
            rows = slice(start, start + at_once)
            scale = weight * mask[rows, None].float()
            log_p, log_q = (logits[rows].float().log_softmax(dim=-1) for logits in (first, second))
            p, q, d = log_p.exp(), log_q.exp(), log_p - log_q
            p_from_q, q_from_p = (p * d).sum(dim=-1, keepdim=True), -(q * d).sum(dim=-1, keepdim=True)
            total += ((p_from_q + q_from_p) * scale).sum()
            gradients[0][rows] = (p * (d - p_from_q) + p - q) * scale
            gradients[1][rows] = (q * (-d - q_from_p) + q - p) * scale
        ctx.save_for_backward(*gradients)
        return total

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor, None, None]:
        first, second = ctx.saved_tensors
        return times(first, grad_output), times(second, grad_output), None, None
