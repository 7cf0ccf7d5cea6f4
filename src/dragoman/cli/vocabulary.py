"""`dragoman vocabulary`: fewer entries of an imported vocabulary, or further ones."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import Run
from dragoman.errors import Error
from dragoman.experiments.vocabulary import Changes, change_vocabulary
from dragoman.progress import say


def vocabulary(
    run: Run,
    out: Annotated[Path, typer.Argument(help="The new run directory.", show_default=False)],
    trim: Annotated[
        list[Path] | None,
        typer.Option(
            help="Keep no more entries than this text needs (of either language, a sentence a line); repeat for more."
        ),
    ] = None,
    add: Annotated[
        list[str] | None,
        typer.Option(help="A new entry, a piece of its own wherever a text has it: a letter, a mark like <term>."),
    ] = None,
    teach: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SETTING",
            help="The pieces of `corpus.augment.SETTING` (tags, terms, fuzzy), or of `corpus.context` (context), for a "
            "run that is to learn it.",
        ),
    ] = None,
    add_language: Annotated[
        list[str] | None,
        typer.Option(metavar="CODE=LIKE", help="A new language CODE, whose tag begins as the tag of language LIKE."),
    ] = None,
) -> None:
    """Change the vocabulary of a run, as a new run to go on from. SentencePiece and subword-nmt get new entries alone.

    Text that was given to --trim is translated as before, but for what the entries that are gone might have said; other
    text is cut into smaller pieces. New entries are to be trained: `dragoman train --from OUT`.

    Examples:

        dragoman vocabulary runs/nllb runs/nllb-small --trim corpus.en --trim corpus.de

        dragoman vocabulary runs/nllb runs/swiss --add-language gsw_Latn=deu_Latn

        dragoman vocabulary runs/opus runs/opus-tags --teach tags
    """
    languages = {}
    for given in add_language or []:
        code, equals, like = given.partition("=")
        if not (code and equals and like):
            raise Error.WRONG_OPTION(f"--add-language {given}: CODE=LIKE, such as gsw_Latn=deu_Latn")
        languages[code] = like
    sizes = change_vocabulary(run, out, Changes(trim or (), list(dict.fromkeys(add or ())), languages, teach or ()))
    (before, after), parameters = sizes.entries, sizes.parameters
    say(
        f"entries: {before[0]:,} and {before[1]:,} before, {after[0]:,} and {after[1]:,} now; parameters: "
        f"{parameters[0]:,} before, {parameters[1]:,} now"
    )
    typer.echo(out)
