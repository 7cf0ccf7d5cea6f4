"""`dragoman corrections`: what people corrected on a server's page."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.keys import DEFAULT_STORE, StoreFile, existing
from dragoman.errors import Error, writing
from dragoman.formats.bitext import tmx_of
from dragoman.progress import say
from dragoman.runs import atomic_io


def corrections(
    src: Annotated[str, typer.Argument(help="Language code of the sources.", show_default=False)],
    tgt: Annotated[str, typer.Argument(help="Language code of the translations.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The TMX to write.", show_default=False)],
    store: StoreFile = DEFAULT_STORE,
) -> None:
    """Write the corrections that a server was given, as a TMX: for `dragoman adapt`, `--memory`, other programs.

    Example: dragoman corrections de en -o corrections.tmx
    """
    found = existing(store).corrections(src, tgt)
    if not found:
        raise Error.EMPTY(f"no corrections from {src} to {tgt}", file=store)
    with writing(output):
        atomic_io.replace_bytes(output, tmx_of([(item.src, item.tgt) for item in found], src, tgt))
    say(f"{output}: {len(found):,} corrections")
