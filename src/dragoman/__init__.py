"""Dragoman takes parallel text and gives back a translator.

>>> import dragoman
>>> translator = dragoman.load("runs/demo")  # doctest: +SKIP
>>> translator.translate(["ich möchte ein bier"])  # doctest: +SKIP
['i want a beer']
"""

from typing import Any

from dragoman.errors import DragomanError

__all__ = ["DragomanError", "__version__", "load"]
__version__: str


def __getattr__(name: str) -> str:
    """Load `__version__` on first use, so that one layer of a model comes with as few files as possible."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dragoman.version import __version__

    return __version__


def load(run: str, **options: Any) -> Any:
    """Load a run directory for use: a `Translator`, a `Classifier`, or a `Generator` of a language model.

    `options` are those of its own `load`: `load(run, device="cpu", beam_size=1)`.
    """
    from dragoman.tasks import recipes  # torch takes a second to import

    return recipes.JOBS[recipes.of_run(run).task].inference.load(run, **options)
