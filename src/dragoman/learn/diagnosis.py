"""The name of what is wrong with an answer: from the values that it gives, beside those of the solution."""

import copy
import inspect
import linecache
import math
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from numbers import Number
from types import CodeType, GeneratorType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dragoman.learn.language import message
from dragoman.learn.limited import reason

GAP = "____"
"""The part of a function that a learner fills in. It is a name that nothing has."""
NEAR = 0.006
"""A prediction is right up to this: it may be rounded to two places."""
WRITABLE = {"math", *dir(math), "round", "float", "int", "bool", "NotImplementedError"}
"""Names that a prediction may use."""
POWERS = {
    "it is the right value times {size}": 1,
    "it is the right value divided by {size}": -1,
    "it is the right value times the root of {size}": 0.5,
    "it is the right value divided by the root of {size}": -0.5,
}
PLACES = {
    "it is wrong only at the first place of dimension {dim}": 0,
    "it is wrong only at the last place of dimension {dim}": -1,
}


@dataclass(frozen=True)
class Raised:
    """An exception of an answer, and where it was raised."""

    error: Exception
    line: int | None
    code: str

    def words(self) -> str:
        error = reason(self.error)
        if self.line is None:
            return message("it stops: {error}", error=error)
        return message("it stops in line {line}, `{code}`: {error}", line=self.line, code=self.code, error=error)


@dataclass(frozen=True)
class Outcome:
    """The value of an answer for one draw of inputs; `after`: those inputs after the call."""

    arguments: tuple[Any, ...]
    after: tuple[Any, ...]
    expected: Any
    actual: Any

    @property
    def problem(self) -> str:
        """The first difference; empty if there is none."""
        if isinstance(self.actual, Raised):
            return self.actual.words()
        return difference(self.expected, self.actual)

    @property
    def is_right(self) -> bool:
        return self.problem == ""


def outcome(solution: Callable[..., Any], answer: Callable[..., Any], arguments: tuple[Any, ...]) -> Outcome:
    """Call an answer. Raises NotImplementedError where nothing is written yet."""
    after = copied(arguments)
    actual: Any
    try:
        actual = answer(*after)
    except NotImplementedError:
        raise
    except NameError as error:
        if error.name == GAP:
            raise NotImplementedError from error
        actual = raised(answer, error)
    except Exception as error:
        actual = raised(answer, error)
    return Outcome(arguments, after, solution(*copied(arguments)), actual)


def raised(answer: Callable[..., Any], error: Exception) -> Raised:
    file = getattr(getattr(answer, "__code__", None), "co_filename", "")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    if not frames:
        return Raised(error, None, "")
    line = frames[-1].lineno or 0
    return Raised(error, line, linecache.getline(file, line).strip())


