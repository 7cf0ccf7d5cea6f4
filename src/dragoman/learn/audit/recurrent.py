"""The audit of LSTM cells, however they are written: what the gates are multiplied with, step by step."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from dragoman.learn.audit.finding import Finding, number
from dragoman.learn.audit.trace import Call


def cells(calls: Sequence[Call]) -> Iterator[Finding]:
    """c = f * c_before + i * g, and h = o * tanh(c): the forget gate meets the last cell, the products the last h."""
    gates = {id(call.result) for call in calls if call.name == "sigmoid"}
    gates |= {id(part) for part in _parts(calls, gates)}
    squashed = {id(call.result): call.before for call in calls if call.name == "tanh" and call.before is not None}
    cell_values: list[Tensor] = []
    states: list[Tensor] = []
    forgotten, steps, reported = 0, 0, set()
    place: Any = None
    for call in calls:
        if call.name in ("mul", "mul_") and len(call.inputs) == 2 and call.value is not None:
            gate, other = call.inputs if id(call.inputs[0]) in gates else call.inputs[::-1]
            if id(gate) not in gates or id(other) in gates:
                continue
            if id(other) in squashed:
                cell = squashed[id(other)]
                if cell is not None and _is_sum_of_products(cell, calls):
                    cell_values.append(cell)
                    states.append(call.value)
                continue
            if not states:
                continue
            kind = _kind(other, cell_values, states)
            steps, place = steps + 1, place or call.place
            if kind == "zero":
                forgotten += 1
            elif kind == "state" and "swapped" not in reported:
                reported.add("swapped")
                yield Finding("swapped", call.place, {"apart": number(_apart(cell_values[-1], states[-1]))})
    if steps and forgotten == steps:
        yield Finding("cell-forgets", place, {"steps": steps})


def _parts(calls: Sequence[Call], gates: set[int]) -> Iterator[Tensor]:
    """Slices of what a sigmoid gave for all gates at once."""
    for call in calls:
        if (
            call.name in ("split", "chunk", "slice", "unbind", "select", "view")
            and call.inputs
            and id(call.inputs[0]) in gates
        ):
            results = call.result if isinstance(call.result, list | tuple) else (call.result,)
            for one in results:
                gates.add(id(one))
                yield one


def _is_sum_of_products(cell: Tensor, calls: Sequence[Call]) -> bool:
    """True for f * c + i * g; a GRU's tanh has another input."""
    return any(
        call.name in ("add", "addcmul")
        and call.value is not None
        and call.value.shape == cell.shape
        and call.value.equal(cell)
        for call in calls
    )


def _kind(value: Tensor, cell_values: Sequence[Tensor], states: Sequence[Tensor]) -> str:
    if not bool(value.any()):
        return "zero"
    if any(one.shape == value.shape and torch.equal(one, value) for one in cell_values):
        return "cell"
    return "state" if any(one.shape == value.shape and torch.equal(one, value) for one in states) else ""


def _apart(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max())
