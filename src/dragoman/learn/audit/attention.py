"""The audit of attention: scores, their scale, masks and softmax, as they stand in the record of a run."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.learn.audit.finding import Finding, number
from dragoman.learn.audit.subject import BATCH, TGT_VOCAB
from dragoman.learn.audit.trace import SOFTMAXES, Call

HIDDEN = -1e3
"""Scores below it have no share of a softmax."""
SAME = {
    "view", "unsafe_view", "reshape", "reshape_alias", "transpose", "permute", "unsqueeze", "squeeze", "expand",
    "clone", "to_copy", "alias", "slice", "select", "t", "detach", "contiguous", "split", "chunk", "unbind",
    "split_with_sizes",
}  # fmt: skip
"""Operations that only look at numbers in another way."""
MASKING = {"masked_fill", "add", "sub", "where", "index_put", "copy", "clamp", "maximum"}
PRODUCTS = {"bmm", "mm", "baddbmm", "matmul", "dot", "mv"}


class Flow:
    """Where each tensor of a record comes from."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self.calls = calls
        self.made: dict[int, list[int]] = defaultdict(list)
        for index, call in enumerate(calls):
            for one in call.result if isinstance(call.result, list | tuple) else (call.result,):
                if isinstance(one, Tensor):
                    self.made[id(one)].append(index)

    def maker(self, tensor: Any, before: int) -> int | None:
        """The call that made (or last changed) a tensor before this call."""
        indices = [index for index in self.made.get(id(tensor), ()) if index < before]
        return indices[-1] if indices else None

    def product(self, tensor: Any, before: int, depth: int = 0) -> tuple[float, int] | None:
        """(the factor, the product of queries and keys) that a softmax's input comes from; None: from no product."""
        index = self.maker(tensor, before)
        if index is None or depth > 40:
            return None
        call = self.calls[index]
        if call.name in PRODUCTS:
            return 1.0, index
        if call.name in ("mul", "div"):
            factor, operand = scalar_of(call)
            inner = self.product(operand, index, depth + 1)
            return (inner[0] * factor, inner[1]) if inner else None
        if call.name in SAME | MASKING:
            for operand in call.inputs:
                if inner := self.product(operand, index, depth + 1):
                    return inner
        return None

    def factor(self, tensor: Any, before: int) -> tuple[float, Any]:
        """(the factor that an operand has been multiplied by, the tensor before that)."""
        factor = 1.0
        while (index := self.maker(tensor, before)) is not None:
            call = self.calls[index]
            if call.name in ("mul", "div"):
                one, operand = scalar_of(call)
                if one == 1.0:
                    break
                factor *= one
            elif call.name in SAME:
                operand = call.inputs[0]
            else:
                break
            tensor, before = operand, index
        return factor, tensor


def scalar_of(call: Call) -> tuple[float, Any]:
    """(the number, the tensor) of a multiplication or division; 1 where it is one by a tensor of many numbers."""
    one, other = call.args[0], call.args[1]
    if isinstance(one, Tensor) and one.numel() == 1 and isinstance(other, Tensor) and other.numel() > 1:
        one, other = other, one
    if isinstance(other, Tensor):
        if other.numel() > 1 or isinstance(other, nn.Parameter):
            return 1.0, one
        other = float(other)
    return (1 / other if call.name == "div" else float(other)), one


def softmaxes(calls: Sequence[Call]) -> list[int]:
    """The calls that make attention weights: all softmaxes but those over the vocabulary."""
    return [
        index
        for index, call in enumerate(calls)
        if call.name in SOFTMAXES and call.value is not None and call.value.size(axis_of(call)) != TGT_VOCAB
    ]


def axis_of(call: Call) -> int:
    dim = call.args[1] if len(call.args) > 1 else call.keywords.get("dim", -1)
    assert call.value is not None
    return int(dim) % max(1, call.value.dim())


def scale(calls: Sequence[Call], parameters: set[int]) -> Iterator[Finding]:
    """Scores are q . k / sqrt(d_head)."""
    flow, places = Flow(calls), set()
    for index in softmaxes(calls):
        call = calls[index]
        if call.place in places or not (inner := flow.product(call.inputs[0], index)):
            continue
        factor, product = inner
        left, right = [one for one in calls[product].inputs if one.dim() > 1][-2:]
        d_head = left.size(-1)
        for operand in (left, right):
            more, source = flow.factor(operand, product)
            factor *= more
            if id(source) in parameters:
                break
        else:
            expected = d_head**-0.5
            if d_head > 1 and abs(factor / expected - 1) > 0.02:
                places.add(call.place)
                values = {"factor": number(factor), "d_head": d_head, "expected": number(expected)}
                yield Finding("scale", _line_of_scaling(calls, flow, index, product), values)


def _line_of_scaling(calls: Sequence[Call], flow: Flow, softmax: int, product: int) -> Any:
    """The line that multiplies or divides scores, or the line of their product."""
    tensor, before, place = calls[softmax].inputs[0], softmax, calls[product].place
    while (index := flow.maker(tensor, before)) is not None and index > product:
        call = calls[index]
        if call.name in ("mul", "div") and scalar_of(call)[0] != 1.0:
            return call.place
        tensor, before = (scalar_of(call)[1] if call.name in ("mul", "div") else call.inputs[0]), index
    return place


