"""`dragoman datastore`: text for a run to look up while it translates."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.corrections import read_corrections
from dragoman.cli.options import CORRECTIONS_HELP, Device, Run, Which
from dragoman.experiments.datastore import make_datastore


def datastore(
    run: Run,
    corrections: Annotated[
        Path | None, typer.Argument(metavar="[CORRECTIONS]", help=CORRECTIONS_HELP, show_default=False)
    ] = None,
    src: Annotated[Path | None, typer.Option(help="Source text. [default: the run's training text]")] = None,
    tgt: Annotated[Path | None, typer.Option(help="Its translations.")] = None,
    valid_src: Annotated[
        Path | None, typer.Option(help="Source text to choose the mixture by. [default: the run's validation text]")
    ] = None,
    valid_tgt: Annotated[Path | None, typer.Option(help="Its translations.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A new folder. [default: RUN/datastore]")
    ] = None,
    which: Which = "best",
    device: Device = "auto",
) -> None:
    """Make a datastore of a text: `translate --datastore` looks up before each token what was said in similar places
    of it (nearest-neighbour translation). Nothing is trained.

    Of other text than the run was trained on, it takes the run to another domain. Of corrections, ten or two hundred,
    it takes their words to other sentences that are like them: the weight of what is looked up falls with the distance,
    and text that is unlike all of them is translated as before.

    Example: dragoman datastore runs/mine --src manual.de --tgt manual.en -o manuals

    Example: dragoman datastore runs/mine corrections.tmx -o runs/mine/corrections
    """
    folder = output or run / "datastore"
    given = None if corrections is None else read_corrections(corrections, run)
    valid = valid_src, valid_tgt
    store = make_datastore(run, folder, corrections=given, src=src, tgt=tgt, valid=valid, which=which, device=device)
    config = store.config
    typer.echo(f"{config.tokens:,} tokens of {config.pairs:,} pairs in {folder}")
    if config.reach:
        typer.echo(
            f"{config.k} neighbours, weight {config.weight} at no distance, 0 from {config.reach:.3g} on: looked up "
            f"among the others, corrections have {config.nats_with:.4f} nats a token with it, {config.nats:.4f} without"
        )
        return
    if config.weight:
        typer.echo(f"{config.k} neighbours, temperature {config.temperature:.3g}, weight {config.weight}")
    typer.echo(
        f"validation: {config.nats_with:.4f} nats a token with it, {config.nats:.4f} without"
        + ("" if config.weight else ": it does not help, and is not used")
    )
