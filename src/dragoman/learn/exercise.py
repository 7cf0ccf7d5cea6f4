"""Exercises that grade themselves: a solution, hidden random inputs, and the mistakes that people make.

An answer is right if it gives what the solution gives. If it does not, it is compared with the solution's known
mistakes: the one that gives the same wrong values says what is wrong. Otherwise the first difference is shown.
"""

import ast
import copy
import functools
import inspect
import math
import random
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.errors import DragomanError, Error
from dragoman.learn.bug import source_of
from dragoman.runs.atomic_io import read_yaml

ROUNDS = 20
"""Random inputs that an answer meets."""


class Wrong(DragomanError):
    """A wrong answer, and the reason why it is wrong."""

    def __init__(self, why: str) -> None:
        super().__init__(Error.WRONG_ANSWER, why)


@dataclass(frozen=True)
class Exercise:
    """One function to write. `draw` makes its inputs, `solution` is one that is right."""

    chapter: int
    solution: Callable[..., Any]
    draw: Callable[[random.Random], tuple[Any, ...]]
    grade: Callable[[Callable[..., Any]], None] | None = None
    """Another way to judge an answer than by its values; raises Wrong."""
    given: Sequence[Callable[..., Any]] = ()
    """Functions that the learner's file has already."""

    @property
    def name(self) -> str:
        return self.solution.__name__

    def stub(self) -> str:
        """The learner's part: the signature and the task, and nothing after it."""
        tree = ast.parse(source_of(self.solution))
        function = tree.body[0]
        assert isinstance(function, ast.FunctionDef)
        lines = source_of(self.solution).splitlines()
        end = function.body[0].end_lineno
        return "\n".join(lines[:end]) + "\n    raise NotImplementedError\n"

    def wrong_answers(self) -> list[tuple[Callable[..., Any], str]]:
        """The known mistakes, as functions, and what is said of each."""
        return [
            (changed(self.solution, old, new), message)
            for old, others in mistakes()[self.name].items()
            for new, message in others.items()
        ]

    def check(self, answer: Callable[..., Any], seed: int | None = None) -> None:
        """Grade an answer on inputs that nobody has seen. Raises Wrong with what to look at."""
        if self.grade is not None:
            self.grade(answer)
            return
        rng = random.Random(seed)
        results = []
        for _ in range(ROUNDS):
            torch.manual_seed(rng.randrange(2**31))
            arguments = self.draw(rng)
            results.append((arguments, _called(answer, arguments)))
        for arguments, value in results:
            if problem := difference(self.solution(*copied(arguments)), value):
                raise Wrong(f"{self.name}: {self._known_mistake(results) or problem}")

    def _known_mistake(self, results: Sequence[tuple[tuple[Any, ...], Any]]) -> str:
        for function, message in self.wrong_answers():
            try:
                if all(difference(function(*copied(arguments)), value) == "" for arguments, value in results):
                    return message
            except Exception:
                continue
        return ""


@functools.cache
def mistakes() -> dict[str, dict[str, dict[str, str]]]:
    """By exercise: the text of the solution, the text of a common mistake, and the hint for a learner who wrote the
    mistake."""
    return read_yaml(Path(__file__).parent / "exercises/mistakes.yaml")


def changed(solution: Callable[..., Any], old: str, new: str) -> Callable[..., Any]:
    """A solution with `new` in the place of `old`, which stands once in what follows its docstring."""
    head, quotes, code = source_of(solution).rpartition('"""')
    assert code.count(old) == 1, f"{old!r} stands {code.count(old)} times in {solution.__name__}"
    namespace = dict(solution.__globals__)
    exec(head + quotes + code.replace(old, new), namespace)
    function: Callable[..., Any] = namespace[solution.__name__]
    return function


