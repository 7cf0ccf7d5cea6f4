"""`dragoman demo`: the whole way, small."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import Overrides
from dragoman.experiments.demo import run_demo


def demo(
    recipe: Annotated[Path | None, typer.Option(help="The demo's recipe. [default: Dragoman's own]")] = None,
    overrides: Overrides = None,
) -> None:
    """The whole way in two minutes: train on the corpus that comes with Dragoman, score it, translate a sentence."""
    typer.echo(run_demo(recipe, overrides or []))
