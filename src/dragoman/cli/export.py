"""`dragoman export`: a run for other programs. The comparison goes to stdout, the verdict is the exit code."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.errors import Error
from dragoman.export import export as export_run
from dragoman.progress import say


def export(
    run: Annotated[Path, typer.Argument(help="Run directory, as `dragoman train` leaves it.", show_default=False)],
    folder: Annotated[Path, typer.Argument(help="New folder for the export.", show_default=False)],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="ctranslate2, huggingface, onnx, argos, marian, bergamot (browsers), or peft (an adapter by itself).",
            show_default=False,
        ),
    ],
    quantize: Annotated[
        str | None, typer.Option(help="Keep weights in fewer bits: int8, float16 ... (what the target has).")
    ] = None,
    shortlist: Annotated[
        bool,
        typer.Option(
            "--shortlist",
            help="For CTranslate2 and bergamot: a list of the target pieces that each source piece may need, learnt "
            "from the run's training text; CTranslate2 computes no others with `use_vmap=True`.",
        ),
    ] = False,
    verify: Annotated[bool, typer.Option("--verify/--no-verify", help="Compare translations of held-out text.")] = True,
    src: Annotated[Path | None, typer.Option(help="The held-out text. [default: the run's test or valid set]")] = None,
    ref: Annotated[Path | None, typer.Option(help="Its translations, for BLEU.")] = None,
    which: Annotated[str, typer.Option("--checkpoint", help="`best`, `last`, or the number of a step.")] = "best",
) -> None:
    """Write a run in the format of another program, and have that program prove that it translates the same.

    Up to 1,000 held-out sentences are translated by both. With the run's own float32 weights, all have to be equal but
    for near-ties (scores less than 1e-5 apart); quantized ones may lose 0.3 BLEU, and so may those with a shortlist
    and all in Argos Translate and in browsers, which search in their own way. If not, nothing is left behind and the
    exit code is 2.

    Example: dragoman export runs/mine mine-ct2 --to ctranslate2 --quantize int8
    """
    if not verify and (src or ref):
        raise Error.CONFLICT("--no-verify compares nothing", "leave --src and --ref out")
    export_run(
        run,
        to,
        folder,
        quantize=quantize,
        shortlist=shortlist,
        verify=verify,
        src=src,
        ref=ref,
        which=which,
        tell=typer.echo,
    )
    say(f"written: {folder}")
