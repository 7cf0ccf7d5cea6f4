"""Cross-entropy with label smoothing (Szegedy et al. 2016, section 7; Vaswani et al. 2017, section 5.4).

The target distribution puts 1 - eps on the right token and spreads eps evenly over the whole vocabulary of size V
(the right token included), so with log p = logits - logsumexp(logits) the loss of one position is

    logsumexp(logits) - (1 - eps) * logits[target] - eps * mean(logits)

and its gradient by the logits is softmax(logits) - eps / V, minus 1 - eps at the target.

With teachers (`distillation.py`), whose mean distribution of the next token is t, the target distribution is
(1 - weight) of the one above and weight of t; the gradient is again softmax(logits) minus it.

R-Drop (Liang et al. 2021, equations 1 to 4): two passes with other dropout shall say the same. For one position, with p
and q the distributions that the two passes give the next token, the loss is

    (cross-entropy of p + cross-entropy of q) / 2  +  weight / 4 * (KL(p || q) + KL(q || p))

which is half of the paper's loss: it is as large as the loss of a single pass, and `weight` is still the paper's alpha.
With d = log p - log q the sum of both divergences is sum((p - q) * d). Its gradient by the logits of p is
p * (d - KL(p || q)) + p - q; its gradient by the logits of q is the same with p and q exchanged.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F


def textbook_loss(
    logits: Float[Tensor, "positions vocab"], targets: Int[Tensor, " positions"], label_smoothing: float
) -> Float[Tensor, ""]:
    """Sum over positions, in float32."""
    return F.cross_entropy(logits.float(), targets, reduction="sum", label_smoothing=label_smoothing)


def token_loss(
    logits: Float[Tensor, "batch tgt_len vocab"],
    tgt_out: Int[Tensor, "batch tgt_len"],
    tgt_mask: Bool[Tensor, "batch tgt_len"] | Float[Tensor, "batch tgt_len"],
    label_smoothing: float = 0.0,
    *,
    in_place: bool = False,
    teachers: Sequence[Float[Tensor, "batch tgt_len vocab"]] = (),
    weight: float = 0.0,
) -> Float[Tensor, ""]:
    """Loss in nats, summed over the real tokens of the batch; the caller divides once by the global token count.

    `in_place`: the logits are not read again, so a fast implementation may replace them by the gradient; this one does
    not. `teachers`: the logits of other models for the same tokens. Their mean distribution has the share `weight`. A
    `tgt_mask` of numbers: what the loss of each token is multiplied by.
    """
    real = tgt_mask.flatten() > 0
    logits, targets, counts = logits.flatten(0, 1)[real].float(), tgt_out.flatten()[real], tgt_mask.flatten()[real]
    if tgt_mask.dtype == torch.bool:
        loss = textbook_loss(logits, targets, label_smoothing)
    else:
        loss = counts @ F.cross_entropy(logits, targets, reduction="none", label_smoothing=label_smoothing)
    if not teachers:
        return loss
    probs = torch.stack([teacher.flatten(0, 1)[real].float().softmax(dim=-1) for teacher in teachers]).mean(dim=0)
    return (1.0 - weight) * loss - weight * (counts[:, None] * probs * logits.log_softmax(dim=-1)).sum()


def divergence(
    first: Float[Tensor, "batch tgt_len vocab"],
    second: Float[Tensor, "batch tgt_len vocab"],
    mask: Bool[Tensor, "batch tgt_len"],
    weight: float,
) -> Float[Tensor, ""]:
    """`weight` times KL(p || q) + KL(q || p) of two predictions, summed over the real tokens, in nats."""
    p, q = (logits[mask].float().log_softmax(dim=-1) for logits in (first, second))
    one, other = (F.kl_div(b, a, reduction="sum", log_target=True) for a, b in ((p, q), (q, p)))
    return weight * (one + other)


@dataclass(frozen=True)
class Losses:
    """The loss functions of a training: those above, or their fast implementations in `backends.chunked_loss`."""

    token_loss: Callable[..., Tensor] = token_loss
    divergence: Callable[..., Tensor] = divergence


TEXTBOOK = Losses()


def r_drop_loss(
    passes: Callable[[], Tensor],
    tgt_out: Int[Tensor, "batch tgt_len"],
    tgt_mask: Bool[Tensor, "batch tgt_len"],
    label_smoothing: float,
    weight: float,
    losses: Losses,
) -> Float[Tensor, ""]:
    """Twice the loss of R-Drop, summed over the real tokens: the caller divides by twice their number.

    `passes` runs the model forward, (batch, tgt_len, vocab) logits, and draws its dropout anew each time. Both passes
    are held for the way back, so a batch takes about twice the memory and time of one without R-Drop.
    """
    first, second = passes(), passes()
    loss = sum(losses.token_loss(logits, tgt_out, tgt_mask, label_smoothing) for logits in (first, second))
    return loss + losses.divergence(first, second, tgt_mask, weight / 2)