def copied(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Inputs that an answer may change without harm."""
    return tuple(one if callable(one) else copy.deepcopy(one) for one in arguments)


def explains(function: Callable[..., Any], outcomes: Sequence[Outcome]) -> bool:
    """True if a wrong function gives what the answer gave, in every round, and stops where the answer stopped."""
    has_value = is_seen = False
    for one in outcomes:
        try:
            value = function(*copied(one.arguments))
            if isinstance(one.actual, Raised):
                return False
            if difference(value, one.actual):
                if difference(_without_nan(value, one.actual), one.actual):
                    return False
                value = _without_nan(value, one.expected)
            has_value, is_seen = True, is_seen or difference(one.expected, value) != ""
        except Exception as error:
            if not isinstance(one.actual, Raised) or type(error) is not type(one.actual.error):
                return False
            is_seen = True
    return has_value and is_seen


def _without_nan(value: Any, actual: Any) -> Any:
    """A mistake's value, without NaN: in its place a learner may have another number that means nothing."""
    if isinstance(value, tuple) and isinstance(actual, tuple | list) and len(value) == len(actual):
        return tuple(_without_nan(one, other) for one, other in zip(value, actual, strict=True))
    if isinstance(value, Tensor) and isinstance(actual, Tensor) and value.shape == actual.shape:
        return torch.where(value.isnan(), actual.detach().to(value.dtype), value)
    return value


# -- in words ------------------------------------------------------------------------------------------------------


def described(value: Any) -> str:
    """A value in a few words: of a tensor its shape."""
    if isinstance(value, Tensor):
        return f"tensor {tuple(value.shape)}"
    if value is None:
        return "None"
    if callable(value):
        return "function"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def difference(expected: Any, actual: Any, place: str = "") -> str:
    """The first thing in which `actual` is not `expected`, in words; nothing where they are equal up to 1e-4."""
    place = place or message("the answer")
    if isinstance(actual, np.generic):
        actual = actual.item()
    if isinstance(actual, Tensor) and isinstance(expected, float | int) and actual.numel() == 1:
        actual = actual.item()
    if isinstance(expected, Tensor) and not (
        expected.dim() == 0 and isinstance(actual, float) and not expected.requires_grad
    ):
        return _tensor_difference(expected, actual, place)
    if isinstance(expected, tuple | list):
        return _sequence_difference(expected, actual, place)
    if isinstance(expected, dict):
        if not isinstance(actual, dict) or set(expected) != set(actual):
            keys, is_ = list(expected), described(actual)
            return message(
                "{place} should be a dict with the keys {keys} and is {actual}", place=place, keys=keys, actual=is_
            )
        return next(filter(None, (difference(expected[key], actual[key], f"{place}[{key!r}]") for key in expected)), "")
    return _plain_difference(float(expected) if isinstance(expected, Tensor) else expected, actual, place)


def _sequence_difference(expected: Sequence[Any], actual: Any, place: str) -> str:
    values = {"place": place, "expected": len(expected), "actual": described(actual)}
    if not isinstance(actual, tuple | list):
        return message("{place} should be {expected} values and is {actual}", **values)
    if len(expected) != len(actual):
        return message("{place} should have {expected} values and has {number}: {actual}", number=len(actual), **values)
    is_answer = place == message("the answer")
    inner = message("answer") if is_answer else place
    places = [f"{inner}[{number}]" for number in range(len(expected))]
    if is_answer and isinstance(expected, tuple) and any(isinstance(one, Tensor) for one in expected):
        numbers = range(1, len(expected) + 1)
        places = [message("result {number} of {count}", number=number, count=len(expected)) for number in numbers]
    parts = (difference(*three) for three in zip(expected, actual, places, strict=True))
    return next(filter(None, parts), "")


def _plain_difference(expected: Any, actual: Any, place: str) -> str:
    values = {"place": place, "expected": described(expected), "actual": described(actual)}
    if isinstance(expected, bool) != isinstance(actual, bool) and isinstance(actual, Number):
        return message("{place} should be {expected} and is {actual}: True and False are no numbers", **values)
    if isinstance(expected, float) and isinstance(actual, int | float):
        if math.isclose(expected, actual, rel_tol=1e-4, abs_tol=1e-5):
            return ""
        values |= {"expected": f"{expected:.6g}", "actual": f"{actual:.6g}"}
    elif isinstance(expected, int) and isinstance(actual, float) and expected == actual:
        return message(
            "{place} should be the whole number {expected} and is {actual}: `//` divides whole numbers", **values
        )
    elif isinstance(actual, type(expected)) and expected == actual:
        return ""
    return message("{place} should be {expected} and is {actual}", **values)


def _tensor_difference(expected: Tensor, actual: Any, place: str) -> str:
    shape = tuple(expected.shape)
    if isinstance(actual, np.ndarray):
        return message("{place} is an array of NumPy: a tensor is to be returned", place=place)
    if not isinstance(actual, Tensor):
        if expected.requires_grad and isinstance(actual, float):
            return message("{place} is a number without a gradient: nothing could be trained with it", place=place)
        actual = described(actual)
        return message(
            "{place} should be a tensor of shape {shape} and is {actual}", place=place, shape=shape, actual=actual
        )
    if expected.shape != actual.shape:
        values = {"place": place, "expected": shape, "actual": tuple(actual.shape)}
        return message("{place} should have the shape {expected} and has {actual}", **values)
    if _kind(expected) != _kind(actual):
        return message(
            "{place} should be of {expected} and is of {actual}",
            place=place,
            expected=expected.dtype,
            actual=actual.dtype,
        )
    if expected.requires_grad and not actual.requires_grad:
        return message(
            "{place} has lost its gradient (detach, item, .data, no_grad): nothing could be trained with it",
            place=place,
        )
    one, other = expected.detach().double(), actual.detach().double()
    wrong = ~torch.isclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True)
    if not bool(wrong.any()):
        return ""
    where = tuple(wrong.nonzero()[0].tolist())
    return message(
        "{wrong} of {all} numbers in {place} are wrong; at {where} it should be {expected} and is {actual}",
        wrong=int(wrong.sum()),
        all=wrong.numel(),
        place=place,
        where=list(where),
        expected=f"{one[where]:.6g}",
        actual=f"{other[where]:.6g}",
    )


