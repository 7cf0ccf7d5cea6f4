"""`dragoman import`."""

from pathlib import Path
from typing import Annotated

import typer


def import_(
    folder: Annotated[
        Path, typer.Argument(help="A folder of CTranslate2: model.bin and its vocabularies.", show_default=False)
    ],
    run: Annotated[Path, typer.Argument(help="New run directory.", show_default=False)],
    src_lang: Annotated[str, typer.Option(help="Language code of the source, such as de.", show_default=False)],
    tgt_lang: Annotated[str, typer.Option(help="Language code of the target.", show_default=False)],
) -> None:
    """Make a run directory of a model of another program: the same to the last bit, or refused with the reasons.

    CTranslate2's own converters read models of OpenNMT, fairseq and Marian; convert without `--quantization`. What
    `dragoman export --to ctranslate2` wrote becomes the run that it was. The new run translates, is served, exported
    and trained on (`dragoman train ... --init-from RUN`).

    Example: dragoman import models/ar-en-ct2 runs/base --src-lang ar --tgt-lang en
    """
    from dragoman.tools.import_model import import_model

    typer.echo(import_model(folder, run, src_lang, tgt_lang))
