"""A convolution over neighbouring tokens: n-gram detectors in front of attention."""

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.nn.dropout import Dropout


class TokenConvolution(nn.Module):
    """x + dropout(gelu(convolution of x)): each position sees its neighbours (the filters of Kim 2014).

    Attention has to learn from data that neighbours belong together. Vectors at padding must be zero, as those beyond
    the ends are.
    """

    def __init__(self, d_model: int, width: int, dropout: float) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(d_model, d_model, width, padding="same")
        self.dropout = Dropout(dropout)

    def forward(self, x: Float[Tensor, "batch len d_model"]) -> Float[Tensor, "batch len d_model"]:
        return x + self.dropout(F.gelu(self.convolution(x.transpose(1, 2)).transpose(1, 2)))
