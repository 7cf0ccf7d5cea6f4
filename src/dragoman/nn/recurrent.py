"""Recurrent layers: the equations of LSTM and GRU step by step, beside PyTorch's fast layers over the same weights.

A layer's state is a tuple of tensors, hidden state first: (h, c) for an LSTM, (h,) for a GRU. A stack's state is the
tuple of its layers' states.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.nn.dropout import Dropout

State = tuple[Float[Tensor, "batch d_state"], ...]
StackState = tuple[State, ...]


class RecurrentLayer(nn.Module, ABC):
    """One layer in one direction. Abstract; `LSTMLayer` and `GRULayer` are final.

    `fast` holds the weights of all gates, one below the other: W_ih for the input and W_hh for the hidden state.
    """

    num_gates: int
    num_parts: int
    """Tensors in a state."""

    def __init__(self, fast: nn.LSTM | nn.GRU) -> None:
        super().__init__()
        self.fast = fast
        for weight, fill in zip(self._weights()[:2], (nn.init.xavier_uniform_, nn.init.orthogonal_), strict=True):
            for gate in weight.data.chunk(self.num_gates):
                fill(gate)
        for bias in self._weights()[2:]:
            nn.init.zeros_(bias)

    @abstractmethod
    def next_state(self, projected: Float[Tensor, "batch gates"], state: State) -> State:
        """The state after one more input; `projected` is `project_input` of the input."""

    def project_input(self, x: Float[Tensor, "*shape d_input"]) -> Float[Tensor, "*shape gates"]:
        """W_ih x + b_ih: the part of every gate that does not depend on the state before."""
        weight, _, bias, _ = self._weights()
        return F.linear(x, weight, bias)

    def project_state(self, h: Float[Tensor, "batch d_state"]) -> Float[Tensor, "batch gates"]:
        """W_hh h + b_hh."""
        _, weight, _, bias = self._weights()
        return F.linear(h, weight, bias)

    def read(
        self, x: Float[Tensor, "batch len d_input"], real: Bool[Tensor, "batch len"], *, reverse: bool = False
    ) -> tuple[Float[Tensor, "batch len d_state"], State]:
        """(hidden state at every position, last state) of sentences of different lengths, from a state of zeros.

        Padding leaves the state unchanged: the last state is the state after the last real token; with `reverse` (from
        right to left), after the first token.
        """
        # No packed sequences: they give later positions fewer rows. A CPU's matrix products may then round a row
        # differently, and a translation would depend on its batch.
        x = x.masked_fill(~real[:, :, None], 0.0)  # first of all: a NaN at a pad would come back in gradients
        inputs = list(zip(self.project_input(x).unbind(1), real[:, :, None].unbind(1), strict=True))
        state: State = (x.new_zeros(x.size(0), self.fast.hidden_size),) * self.num_parts
        outputs = []
        for projected, is_real in reversed(inputs) if reverse else inputs:
            new = self.next_state(projected, state)
            state = tuple(torch.where(is_real, after, before) for after, before in zip(new, state, strict=True))
            outputs.append(state[0])
        return torch.stack(outputs[::-1] if reverse else outputs, dim=1), state

    def forward(
        self, x: Float[Tensor, "batch len d_input"], state: State
    ) -> tuple[Float[Tensor, "batch len d_state"], State]:
        """All positions of `x`, padded at the end only, in PyTorch's fast layer.

        In the precision of the weights even under autocast: PyTorch's LSTM would keep its cell state in bfloat16, where
        small additions to a sum of 8 bits are lost.
        """
        dtype = self._weights()[0].dtype
        with torch.autocast(x.device.type, enabled=False):
            before = tuple(part.to(dtype)[None].contiguous() for part in state)  # cuDNN asks for it
            outputs, after = self.fast(x.to(dtype), before if self.num_parts > 1 else before[0])
        return outputs, tuple(part[0] for part in (after if self.num_parts > 1 else (after,)))

    def _weights(self) -> list[nn.Parameter]:
        return self.fast.all_weights[0]


class LSTMLayer(RecurrentLayer):
    """Long short-term memory (Hochreiter and Schmidhuber 1997) with a forget gate (Gers, Schmidhuber and Cummins 2000).

    The forget gate starts with a bias of 1, to remember at first (Jozefowicz, Zaremba and Sutskever 2015).
    """

    num_gates, num_parts = 4, 2

    def __init__(self, d_input: int, d_state: int) -> None:
        super().__init__(nn.LSTM(d_input, d_state, batch_first=True))
        nn.init.ones_(self._weights()[2].data.chunk(4)[1])

    def next_state(self, projected: Float[Tensor, "batch gates"], state: State) -> State:
        h, c = state
        i, f, g, o = (projected + self.project_state(h)).chunk(4, dim=-1)  # input, forget, candidate, output
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        return h, c


class GRULayer(RecurrentLayer):
    """Gated recurrent unit (Cho et al. 2014), as PyTorch and cuDNN have it: the reset gate r acts on W_hh h + b_hh
    rather than on h, so that one product serves all gates."""

    num_gates, num_parts = 3, 1

    def __init__(self, d_input: int, d_state: int) -> None:
        super().__init__(nn.GRU(d_input, d_state, batch_first=True))

    def next_state(self, projected: Float[Tensor, "batch gates"], state: State) -> State:
        (h,) = state
        x_r, x_z, x_n = projected.chunk(3, dim=-1)  # reset, update, candidate
        h_r, h_z, h_n = self.project_state(h).chunk(3, dim=-1)
        r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
        n = (x_n + r * h_n).tanh()
        return ((1 - z) * n + z * h,)


class RecurrentEncoder(nn.Module):
    """Layers over a whole padded batch; bidirectional ones read it from both sides, with half of d_model each."""

    def __init__(
        self, cell: str, d_input: int, d_model: int, num_layers: int, *, bidirectional: bool, dropout: float
    ) -> None:
        super().__init__()
        directions = 2 if bidirectional else 1
        assert d_model % directions == 0, "each direction has half of d_model"
        self.layers = nn.ModuleList(
            nn.ModuleList(CELLS[cell](d_model if layer else d_input, d_model // directions) for _ in range(directions))
            for layer in range(num_layers)
        )
        self.dropout = Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "batch len d_input"], real: Bool[Tensor, "batch len"]
    ) -> tuple[Float[Tensor, "batch len d_model"], StackState]:
        """(the top layer's hidden states, the last state of each layer). Values at pads reach neither."""
        states = []
        for number, layer in enumerate(self.layers):
            x = self.dropout(x) if number else x
            read = [
                direction.read(x, real, reverse=reverse)
                for direction, reverse in zip(cast(Iterable[RecurrentLayer], layer), (False, True), strict=False)
            ]
            x = torch.cat([outputs for outputs, _ in read], dim=-1)  # (batch, len, d_model)
            states.append(tuple(torch.cat(parts, dim=-1) for parts in zip(*[last for _, last in read], strict=True)))
        return x, tuple(states)


class RecurrentStack(nn.Module):
    """A decoder's layers, from left to right, with dropout between them."""

    def __init__(self, cell: str, d_input: int, d_model: int, num_layers: int, *, dropout: float) -> None:
        super().__init__()
        # One module for each layer, not PyTorch's `num_layers`: cuDNN's dropout between layers has a random state
        # of its own, which the training loop could not derive from (seed, step, micro-batch).
        layers = [CELLS[cell](d_model if layer else d_input, d_model) for layer in range(num_layers)]
        self.layers = cast(Sequence[RecurrentLayer], nn.ModuleList(layers))
        self.dropout = Dropout(dropout)
        self.num_gates = CELLS[cell].num_gates

    def project_input(self, x: Float[Tensor, "*shape d_input"]) -> Float[Tensor, "*shape gates"]:
        """The first layer's `project_input`."""
        return self.layers[0].project_input(x)

    def forward(
        self, x: Float[Tensor, "batch len d_input"], states: StackState
    ) -> tuple[Float[Tensor, "batch len d_model"], StackState]:
        """All positions at once, layer by layer: (the top layer's hidden states, the state after the last)."""
        after = []
        for number, (layer, state) in enumerate(zip(self.layers, states, strict=True)):
            x, last = layer(self.dropout(x) if number else x, state)
            after.append(last)
        return x, tuple(after)

    def next_state(
        self, projected: Float[Tensor, "batch gates"], states: StackState
    ) -> tuple[Float[Tensor, "batch d_model"], StackState]:
        """One position, given as `project_input` of it: (the top layer's hidden state, the states of all layers)."""
        after: list[State] = []
        for layer, state in zip(self.layers, states, strict=True):
            inputs = layer.project_input(self.dropout(after[-1][0])) if after else projected
            after.append(layer.next_state(inputs, state))
        return after[-1][0], tuple(after)


CELLS: dict[str, type[LSTMLayer] | type[GRULayer]] = {"lstm": LSTMLayer, "gru": GRULayer}
