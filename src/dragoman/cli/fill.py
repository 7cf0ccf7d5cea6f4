"""`dragoman fill`: a masked language model guesses."""

from typing import Annotated

import typer

from dragoman.cli.options import Device, Run, Which
from dragoman.inference.fill_mask import FillMask
from dragoman.runs.directory import check_run_dir


def fill(
    run: Run,
    text: Annotated[
        str, typer.Argument(help="A text with <mask> in the place of words, in quotes.", show_default=False)
    ],
    top: Annotated[int, typer.Option(min=1, help="How many guesses for each gap.")] = 5,
    which: Which = "best",
    device: Device = "auto",
) -> None:
    """Guess what stands in the gaps of a text, with a masked language model: a line for each gap, best guess first.

    Example: dragoman fill runs/masked-demo "i <mask> a beer"
    """
    for guesses in FillMask.load(check_run_dir(run), which=which, device=device).fill(text, top):
        typer.echo("\t".join(f"{guess.piece} {guess.probability:.1%}" for guess in guesses))