def queries(calls: Sequence[Call]) -> Iterator[Finding]:
    """A query looks at places of its own: two queries' scores differ by more than a constant."""
    steps: dict[Any, list[tuple[int, Tensor]]] = defaultdict(list)
    for index in softmaxes(calls):
        call = calls[index]
        assert call.before is not None
        scores = call.before.movedim(axis_of(call), -1)
        if scores.size(-1) > 1:
            steps[call.place, scores.shape].append((index, scores - scores[..., :1]))
    for (_, shape), members in steps.items():
        index, first = members[0]
        if len(shape) > 2 and shape[-2] > 1 and shape[-2] != BATCH:
            others = [(first, first[..., :1, :].expand_as(first))]
        else:
            others = [(scores, first) for _, scores in members[1:]]
        spread = max((_spread(one, other) for one, other in others), default=1.0)
        if spread < 1e-6:
            yield Finding("queries", _line_of_sum(calls, index), {"spread": number(spread)})


def _spread(one: Tensor, other: Tensor) -> float:
    """The largest difference of scores that are not hidden, as a share of their size; 1 where all are equal."""
    seen = (one > HIDDEN) & (other > HIDDEN) & (one < -HIDDEN) & (other < -HIDDEN)
    size = float(one[seen].abs().max()) if bool(seen.any()) else 0.0
    return float((one - other)[seen].abs().max()) / size if size > 1e-9 else 1.0


def _line_of_sum(calls: Sequence[Call], softmax: int) -> Any:
    """The line that adds queries to keys: the last sum before the softmax that has features."""
    scores = calls[softmax].value
    assert scores is not None
    sizes = set(scores.shape) - {1}
    for call in reversed(calls[:softmax]):
        if (
            call.name == "add"
            and call.value is not None
            and sizes <= set(call.value.shape)
            and call.value.numel() > scores.numel()
        ):
            return call.place
    return calls[softmax].place


# -- masks -------------------------------------------------------------------------------------------------------------


def of_padding(calls: Sequence[Call], index: int, lengths: Sequence[int]) -> Finding | None:
    """The fault of a softmax at or before a call in which padding is read: named where its scores say what it is."""
    earlier = [one for one in softmaxes(calls) if one <= index]
    if not earlier or index - earlier[-1] > 12:
        return None
    softmax = calls[earlier[-1]]
    if wrong := wrong_axis(softmax, [max(lengths)]):
        return wrong
    assert softmax.before is not None
    scores = softmax.before.movedim(axis_of(softmax), -1)
    if scores.dim() < 2 or scores.size(-1) != max(lengths):
        return None
    mask = _mask_of(calls, earlier[-1])
    place = mask.place if mask else softmax.place
    rows = scores.flatten(0, -3) if scores.dim() > 2 else scores[:, None]  # (batch and heads, queries, keys)
    hidden = (rows <= HIDDEN).sum(dim=-1)[:, 0].tolist()  # of the first query
    expected = [max(lengths) - length for length in lengths]
    shortest = min(lengths)
    if any(bool((one[:shortest] <= HIDDEN).all()) and not bool((one <= HIDDEN).all()) for one in rows[:, 0]):
        return Finding("mask-inverted", place, {"real": shortest, "pads": max(lengths) - shortest})
    heads = len(rows) // len(lengths)
    if any(hidden) and hidden in ([one for one in expected for _ in range(heads)], expected * heads):
        values = {"hidden": ", ".join(map(str, hidden[:6])), "lengths": ", ".join(map(str, lengths))}
        return Finding("heads-order", place, values)
    return _unhidden(rows, lengths, place) if mask else None


def _unhidden(rows: Tensor, lengths: Sequence[int], place: Any) -> Finding | None:
    """A mask that hides nothing, or queries and not keys."""
    shortest = min(lengths)
    keys, queries = rows[:, 0, shortest:], rows[:, shortest:, 0] if rows.size(1) == max(lengths) else rows[:, :0, 0]
    for one in keys:
        if bool((one == one[0]).all()) and float(one[0].abs()) < 50:
            value = float(one[0])
            values = {"value": number(value), "share": number(float(torch.tensor(value).exp()))}
            return Finding("mask-value", place, values)
    for one in queries:
        if len(one) > 1 and bool((one == one[0]).all()):
            return Finding("row-mask", place, {"hidden": int((queries == one[0]).all(dim=1).sum())})
    return None


def wrong_axis(softmax: Call, keys: Collection[int]) -> Finding | None:
    """A softmax that does not go over the keys, where the last dimension of scores is theirs."""
    assert softmax.value is not None
    if axis_of(softmax) == softmax.value.dim() - 1 or softmax.value.size(-1) not in keys:
        return None
    sums = softmax.value.sum(dim=-1)
    if float((sums - 1).abs().max()) < 1e-4:
        return None
    values = {"dim": axis_of(softmax), "low": number(float(sums.min())), "high": number(float(sums.max()))}
    return Finding("softmax-axis", softmax.place, values)


def _mask_of(calls: Sequence[Call], softmax: int) -> Call | None:
    """The call that hides some of a softmax's input; None: nothing does."""
    flow = Flow(calls)
    tensor, before = calls[softmax].inputs[0], softmax
    while (index := flow.maker(tensor, before)) is not None:
        call = calls[index]
        is_product = call.name == "mul" and all(one.numel() > 1 for one in call.inputs) and len(call.inputs) > 1
        if call.name in ("masked_fill", "where", "index_put", "add", "copy") or is_product:
            return call
        if call.name not in SAME | {"mul", "div"}:
            break
        tensor, before = call.inputs[0], index
    return None
