"""`dragoman train`: from raw text to a run directory."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import Lora, Overrides, RunDir, two_columns
from dragoman.experiments import train as training
from dragoman.training.launch import launch, refuse_processes, without_options

Files = Annotated[
    list[str] | None,
    typer.Option(
        help="Folder (or file, or pattern) of memories, catalogues, tables and documents in both languages, in the "
        "place of --src and --tgt; repeatable. With --src-lang and --tgt-lang.",
        show_default=False,
    ),
]
SrcLang = Annotated[str | None, typer.Option(help="With --files: language code of the source.", show_default=False)]
TgtLang = Annotated[str | None, typer.Option(help="With --files: language code of the target.", show_default=False)]
ColumnNames = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="With --files: the columns of tables, by heading or number (English,French). [default: by what they hold]",
        show_default=False,
    ),
]
InitFrom = Annotated[
    Path | None,
    typer.Option(
        "--init-from",
        "--from",
        help="Fine-tuning: begin with this run's weights (and with two files, its model and tokenizer, at a rate "
        "and for as long as suits them).",
    ),
]
Mix = Annotated[
    bool | None,
    typer.Option(
        help="With --from and two files: mix in as much of the text that the other run was trained on, so that it "
        "is not forgotten. [default: where that text is still there]",
        show_default=False,
    ),
]
GeneralTgt = Annotated[Path | None, typer.Option(help="Target side of it. [default: what the other run makes of it]")]
RecipeOrNone = Annotated[
    str | None, typer.Argument(help="Recipe (YAML); not needed with --src and --tgt.", show_default=False)
]
TimeBudget = Annotated[
    str | None, typer.Option(help="Take so long in all (30min, 2h, 90s): the clock decides how many steps.")
]
GeneralSrc = Annotated[
    Path | None, typer.Option(help="Mix in this text in its place, for runs whose text is not there.")
]
Freeze = Annotated[
    str | None, typer.Option(help="Parts whose weights stay, such as embeddings,encoder_layers (training.freeze).")
]
Processes = Annotated[
    int, typer.Option(min=1, help="Train in so many processes of this machine: one a GPU, or one a core or two.")
]
MaxRestarts = Annotated[
    int, typer.Option(min=0, help="Start them again so often from the last checkpoint when one dies.")
]


def train(
    recipe: RecipeOrNone = None,
    overrides: Overrides = None,
    src: Annotated[Path | None, typer.Option(help="Source side of your corpus (text or .gz).")] = None,
    tgt: Annotated[Path | None, typer.Option(help="Target side: line n translates line n of the source.")] = None,
    valid_src: Annotated[Path | None, typer.Option(help="Source of a validation set. [default: 2 % held out]")] = None,
    valid_tgt: Annotated[Path | None, typer.Option(help="Target of the validation set.")] = None,
    files: Files = None,
    src_lang: SrcLang = None,
    tgt_lang: TgtLang = None,
    columns: ColumnNames = None,
    run_dir: RunDir = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.")] = None,
    budget: TimeBudget = None,
    init_from: InitFrom = None,
    mix: Mix = None,
    general_src: GeneralSrc = None,
    general_tgt: GeneralTgt = None,
    freeze: Freeze = None,
    lora: Lora = None,
    processes: Processes = 1,
    max_restarts: MaxRestarts = 0,
) -> None:
    """Train a translator: from raw text to a run directory with checkpoints, scores and a report.

    The tokenizer is learnt on the way. The same command on a run directory that is there already goes on from its
    newest checkpoint. Ctrl-C finishes the step, saves and stops. Every setting: `dragoman settings`.

    On several machines: `torchrun --nnodes 2 ... -m dragoman train RECIPE` (docs/scale.md).

    Examples:

        dragoman train recipes/multi30k-en-de.yaml training.max_steps=2000

        dragoman train --src corpus.de.gz --tgt corpus.en.gz --run runs/mine

        dragoman train --files memories --src-lang en --tgt-lang fr --budget 30min

        dragoman train --from runs/base --src manual.de --tgt manual.en --run runs/manual

        dragoman train --from runs/base --lora 8 --src manual.de --tgt manual.en --run runs/manual
    """
    options = {**locals()}
    del options["processes"], options["max_restarts"]
    if processes > 1:
        refuse_processes(processes)
        arguments = without_options(sys.argv[1:], ["--processes", "--max-restarts"])
        raise typer.Exit(launch(arguments, processes, max_restarts))
    if recipe is not None and "=" in recipe and not Path(recipe).exists():
        options |= {"recipe": None, "overrides": [recipe, *(overrides or [])]}
    parts = [part.strip() for part in freeze.split(",")] if freeze else None
    training.train(**{**options, "columns": two_columns(columns), "freeze": parts})
