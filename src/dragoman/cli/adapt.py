"""`dragoman adapt`."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.corrections import read_corrections
from dragoman.cli.options import Device, Lora, Run, TheCorrections
from dragoman.experiments.adapt import adapt as adapted
from dragoman.progress import say

REFUSED_EXIT_CODE = 3
"""Exit code where the new model is not handed over."""


def adapt(
    run: Run,
    corrections: TheCorrections,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The new run. [default: RUN-adapted]", show_default=False)
    ] = None,
    lora: Lora = None,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Steps of training. [default: by the text, 60 to 2,000]", show_default=False),
    ] = None,
    device: Device = "auto",
) -> None:
    """Train a run on corrections, and hand the new one over only if that did it good.

    The text that the run was trained on is mixed in, so that nothing is forgotten. The new run has to be better on the
    corrections (on a fifth that is held out, from 40 on) and no worse on the validation set, by a paired test; else it
    is put aside as OUTPUT.refused, the reason is told with what would help, and the exit code is 3. A correction of
    several sentences is learnt as a whole and, where both sides align, sentence by sentence.

    Example: dragoman adapt runs/mine corrections.tmx -o runs/mine-2
    """
    target = output or run.with_name(run.name + "-adapted")
    result = adapted(run, read_corrections(corrections, run), target, device=device, lora=lora, steps=steps)
    if result.refusal:
        say(f"not adopted: {result.refusal}; the model is kept in {result.run}")
        raise typer.Exit(REFUSED_EXIT_CODE)
    typer.echo(result.run)
