"""Chapter 3: the LSTM encoder and decoder."""

import torch
from torch import Tensor

from dragoman.learn.exercise import Exercise


def lstm_step(x: Tensor, h: Tensor, c: Tensor, w_ih: Tensor, w_hh: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Compute one step of an LSTM: the new (h, c).

    The gates stand below each other in `w_ih` (4 d_state, d_input), `w_hh` (4 d_state, d_state) and `b`: input, forget,
    candidate, output. x is (batch, d_input), h and c are (batch, d_state).
    """
    i, f, g, o = (x @ w_ih.T + h @ w_hh.T + b).chunk(4, dim=-1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def init_state(forward: Tensor, backward: Tensor) -> Tensor:
    """Join the last states of a bidirectional encoder, (layers, batch, d) each, to a decoder's first: (layers, batch, 2 d).

    Of each layer and sentence, the forward direction's numbers come first.
    """
    return torch.cat([forward, backward], dim=-1)


def last_states(hidden: Tensor, lengths: Tensor) -> Tensor:
    """Take the state after each sentence's last real token: `hidden` is (batch, len, d), the result (batch, d)."""
    return hidden[torch.arange(len(hidden)), lengths - 1]


LSTM_SHAPES = ((3, 5), (3, 4), (3, 4), (16, 5), (16, 4), (16,))

EXERCISES = [
    Exercise(3, lstm_step, lambda rng: tuple(torch.randn(*shape) for shape in LSTM_SHAPES)),
    Exercise(3, init_state, lambda rng: (torch.randn(2, 3, 4), torch.randn(2, 3, 4))),
    Exercise(
        3,
        last_states,
        lambda rng: (torch.randn(4, 6, 3), torch.tensor([6, rng.randrange(1, 6), rng.randrange(1, 4), 2])),
    ),
]
