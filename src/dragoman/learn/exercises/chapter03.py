"""Chapter 3: the LSTM encoder and decoder."""

import math
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.learn.exercise import Exercise, Wrong
from dragoman.learn.language import message


def predict_cell() -> float:
    """Predict what this code returns: the cell of an LSTM after one step."""
    forget_gate, input_gate, candidate = torch.tensor([100.0, -100.0, 5.0])
    cell = 3.0
    return float(forget_gate.sigmoid() * cell + input_gate.sigmoid() * candidate.tanh())


def read_all(inputs: Tensor, lengths: Tensor, step: Callable[[Tensor, Tensor], Tensor], state: Tensor) -> Tensor:
    """Read a padded batch from left to right: the state of each sentence after its last real token. Fill in the gap ____.

    `inputs` is (batch, len, d), `lengths` (batch). `step(x, state)` gives the next state, (batch, d_state), of all
    sentences, also of those that have ended. The state of a sentence that has ended must stay as it is.
    """
    for place in range(inputs.size(1)):
        new = step(inputs[:, place], state)
        state = torch.where((place < lengths)[:, None], new, state)
    return state


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


def remember() -> dict[str, float]:
    """Choose the biases of an LSTM's gates, "forget", "input" and "output", so that its cell remembers for 50 steps.

    The cell begins at 1. All weights are 0, so that the gates are sigmoids of their biases; candidates are -1 or 1 at
    random. After 50 steps the cell has to lie between 0.95 and 1.05, and h = o * tanh(c) within 0.05 of tanh(1).
    """
    return {"forget": 9.0, "input": -9.0, "output": 9.0}


def grade_remember(answer: Callable[[], dict[str, float]]) -> None:
    biases = answer()
    gates = ("input", "forget", "output")
    if not isinstance(biases, dict) or set(biases) != set(gates):
        raise Wrong(message("a dict with the keys {keys} is asked for", keys=", ".join(gates)))
    forget, enter, out = (1 / (1 + math.exp(-float(biases[gate]))) for gate in ("forget", "input", "output"))
    worst_cell, worst_h = 1.0, math.tanh(1.0)
    for _ in range(10):
        h, cell = _run_50_steps(biases)
        worst_cell = max(worst_cell, cell, key=lambda value: abs(value - 1))
        worst_h = max(worst_h, h, key=lambda value: abs(value - math.tanh(1.0)))
    values = {"cell": f"{worst_cell:.3f}", "forget": f"{forget:.4f}", "input": f"{enter:.4f}", "output": f"{out:.4f}"}
    if forget**50 < 0.95:
        raise Wrong(message("the cell ends at {cell}: a forget gate of {forget} loses too much in 50 steps", **values))
    if abs(worst_cell - 1) > 0.05:
        raise Wrong(
            message("the cell ends at {cell}: an input gate of {input} lets candidates in, at each step", **values)
        )
    if abs(worst_h - math.tanh(1.0)) > 0.05:
        raise Wrong(
            message(
                "the cell is kept, but h is {h}: an output gate of {output} does not show it",
                h=f"{worst_h:.3f}",
                **values,
            )
        )


def _run_50_steps(biases: dict[str, float]) -> tuple[float, float]:
    """(h, cell) of PyTorch's own LSTM cell."""
    cell_of = nn.LSTMCell(1, 1)
    with torch.no_grad():
        for parameter in cell_of.parameters():
            parameter.zero_()
        cell_of.bias_ih[:] = torch.tensor([biases["input"], biases["forget"], 0.0, biases["output"]])
        cell_of.weight_ih[2] = 20.0  # of the candidate
        h, c = torch.zeros(1, 1), torch.ones(1, 1)
        for _ in range(50):
            h, c = cell_of(torch.randint(0, 2, (1, 1)) * 2.0 - 1, (h, c))
    return h.item(), c.item()


def draw_batch(rng: random.Random) -> tuple[Any, ...]:
    rows, width, d, d_state = (rng.randrange(1, 6) for _ in range(4))
    lengths = torch.tensor([rng.randrange(1, width + 1) for _ in range(rows)])
    w, u = torch.randn(d, d_state), torch.randn(d_state, d_state)
    return torch.randn(rows, width, d), lengths, lambda x, state: (x @ w + state @ u).tanh(), torch.randn(rows, d_state)


def draw_step(rng: random.Random) -> tuple[Tensor, ...]:
    rows, d, d_state = rng.randrange(1, 5), rng.randrange(1, 7), rng.randrange(1, 6)
    shapes = ((rows, d), (rows, d_state), (rows, d_state), (4 * d_state, d), (4 * d_state, d_state), (4 * d_state,))
    return tuple(torch.randn(*shape) for shape in shapes)


def draw_states(rng: random.Random) -> tuple[Tensor, Tensor]:
    shape = (rng.randrange(1, 4), rng.randrange(1, 4), rng.randrange(1, 5))
    return torch.randn(*shape), torch.randn(*shape)


def draw_hidden(rng: random.Random) -> tuple[Tensor, Tensor]:
    rows, width = rng.randrange(1, 5), rng.randrange(1, 7)
    return torch.randn(rows, width, 3), torch.tensor([rng.randrange(1, width + 1) for _ in range(rows)])


EXERCISES = [
    Exercise(3, predict_cell),
    Exercise(3, read_all, draw_batch, gap="torch.where((place < lengths)[:, None], new, state)"),
    Exercise(3, lstm_step, draw_step),
    Exercise(3, init_state, draw_states),
    Exercise(3, last_states, draw_hidden),
    Exercise(3, remember, grade=grade_remember),
]
