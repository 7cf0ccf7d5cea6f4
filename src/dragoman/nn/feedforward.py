"""The position-wise feed-forward networks."""

from collections.abc import Callable
from functools import partial

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.nn.dropout import Dropout


class FeedForward(nn.Module):
    """activation(x W1 + b1) W2 + b2, the same for every position (Vaswani et al. 2017, equation 2)."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0, *, activation: nn.Module) -> None:
        super().__init__()
        self.expand = nn.Linear(d_model, d_ff)
        self.activation = activation
        self.dropout = Dropout(dropout)
        self.contract = nn.Linear(d_ff, d_model)

    def forward(self, x: Float[Tensor, "batch len d_model"]) -> Float[Tensor, "batch len d_model"]:
        return self.contract(self.dropout(self.activation(self.expand(x))))


class SwiGLU(nn.Module):
    """(Swish(x W) * x V) W2, without biases (Shazeer 2020, equation 6): the expansion passes through a learned gate.

    It has three matrices, `FeedForward` two: with 2/3 of its `d_ff`, as in the paper, it has as many parameters.
    """

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.gate = nn.Linear(d_model, d_ff, bias=False)
        self.expand = nn.Linear(d_model, d_ff, bias=False)
        self.dropout = Dropout(dropout)
        self.contract = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x: Float[Tensor, "batch len d_model"]) -> Float[Tensor, "batch len d_model"]:
        return self.contract(self.dropout(F.silu(self.gate(x)) * self.expand(x)))


def _feed_forward(activation: Callable[[], nn.Module]) -> Callable[[int, int, float], nn.Module]:
    return lambda d_model, d_ff, dropout: FeedForward(d_model, d_ff, dropout, activation=activation())


FEED_FORWARDS: dict[str, Callable[[int, int, float], nn.Module]] = {
    "relu": _feed_forward(nn.ReLU),
    "gelu": _feed_forward(nn.GELU),
    "gelu_tanh": _feed_forward(partial(nn.GELU, approximate="tanh")),
    "silu": _feed_forward(nn.SiLU),
    "swiglu": SwiGLU,
}
"""Activation to a network of (d_model, d_ff, dropout). `gelu_tanh` is the approximation of GPT-2; `silu`, x times its
sigmoid, is Marian's "swish"."""
