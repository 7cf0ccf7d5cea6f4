"""`dragoman explain`: one sentence on one page."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.analysis.explain import explain as explained
from dragoman.analysis.explain import write_page
from dragoman.cli.options import BeamSize, Run, Which, given
from dragoman.errors import Error
from dragoman.inference.loading import load_parts
from dragoman.inference.search_translator import SearchTranslator


def explain(
    run: Run,
    sentence: Annotated[str, typer.Argument(help="A source sentence, in quotes.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.")] = Path("explained.html"),
    beam_size: BeamSize = None,
    which: Which = "best",
) -> None:
    """Explain how a run translates a sentence, on one page that needs no network: pieces, shapes, masks, positions,
    every head of every layer, the probabilities of each next token, and the tree of the beam.

    Example: dragoman explain runs/demo "ich möchte ein bier" -o beer.html
    """
    if output.suffix.lower() not in (".html", ".htm"):
        raise Error.UNKNOWN_FORMAT("a page is an .html file", file=output)
    translator = SearchTranslator.load(run, which=which, device="cpu", **given(beam_size=beam_size))
    data = explained(translator, load_parts(run, which).model.eval(), sentence, run.resolve().name)
    write_page(data, output)
    typer.echo(output)
