"""Metrics of other programs: `install` one in an environment of its own."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.quality.metric_environments import install

app = typer.Typer(no_args_is_help=True, help=__doc__)


@app.callback()
def metric() -> None:
    """Metrics of other programs: `install` one in an environment of its own."""


@app.command("install")
def install_metric(
    name: Annotated[str, typer.Argument(help="The metric: comet.", show_default=False)],
    into: Annotated[Path, typer.Option("--into", help="The environment: a new folder.", show_default=False)],
    model: Annotated[str | None, typer.Option(help="Another model than the usual one.", show_default=False)] = None,
) -> None:
    """Make an environment for a metric, fetch its model, and print what `--metric` of evaluate and compare takes.

    Example: dragoman metric install comet --into envs/comet
    """
    typer.echo(install(name, into, model))
