"""`dragoman check`: a recipe without its data."""

from typing import Any

import typer

from dragoman.cli.options import Overrides, Recipe
from dragoman.tasks import recipes


def check(recipe: Recipe, overrides: Overrides = None) -> None:
    """Build everything that a recipe describes and refuse what `train` would before its first step, in two seconds.

    The corpus is not read: `dragoman doctor` does that.
    """
    settings: Any = recipes.load(recipe, overrides)
    parameters = recipes.check_start(settings)
    typer.echo(
        f"{recipe}: good. {settings.model.type}, about {parameters:,} parameters (the data decide how many words and "
        f"labels there are), run {settings.run_dir}"
    )
