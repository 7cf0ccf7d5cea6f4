"""Dragoman takes parallel text and gives back a translator.

>>> import dragoman
>>> translator = dragoman.load("runs/demo")  # doctest: +SKIP
>>> translator.translate(["ich möchte ein bier"])  # doctest: +SKIP
['i want a beer']
"""

from typing import Any

from dragoman.errors import DragomanError
from dragoman.version import __version__

__all__ = ["DragomanError", "__version__", "load"]


def load(run: str, **options: Any) -> Any:
    """What a run directory has learnt, ready for use: a `Translator`, or a `Generator` for a language model.

    `options` are those of its own `load`: `load(run, device="cpu", beam_size=1)`.
    """
    from dragoman.tasks import recipes  # torch takes a second to import

    return recipes.JOBS[recipes.of_run(run).task].inference.load(run, **options)
