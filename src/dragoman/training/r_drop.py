"""R-Drop: two passes with other dropout shall say the same (Liang et al. 2021, equations 1 to 4).

For one position, with p and q the distributions that the two passes give the next token, the loss is

    (cross-entropy of p + cross-entropy of q) / 2  +  weight / 4 * (KL(p || q) + KL(q || p))

which is half of the paper's, so that its size is that of a single pass and `weight` is still the paper's alpha. With
d = log p - log q the sum of both divergences is sum((p - q) * d), and its gradient by the logits of p is
p * (d - KL(p || q)) + p - q; that of q is the same with p and q exchanged.
"""

from collections.abc import Callable

from jaxtyping import Bool, Float, Int
from torch import Tensor

from dragoman.training.loss import Losses


def r_drop_loss(
    passes: Callable[[], Tensor],
    tgt_out: Int[Tensor, "batch tgt_len"],
    tgt_mask: Bool[Tensor, "batch tgt_len"],
    label_smoothing: float,
    weight: float,
    losses: Losses,
) -> Float[Tensor, ""]:
    """Twice the loss above, summed over the real tokens: the caller divides by twice their number.

    `passes` runs the model forward, (batch, tgt_len, vocab) logits, and draws its dropout anew each time. Both passes
    are held for the way back, so a batch takes about twice the memory and time of one without R-Drop.
    """
    first, second = passes(), passes()
    loss = sum(losses.token_loss(logits, tgt_out, tgt_mask, label_smoothing) for logits in (first, second))
    return loss + losses.divergence(first, second, tgt_mask, weight / 2)
