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
    """What a run is used with, by its task: a `Translator`, or for a classifier a `Predictor`.

    `load(run, device="cpu", beam_size=1)`; the options are those of `Translator.load` and `Predictor.load`.
    """
    from dragoman.predictor import READERS, Predictor  # torch takes a second to import
    from dragoman.translator import Translator, read_run

    task = read_run(run, "translation", *READERS)["task"]
    return Predictor.load(run, **options) if task in READERS else Translator.load(run, **options)