def _kind(tensor: Tensor) -> str:
    if tensor.dtype == torch.bool:
        return "bool"
    return "float" if tensor.is_floating_point() else "complex" if tensor.is_complex() else "int"


# -- beside the values ---------------------------------------------------------------------------------------------


def signature_problem(answer: Callable[..., Any], parameters: Sequence[str]) -> str:
    """Something that is wrong before the function is called: what it takes, or that it is a generator."""
    if inspect.iscoroutinefunction(answer) or inspect.isgeneratorfunction(answer):
        return message("it is no plain function: `yield` and `async` give their values later; use `return`")
    try:
        inspect.signature(answer).bind(*parameters)
    except TypeError:
        names = ", ".join(parameters)
        return message("it should take ({names}); the first line of the function has changed", names=names)
    except ValueError:
        return ""  # a function of C
    return ""


def changed_arguments(outcomes: Sequence[Outcome], parameters: Sequence[str]) -> str:
    """The argument that an answer has changed in place."""
    for one in outcomes:
        for name, before, after in zip(parameters, one.arguments, one.after, strict=False):
            if not callable(before) and not _same(before, after):
                return message("it changes its argument `{name}` in place: work on a copy", name=name)
    return ""


def _same(before: Any, after: Any) -> bool:
    if isinstance(before, Tensor):
        return before.shape == after.shape and torch.equal(before.detach(), after.detach())
    if isinstance(before, dict):
        return before.keys() == after.keys() and all(_same(before[key], after[key]) for key in before)
    if isinstance(before, list):
        return len(before) == len(after) and all(map(_same, before, after))
    return bool(before == after)


def changed_answer(answer: Callable[..., Any], first: Outcome) -> str:
    """A right answer that is another one when it is called again with the inputs of the first call."""
    arguments = copied(first.arguments)
    try:
        again = answer(*arguments)
    except Exception as error:
        return raised(answer, error).words()
    if difference(first.expected, again):
        return message("called again with the same inputs it gives something else: it keeps something between calls")
    return ""


# -- predictions ---------------------------------------------------------------------------------------------------


def computed(answer: Callable[..., Any]) -> str:
    """A prediction that runs code, instead of being written down."""
    code = answer.__code__
    used = [name for name in code.co_names if name not in WRITABLE]
    used += [one.co_name for one in code.co_consts if isinstance(one, CodeType)]
    if not used:
        return ""
    return message("a prediction is written down, as numbers, before the code is run; this uses `{name}`", name=used[0])


def is_near(expected: Any, actual: Any) -> bool:
    """Equal up to two decimal places, whatever holds the values."""
    if isinstance(expected, tuple | list):
        is_sequence = isinstance(actual, tuple | list) and len(actual) == len(expected)
        return is_sequence and all(is_near(one, other) for one, other in zip(expected, actual, strict=True))
    if isinstance(expected, bool) or isinstance(actual, bool) or not isinstance(expected, int | float):
        return bool(isinstance(actual, type(expected)) and expected == actual)
    if not isinstance(actual, int | float):
        return False
    return abs(expected - actual) <= NEAR if isinstance(expected, float) else expected == actual


