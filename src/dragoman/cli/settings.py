"""`dragoman settings`: the reference of all settings, from the code."""

from typing import Annotated

import typer

from dragoman.tasks import settings_reference


def settings(
    prefix: Annotated[
        str, typer.Argument(help="A key (`training.schedule`) or a name (`lr`). [default: all]", show_default=False)
    ] = "",
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print all of it as a page in Markdown.")] = False,
) -> None:
    """Print what can be set in a recipe: key, default, type, unit, meaning, and the version it came with.

    Example: dragoman settings training.schedule
    """
    typer.echo(settings_reference.markdown() if as_markdown else settings_reference.text(prefix), nl=False)
