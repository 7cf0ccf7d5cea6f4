"""Images a little moved, turned, stretched and bent in training: what a digit is does not depend on it."""

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from dragoman.config import Field, settings

ELASTIC_CELLS = 4
"""Points a side at which a bend is drawn; between them it is interpolated."""

RANDOM_NUMBERS_PER_IMAGE = 4 + 2 * ELASTIC_CELLS**2
"""Random numbers that an image takes: angle, zoom, two shifts, and a bend at each point in x and y."""


@settings
class AugmentConfig:
    """The most that an image is changed, each time anew; amounts are drawn evenly between minus and plus it."""

    degrees: float = Field(default=10.0, ge=0, le=180)  #: Largest rotation. [degrees]
    zoom: float = Field(default=0.1, ge=0, lt=1)  #: Largest change of size, as a share.
    shift: float = Field(default=2.0, ge=0)  #: Largest shift, in both directions. [pixels]
    bend: float = Field(default=1.0, ge=0)  #: Largest distortion of parts against each other. [pixels]


def augment(
    images: Float[Tensor, "batch 1 height width"], uniform: Float[Tensor, "batch numbers"], config: AugmentConfig
) -> Float[Tensor, "batch 1 height width"]:
    """Images changed by their own random numbers, `RANDOM_NUMBERS_PER_IMAGE` of them in [0, 1); what comes in from
    outside is 0.

    One grid of places to look at for each image, so that the whole batch takes one interpolation.
    """
    amount = 2 * uniform - 1  # (batch, numbers)
    height, width = images.shape[-2:]
    angle, zoom = math.radians(config.degrees) * amount[:, 0], 1 + config.zoom * amount[:, 1]
    sin, cos = angle.sin() / zoom, angle.cos() / zoom
    # Places go from -1 to 1 over the image, so 2 / width is a pixel.
    shift_x, shift_y = config.shift * 2 / width * amount[:, 2], config.shift * 2 / height * amount[:, 3]
    theta = torch.stack([torch.stack([cos, -sin, shift_x], 1), torch.stack([sin, cos, shift_y], 1)], 1)  # (batch, 2, 3)
    grid = F.affine_grid(theta, list(images.shape), align_corners=False)  # (batch, height, width, 2)
    if config.bend:
        cells = amount[:, 4:].unflatten(1, (2, ELASTIC_CELLS, ELASTIC_CELLS))
        field = F.interpolate(cells, size=(height, width), mode="bicubic", align_corners=True)
        pixel = torch.tensor([2 / width, 2 / height])
        grid = grid + config.bend * pixel * field.permute(0, 2, 3, 1)
    return F.grid_sample(images, grid, align_corners=False)
