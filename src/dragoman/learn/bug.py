"""A bug of the laboratory: a broken function that replaces one of Dragoman's functions, and a figure in which the bug
shows."""

import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dragoman.errors import Error
from dragoman.learn.language import translated


class Figure(NamedTuple):
    """The number that a bug makes wrong."""

    words: str
    measure: Callable[..., float]
    """The number, for a seed."""
    sound: str
    """"above" or "below": on which side of `limit` it is without the bug."""
    limit: float

    def __call__(self, seed: int, **settings: Any) -> float:
        return self.measure(seed, **settings)


class Curve(NamedTuple):
    """The line that a lesson draws without the bug and with it."""

    title: str
    x: str
    y: str
    measure: Callable[[int], list[float]]
    """Its heights, for a seed."""
    places: Sequence[float] = ()
    """Where they stand along `x`; from 1 on if empty."""


@dataclass(frozen=True)
class Bug:
    """A wrong function, and the right function that it replaces."""

    name: str
    sound: Callable[..., Any]
    broken: Callable[..., Any]
    symptom: str
    """The thing that a learner sees, and not why."""
    why: str
    """The mistake and its effect, told when it is fixed."""
    selftest: str
    figure: Figure
    toy: dict[str, Any] = field(default_factory=dict)
    """The training that is drawn (`laboratory.train`)."""
    curve: Curve | None = None
    """The line that is drawn instead, where that training does not show the symptom."""

    @property
    def place(self) -> str:
        """Where the sound function is: "dragoman.module, Class.method"."""
        return f"{self.sound.__module__}, {self.sound.__qualname__}"

    def is_sound(self, value: float) -> bool:
        return value > self.figure.limit if self.figure.sound == "above" else value < self.figure.limit

    @contextmanager
    def planted(self, function: Callable[..., Any] | None = None) -> Iterator[None]:
        """Have the broken function (or another one) in the place of the sound one, wherever a module knows it."""
        owner: Any = sys.modules[self.sound.__module__]
        *classes, name = self.sound.__qualname__.split(".")
        for each in classes:
            owner = getattr(owner, each)
        places = [(owner, name)]
        if not classes:
            modules = [module for key, module in sys.modules.items() if key.startswith("dragoman.")]
            places += [(m, key) for m in modules for key, value in list(vars(m).items()) if value is self.sound]
        try:
            for place, key in places:
                setattr(place, key, function or self.broken)
            yield
        finally:
            for place, key in places:
                setattr(place, key, self.sound)

    def source(self) -> str:
        """The broken function, as a learner gets it to fix."""
        source = source_of(self.broken)
        return source[source.index("\ndef ") + 1 :]

    def fixed(self, source: str, file: str) -> Callable[..., Any]:
        """The function as a learner has written it, with the names of the sound one's module and of the broken one's.

        Raises SyntaxError for what is no Python, DragomanError where the function is gone.
        """
        names = {
            **inspect.unwrap(self.broken).__globals__,
            **inspect.unwrap(self.sound).__globals__,
            "__name__": "fixed",
        }
        name = self.sound.__name__
        del names[name]
        exec(compile(source, file, "exec"), names)
        if not callable(function := names.get(name)):
            words = translated("there is no function {name} in it any more")
            raise Error.WRONG_ANSWER(words.format(name=name), file=file)
        return function


def source_of(function: Callable[..., Any]) -> str:
    """The source of a function, without the indentation of the class that it may stand in."""
    return textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
