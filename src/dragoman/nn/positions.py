"""Position schemes. Attention sees a set; positions make it a sequence.

A scheme works in one of two places. *Vectors* are added to the embeddings: `positions(start, length)` returns the
vectors of positions start .. start + length - 1. *Attention positions* work inside every self-attention, on queries and
keys (`rotate`) or on the scores (`bias`). `NoPositions` and `AttentionPositions` do nothing, in the place that a scheme
leaves free.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from dragoman.errors import Error

SINUSOID_BASE = 10_000.0
"""Of the paper's sinusoids."""


def sinusoidal_rates(
    d_model: int, *, base: float = SINUSOID_BASE, layout: str = "interleaved"
) -> Float[Tensor, " ceil(d_model/2)"]:
    """Radians that each sine goes on by from one position to the next, in float64: base^(-2i/d_model).

    In the layout `fairseq` base^(-i/(d_model/2 - 1)): there the slowest one has a rate of 1/base exactly.
    Raises DragomanError for a d_model that has no such rates.
    """
    if layout == "fairseq" and (d_model < 4 or d_model % 2):
        raise Error.WRONG_SETTING(f"model.position.layout: fairseq needs an even model.d_model from 4, not {d_model}")
    spread = d_model - 2 if layout == "fairseq" else d_model
    return torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(base) / spread))


def sinusoidal_table(
    length: int, d_model: int, *, base: float = SINUSOID_BASE, layout: str = "interleaved", offset: int = 0
) -> Float[Tensor, "length d_model"]:
    """PE(pos, 2i) = sin(pos / base^(2i/d_model)), PE(pos, 2i+1) = cos(same) (Vaswani et al. 2017, section 3.5).

    >>> sinusoidal_table(2, 4)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 0.9999]])

    That is the layout `interleaved`. `half_split`, which Hugging Face's Marian uses, has the same numbers in another
    order, first all sines, then all cosines:

    >>> sinusoidal_table(2, 4, layout="half_split")
    tensor([[0.0000, 0.0000, 1.0000, 1.0000],
            [0.8415, 0.0100, 0.5403, 0.9999]])

    `fairseq`, which tensor2tensor, Marian, M2M100 and NLLB use, is split too and has other rates (`sinusoidal_rates`).
    The first row is the row of position `offset`; in M2M100 and NLLB positions begin with 2.
    """
    position = torch.arange(offset, offset + length, dtype=torch.float64)[:, None]
    rate = sinusoidal_rates(d_model, base=base, layout=layout)
    angles = position * rate  # (length, ceil(d_model / 2))
    table = torch.stack([angles.sin(), angles.cos()], dim=LAYOUTS[layout]).flatten(1)
    return table[:, :d_model].float()


class SinusoidalPositions(nn.Module):
    """The fixed table of the paper. It grows for longer sentences: no limit on length."""

    def __init__(
        self,
        d_model: int,
        length: int = 512,
        *,
        base: float = SINUSOID_BASE,
        layout: str = "interleaved",
        offset: int = 0,
    ) -> None:
        super().__init__()
        self.d_model, self.base, self.layout, self.offset = d_model, base, layout, offset
        self.table: Tensor
        self.register_buffer("table", self._rows(length), persistent=False)

    def forward(self, start: int, length: int) -> Float[Tensor, "length d_model"]:
        table = self.table
        if start + length > len(table):
            # Training also uses a table that grew during a search, so it must not be an inference tensor.
            with torch.inference_mode(False):
                table = self._rows(max(start + length, 2 * len(table))).to(table)
            self.table = table  # threads may overwrite each other's; each reads its own
        return table[start : start + length]

    def _rows(self, length: int) -> Tensor:
        return sinusoidal_table(length, self.d_model, base=self.base, layout=self.layout, offset=self.offset)


class LearnedPositions(nn.Module):
    """One trained vector for each position below `max_len`.

    Raises DragomanError for a longer sequence, in training and in decoding.
    """

    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        self.max_len = max_len
        self.embedding = nn.Embedding(max_len, d_model)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)

    def forward(self, start: int, length: int) -> Float[Tensor, "length d_model"]:
        if start + length > self.max_len:
            raise Error.TOO_LONG(
                f"a sequence of {start + length} tokens is longer than the {self.max_len} learned positions",
                "shorten it, or train again with a larger model.position.max_len or with position {type: sinusoidal}",
            )
        return self.embedding.weight[start : start + length]