def prediction_problem(expected: Any, actual: Any, place: str = "") -> str:
    """The place where a prediction is not what the code gives, without the value that it should have."""
    place = place or message("the prediction")
    if isinstance(expected, tuple | list):
        if not isinstance(actual, tuple | list):
            return message("{place} should be a list or a tuple and is {actual}", place=place, actual=described(actual))
        if len(expected) != len(actual):
            values = {"place": place, "expected": len(expected), "actual": len(actual)}
            return message("{place} should have {expected} values and has {actual}", **values)
        for number, (one, other) in enumerate(zip(expected, actual, strict=True), start=1):
            if not is_near(one, other):
                return prediction_problem(one, other, message("value {number} of {place}", number=number, place=place))
    numbers = isinstance(expected, int | float) and isinstance(actual, int | float)
    if not numbers or isinstance(expected, bool) or isinstance(actual, bool):
        return message("{place} is {actual}, and the code gives something else", place=place, actual=described(actual))
    if actual < expected:
        return message("{place} is {actual}: the code gives more", place=place, actual=described(actual))
    return message("{place} is {actual}: the code gives less", place=place, actual=described(actual))


# -- what wrong values look like -----------------------------------------------------------------------------------


def first_problem(outcomes: Sequence[Outcome], parameters: Sequence[str]) -> str:
    """The first difference, and the shapes of the inputs where the answer stopped."""
    one = next(one for one in outcomes if not one.is_right)
    if not isinstance(one.actual, Raised) or not one.arguments:
        return one.problem
    pairs = zip(parameters, one.arguments, strict=False)
    inputs = ", ".join(f"{name}: {described(value)}" for name, value in pairs)
    return message("{problem}; the inputs were {inputs}", problem=one.problem, inputs=inputs)


def explained(outcomes: Sequence[Outcome], parameters: Sequence[str]) -> str:
    """The thing that holds of the wrong values of all rounds: transposed, inverted, a factor ...; else nothing."""
    if any(isinstance(one.actual, Raised) for one in outcomes):
        return ""
    if problem := _not_a_value(outcomes, parameters):
        return problem
    for look in (_by_view, _is_argument, _by_parts, _by_sequence, _by_scale, _by_place):
        if problem := look(outcomes, parameters):
            return problem
    return ""


def _not_a_value(outcomes: Sequence[Outcome], parameters: Sequence[str]) -> str:
    first = outcomes[0]
    if all(one.actual is None for one in outcomes):
        return message("it returns nothing: `return` is missing")
    if any(one.actual is None for one in outcomes):
        return message("it returns nothing for some inputs: a `return` is missing on one of its ways")
    if isinstance(first.actual, GeneratorType | map | filter | zip | range):
        return message(
            "it returns something that has not been computed yet ({kind}): make a list of it",
            kind=type(first.actual).__name__,
        )
    if callable(first.actual) and not isinstance(first.actual, Tensor):
        return message("it returns a function: call it, with ()")
    for one in outcomes:
        for expected, actual in _tensors(one.expected, one.actual):
            if bool(actual.isnan().any()) and not bool(expected.isnan().any()):
                if name := _mask_without_keys(outcomes, parameters):
                    text = "a row of `{name}` leaves no key, and the softmax over none is NaN: is the mask inverted?"
                    return message(text, name=name)
                return message("it holds NaN, which is what 0 * inf, inf - inf and 0 / 0 give")
            if bool(actual.isinf().any()) and not bool(expected.isinf().any()):
                return message("it holds infinite numbers: a division by 0, log(0), or e to a large number")
    return ""


def _mask_without_keys(outcomes: Sequence[Outcome], parameters: Sequence[str]) -> str:
    """The mask of which a row is True everywhere in just those rounds in which the answer holds NaN."""
    are_nan = [any(bool(one.isnan().any()) for _, one in _tensors(each.expected, each.actual)) for each in outcomes]
    for number, name in enumerate(parameters):
        masks = [each.arguments[number] for each in outcomes]
        are_masks = all(isinstance(mask, Tensor) and mask.dtype == torch.bool and mask.dim() for mask in masks)
        if are_masks and [bool(mask.all(dim=-1).any()) for mask in masks] == are_nan:
            return name
    return ""


