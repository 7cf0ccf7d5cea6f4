"""Exercises that grade themselves: a solution, hidden random inputs, and the mistakes that people make.

There are four kinds. predict: a learner writes what a piece of code gives, before running it. fill: a function has a
gap. write: a function is to be written. experiment: what a learner chooses is measured.

An answer is right if it gives what the solution gives, whatever the inputs. If it does not, it is compared with the
solution's known mistakes: the one that gives the same wrong values says what is wrong. Else `diagnosis` looks at it.
"""

import ast
import functools
import inspect
import random
import re
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import torch

from dragoman.errors import DragomanError, Error
from dragoman.learn import diagnosis
from dragoman.learn.bug import source_of
from dragoman.learn.diagnosis import GAP, Outcome, Raised
from dragoman.learn.language import message, translated, translated_task
from dragoman.learn.limited import SECONDS
from dragoman.learn.mutants import mutants
from dragoman.runs.atomic_io import read_yaml

ROUNDS = 20
"""Random inputs that an answer meets."""
HEAD = """Exercises of chapter {number}. Write what is missing, then: dragoman learn check {number}

A function predict_... returns what you expect its code to give. ____ is a gap to fill in."""
PATIENCE = 10.0
"""Seconds in which the name of an unknown mistake is looked for."""
FOLDER = Path(__file__).parent / "exercises"


class Wrong(DragomanError):
    """A wrong answer, and the reason why it is wrong."""

    def __init__(self, why: str) -> None:
        super().__init__(Error.WRONG_ANSWER, why)


def no_inputs(rng: random.Random) -> tuple[Any, ...]:
    return ()


@dataclass(frozen=True)
class Exercise:
    """One function to write. `draw` makes its inputs, `solution` is one that is right."""

    chapter: int
    solution: Callable[..., Any]
    draw: Callable[[random.Random], tuple[Any, ...]] = no_inputs
    grade: Callable[[Callable[..., Any]], None] | None = None
    """Measures an answer of an experiment; raises Wrong."""
    given: Sequence[Callable[..., Any]] = ()
    """Functions that the learner's file has already."""
    gap: str = ""
    """The text of the solution that a learner has to fill in."""
    seconds: float = SECONDS
    """The time that a check may take."""

    @property
    def name(self) -> str:
        return self.solution.__name__

    @property
    def kind(self) -> str:
        """The rung of the ladder: predict, fill, write or experiment."""
        if self.grade is not None:
            return "experiment"
        return "predict" if self.name.startswith("predict_") else "fill" if self.gap else "write"

    @property
    def words(self) -> dict[str, Any]:
        """`hints`, from a question to nearly the line; `why` it is so; `code`, where Dragoman does it."""
        return read_words()[self.name]

    def why(self) -> str:
        """The reason that is told after success, and where Dragoman does it, "file: name"."""
        return message("{why} (in Dragoman: {place})", why=translated(self.words["why"]), place=self.words["code"])

    def solved(self) -> str:
        """The solution, without its task."""
        above, _, below = self._parts()
        value = f"\n# {self.solution()!r}" if self.kind == "predict" else ""
        return f"{above}\n{below}{value}"

    def stub(self) -> str:
        """The learner's part: the signature and the task; nothing after it, or a function with a gap."""
        above, task, below = self._parts()
        body = "    raise NotImplementedError"
        if self.kind == "predict":
            task = f"{task}\n\n{below}"
        elif self.kind == "fill":
            assert below.count(self.gap) == 1, f"{self.gap!r} stands {below.count(self.gap)} times in {self.name}"
            body = below.replace(self.gap, GAP)
        text = textwrap.indent(task, "    ").lstrip()
        end = "\n    " if "\n" in task else ""
        return f'{above}\n    """{text}{end}"""\n{body}\n'

    def _parts(self) -> tuple[str, str, str]:
        """The lines above the docstring, the task, and the lines below."""
        source = source_of(self.solution)
        function = ast.parse(source).body[0]
        assert isinstance(function, ast.FunctionDef)
        first, lines = function.body[0], source.rstrip().splitlines()
        above, below = lines[: first.lineno - 1], lines[first.end_lineno :]
        return "\n".join(above), translated_task(inspect.getdoc(self.solution) or ""), "\n".join(below)

    def wrong_answers(self) -> list[tuple[Callable[..., Any], str]]:
        """The known mistakes, as functions, and what is said of each."""
        return [(changed(self.solution, (edit,)), said) for edit, said in self._edits()]

    def _edits(self) -> list[tuple[tuple[str, str], str]]:
        known = mistakes().get(self.name, {})
        return [((old, new), said) for old, others in known.items() for new, said in others.items()]

    def check(self, answer: Callable[..., Any], seed: int | None = None) -> None:
        """Grade an answer on inputs that nobody has seen. Raises Wrong with what to look at."""
        parameters = inspect.signature(self.solution).parameters
        if problem := diagnosis.signature_problem(answer, list(parameters)):
            raise Wrong(problem)
        if self.grade is not None:
            self._measure(self.grade, answer)
            return
        if self.kind == "predict":
            self._check_prediction(answer)
            return
        rng, outcomes = random.Random(seed), []
        for _ in range(ROUNDS):
            torch.manual_seed(rng.randrange(2**31))
            arguments = self.draw(rng)
            outcomes.append(diagnosis.outcome(self.solution, answer, arguments))
        if all(outcome.is_right for outcome in outcomes):
            if problem := diagnosis.changed_arguments(outcomes, list(parameters)):
                raise Wrong(problem)
            if problem := diagnosis.changed_answer(answer, outcomes[0]):
                raise Wrong(problem)
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what a mistake does
            raise Wrong(self._diagnosed(outcomes, list(parameters)))

    def _measure(self, grade: Callable[[Callable[..., Any]], None], answer: Callable[..., Any]) -> None:
        try:
            grade(answer)
        except (NotImplementedError, DragomanError):
            raise
        except Exception as error:
            raise Wrong(diagnosis.raised(answer, error).words()) from error

    def _check_prediction(self, answer: Callable[..., Any]) -> None:
        """A prediction is written down, rounded, and not computed."""
        if problem := diagnosis.computed(answer):
            raise Wrong(problem)
        outcome = diagnosis.outcome(self.solution, answer, ())
        if isinstance(outcome.actual, Raised):
            raise Wrong(outcome.actual.words())
        if diagnosis.is_near(outcome.expected, outcome.actual):
            return
        for function, said in self.wrong_answers():
            if diagnosis.is_near(function(), outcome.actual):
                raise Wrong(translated(said))
        raise Wrong(diagnosis.prediction_problem(outcome.expected, outcome.actual))

    def _diagnosed(self, outcomes: Sequence[Outcome], parameters: Sequence[str]) -> str:
        """The name of what is wrong: a known mistake, or what the values look like, or two mistakes, or a mutant."""
        for function, said in self.wrong_answers():
            if diagnosis.explains(function, outcomes):
                return translated(said)
        if problem := diagnosis.changed_arguments(outcomes, parameters):
            return problem
        if problem := diagnosis.explained(outcomes, parameters):
            return problem
        deadline = time.monotonic() + PATIENCE
        for function, said in chain(self._mutants(), self._two_mistakes()):
            if diagnosis.explains(function, outcomes):
                return said
            if time.monotonic() > deadline:
                break
        return diagnosis.some_inputs(outcomes, parameters) or diagnosis.first_problem(outcomes, parameters)

    def _mutants(self) -> Iterator[tuple[Callable[..., Any], str]]:
        for old, new, function in mutants(self.solution):
            text = "it computes what a right answer computes with `{new}` in the place of `{old}`"
            yield function, message(text, new=new, old=old)

    def _two_mistakes(self) -> Iterator[tuple[Callable[..., Any], str]]:
        for (first, one), (second, other) in combinations(self._edits(), 2):
            if first[0] in second[0] or second[0] in first[0]:
                continue
            try:
                function = changed(self.solution, (first, second))
            except (AssertionError, SyntaxError):
                continue  # the two stand in the same place
            yield function, message("two things: {one}; and {other}", one=translated(one), other=translated(other))


