"""Rotary positions as one product of complex numbers: the fast twin of `nn.positions.RotaryPositions`."""

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from dragoman.backends.cpu_bf16.projection import trains_in_bfloat16
from dragoman.nn.positions import AttentionPositions, RotaryPositions


class ComplexRotaryPositions(RotaryPositions):
    """The same rotation in training; without gradients the textbook's."""

    def rotate(
        self, heads: Float[Tensor, "batch num_heads len d_head"], start: int
    ) -> Float[Tensor, "batch num_heads len d_head"]:
        phase = rotary_phase(self, start, heads.size(2)) if trains_in_bfloat16(heads) else None
        return super().rotate(heads, start) if phase is None else rotated(heads, phase)


def rotary_phase(
    positions: AttentionPositions, start: int, length: int
) -> Complex[Tensor, "length half_d_head"] | None:
    """exp(j m theta): the factors of pairs of dimensions at each position; None for positions that rotate nothing."""
    if not isinstance(positions, RotaryPositions):
        return None
    sin, cos = positions.waves(start, length).chunk(2, dim=-1)
    return torch.complex(cos, sin)


def rotated(
    heads: Float[Tensor, "*heads len d_head"], phase: Complex[Tensor, "len half_d_head"]
) -> Float[Tensor, "*heads len d_head"]:
    numbers = torch.view_as_complex(
        heads.to(torch.float32, memory_format=torch.contiguous_format).unflatten(-1, (-1, 2))
    )
    return torch.view_as_real(numbers * phase).flatten(-2).to(heads.dtype)
