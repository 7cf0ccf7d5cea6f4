"""Dragoman takes parallel text and gives back a translator.

>>> import dragoman
>>> translator = dragoman.load("runs/demo")  # doctest: +SKIP
>>> translator.translate(["ich möchte ein bier"])  # doctest: +SKIP
['i want a beer']

`help(dragoman.Translator)` shows what it can do; `load_classifier` and `load_language_model` are for other runs.
`help(dragoman.train)`, `dragoman.evaluate` and `dragoman.Corpus` are for training (docs/python.md).
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.experiments.callbacks import Callback
    from dragoman.experiments.evaluate import evaluate
    from dragoman.experiments.train import Training, train
    from dragoman.inference.classifier import Predictor
    from dragoman.inference.generator import Generator
    from dragoman.inference.translation import Scored, Translation
    from dragoman.pipeline.translator import Translator
    from dragoman.text.glossary import Glossary
    from dragoman.text.sources.records import Corpus
    from dragoman.version import __version__

_PLACES = {
    "__version__": "version",
    "Callback": "experiments.callbacks",
    "Corpus": "text.sources.records",
    "Generator": "inference.generator",
    "Glossary": "text.glossary",
    "Predictor": "inference.classifier",
    "Scored": "inference.translation",
    "Training": "experiments.train",
    "Translation": "inference.translation",
    "Translator": "pipeline.translator",
    "evaluate": "experiments.evaluate",
    "train": "experiments.train",
}
"""The module of each name, which is loaded on first use: PyTorch takes a second to import."""

__all__ = [
    "Callback",
    "Corpus",
    "DragomanError",
    "Generator",
    "Glossary",
    "Predictor",
    "Scored",
    "Training",
    "Translation",
    "Translator",
    "__version__",
    "evaluate",
    "load",
    "load_classifier",
    "load_language_model",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"dragoman.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return __all__


def load(run: str | Path, **options: Any) -> "Translator":
    """Load the translator of a run directory: `load("runs/mine", device="cpu", beam_size=1)`.

    `options` are those of `Translator.load`. Raises DragomanError for a run that is none, or of another kind:
    `load_classifier` and `load_language_model` are for those.
    """
    return __getattr__("Translator").load(run, **options)


def load_classifier(run: str | Path, **options: Any) -> "Predictor":
    """Load the classifier of a run, of texts or of images; options as in `Predictor.load`."""
    predictor = __getattr__("Predictor")
    import_module("dragoman.config").check_names("load_classifier", options, predictor.load)
    return predictor.load(run, **options)


def load_language_model(run: str | Path, **options: Any) -> "Generator":
    """Load the language model of a run; options as in `Generator.load`."""
    return __getattr__("Generator").load(run, **options)
