"""`dragoman diversify`: more pairs out of the same corpus."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import BeamSize, Device, Precision, given, precision_given
from dragoman.experiments.diversify import diversify as run
from dragoman.progress import say
from dragoman.text.corpus import FilesSource


def diversify(
    src: Annotated[str, typer.Argument(help="Source side (text or .gz).", show_default=False)],
    tgt: Annotated[str, typer.Argument(help="Target side: line n translates line n.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="New folder for the two files.", show_default=False)],
    forward: Annotated[
        list[Path] | None, typer.Option(help="Run that translates the source side; repeat for more.")
    ] = None,
    backward: Annotated[
        list[Path] | None, typer.Option(help="Run that translates the target side; repeat for more.")
    ] = None,
    beam_size: BeamSize = None,
    precision: Precision = None,
    device: Device = "auto",
) -> None:
    """Add to a parallel corpus what your own runs make of each of its sides, to train a better model on all of it.

    Several runs of each direction, trained with other seeds, do most (Nguyen et al. 2020). The corpus is given as the
    runs were trained on it.

    Example: dragoman diversify train.en train.de --forward runs/1 --forward runs/2 --backward runs/back -o more
    """
    corpus = run(
        FilesSource(src=src, tgt=tgt),
        out,
        forward=forward or (),
        backward=backward or (),
        device=device,
        **precision_given(precision),
        **given(beam_size=beam_size),
    )
    added = ", ".join(f"{count:,} by {name}" for name, count in corpus.added.items())
    total = corpus.pairs + sum(corpus.added.values())
    say(f"{total:,} pairs: {corpus.pairs:,} of the corpus, {added}")
    say(f"written: {corpus.src}, {corpus.tgt}")
