"""Callbacks of a training: what they may be, and when they are called."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from dragoman import config
from dragoman.errors import Error


class Callback:
    """Called by `dragoman.train(..., callbacks=[...])` with the `Training`; a subclass has the methods that it needs.

    `training.metrics` has the figures of the step or validation, `training.stop()` saves and ends the training there.
    They are called in the process that trains, in order, and change nothing of it: random numbers are keyed by the
    step. What one raises ends the training and is raised by `train`; the run goes on from its last checkpoint. Of
    several processes that train together the first one calls them.
    """

    def on_begin(self, training: Any) -> None:
        """Before the first step of this call, which may go on where another one ended (`training.step`)."""

    def on_step(self, training: Any) -> None:
        """After each step, before the validation that may be due: `loss`, `grad_norm`, `lr`."""

    def on_validation(self, training: Any) -> None:
        """After each validation: `score`, `loss`, and the figures of the task (`bleu`, `chrf`, `accuracy`)."""

    def on_end(self, training: Any) -> None:
        """After the test sets: `training.reason`, `training.scores`."""


MOMENTS = ("on_begin", "on_step", "on_validation", "on_end")


def checked(callbacks: Any) -> dict[str, list[Callable[[Any], Any]]]:
    """The callbacks of each moment; functions are called after validations.

    Raises DragomanError for what is no callback, such as a class or a method of another toolkit's name.
    """
    given = list(callbacks) if isinstance(callbacks, Iterable) else [callbacks]
    by_moment: dict[str, list[Callable[[Any], Any]]] = {moment: [] for moment in MOMENTS}
    for one in given:
        if inspect.isclass(one):
            raise Error.WRONG_OPTION(f"callbacks: {one.__name__} is a class", f"give an object: {one.__name__}()")
        named = [name for name in dir(one) if name.startswith("on_") and callable(getattr(one, name))]
        for name in (name for name in named if name not in MOMENTS):
            what = f"callbacks: {type(one).__name__}.{name} is never called"
            raise Error.UNKNOWN_NAME(what, config.hint_of(name, MOMENTS))
        if not named and not callable(one):
            raise Error.WRONG_OPTION(
                f"callbacks: {type(one).__name__} {one!r:.60}", f"give functions, or objects with {', '.join(MOMENTS)}"
            )
        for name in named or ["on_validation"]:
            by_moment[name].append(getattr(one, name) if named else one)
    return by_moment
