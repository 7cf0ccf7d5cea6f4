"""Dropout (Srivastava et al. 2014)."""

from torch import Tensor, nn
from torch.nn import functional as F


class Dropout(nn.Module):
    """Zero elements with probability `rate` in training and scale the others by 1 / (1 - rate).

    The choice comes from torch's global generator, which the training loop keys by (seed, step, micro-batch).
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.rate) if self.training and self.rate else x

    def extra_repr(self) -> str:
        return f"rate={self.rate}"