@functools.cache
def mistakes() -> dict[str, dict[str, dict[str, str]]]:
    """By exercise: the text of the solution, the text of a common mistake, and the hint for a learner who wrote the
    mistake."""
    return read_yaml(FOLDER / "mistakes.yaml")


@functools.cache
def read_words() -> dict[str, dict[str, Any]]:
    """By exercise: `hints`, `why` and `code`."""
    return read_yaml(FOLDER / "words.yaml")


def changed(solution: Callable[..., Any], edits: Sequence[tuple[str, str]]) -> Callable[..., Any]:
    """A solution with other texts in the place of texts that stand once in what follows its docstring."""
    head, quotes, code = source_of(solution).rpartition('"""')
    for old, new in edits:
        assert code.count(old) == 1, f"{old!r} stands {code.count(old)} times in {solution.__name__}"
        code = code.replace(old, new)
    namespace = dict(solution.__globals__)
    exec(head + quotes + code, namespace)
    function: Callable[..., Any] = namespace[solution.__name__]
    return function


def answers_file(exercises: Sequence[Exercise]) -> str:
    """The file that a learner writes in: the stubs of a chapter, with what they import."""
    modules = [inspect.getmodule(inspect.unwrap(one.solution)) for one in exercises]
    head = message(HEAD, number=exercises[0].chapter)
    given = dict.fromkeys(source_of(function).rstrip() + "\n" for one in exercises for function in one.given)
    stubs = "\n\n".join([*given, *(one.stub() for one in exercises)])
    imports = dict.fromkeys(line for module in modules if module for line in _imports(inspect.getsource(module), stubs))
    return "\n".join([f'"""{head}"""\n', *imports, "", "", stubs])


def _imports(source: str, stubs: str) -> list[str]:
    """The imports of a chapter's file that a learner may want: not our own ones that no task names."""
    imports = [node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]
    return [
        ast.unparse(node)
        for node in imports
        if not re.search("dragoman|sacrebleu", ast.unparse(node)) or any(one.name in stubs for one in node.names)
    ]
