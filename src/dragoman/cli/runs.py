"""`dragoman runs`: the table of runs."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.analysis import run_table
from dragoman.cli.streams import text_output
from dragoman.errors import Error

FORMATS = {".csv": "csv", ".html": "html", ".htm": "html"}


def runs(
    folder: Annotated[Path, typer.Argument(help="Folder of run directories.")] = Path("runs"),
    conditions: Annotated[
        list[str] | None,
        typer.Option(
            "--filter", help="Only runs of which this is true: training.optimizer.type=muon, validation>40; repeat."
        ),
    ] = None,
    sort: Annotated[
        str, typer.Option(help="Fact, setting or figure to sort by; with a minus, the largest first.")
    ] = "-validation",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File: .csv, .html, or text. [default: text to the terminal]")
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--format", help="text, csv or html. [default: by the file's name]")
    ] = None,
) -> None:
    """Show all runs of a folder: where their recipes differ, data, commit, machine, minutes, scores.

    Example: dragoman runs runs --filter "validation>30" --sort -validation -o runs.html
    """
    kind = kind or FORMATS.get(output.suffix.lower() if output else "", "text")
    if kind not in ("text", "csv", "html"):
        raise Error.WRONG_OPTION(f"--format {kind}: text, csv or html")
    entries = run_table.only(run_table.entries_of(run_table.find_runs(folder)), conditions or [])
    if sort != "-validation" or any(entry.facts["validation"] is not None for entry in entries):
        entries = run_table.ordered(entries, sort)
    rows = run_table.table(entries)
    if kind == "html":
        text = run_table.as_html(rows, entries, str(folder.resolve().name))
    else:
        text = run_table.as_csv(rows) if kind == "csv" else run_table.as_text(rows)
    with text_output(output) as write:
        write(text)
