"""A record of what PyTorch computes while a learner's model runs, with the learner's lines; two of them compared.

The record is made below autograd, where every spelling of a product (`@`, `einsum`, `bmm`, `nn.MultiheadAttention`)
comes as the same few operations.
"""

import functools
import itertools
import math
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

Place = tuple[str, int]
"""A file and a line."""


@dataclass
class Call:
    """An operation of PyTorch: its name without overload, what went in, what came out, and the learner's line."""

    name: str
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    result: Any
    value: Tensor | None
    """A copy of the (first) output: what is written in place later does not change it."""
    stack: tuple[tuple[str, int, str], ...]
    """Where the learner's code stood: (file, line, function), the innermost first."""
    inputs: list[Tensor] = field(default_factory=list)
    before: Tensor | None = None
    """A copy of the first input of a softmax, a sigmoid's product and the like (`KEPT`)."""

    @property
    def place(self) -> Place | None:
        return self.stack[0][:2] if self.stack else None


class Recorder(TorchDispatchMode):
    """Records every operation while it is on."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.calls = str(folder), list[Call]()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        keywords = kwargs or {}
        name = func.overloadpacket.__name__.strip("_")
        inputs = [*tensors(args), *tensors(tuple(keywords.values()))]
        before = inputs[0].detach().clone() if name in KEPT and inputs else None
        result = func(*args, **keywords)
        first = next(tensors(result), None)
        value = None if first is None else first.detach().clone()
        self.calls.append(Call(name, args, keywords, result, value, self._stack(), inputs, before))
        return result

    def _stack(self) -> tuple[tuple[str, int, str], ...]:
        """The lines of the learner's folder that are being run."""
        frame, lines = sys._getframe(2), []
        while frame is not None:
            name = frame.f_code.co_filename
            if is_inside(name, self.folder):
                lines.append((name, frame.f_lineno, frame.f_code.co_name))
            frame = frame.f_back  # type: ignore[assignment]
        return tuple(lines)


@functools.cache
def is_inside(name: str, folder: str) -> bool:
    """True for a file of the learner's folder, and of no environment or audit in it."""
    path = os.path.abspath(name)
    own = not path.startswith(os.path.dirname(__file__) + os.sep) and "site-packages" not in path
    return own and path.startswith(folder + os.sep)


SOFTMAXES = ("softmax", "safe_softmax")
KEPT = (*SOFTMAXES, "tanh", "sigmoid")
"""Operations whose input is looked at."""


def tensors(value: Any) -> Iterator[Tensor]:
    """The tensors in a value, in lists and tuples too."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from tensors(one)


class Axis(NamedTuple):
    """A size of the first run, the one of the second, and the places that must be equal in both."""

    size: int
    other_size: int
    places: Sequence[int]
    other_places: Sequence[int]


def places_of(size: int, other_size: int, axes: Sequence[Axis]) -> list[tuple[Tensor, Tensor]]:
    """Ways to read a dimension as (some of) these axes, folded in any order with others: places in both runs."""
    ways = []
    for count in (1, 2):
        for chosen in itertools.combinations(axes, count):
            product, other = math.prod(one.size for one in chosen), math.prod(one.other_size for one in chosen)
            if size % product or other_size % other or size // product != other_size // other:
                continue
            rest = size // product
            parts = [*chosen, Axis(rest, rest, range(rest), range(rest))]
            for order in itertools.permutations(parts if rest > 1 else chosen):
                mine = torch.arange(size).view([one.size for one in order])
                its = torch.arange(other_size).view([one.other_size for one in order])
                for dim, one in enumerate(order):
                    mine = mine.index_select(dim, torch.tensor(list(one.places)))
                    its = its.index_select(dim, torch.tensor(list(one.other_places)))
                ways.append((mine.flatten(), its.flatten()))
    if not ways and size == other_size:
        ways.append((torch.arange(size), torch.arange(size)))
    return ways


def distance(one: Tensor, other: Tensor, axes: Sequence[Axis]) -> float:
    """The largest difference where both must be equal; 0 where they cannot be compared. Infinite: one is no number."""
    if one.dim() != other.dim() or one.dim() == 0 or not one.is_floating_point() or one.numel() > 2**22:
        return 0.0
    ways = [places_of(*sizes, axes) for sizes in zip(one.shape, other.shape, strict=True)]
    if not all(ways) or math.prod(map(len, ways)) > 64:
        return 0.0
    best = math.inf
    for way in itertools.product(*ways):
        mine, its = one, other
        for dim, (places, other_places) in enumerate(way):
            mine, its = mine.index_select(dim, places), its.index_select(dim, other_places)
        best = min(best, apart(mine, its))
    return best


def apart(one: Tensor, other: Tensor) -> float:
    """The largest difference of two tensors of one shape; equal infinities are equal, and so are two that are no
    numbers."""
    same = (one == other) | (one.isnan() & other.isnan())
    difference = (one - other).abs().masked_fill(same, 0.0)
    return float(difference.nan_to_num(nan=math.inf, posinf=math.inf).max()) if difference.numel() else 0.0


def pairs(calls: Sequence[Call], others: Sequence[Call]) -> Iterator[tuple[Call, Call]]:
    """The same calls of two runs: those of one line and name, in their order. Left out is a loop over positions, which
    goes on longer in one of the runs."""
    of_line = defaultdict(list)
    for call in others:
        of_line[call.place, call.name].append(call)
    sizes = Counter((call.place, call.name) for call in calls)
    counts: dict[Any, int] = defaultdict(int)
    for call in calls:
        key = call.place, call.name
        if sizes[key] == len(of_line[key]):
            yield call, of_line[key][counts[key]]
        counts[key] += 1


def first_difference(
    calls: Sequence[Call], others: Sequence[Call], axes: Sequence[Axis], tolerance: float
) -> tuple[Call, Call] | None:
    """The first call whose output differs where it must not."""
    for call, other in pairs(calls, others):
        if call.value is None or other.value is None or call.name in COPIES:
            continue
        if distance(call.value, other.value, axes) > tolerance:
            return call, other
    return None


COPIES = {"empty", "empty_like", "new_empty", "empty_strided", "detach", "lift_fresh"}
"""Operations whose output has no values yet, or none of its own."""


def first_leak(calls: Sequence[Call], others: Sequence[Call], length: int, place: int, tolerance: float) -> Call | None:
    """The first call in which positions before `place` differ, of two runs whose targets differ from there on.

    A table of queries and keys may differ in the key's column before its mask: its entries before `place` in both may
    not.
    """
    before = range(place)
    axes = [Axis(length, length, before, before)]
    for call, other in pairs(calls, others):
        if call.value is None or other.value is None or length not in call.value.shape or call.name in COPIES:
            continue
        if distance(call.value, other.value, axes) > tolerance:
            return call
    return None
