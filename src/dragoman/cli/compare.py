"""`dragoman compare`: which of several systems is better, and how sure that is."""

import json
from pathlib import Path
from typing import Annotated

import typer

from dragoman.analysis.columns import columns
from dragoman.analysis.comparison import exchanges, shown_p, write_page
from dragoman.cli.options import AsJson, Device, Lowercase, Metrics, SrcLang, TgtLang, Tokenizer, Which, given
from dragoman.errors import Error
from dragoman.evaluation.comparison import ComparisonOptions, SystemComparison
from dragoman.evaluation.comparison import compare_systems as compared

EXIT_CODES = {"better": 0, "undecided": 3, "worse": 4}
"""By the verdict; 2 is for what a person can mend, as everywhere."""


def compare(
    systems: Annotated[
        list[Path], typer.Argument(help="Run directories or files of translations; the first is the baseline.")
    ],
    src: Annotated[Path, typer.Option(help="Source text.", show_default=False)],
    ref: Annotated[list[Path], typer.Option(help="Reference translations; repeat for several.", show_default=False)],
    name: Annotated[list[str] | None, typer.Option(help="Name of each system. [default: of its file]")] = None,
    src_lang: SrcLang = None,
    tgt_lang: TgtLang = None,
    metric: Metrics = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.")] = Path("comparison.html"),
    training_src: Annotated[
        Path | None, typer.Option(help="Training text for the alignment, with --training-tgt. [default: a run's own]")
    ] = None,
    training_tgt: Annotated[Path | None, typer.Option(help="Its other side.")] = None,
    terms: Annotated[
        Path | None, typer.Option(help="Glossary (.csv, .xlsx, .tbx ...) whose terms are looked for.")
    ] = None,
    resamples: Annotated[int, typer.Option(min=100, help="Of the bootstrap.")] = 1000,
    trials: Annotated[int, typer.Option(min=100, help="Of the randomisation test.")] = 10_000,
    lowercase: Lowercase = None,
    tokenize: Tokenizer = None,
    which: Which = "best",
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Compare systems on one test set: is a difference more than chance, where is it, in which sentences?

    A paired randomisation test, exact where few sentences differ, corrected where several systems are compared with the
    first, with sacreBLEU's p-values beside it; wins and losses, faults by class, and a page with the fifty most telling
    sentences.

    The exit code is 0 if the others are better than the first by the first metric, 3 if that is undecided, and 4 if
    one is worse.

    Example: dragoman compare runs/old runs/new deepl.en --src test.de --ref test.en -o comparison.html
    """
    if output.suffix.lower() not in (".html", ".htm"):
        raise Error.UNKNOWN_FORMAT("a page is an .html file", file=output)
    if (training_src is None) != (training_tgt is None):
        raise Error.MISSING_OPTION("--training-src and --training-tgt", "give both or none")
    options = ComparisonOptions(
        names=tuple(name or ()),
        pairs=(training_src, training_tgt) if training_src and training_tgt else None,
        terms=terms,
        resamples=resamples,
        trials=trials,
        device=device,
        which=which,
        languages=(src_lang, tgt_lang),
        **given(metrics=tuple(metric or ()) or None, lowercase=lowercase, tokenize=tokenize),
    )
    comparison = compared(systems, src, ref, options)
    write_page(comparison, output)
    if as_json:
        typer.echo(json.dumps(comparison.to_dict(), indent=2, ensure_ascii=False))
    else:
        _print(comparison, output)
    raise typer.Exit(EXIT_CODES[comparison.verdict])


def _print(comparison: "SystemComparison", page: Path) -> None:
    titles = {metric.name: metric.title for metric in comparison.metrics}
    for pair in comparison.pairs:
        typer.echo(f"{pair.second.name} beside {comparison.first.name}, {len(comparison.test):,} sentences")
        corrected = ("p Holm",) if len(comparison.pairs) > 1 else ()
        head = ("", "first", "second", "better by", "95 % interval", "p", *corrected, "won", "lost")
        rows: list[tuple[str, ...]] = [(*head, "", "sacreBLEU bs", "sacreBLEU ar")]
        for test in pair.tests:
            interval = f"{test.low:+.2f} to {test.high:+.2f}"
            p_values = test.p, *((test.p_corrected,) if corrected else ())
            figures = (f"{test.first:.2f}", f"{test.second:.2f}", f"{test.difference:+.2f}", interval)
            verdict = (*map(shown_p, p_values), str(test.wins), str(test.losses), test.verdict)
            theirs = shown_p(test.p_sacrebleu_bs), shown_p(test.p_sacrebleu_ar)
            rows.append((titles[test.metric], *figures, *verdict, *theirs))
        typer.echo(columns(rows, left=(0, len(head))))
        typer.echo("p: " + "; ".join(f"{titles[test.metric]} {exchanges(test)}" for test in pair.tests))
        if pair.classes:
            shown = (f"{kind} {row.first_alone}/{row.second_alone}" for kind, row in pair.classes.items())
            typer.echo("faults that one has alone (first/second): " + ", ".join(shown))
        typer.echo("")
    for title, signature in comparison.signatures.items():
        typer.echo(f"{title}: {signature}")
    typer.echo(f"page {page}")