def copied(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Inputs that an answer may change without harm."""
    return tuple(one if callable(one) else copy.deepcopy(one) for one in arguments)


def _called(answer: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return answer(*copied(arguments))
    except NotImplementedError:
        raise
    except Exception as error:
        shapes = ", ".join(described(one) for one in arguments)
        raise Wrong(f"{answer.__name__}({shapes}) raises {type(error).__name__}: {error}") from error


def described(value: Any) -> str:
    """A value in a few words: of a tensor its shape."""
    if isinstance(value, Tensor):
        return f"tensor {tuple(value.shape)}"
    if callable(value):
        return "function"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def difference(expected: Any, actual: Any, place: str = "the answer") -> str:
    """The first thing in which `actual` is not `expected`, in words; nothing where they are equal up to 1e-4."""
    if isinstance(actual, Tensor) and isinstance(expected, float) and actual.numel() == 1:
        actual = float(actual.detach())
    if isinstance(expected, Tensor) and expected.dim() == 0 and isinstance(actual, int | float):
        expected = float(expected)
    if isinstance(expected, Tensor):
        return _tensor_difference(expected, actual, place)
    if isinstance(expected, tuple | list):
        if not isinstance(actual, tuple | list):
            return f"{place} should be {len(expected)} values and is {described(actual)}"
        if len(expected) != len(actual):
            return f"{place} should have {len(expected)} values and has {len(actual)}: {described(actual)}"
        parts = (
            difference(one, other, f"value {number} of {place}")
            for number, (one, other) in enumerate(zip(expected, actual, strict=True), start=1)
        )
        return next(filter(None, parts), "")
    if isinstance(expected, dict):
        if not isinstance(actual, dict) or expected.keys() != actual.keys():
            return f"{place} should be a dict with the keys {list(expected)} and is {described(actual)}"
        return next(filter(None, (difference(expected[key], actual[key], f"{place}[{key!r}]") for key in expected)), "")
    if isinstance(expected, float) and isinstance(actual, int | float):
        close = math.isclose(expected, actual, rel_tol=1e-4, abs_tol=1e-5)
        return "" if close else f"{place} should be {expected:.6g} and is {actual:.6g}"
    return "" if expected == actual else f"{place} should be {described(expected)} and is {described(actual)}"


def _tensor_difference(expected: Tensor, actual: Any, place: str) -> str:
    if not isinstance(actual, Tensor):
        return f"{place} should be a tensor of shape {tuple(expected.shape)} and is {described(actual)}"
    if expected.shape != actual.shape:
        return f"{place} should have the shape {tuple(expected.shape)} and has {tuple(actual.shape)}"
    if expected.dtype != actual.dtype and (expected.dtype == torch.bool or actual.dtype == torch.bool):
        return f"{place} should be of {expected.dtype} and is of {actual.dtype}"
    one, other = expected.double(), actual.detach().double()
    wrong = ~torch.isclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True)
    if not bool(wrong.any()):
        return ""
    where = tuple(wrong.nonzero()[0].tolist())
    share = f"{int(wrong.sum())} of {wrong.numel()} values"
    return f"{share} of {place} are wrong; at {list(where)} it should be {one[where]:.6g} and is {other[where]:.6g}"


def answers_file(exercises: Sequence[Exercise]) -> str:
    """The file that a learner writes in: the stubs of a chapter, with what they import."""
    modules = [inspect.getmodule(inspect.unwrap(one.solution)) for one in exercises]
    imports = dict.fromkeys(line for module in modules if module for line in _imports(inspect.getsource(module)))
    number = exercises[0].chapter
    head = f'"""Exercises of chapter {number}. Write what is missing, then: dragoman learn check {number}"""\n'
    given = dict.fromkeys(source_of(function).rstrip() + "\n" for one in exercises for function in one.given)
    return "\n".join([head, *imports, "", "", "\n\n".join([*given, *(one.stub() for one in exercises)])])


def _imports(source: str) -> list[str]:
    imports = [node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]
    lines = [textwrap.dedent(ast.unparse(node)) for node in imports]
    return [line for line in lines if "dragoman.learn" not in line]