class NoPositions(nn.Module):
    """Nothing to add to the embeddings: the scheme works inside attention, or there is none."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.zero: Tensor
        self.register_buffer("zero", torch.zeros(d_model), persistent=False)

    def forward(self, start: int, length: int) -> Float[Tensor, "length d_model"]:
        return self.zero.expand(length, -1)


class AttentionPositions(nn.Module):
    """Positions inside a self-attention; this base class has none.

    Queries and keys stand at consecutive positions. Keys are rotated once, when they are projected, so a KV cache holds
    rotated keys. For `bias`, the first key stands at position 0.
    """

    has_bias = False
    """False if `bias` is always None."""
    reads_queries = False
    """True if `bias` depends on the queries."""

    def rotate(
        self, heads: Float[Tensor, "batch num_heads len d_head"], start: int
    ) -> Float[Tensor, "batch num_heads len d_head"]:
        """Queries or keys of the positions start, start + 1, ..., rotated by their positions."""
        return heads

    def bias(
        self, query: Float[Tensor, "batch num_heads query_len d_head"], start: int, key_len: int
    ) -> Float[Tensor, "#batch num_heads query_len key_len"] | None:
        """Values to add to the scores of queries start, start + 1, ... with keys 0, 1, ...; None: nothing."""
        return None


class RotaryPositions(AttentionPositions):
    """Rotate each pair of neighbouring dimensions by an angle proportional to the position (Su et al. 2021, RoFormer).

    Dimensions (2i, 2i+1) of position m, read as a complex number, are multiplied by exp(j m base^(-2i/d_head))
    (equations 14 and 15), so the score of a query with a key depends on the distance of their positions alone. The
    angles come from the sinusoidal table, which grows: no limit on length.

    Raises DragomanError if d_head is odd: one dimension would have no neighbour.
    """

    def __init__(self, d_head: int, base: float = 10_000.0) -> None:
        super().__init__()
        if d_head % 2:
            raise Error.WRONG_SETTING(
                f"rotary positions rotate pairs of dimensions, but a head has an odd number of them: {d_head}",
                "choose another model.num_heads, or model.d_head",
            )
        self.waves = SinusoidalPositions(d_head, base=base, layout="half_split")

    def rotate(
        self, heads: Float[Tensor, "batch num_heads len d_head"], start: int
    ) -> Float[Tensor, "batch num_heads len d_head"]:
        sin, cos = self.waves(start, heads.size(2)).chunk(2, dim=-1)  # (len, d_head / 2) each
        real, imaginary = heads.unflatten(-1, (-1, 2)).unbind(-1)  # (batch, num_heads, len, d_head / 2) each
        pairs = torch.stack([real * cos - imaginary * sin, real * sin + imaginary * cos], dim=-1)
        return pairs.flatten(-2).to(heads.dtype)


class AlibiPositions(AttentionPositions):
    """Subtract from the score of query i and key j their distance times the head's slope m (Press et al. 2022, ALiBi).

    The paper has m * (j - i) for a decoder, where j <= i. An encoder sees both sides: -m * |i - j|. In a decoder
    this is the paper's term, because the causal mask hides every j > i. No limit on length.
    """

    has_bias = True

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.slopes: Tensor
        self.register_buffer("slopes", alibi_slopes(num_heads), persistent=False)

    def bias(
        self, query: Float[Tensor, "batch num_heads query_len d_head"], start: int, key_len: int
    ) -> Float[Tensor, "1 num_heads query_len key_len"]:
        places = torch.arange(start, start + query.size(2), device=query.device)
        distance = (places[:, None] - torch.arange(key_len, device=query.device)).abs()  # (query_len, key_len)
        return (-self.slopes[:, None, None] * distance)[None]


def alibi_slopes(num_heads: int) -> Float[Tensor, " num_heads"]:
    """One slope for each head: the geometric series that starts at 2^(-8/n), with that ratio (section 3).

    >>> alibi_slopes(4)
    tensor([0.2500, 0.0625, 0.0156, 0.0039])

    If n is no power of two, the authors' code takes the slopes of the next lower power of two, and the rest from every
    other slope of the next higher one.
    """
    power = 2 ** math.floor(math.log2(num_heads))
    lower = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    higher = [2 ** (-4 * (i + 1) / power) for i in range(2 * power)]
    return torch.tensor(lower + higher[::2][: num_heads - power])


LAYOUTS = {"interleaved": -1, "half_split": 1, "fairseq": 1}
"""Dimension along which sines and cosines are stacked: value by value, or one block after the other."""
