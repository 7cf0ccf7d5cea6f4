"""The encoder of every classifier, which ends in one vector."""

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from dragoman.models.blocks import BlockConfig, EncoderLayer
from dragoman.models.stacks import stack, taken
from dragoman.nn import masks

Pooling = Literal["class_token", "mean", "max"]


class PooledEncoder(nn.Module):
    """A stack of encoder layers whose output is pooled to one vector.

    `class_token`: a trained vector goes before the input and through all layers, and its output is the answer (Devlin
    et al. 2019). It has no position, which would only be a second trained vector. `mean`, `max`: over real positions.
    """

    def __init__(self, config: BlockConfig, num_layers: int, pooling: Pooling) -> None:
        super().__init__()
        self.layers = stack((EncoderLayer(config) for _ in range(num_layers)), config.tied_layers)
        self.norm = config.final_norm()
        self.pooling = pooling
        self.class_token: nn.Parameter | None = None
        if pooling == "class_token":
            self.class_token = nn.Parameter(torch.randn(config.d_model) * config.d_model**-0.5)

    def forward(
        self, x: Float[Tensor, "batch len d_model"], real: Bool[Tensor, "batch len"] | None
    ) -> Float[Tensor, "batch d_model"]:
        if self.class_token is not None:
            x = torch.cat([self.class_token.expand(len(x), 1, -1).to(x.dtype), x], dim=1)
            real = None if real is None else torch.cat([real.new_ones(len(real), 1), real], dim=1)
        x = self.hidden(x, real)
        if self.class_token is not None:
            return x[:, 0]
        if self.pooling == "max":
            return (x if real is None else x.masked_fill(~real[..., None], -1e4)).amax(dim=1)
        return mean_over_real(x, real)

    def hidden(
        self, x: Float[Tensor, "batch len d_model"], real: Bool[Tensor, "batch len"] | None
    ) -> Float[Tensor, "batch len d_model"]:
        """The vectors of all positions after the last layer, before they are pooled."""
        padding_mask = None if real is None else masks.padding_mask(real)
        for _, layer in taken(self.layers):
            x = layer(x, padding_mask)
        hidden: Tensor = self.norm(x)
        return hidden


def mean_over_real(
    x: Float[Tensor, "batch len d_model"], real: Bool[Tensor, "batch len"] | None
) -> Float[Tensor, "batch d_model"]:
    """Mean of a sequence's vectors without its padding, whatever values that has.

    >>> mean_over_real(torch.tensor([[[1.0], [3.0], [float("nan")]]]), torch.tensor([[True, True, False]]))
    tensor([[2.]])
    """
    if real is None:
        return x.mean(dim=1)
    return x.masked_fill(~real[..., None], 0.0).sum(dim=1) / real.sum(dim=1, keepdim=True)
