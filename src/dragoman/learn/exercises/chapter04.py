"""Chapter 4: the LSTM encoder and decoder."""

import random
from typing import Any

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


def draw_step(rng: random.Random) -> tuple[Any, ...]:
    torch.manual_seed(rng.randrange(2**31))
    return (
        torch.randn(3, 5),
        torch.randn(3, 4),
        torch.randn(3, 4),
        torch.randn(16, 5),
        torch.randn(16, 4),
        torch.randn(16),
    )


def draw_states(rng: random.Random) -> tuple[Any, ...]:
    torch.manual_seed(rng.randrange(2**31))
    return torch.randn(2, 3, 4), torch.randn(2, 3, 4)


def draw_hidden(rng: random.Random) -> tuple[Any, ...]:
    torch.manual_seed(rng.randrange(2**31))
    return torch.randn(4, 6, 3), torch.tensor([6, rng.randrange(1, 6), rng.randrange(1, 4), 2])


CELL = "f.sigmoid() * c + i.sigmoid() * g.tanh()"
JOINED = "torch.cat([forward, backward], dim=-1)"
TAKEN = "hidden[torch.arange(len(hidden)), lengths - 1]"
EXERCISES = [
    Exercise(
        4,
        lstm_step,
        draw_step,
        [
            (" + h @ w_hh.T", "", "the state before is not read: h has no part in the gates"),
            (" + b)", ")", "the bias is missing"),
            ("i, f, g, o =", "f, i, g, o =", "the input and the forget gate are exchanged"),
            ("i, f, g, o =", "i, f, o, g =", "the candidate and the output gate are exchanged"),
            ("f.sigmoid() * c + ", "", "the cell forgets all that was before: f * c is missing"),
            ("f.sigmoid() * c + ", "c + ", "nothing is ever forgotten: the forget gate has no part"),
            ("* g.tanh()", "* g.sigmoid()", "the candidate passes through tanh, so that it may be negative"),
            ("o.sigmoid() * c.tanh()", "o.sigmoid() * c", "h is o * tanh(c): without tanh it grows with the cell"),
            (CELL, "f.tanh() * c + i.tanh() * g.tanh()", "gates are sigmoids, between 0 and 1, not tanh"),
            ("o.sigmoid() * c.tanh(), c", "c, o.sigmoid() * c.tanh()", "h and c are exchanged in the answer"),
        ],
    ),
    Exercise(
        4,
        init_state,
        draw_states,
        [
            (JOINED, "torch.cat([backward, forward], dim=-1)", "the backward direction comes first"),
            (JOINED, "torch.cat([forward, backward], dim=0)", "the directions became layers: join their features"),
            (JOINED, "torch.cat([forward, backward], dim=1)", "the directions became sentences: join their features"),
            (JOINED, "forward + backward", "the directions are added: joined, each keeps what it read"),
            (JOINED, "forward", "the backward direction is left out, and the width is half of what is asked for"),
            (
                JOINED,
                "torch.cat([forward, forward], dim=-1)",
                "the backward direction is not used: half of what was read",
            ),
            (JOINED, "torch.cat([backward, backward], dim=-1)", "the forward direction is not used"),
            (JOINED, "torch.stack([forward, backward], dim=-1).flatten(2)", "the directions' numbers stand in turn"),
            (
                JOINED,
                "torch.zeros(*forward.shape[:2], 2 * forward.size(2))",
                "the state is lost: the decoder knows nothing of the source",
            ),
            (JOINED, "torch.cat([forward, backward], dim=-1).flip(0)", "the layers are in reversed order"),
        ],
    ),
    Exercise(
        4,
        last_states,
        draw_hidden,
        [
            (TAKEN, "hidden[:, -1]", "the last column is padding for a short sentence: take the last real token's"),
            (TAKEN, "hidden[:, 0]", "that is the first token's state"),
            ("lengths - 1", "(lengths).clamp(max=hidden.size(1) - 1)", "one position too late: positions count from 0"),
            ("lengths - 1", "(lengths - 2).clamp(min=0)", "one position too early"),
            (TAKEN, "hidden.mean(dim=1)", "that is a mean over all positions, padding among them"),
            (TAKEN, "hidden.sum(dim=1)", "that is a sum over all positions"),
            (TAKEN, "hidden.amax(dim=1)", "that is the maximum over all positions"),
            (TAKEN, "hidden[0, lengths - 1]", "all states are taken from the first sentence"),
            (
                TAKEN,
                "hidden[torch.arange(len(hidden)), lengths.min() - 1]",
                "the shortest sentence's end is taken for all",
            ),
            (TAKEN, "hidden[:, lengths - 1]", "each sentence gets the places of all: number the rows too"),
        ],
    ),
]
