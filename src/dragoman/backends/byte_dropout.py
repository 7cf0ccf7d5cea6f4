"""Dropout with one random byte for each element: the fast implementation of `nn.dropout.Dropout` on a CPU.

`torch.nn.functional.dropout` draws one float for each element, one after the other. Here one 64-bit random word decides
for eight elements. The rate is therefore a multiple of 1/256, which is closer to the setting than any batch is.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.nn.dropout import Dropout


def byte_dropout(x: Tensor, rate: float) -> Tensor:
    """Zero elements with probability `rate` and scale the rest so that the expectation stays, as `F.dropout`.

    In bfloat16 the scale is rounded, at a rate of 0.1 by 0.3 %.
    """
    decisions, dropped = _decisions(x.shape, rate, x.device)
    factor = torch.empty_like(decisions, dtype=x.dtype)
    torch.ge(decisions, dropped, out=factor)  # as numbers at once
    factor *= 256 / (256 - dropped)
    return x * factor


def _decisions(shape: torch.Size, rate: float, device: torch.device) -> tuple[Tensor, int]:
    """(a random byte for each element from torch's global generator, the least byte that keeps it)."""
    count = shape.numel()
    words = torch.empty((count + 7) // 8, dtype=torch.int64, device=device).random_(-(2**63), None)
    return words.view(torch.uint8)[:count].view(shape), round(rate * 256)


class ByteDropout(Dropout):
    """`Dropout` that draws bytes."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0.0:
            return x
        # A compiler fuses F.dropout with the operations around it, and cannot view words as bytes.
        if x.device.type == "cpu" and self.rate < 0.99 and not torch.compiler.is_compiling():
            return byte_dropout(x, self.rate)
        return F.dropout(x, self.rate)
