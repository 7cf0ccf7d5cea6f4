"""The calibration of a run's confidence, and the chrF that it expects of a text without references."""

from pathlib import Path
from typing import Any

from dragoman.errors import Error
from dragoman.inference.search_translator import SearchTranslator
from dragoman.pipeline import confidence
from dragoman.progress import say
from dragoman.runs import checkpoint
from dragoman.runs.directory import read_run
from dragoman.tasks import recipes
from dragoman.text.corpus import FilesSource
from dragoman.text.lines import find, read_lines

MAX_LINES = 5000
"""Lines that are translated to calibrate on, at most."""


def calibrate(
    run: Path, src: Path | None = None, ref: Path | None = None, which: str = "best", device: str = "auto"
) -> confidence.Calibration:
    """Calibrate a run on its validation pairs, or on files, and write it into the run directory.

    Raises DragomanError where there are no pairs or too few of them.
    """
    read_run(run, "translation")
    if (src is None) != (ref is None):
        raise Error.MISSING_OPTION("`src` and `ref`", "give both, or none for the run's validation pairs")
    if src is not None and ref is not None:
        pairs = [(pair.src, pair.tgt) for pair in FilesSource(src=str(src), tgt=str(ref)).pairs()]
    else:
        recipe: Any = recipes.of_run(run)
        pairs = [(pair.src, pair.tgt) for pair in recipe.corpus.valid.pairs()]
    pairs = pairs[:: max(1, -(-len(pairs) // MAX_LINES))]
    say(f"translating {len(pairs):,} lines with references")
    translator = SearchTranslator.load(run, which=which, device=device)
    calibration = confidence.calibrate(translator, pairs, checkpoint.select(run, which).name)
    confidence.save(run, calibration)
    return calibration


def project(run: Path, src: Path, which: str = "best", device: str = "auto", **options: Any) -> confidence.Projection:
    """The chrF that a calibrated run expects of its translation of a text."""
    calibration = confidence.load(run, checkpoint.select(run, which).name)
    lines = list(read_lines(find(src)))
    translator = SearchTranslator.load(run, which=which, device=device, **options)
    texts = translator.translate(lines)
    return confidence.project(
        calibration, confidence.confidences(translator, calibration, list(zip(lines, texts, strict=True)))
    )
