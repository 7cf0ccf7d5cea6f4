"""`dragoman check`: a recipe without its data."""

from typing import Any

import typer

from dragoman.cli.options import Overrides, Recipe
from dragoman.tasks import recipes


def check(recipe: Recipe, overrides: Overrides = None) -> None:
    """Build everything that a recipe describes, without its data, in about two seconds."""
    settings: Any = recipes.load(recipe, overrides)
    parameters = recipes.check(settings)
    typer.echo(
        f"{recipe}: good. {settings.model.type}, about {parameters:,} parameters (the data decide how many words and "
        f"labels there are), run {settings.run_dir}"
    )
