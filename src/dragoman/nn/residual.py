"""Residual connections: the placement of the norm around a sublayer."""

from collections.abc import Callable

from torch import Tensor, nn

from dragoman.nn.dropout import Dropout


class ResidualConnection(nn.Module):
    """A sublayer with the path around it. Abstract; a subclass is one placement of the norm."""

    normalises_output: bool
    """True if the output is normalised. If not, the stack ends in one more norm."""

    def __init__(self, norm: nn.Module, dropout: float) -> None:
        super().__init__()
        self.norm, self.dropout = norm, Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """`x`, what `sublayer` returns, and the result: (batch, len, d_model)."""
        raise NotImplementedError


class PostNorm(ResidualConnection):
    """norm(x + dropout(sublayer(x))): the paper's own placement (Vaswani et al. 2017, section 5.4)."""

    normalises_output = True

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return self.norm(x + self.dropout(sublayer(x)))


class PreNorm(ResidualConnection):
    """x + dropout(sublayer(norm(x))): an unbroken residual path, steadier to train (Xiong et al. 2020).

    The stack then ends in one more norm, since nothing has normalised its output.
    """

    normalises_output = False

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return x + self.dropout(sublayer(self.norm(x)))


class OutputNorm(ResidualConnection):
    """x + dropout(norm(sublayer(x))): every sublayer adds a vector of the same size (Liu et al. 2022, Swin V2).

    The residual path is as unbroken as with `PreNorm` and never normalised itself: it grows with every layer, so the
    stack ends in one more norm here too.
    """

    normalises_output = False

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        # In the residual path's own precision, as in the other placements: autocast's bfloat16 ends at the sublayer.
        return x + self.dropout(self.norm(sublayer(x).to(x.dtype)))


NORMS: dict[str, Callable[..., nn.Module]] = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}
"""By size and `eps`. LayerNorm: Ba et al. 2016; RMSNorm, without mean and bias: Zhang and Sennrich 2019."""
NORM_PLACEMENTS: dict[str, type[ResidualConnection]] = {"post": PostNorm, "pre": PreNorm, "output": OutputNorm}
