"""Images as sequences: patches are to an image as tokens are to a text."""

from jaxtyping import Float
from torch import Tensor, nn


class PatchEmbedding(nn.Module):
    """Cut images into squares and project each to a vector (Dosovitskiy et al. 2021, equation 1).

    A convolution whose stride is its own width does both at once: it is a linear map of every patch's pixels. Patches
    come row by row, from the top left.
    """

    def __init__(self, channels: int, patch_size: int, d_model: int) -> None:
        super().__init__()
        self.projection = nn.Conv2d(channels, d_model, kernel_size=patch_size, stride=patch_size)
        nn.init.xavier_uniform_(self.projection.weight.data.flatten(1))  # (d_model, pixels of a patch): a linear map's
        nn.init.zeros_(self.projection.bias)  # type: ignore[arg-type]

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch patches d_model"]:
        return self.projection(images).flatten(2).transpose(1, 2)
