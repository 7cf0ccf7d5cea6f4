"""`dragoman calibrate`: what a run's probabilities are worth."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import Device, Run, Which
from dragoman.experiments.calibrate import calibrate as calibrated
from dragoman.pipeline.confidence import FILE


def calibrate(
    run: Run,
    src: Annotated[Path | None, typer.Option(help="Source text. [default: the run's validation text]")] = None,
    ref: Annotated[Path | None, typer.Option(help="Its reference translations.")] = None,
    which: Which = "best",
    device: Device = "auto",
) -> None:
    """Calibrate how sure a run is, on its validation text: for `translate --min-confidence`, and for the chrF that
    `evaluate` expects of a text without references.

    Of all words with a confidence of 0.8 eight of ten stand in a human's translation. The calibration error that is
    printed is of lines that were held out.

    Example: dragoman calibrate runs/mine
    """
    fitted = calibrated(run, src, ref, which, device)
    typer.echo(f"calibrated on {fitted.lines:,} lines with references, {fitted.checkpoint}")
    typer.echo(
        f"expected calibration error of words {100 * fitted.word_ece:.1f} %, of lines {100 * fitted.line_ece:.1f} %"
    )
    typer.echo(run / FILE)
