"""`dragoman import`."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.importing.import_run import import_model


def import_(
    folder: Annotated[
        Path,
        typer.Argument(
            help="A folder of Hugging Face (model.safetensors), CTranslate2 (model.bin), Marian (model.npz), eole "
            "(model.00.safetensors) or PEFT (adapter_config.json).",
            show_default=False,
        ),
    ],
    run: Annotated[Path, typer.Argument(help="New run directory.", show_default=False)],
    src_lang: Annotated[
        str | None,
        typer.Option(help="Language of the source, such as de, or as the model has it: deu_Latn.", show_default=False),
    ] = None,
    tgt_lang: Annotated[str | None, typer.Option(help="Language of the target.", show_default=False)] = None,
    spm: Annotated[
        list[Path] | None,
        typer.Option(
            help="The SentencePiece model of a folder, but for Hugging Face's; twice: of the source, of the target.",
            show_default=False,
        ),
    ] = None,
    base: Annotated[
        Path | None, typer.Option(help="The run that an adapter of PEFT corrects.", show_default=False)
    ] = None,
) -> None:
    """Make a run directory of a model of another program: the same to the last bit, or refused with the reasons.

    Hugging Face: Marian (OPUS-MT), M2M100, NLLB, mBART, BART, Pegasus and Blenderbot, as safetensors; a pickle is never
    opened. CTranslate2: its own converters read models of OpenNMT, fairseq and Marian; convert without
    `--quantization`. Marian: its own .npz, with the vocabularies beside it. eole: as it saves a model. What `dragoman
    export` wrote becomes the run that it was, and needs no languages. PEFT: LoRA adapters of linear layers, for a base
    that is a run already. The new run translates, is served, exported and trained on (`dragoman train ... --init-from
    RUN`).

    Example: dragoman import models/opus-mt-en-de runs/base --src-lang en --tgt-lang de
    """
    typer.echo(import_model(folder, run, src_lang, tgt_lang, spm or (), base))
