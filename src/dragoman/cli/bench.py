"""`dragoman bench`: how fast a recipe trains here. The figures go to stdout, progress to stderr."""

import json
from typing import Annotated

import typer

from dragoman.cli.options import Overrides, Recipe
from dragoman.experiments.bench import bench as measure
from dragoman.tasks import recipes


def bench(
    recipe: Recipe,
    overrides: Overrides = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps that are timed, after a few to warm up.")] = 20,
    synthetic: Annotated[
        bool, typer.Option("--synthetic", help="Random ids, even where the recipe's corpus is there.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure training: tokens/s, the share of this machine's measured peak, memory, time by part and by operation.

    Nothing is kept. Where a translation recipe's files are not there, batches are of random ids. The last line is
    for a report.

    Example: dragoman bench recipes/multi30k-en-de.yaml training.batch_tokens=4096 --steps 50
    """
    measurement = measure(recipes.load(recipe, overrides), steps=steps, synthetic=synthetic)
    if as_json:
        typer.echo(json.dumps(measurement.to_dict(), indent=2, ensure_ascii=False))
        return
    for line in measurement.table():
        typer.echo(line)
    typer.echo(measurement.line)
