"""Options that commands share."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.errors import Error

Run = Annotated[Path, typer.Argument(help="Run directory, as `dragoman train` leaves it.", show_default=False)]
RunDir = Annotated[Path | None, typer.Option("--run", help="Run directory. [default: runs/NAME]")]
Recipe = Annotated[Path, typer.Argument(help="Recipe (YAML).", show_default=False)]
Overrides = Annotated[
    list[str] | None, typer.Argument(help="Changes to the recipe: key.subkey=value ...", show_default=False)
]
SearchChanges = Annotated[
    list[str] | None,
    typer.Argument(help="Changes to the search: decoding.no_repeat_ngram=3 ...", show_default=False),
]
Which = Annotated[str, typer.Option("--checkpoint", help="`best`, `last`, or the number of a step.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
Precision = Annotated[
    str | None,
    typer.Option(help="float32; bfloat16: faster on a GPU and on newer CPUs; int8: on any CPU. [default: float32]"),
]
Ensemble = Annotated[list[Path] | None, typer.Option(help="Another run whose model translates along; repeat for more.")]
Datastores = Annotated[
    list[Path] | None,
    typer.Option(
        "--datastore",
        help="Look up each token in this folder, which `dragoman datastore RUN` makes; repeat for several runs.",
    ),
]
BeamSize = Annotated[int | None, typer.Option(help="Hypotheses kept in search; 1 is greedy. [default: the recipe's]")]
LengthPenalty = Annotated[
    float | None, typer.Option(help="Exponent of the length penalty; more favours longer. [default: the recipe's]")
]

Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        help="bleu, chrf, chrf++, ter, spbleu, exact_match, with settings: bleu:tokenize=char:lowercase. NAME=FILE: "
        "figures of another program; NAME=!COMMAND calls one with {src} {hyp} {ref}; NAME:lower=... where lower is "
        "better; FILE.py: your own. Repeat for more. [default: bleu, chrf, ter, exact_match]",
    ),
]
Tokenizer = Annotated[
    str | None,
    typer.Option(
        help="BLEU's tokenizer: auto, 13a, intl, zh, ja-mecab, ko-mecab, char, flores200, none. [default: the recipe's]"
    ),
]
Lowercase = Annotated[
    bool | None, typer.Option("--lowercase", help="Lower-case translations and references before scoring.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

StoreFile = Annotated[Path, typer.Option("--store", help="The server's file of keys and corrections.")]
DEFAULT_STORE = Path("runs/serve.sqlite")


def given(**options: Any) -> dict[str, Any]:
    """The options that were given on the command line; for the others the recipe decides."""
    return {name: value for name, value in options.items() if value is not None}


CORRECTIONS_HELP = "Corrections: a server's store, a TMX (`dragoman corrections`), XLIFF, PO, or two columns."
TheCorrections = Annotated[Path, typer.Argument(metavar="CORRECTIONS", help=CORRECTIONS_HELP, show_default=False)]

Lora = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Train a LoRA adapter of this rank in the place of all weights (adapter.r): the new run holds the adapter "
        "alone, and needs the other run beside it.",
        show_default=False,
    ),
]


def precision_given(name: str | None, known: Sequence[str] = ("float32", "bfloat16", "int8")) -> dict[str, Any]:
    """Raises DragomanError for a precision that there is not."""
    if name not in (None, *known):
        raise Error.WRONG_OPTION(f"--precision {name}: {' or '.join(known)}")
    return given(precision=name)


SrcLang = Annotated[
    str | None, typer.Option(help="Language of the source, such as en. [default: the run's, or the text's]")
]
TgtLang = Annotated[
    str | None, typer.Option(help="Language of the target, such as zh. [default: the run's, or the text's]")
]


def decoding_changes(beam_size: int | None, length_penalty: float | None, n_best: int | None = None) -> dict[str, Any]:
    """The search settings that have options of their own."""
    return given(beam_size=beam_size, alpha=length_penalty, n_best=n_best)


def two_columns(names: str | None) -> tuple[str, str] | None:
    """The columns that --columns names: of source and target.

    >>> two_columns("English, French")
    ('English', 'French')
    """
    if names is None:
        return None
    columns = [name.strip() for name in names.split(",")]
    if len(columns) != 2:
        raise Error.WRONG_OPTION(f"--columns {names}: {len(columns)} names", "give two: English,French")
    return columns[0], columns[1]
