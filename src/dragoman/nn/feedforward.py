"""The position-wise feed-forward network (Vaswani et al. 2017, section 3.3)."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn

from dragoman.nn.dropout import Dropout


class FeedForward(nn.Module):
    """activation(x W1 + b1) W2 + b2 (equation 2), the same for every position."""

    def __init__(self, d_model: int, d_ff: int, activation: str = "relu", dropout: float = 0.0) -> None:
        super().__init__()
        self.expand = nn.Linear(d_model, d_ff)
        self.activation = ACTIVATIONS[activation]()
        self.dropout = Dropout(dropout)
        self.contract = nn.Linear(d_ff, d_model)

    def forward(self, x: Float[Tensor, "batch len d_model"]) -> Float[Tensor, "batch len d_model"]:
        return self.contract(self.dropout(self.activation(self.expand(x))))


ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {"relu": nn.ReLU, "gelu": nn.GELU}
