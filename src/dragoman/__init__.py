"""Dragoman takes parallel text and gives back a translator.

>>> import dragoman
>>> translator = dragoman.load("runs/demo")  # doctest: +SKIP
>>> translator.translate(["ich möchte ein bier"])  # doctest: +SKIP
['i want a beer']
"""

from typing import TYPE_CHECKING, Any

from dragoman.errors import DragomanError
from dragoman.version import __version__

if TYPE_CHECKING:
    from dragoman.translator import Translator

__all__ = ["DragomanError", "__version__", "load"]


def load(run: str, **options: Any) -> "Translator":
    """The translator of a run directory (`Translator.load`): `load(run, device="cpu", beam_size=1)`."""
    from dragoman.translator import Translator  # torch takes a second to import

    return Translator.load(run, **options)
