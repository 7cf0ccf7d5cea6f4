"""`dragoman sweep`: many settings of a recipe, tried in turn."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import Recipe
from dragoman.errors import Error
from dragoman.experiments.sweep import as_text
from dragoman.experiments.sweep import sweep as swept
from dragoman.progress import seconds_of


def sweep(
    recipe: Recipe,
    changes: Annotated[
        list[str], typer.Argument(help="What to vary: key=value,value or key=1..3; others hold for all.")
    ],
    folder: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the runs. [default: runs/NAME-sweep]")
    ] = None,
    budget: Annotated[str | None, typer.Option(help="Time for all of it (90m, 2h); the same command goes on.")] = None,
    keep: Annotated[float, typer.Option(help="Share of the settings that go on after a stage; 1: all.")] = 0.5,
) -> None:
    """Try settings of a recipe in turn: hopeless ones end early, and a table has mean and spread over seeds.

    All settings train for a part of their steps, the better half goes on for twice as many, and so on. The winner is
    the one with the best mean validation. The same command goes on where it was stopped.

    Example: dragoman sweep recipes/demo.yaml training.schedule.lr=1e-3,2e-3,4e-3 seed=1..3 --budget 2h
    """
    if not 0 < keep <= 1:
        raise Error.WRONG_OPTION(f"--keep {keep}: a share above 0, at most 1")
    seconds = seconds_of(budget) if budget else None
    outcome = swept(recipe, changes, folder or Path("runs") / f"{recipe.stem}-sweep", seconds, keep)
    typer.echo(as_text(outcome), nl=False)
    if not outcome.is_done:
        typer.echo("not finished: the same command goes on")
        raise typer.Exit(3)
    best = next((row for row in outcome.rows if row.state == "done"), None)
    typer.echo(f"best by validation: {best.trial.name}, {best.trial.runs[0][1]}" if best else "all settings failed")
    if best is None:
        raise typer.Exit(4)
