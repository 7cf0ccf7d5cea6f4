"""`dragoman evaluate`: figures of a run, or of a file of translations, on test sets."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.options import (
    AsJson,
    BeamSize,
    Datastores,
    Device,
    Ensemble,
    LengthPenalty,
    Lowercase,
    Metrics,
    Precision,
    SearchChanges,
    SrcLang,
    TgtLang,
    Tokenizer,
    Which,
    precision_given,
)
from dragoman.experiments import evaluate as evaluation
from dragoman.pipeline.confidence import Projection

TrainingText = Annotated[
    list[Path] | None,
    typer.Option(help="Source side of the training text, for leaks and rare words. [default: the run's own]"),
]


References = Annotated[
    list[Path] | None,
    typer.Option(help="Reference translations, or labels, of each --src; twice as many give it two each."),
]
Hypotheses = Annotated[
    list[Path] | None, typer.Option(help="Translations of each --src, by whatever system: no run is needed.")
]
By = Annotated[
    list[str] | None,
    typer.Option(help="Parts to score by themselves: length, rarity, or a file with a label for each line."),
]
Checks = Annotated[
    bool, typer.Option("--checks/--no-checks", help="Look for shifted, swapped, cut, copied lines first.")
]
Join = Annotated[bool, typer.Option("--join", help="Join `@@ ` of subword-nmt and `▁` of SentencePiece in both first.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Folder for the translations, a file for each set.")
]
TestSetName = Annotated[
    str | None, typer.Option("--test-set", "-t", help="A test set that sacreBLEU has fetched, such as wmt14; with -l.")
]
LanguagePair = Annotated[str | None, typer.Option("--language-pair", "-l", help="Its languages, such as en-de.")]
Confidence = Annotated[
    bool, typer.Option("--confidence", help="Give each figure its 95 % interval by 1,000 resamples, as sacreBLEU does.")
]
MinContext = Annotated[
    int | None, typer.Option(help="For a language model: tokens seen before each. [default: the recipe's]")
]


def evaluate(
    run: Annotated[Path | None, typer.Argument(help="Run directory; none with --hypotheses.")] = None,
    overrides: SearchChanges = None,
    src: Annotated[list[Path] | None, typer.Option(help="Source text; repeat for several sets.")] = None,
    ref: References = None,
    name: Annotated[list[str] | None, typer.Option(help="Name of each set. [default: the source file's]")] = None,
    hypotheses: Hypotheses = None,
    src_lang: SrcLang = None,
    tgt_lang: TgtLang = None,
    test_set: TestSetName = None,
    language_pair: LanguagePair = None,
    confidence: Confidence = False,
    metric: Metrics = None,
    by: By = None,
    training_text: TrainingText = None,
    checks: Checks = True,
    join: Join = False,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    tokenize: Tokenizer = None,
    lowercase: Lowercase = None,
    output: Output = None,
    min_context: MinContext = None,
    ensemble: Ensemble = None,
    datastore: Datastores = None,
    precision: Precision = None,
    which: Which = "best",
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Score a run, or a file of translations, on test sets: BLEU, chrF and TER (sacreBLEU, with full signatures).

    Faults of an output as a whole are said first, on standard error: lines that are shifted, swapped, copied or cut,
    lost numbers and negations, test lines that are in the training text.
    A language model is scored on --src alone; a classifier needs labels in --ref, or lines of `label, tab, text`.
    Without both the recipe's test sets are scored; with --src alone a calibrated run's expected chrF is printed.

    Example: dragoman evaluate --hypotheses google.en --src test.de --ref test.en --metric bleu --metric chrf++
    """
    options = {name: value for name, value in locals().items() if name != "as_json"}
    results = evaluation.evaluate(**options | precision_given(precision))
    if any(isinstance(one, Projection) for one in results.values()):
        print_projections(results, as_json)
    else:
        print_scores(results, as_json)


def print_projections(projections: Mapping[str, Projection], as_json: bool) -> None:
    """Print the chrF that a run expects of its translations, with the half width of its 95 % interval."""
    if as_json:
        typer.echo(json.dumps({name: asdict(it) for name, it in projections.items()}, indent=2, ensure_ascii=False))
        return
    for name, it in projections.items():
        lines = f"{it.lines:,} lines, confidence {it.confidence:.2f}"
        typer.echo(f"{name}: expected chrF {it.chrf:.1f} ± {it.error:.1f} ({lines})")


def print_scores(results: Mapping[str, Any], as_json: bool = False) -> None:
    """A table of figures, parts of a set below it, and the signatures; or all of it as JSON."""
    if as_json:
        typer.echo(json.dumps({key: scores.to_dict() for key, scores in results.items()}, indent=2, ensure_ascii=False))
        return
    rows = {}
    for key, scores in results.items():
        rows[key] = scores.figures()
        rows |= {f"  {part}": of_part.figures() for part, of_part in getattr(scores, "parts", {}).items()}
    width = max(len(key) for key in rows)
    typer.echo(f"{'':<{width}}" + "".join(f"  {title:>9}" for title in next(iter(rows.values()))))
    for key, figures in rows.items():
        typer.echo(f"{key:<{width}}" + "".join(f"  {text:>{max(9, len(title))}}" for title, text in figures.items()))
    for notes in dict.fromkeys(tuple(scores.notes()) for scores in results.values()):
        for note in notes:
            typer.echo(note)
