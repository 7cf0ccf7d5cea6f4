"""The Simpler Simple Recurrent Unit, which stands for self-attention in a fast decoder (Kim et al. 2019, section 3.1).

Its state is one vector, however long the translation is: a decode step costs the same at every place.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.nn.attention import QKV


@dataclass(frozen=True)
class SSRUState:
    """The cell after the positions so far; it stands where attention has a `KVCache`."""

    cell: Float[Tensor, "rows d_model"]
    length: int
    """Positions that were read."""

    @property
    def num_rows(self) -> int:
        return self.cell.size(0)

    def reorder(self, rows: Int[Tensor, " new_rows"], kept: Int[Tensor, " new_sentences"] | None) -> "SSRUState":
        return SSRUState(self.cell.index_select(0, rows), self.length)

    def attend(
        self, unit: nn.Module, new: QKV, causal_mask: Bool[Tensor, "1 1 new past_and_new"] | None = None
    ) -> tuple[Float[Tensor, "rows new d_model"], "SSRUState"]:
        """Go on by the new positions: (the outputs there, the state after them)."""
        cells = recurrence(new.query, new.key, self.cell)
        return F.relu(cells).to(new.key.dtype), SSRUState(cells[:, -1], self.length + new.key.size(1))


class SSRU(nn.Module):
    """f_t = sigmoid(W_f x_t + b_f); c_t = f_t c_(t-1) + (1 - f_t) W x_t; o_t = relu(c_t), c_0 = 0.

    It has the methods of `MultiHeadAttention` that a decoder layer calls.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.forget_proj = nn.Linear(d_model, d_model)
        self.input_proj = nn.Linear(d_model, d_model, bias=False)

    def forward(
        self,
        query: Float[Tensor, "batch len d_model"],
        memory: Float[Tensor, "batch len d_model"],
        mask: Bool[Tensor, "1 1 len len"] | None,
        maps: list[Tensor] | None = None,
    ) -> Float[Tensor, "batch len d_model"]:
        """The outputs of a whole sequence, `query`; nothing is appended to `maps`."""
        return self.project_kv(query[:, :0]).attend(self, self.project_qkv(query))[0]

    def output_proj(self, outputs: Float[Tensor, "rows new d_model"]) -> Float[Tensor, "rows new d_model"]:
        return outputs

    def project_kv(self, memory: Float[Tensor, "rows 0 d_model"], start: int = 0) -> SSRUState:
        """The state before the first position."""
        return SSRUState(memory.new_zeros(memory.size(0), memory.size(2), dtype=torch.float32), start)

    def project_qkv(self, x: Float[Tensor, "rows new d_model"]) -> QKV:
        """Forget gate and input, in the places of query and key."""
        values = self.input_proj(x)
        return QKV(self.forget_proj(x).sigmoid(), values, values)


def recurrence(
    forget: Float[Tensor, "rows len d_model"],
    values: Float[Tensor, "rows len d_model"],
    cell: Float[Tensor, "rows d_model"],
) -> Float[Tensor, "rows len d_model"]:
    """c_t = f_t c_(t-1) + (1 - f_t) v_t for all t, in float32 and in log2(len) passes over all positions at once.

    After a pass each position has summed up twice as many before it (Hillis and Steele 1986).
    """
    forget = forget.float()
    cells = (1 - forget) * values.float()
    cells = torch.cat([cells[:, :1] + forget[:, :1] * cell[:, None], cells[:, 1:]], dim=1)
    distance = 1
    while distance < cells.size(1):
        before = (0, 0, distance, -distance)
        cells = cells + forget * F.pad(cells, before)
        forget = forget * F.pad(forget, before)
        distance *= 2
    return cells
