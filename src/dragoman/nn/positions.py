"""Positions: what tells attention, which sees a set, that a sentence is a sequence.

Every scheme answers `positions(start, length)` with the vectors of positions start .. start + length - 1.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from dragoman.errors import DragomanError


def sinusoidal_table(length: int, d_model: int) -> Float[Tensor, "length d_model"]:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos(same) (Vaswani et al. 2017, section 3.5).

    >>> sinusoidal_table(2, 4)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 0.9999]])
    """
    position = torch.arange(length, dtype=torch.float64)[:, None]
    rate = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(10_000.0) / d_model))
    angles = position * rate  # (length, ceil(d_model / 2))
    table = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
    return table[:, :d_model].float()


class SinusoidalPositions(nn.Module):
    """The fixed table of the paper. It grows when a longer sentence comes, so it is no limit on length."""

    def __init__(self, d_model: int, length: int = 512) -> None:
        super().__init__()
        self.d_model = d_model
        self.table: Tensor
        self.register_buffer("table", sinusoidal_table(length, d_model), persistent=False)

    def forward(self, start: int, length: int) -> Float[Tensor, "length d_model"]:
        if start + length > len(self.table):
            longer = max(start + length, 2 * len(self.table))
            self.table = sinusoidal_table(longer, self.d_model).to(self.table)
        return self.table[start : start + length]


class LearnedPositions(nn.Module):
    """One trained vector for each position up to `max_len`, beyond which there is nothing to look up.

    Raises DragomanError for a longer sequence, in training and in decoding alike.
    """

    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        self.max_len = max_len
        self.embedding = nn.Embedding(max_len, d_model)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)

    def forward(self, start: int, length: int) -> Float[Tensor, "length d_model"]:
        if start + length > self.max_len:
            raise DragomanError(
                f"a sequence of {start + length} tokens is longer than the {self.max_len} learned positions: raise "
                "model.position.max_len and train again, lower corpus.max_tokens, or use position {type: sinusoidal}"
            )
        return self.embedding.weight[start : start + length]
