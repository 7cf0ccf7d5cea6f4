"""`dragoman report`: the page of a run."""

import typer

from dragoman.analysis.report import write_report
from dragoman.cli.options import Run


def report(run: Run) -> None:
    """Write RUN/report.html again: curves, samples, scores, settings, in one file."""
    typer.echo(write_report(run))
