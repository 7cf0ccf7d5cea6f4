"""`dragoman average`: one model of several."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import Which
from dragoman.experiments.model_soup import average as averaged
from dragoman.progress import say


def average(
    runs: Annotated[list[Path], typer.Argument(help="Run directories, two or more.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="New run directory.", show_default=False)],
    which: Which = "best",
) -> None:
    """Make one model of several: the mean of the weights of runs that began with the same (`train --init-from`).

    It is as fast as one of them, and can be better than each. Runs that began apart are for `translate --ensemble`.

    Example: dragoman average runs/tuned-1 runs/tuned-2 -o runs/tuned
    """
    say(f"written: {averaged(runs, out, which)}")
