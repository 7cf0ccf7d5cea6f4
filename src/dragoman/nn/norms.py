"""Normalisation, and where it stands around a sublayer."""

from collections.abc import Callable

from torch import Tensor, nn

from dragoman.nn.dropout import Dropout


class PostNorm(nn.Module):
    """norm(x + dropout(sublayer(x))): the paper's own placement (Vaswani et al. 2017, section 5.4)."""

    def __init__(self, norm: nn.Module, dropout: float) -> None:
        super().__init__()
        self.norm, self.dropout = norm, Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return self.norm(x + self.dropout(sublayer(x)))


class PreNorm(nn.Module):
    """x + dropout(sublayer(norm(x))): an unbroken residual path, steadier to train (Xiong et al. 2020).

    The stack then ends in one more norm, since nothing has normalised its output.
    """

    def __init__(self, norm: nn.Module, dropout: float) -> None:
        super().__init__()
        self.norm, self.dropout = norm, Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return x + self.dropout(sublayer(self.norm(x)))


NORMS: dict[str, Callable[[int], nn.Module]] = {"layer": nn.LayerNorm}
NORM_PLACEMENTS: dict[str, Callable[[nn.Module, float], nn.Module]] = {"post": PostNorm, "pre": PreNorm}
