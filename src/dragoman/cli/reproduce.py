"""`dragoman reproduce`: a run once more, and whether it came out the same."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import Run
from dragoman.experiments.reproduce import reproduce as reproduced

EXIT_CODES = {"bytes": 0, "scores": 0, "differs": 4, "interrupted": 130}
SAID = {
    "bytes": "the same bytes in all checkpoints, the same scores",
    "scores": "the same scores in two decimals; not the same bytes",
    "differs": "other scores",
    "interrupted": "stopped and saved; the same command goes on",
}


def reproduce(
    run: Run,
    again: Annotated[
        Path | None, typer.Option("--run", help="Directory of the new run. [default: RUN-again]", show_default=False)
    ] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps. [default: the recipe's]")] = None,
) -> None:
    """Train a run once more from its own record, and say whether the same came out: bytes, or scores.

    Corpora are known by their content and must be there. What differs on this machine (versions, processor, precision)
    is said before. The exit code is 0 for the same bytes or scores, 4 for others.

    Example: dragoman reproduce runs/demo
    """
    reproduction = reproduced(run, again or run.with_name(f"{run.resolve().name}-again"), device)
    for name, same in reproduction.checkpoints.items():
        typer.echo(f"{name}: {'equal' if same else 'other'} bytes")
    for line in reproduction.differences:
        typer.echo(line)
    typer.echo(f"{reproduction.run} and {reproduction.again}: {SAID[reproduction.verdict]}")
    if reproduction.verdict in ("scores", "differs") and reproduction.environment:
        typer.echo("changed since then: " + "; ".join(reproduction.environment))
    raise typer.Exit(EXIT_CODES[reproduction.verdict])