def _tensors(expected: Any, actual: Any) -> list[tuple[Tensor, Tensor]]:
    """The tensors and numbers of an answer, beside the solution's."""
    if isinstance(expected, tuple) and isinstance(actual, tuple | list) and len(expected) == len(actual):
        return [pair for one, other in zip(expected, actual, strict=True) for pair in _tensors(one, other)]
    if isinstance(expected, Tensor | float) and isinstance(actual, Tensor | float):
        return [(torch.as_tensor(expected), torch.as_tensor(actual))]
    return []


def _by_view(outcomes: Sequence[Outcome], parameters: Sequence[str]) -> str:
    """Right values that stand elsewhere, or went through one function too many or too few."""
    names: list[str] | None = None
    changing: set[str] = set()
    for one in outcomes:
        equal = {name: value for name, value in _views(one.expected) if difference(value, one.actual) == ""}
        names = list(equal) if names is None else [name for name in names if name in equal]
        plain = one.expected.detach() if isinstance(one.expected, Tensor) else one.expected
        changing |= {name for name, value in equal.items() if difference(plain, value)}
    return next((name for name in names or [] if name in changing), "")


def _views(expected: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(expected, Tensor):
        yield from _tensor_views(expected.detach())
    elif isinstance(expected, bool):
        yield message("it is inverted: True where False belongs"), not expected
    elif isinstance(expected, int | float):
        yield message("the sign is wrong"), -expected
        if expected and isinstance(expected, float):
            yield message("it is the reciprocal: 1 divided by the right value"), 1 / expected
            yield message("it is 1 minus the right value"), 1 - expected
        if isinstance(expected, float):
            yield from ((name, value.item()) for name, value in _function_views(torch.tensor(expected).double()))
    elif isinstance(expected, tuple) and len(expected) == 2:
        yield message("the two values are exchanged"), expected[::-1]


def _tensor_views(expected: Tensor) -> Iterator[tuple[str, Tensor]]:
    dims = range(expected.dim())
    for a, b in combinations(dims, 2):
        yield message("dimensions {a} and {b} are exchanged: it is transposed", a=a, b=b), expected.transpose(a, b)
    if expected.dim() > 2:
        for dim in range(1, expected.dim()):
            yield message("the dimensions are in another order"), expected.movedim(0, dim)
            yield message("the dimensions are in another order"), expected.movedim(dim, 0)
    if expected.dtype == torch.bool:
        yield message("it is inverted: True where False belongs"), ~expected
        yield message("True and False are asked for, not 1 and 0"), expected.long()
        yield message("True and False are asked for, not 1.0 and 0.0"), expected.float()
    if not expected.is_floating_point() and expected.dtype != torch.bool:
        yield message("whole numbers are asked for: these are ids or counts, with a point"), expected.float()
    for dim in dims:
        yield message("dimension {dim} is in reversed order", dim=dim), expected.flip(dim)
        yield message("all is one place too far along dimension {dim}", dim=dim), expected.roll(1, dim)
        yield message("all is one place too early along dimension {dim}", dim=dim), expected.roll(-1, dim)
        yield message("dimension {dim} is added up", dim=dim), expected.sum(dim)
        yield message("dimension {dim} is averaged", dim=dim), expected.double().mean(dim)
        yield message("there is one dimension too many"), expected.unsqueeze(dim)
        yield message("a dimension of one is missing"), expected.squeeze(dim)
    yield message("there is one dimension too many"), expected.unsqueeze(-1)
    if expected.is_floating_point():
        yield message("the sign is wrong"), -expected
        yield from _function_views(expected)
        for dim in dims:
            yield message("it went through a softmax over dimension {dim} too many", dim=dim), expected.softmax(dim)


def _function_views(expected: Tensor) -> Iterator[tuple[str, Tensor]]:
    for name in ("exp", "log", "sqrt", "square", "tanh", "sigmoid", "relu", "abs", "round"):
        yield message("{function} is applied once too often", function=name), getattr(expected, name)()
    yield message("a logarithm is missing at the end"), expected.exp()


def _is_argument(outcomes: Sequence[Outcome], parameters: Sequence[str]) -> str:
    for number, name in enumerate(parameters[: len(outcomes[0].arguments)]):
        if all(
            not callable(one.arguments[number]) and difference(one.arguments[number], one.actual) == ""
            for one in outcomes
        ):
            return message("it gives its argument `{name}` as it is: nothing has been done with it", name=name)
    return ""


def _by_parts(outcomes: Sequence[Outcome], parameters: Sequence[str]) -> str:
    """Of several values, those that are right, and the one that is wrong."""
    first = outcomes[0].expected
    if not isinstance(first, tuple) or not all(
        isinstance(one.actual, tuple | list) and len(one.actual) == len(first) for one in outcomes
    ):
        return ""
    for number in range(len(first)):
        parts = [Outcome(one.arguments, one.after, one.expected[number], one.actual[number]) for one in outcomes]
        if all(one.is_right for one in parts):
            continue
        problem = explained(parts, parameters)
        values = {"number": number + 1, "count": len(first), "problem": problem}
        return message("result {number} of {count}: {problem}", **values) if problem else ""
    return ""


def _by_sequence(outcomes: Sequence[Outcome], parameters: Sequence[str]) -> str:
    """A list with entries too many, missing, or in another order."""
    problems = []
    for one in outcomes:
        expected, actual = one.expected, one.actual
        if not isinstance(expected, list) or not isinstance(actual, list | tuple):
            return ""
        if any(isinstance(value, Tensor) for value in (*expected, *actual)):
            return ""
        if not one.is_right:
            problems.append(_list_problem(expected, list(actual)))
    kinds = {template for template, _ in problems}
    if len(kinds) != 1 or "" in kinds:
        return ""
    template, values = problems[0]
    return message(template, **values)


def _list_problem(expected: list[Any], actual: list[Any]) -> tuple[str, dict[str, Any]]:
    size, extra = len(expected), len(actual) - len(expected)
    if actual == expected[::-1]:
        return "the list is in reversed order", {}
    if extra > 0 and actual[:size] == expected:
        return "after the right answer comes something more: {extra}", {"extra": described(actual[size:])}
    if extra > 0 and actual[extra:] == expected:
        return "before the right answer stands something more: {extra}", {"extra": described(actual[:extra])}
    if extra < 0 and expected[:extra] == actual:
        return "the end is missing: {missing}", {"missing": described(expected[extra:])}
    if extra < 0 and expected[-extra:] == actual:
        return "the beginning is missing: {missing}", {"missing": described(expected[:-extra])}
    if sorted(map(repr, expected)) == sorted(map(repr, actual)):
        return "the entries are right, and their order is not", {}
    more, fewer = [one for one in actual if one not in expected], [one for one in expected if one not in actual]
    if more and not fewer:
        return "{extra} should not be there", {"extra": described(more[0])}
    if fewer and not more:
        return "{missing} is missing", {"missing": described(fewer[0])}
    return "", {}


def _by_scale(outcomes: Sequence[Outcome], parameters: Sequence[str]) -> str:
    """A factor, or a number that is added, everywhere."""
    numbers = [_numbers(one) for one in outcomes]
    if not all(one is not None and one[0].numel() for one in numbers):
        return ""
    factors, added = [], []
    for one in numbers:
        assert one is not None
        expected, actual = one
        finite = expected.isfinite() & (expected.abs() > 1e-6)
        ratio, rest = actual[finite] / expected[finite], actual - expected
        factors.append(float(ratio[0]) if ratio.numel() and _constant(ratio) else math.nan)
        added.append(float(rest[0]) if _constant(rest) else math.nan)
    if _constant(torch.tensor(factors)) and factors[0] != 1:
        return message("everywhere it is {factor} times the right value", factor=f"{factors[0]:.4g}")
    if _constant(torch.tensor(added)) and added[0] != 0:
        return message("everywhere {number} is added to the right value", number=f"{added[0]:.4g}")
    sizes = [dict(_sizes(one.arguments, parameters)) for one in outcomes]
    for name in sizes[0]:
        for words, power in POWERS.items():
            if all(
                size.get(name, 0) > 0 and math.isclose(size[name] ** power, factor, rel_tol=1e-3)
                for size, factor in zip(sizes, factors, strict=True)
            ):
                return message(words, size=name)
        if all(
            math.isclose(abs(number), size.get(name, 0), rel_tol=1e-3)
            for size, number in zip(sizes, added, strict=True)
        ):
            return message("it differs from the right value by {size}", size=name)
    return ""


def _numbers(one: Outcome) -> tuple[Tensor, Tensor] | None:
    expected, actual = one.expected, one.actual
    plain = isinstance(expected, Tensor | float | int) and isinstance(actual, Tensor | float | int)
    if not plain or isinstance(expected, bool) or isinstance(actual, bool):
        return None
    first, second = torch.as_tensor(expected).detach().double(), torch.as_tensor(actual).detach().double()
    return (first.flatten(), second.flatten()) if first.shape == second.shape else None


def _constant(values: Tensor) -> bool:
    return bool(values.numel() and torch.allclose(values, values[:1].expand_as(values), rtol=1e-4, atol=1e-6))


def _sizes(arguments: Sequence[Any], parameters: Sequence[str]) -> Iterator[tuple[str, float]]:
    """Numbers of the inputs, by their names."""
    for name, value in zip(parameters, arguments, strict=False):
        if isinstance(value, Tensor):
            for dim, size in enumerate(value.shape):
                yield message("the size of dimension {dim} of `{name}`", dim=dim, name=name), size
            yield message("the number of values in `{name}`", name=name), value.numel()
            if value.dtype == torch.bool:
                yield message("the number of True in `{name}`", name=name), float(value.sum())
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"`{name}`", value
        elif isinstance(value, list | str):
            yield message("the length of `{name}`", name=name), len(value)


def _by_place(outcomes: Sequence[Outcome], parameters: Sequence[str]) -> str:
    """Wrong values at the first or last place of a dimension only, or only at padding."""
    wrong: list[tuple[Outcome, Tensor]] = []
    for one in outcomes:
        expected, actual = one.expected, one.actual
        if not isinstance(expected, Tensor) or not isinstance(actual, Tensor) or expected.shape != actual.shape:
            return ""
        if _kind(expected) != _kind(actual) or not expected.dim():
            return ""
        close = torch.isclose(expected.detach().double(), actual.detach().double(), 1e-4, 1e-5, equal_nan=True)
        if not close.all():
            wrong.append((one, ~close))
    for number, name in enumerate(parameters):
        for value in (True, False):
            if all(_lies_in(places, one.arguments[number], value) for one, places in wrong):
                return message("it is wrong only where `{name}` is {value}", name=name, value=value)
    for dim in range(wrong[0][1].dim()):
        for words, place in PLACES.items():
            if all(places.size(dim) > 1 and places.sum() == places.select(dim, place).sum() for _, places in wrong):
                return message(words, dim=dim)
    return ""


def _lies_in(places: Tensor, mask: Any, value: bool) -> bool:
    """True if all these places are ones where a mask, of the first dimensions, has this value, and it has others."""
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.shape != places.shape[: mask.dim()]:
        return False
    outer = places.flatten(mask.dim()).any(-1) if places.dim() > mask.dim() else places
    return not bool((outer & (mask != value)).any())


# -- the inputs for which an answer is wrong -----------------------------------------------------------------------


def some_inputs(outcomes: Sequence[Outcome], parameters: Sequence[str]) -> str:
    """Names the inputs for which an answer is wrong, where it is right for all others."""
    wrong = [not one.is_right for one in outcomes]
    if all(wrong):
        return ""
    features = [dict(_features(one.arguments, parameters)) for one in outcomes]
    problem = next(one.problem for one in outcomes if not one.is_right)
    for name in features[0]:
        if [each.get(name, False) for each in features] == wrong:
            return message(
                "it is right for other inputs, and wrong where {inputs}: {problem}", inputs=name, problem=problem
            )
    right = len(wrong) - sum(wrong)
    return message(
        "it is right for {right} of {all} inputs; else: {problem}",
        right=right,
        all=len(wrong),
        problem=first_problem(outcomes, parameters),
    )


def _features(arguments: Sequence[Any], parameters: Sequence[str]) -> Iterator[tuple[str, bool]]:
    named = list(zip(parameters, arguments, strict=False))
    for name, value in named:
        if isinstance(value, Tensor):
            yield from _tensor_features(name, value)
        elif isinstance(value, list | str):
            yield message("`{name}` is empty", name=name), not value
            yield message("`{name}` has one entry", name=name), len(value) == 1
            yield message("`{name}` has several entries", name=name), len(value) > 1
            inner = [one for one in value if isinstance(one, list | str)]
            yield message("an entry of `{name}` is empty", name=name), any(not one for one in inner)
            yield (
                message("an entry stands twice in `{name}`", name=name),
                len({repr(one) for one in value}) < len(value),
            )
            yield message("the entries of `{name}` differ in length", name=name), len({len(one) for one in inner}) > 1
        elif isinstance(value, int) and not isinstance(value, bool):
            yield message("`{name}` is 0", name=name), value == 0
            yield message("`{name}` is 1", name=name), value == 1
            yield message("`{name}` is more than 1", name=name), value > 1
            yield message("`{name}` is odd", name=name), value % 2 == 1
    sizes = [
        (name, len(value)) for name, value in named if isinstance(value, Tensor | list | str) and not _is_scalar(value)
    ]
    for (one, size), (other, other_size) in combinations(sizes, 2):
        yield message("`{one}` is shorter than `{other}`", one=one, other=other), size < other_size
        yield message("`{one}` is longer than `{other}`", one=one, other=other), size > other_size
        yield message("`{one}` and `{other}` differ in length", one=one, other=other), size != other_size
    tensors = [(name, value) for name, value in named if isinstance(value, Tensor) and value.dim() > 1]
    for (one, value), (other, other_value) in combinations(tensors, 2):
        yield (
            message("`{one}` and `{other}` have different lengths", one=one, other=other),
            value.size(1) != other_value.size(1),
        )
    numbers = [(name, value) for name, value in named if isinstance(value, int | float) and not isinstance(value, bool)]
    for (one, number), (other, other_number) in combinations(numbers, 2):
        if type(number) is not type(other_number):
            continue  # a share and an id
        yield message("`{one}` is less than `{other}`", one=one, other=other), number < other_number
        yield message("`{one}` is more than `{other}`", one=one, other=other), number > other_number
        yield message("`{one}` is `{other}`", one=one, other=other), number == other_number
        yield message("`{one}` is not `{other}`", one=one, other=other), number != other_number


def _is_scalar(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dim() == 0


def _tensor_features(name: str, value: Tensor) -> Iterator[tuple[str, bool]]:
    for dim, size in enumerate(value.shape):
        yield message("dimension {dim} of `{name}` is 1", dim=dim, name=name), size == 1
        yield message("dimension {dim} of `{name}` is more than 1", dim=dim, name=name), size > 1
    if value.dim() > 1:
        yield message("the last two dimensions of `{name}` are equal", name=name), value.size(-1) == value.size(-2)
        yield message("the last two dimensions of `{name}` differ", name=name), value.size(-1) != value.size(-2)
    if value.dtype == torch.bool and value.dim() > 1:
        rows = value.any(dim=-1)
        yield message("a row of `{name}` is False everywhere", name=name), not bool(rows.all())
        yield message("`{name}` has no False", name=name), bool(value.all())
        yield message("`{name}` has a False", name=name), not bool(value.all())
    elif not value.is_floating_point() and value.numel():
        yield message("`{name}` holds a 0", name=name), bool((value == 0).any())
        yield message("the first row of `{name}` is not the longest", name=name), bool(value.flatten()[0] < value.max())
