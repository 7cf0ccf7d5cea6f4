"""Corrections that a server was given: `export` (or just two languages), `list`, `approve`, `reject`, `forget`,
`undo`."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dragoman.cli.keys import existing
from dragoman.cli.options import DEFAULT_STORE, StoreFile
from dragoman.errors import Error, writing
from dragoman.experiments.corrections import Corrections as GivenCorrections
from dragoman.formats.bitext import tmx_of
from dragoman.pipeline.memory import deduplicated
from dragoman.progress import say
from dragoman.runs import atomic_io
from dragoman.runs.directory import check_run_dir, languages_of
from dragoman.serve.corrections import Corrections, Filter, KeptCorrection
from dragoman.serve.database import is_store
from dragoman.text.sources.base import Pair


class ExportGroup(TyperGroup):
    """Commands; `export` where no command is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_named = not args or args[0] == "--help" or args[0] in self.commands
        return super().parse_args(ctx, args if is_named else ["export", *args])


app = typer.Typer(cls=ExportGroup, no_args_is_help=True, help=__doc__)

Ids = Annotated[list[int], typer.Argument(help="Their numbers (`list` shows them).", show_default=False)]
State = Annotated[str, typer.Option(help="Of this state alone: own, pending, rejected or shared.")]
Author = Annotated[str | None, typer.Option(help="Of this author alone: the name of a key, `address ...`.")]


@app.command("export")
def export(
    src: Annotated[str, typer.Argument(help="Language code of the sources.", show_default=False)],
    tgt: Annotated[str, typer.Argument(help="Language code of the translations.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The TMX to write.", show_default=False)],
    store: StoreFile = DEFAULT_STORE,
    author: Author = None,
) -> None:
    """Write corrections as a TMX: for `dragoman adapt`, `--memory`, other programs.

    Those that wait for a review, or did not pass it, are left out.

    Example: dragoman corrections de en -o corrections.tmx
    """
    pairs = [(one.correction.src, one.correction.tgt) for one in _used(store, (src, tgt), author)]
    with writing(output):
        atomic_io.replace_bytes(output, tmx_of(pairs, src, tgt))
    say(f"{output}: {len(pairs):,} corrections")


def read_corrections(file: Path, run: Path) -> GivenCorrections:
    """The corrections between the languages of a run: of a file of pairs, or of a server's store."""
    if not is_store(file):
        return GivenCorrections.read(file, run)
    pairs = [
        Pair(
            one.id,
            one.correction.src,
            one.correction.tgt,
            approved=one.state == "shared",
            changed=f"{one.created:020.3f}",
        )
        for one in _used(file, languages_of(check_run_dir(run)))
    ]
    return GivenCorrections(file, deduplicated(pairs, file))


def _used(store: Path, languages: tuple[str, str], author: str | None = None) -> list[KeptCorrection]:
    """The corrections in force, the oldest first, without those that wait for a review or did not pass it."""
    listed = existing(store).corrections.matching(Filter(*languages, author=author))
    used = [one for one in reversed(listed) if one.state in ("own", "shared")]
    if not used:
        raise Error.EMPTY(f"no corrections from {languages[0]} to {languages[1]}", file=store)
    return used


@app.command("list")
def list_corrections(
    store: StoreFile = DEFAULT_STORE,
    state: State = "",
    author: Author = None,
    search: Annotated[str, typer.Option(help="With this text on either side.")] = "",
) -> None:
    """List corrections, the newest first: number, languages, state, author, day, text, translation."""
    for one in existing(store).corrections.matching(Filter(state=state, author=author, text=search)):
        day = time.strftime("%Y-%m-%d", time.gmtime(one.created))
        src_lang, tgt_lang, *texts = one.correction
        author_name = one.author or "this machine"
        columns = [str(one.id), f"{src_lang}-{tgt_lang}", one.state, author_name, day, *map(_line, texts)]
        typer.echo("\t".join(columns))


def _line(text: str) -> str:
    """A text of a stranger for a terminal, which obeys what is not printable."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in " ".join(text.split()))


@app.command("approve")
def approve(ids: Ids, store: StoreFile = DEFAULT_STORE) -> None:
    """Use corrections that wait for a review for everybody; a running server does so within a second."""
    _each(ids, store, lambda kept, one: kept.review(_pending(one), approved=True))


@app.command("reject")
def reject(ids: Ids, store: StoreFile = DEFAULT_STORE) -> None:
    """Leave corrections that wait for a review to their authors."""
    _each(ids, store, lambda kept, one: kept.review(_pending(one), approved=False))


@app.command("forget")
def forget(
    ids: Annotated[list[int] | None, typer.Argument(help="Their numbers.", show_default=False)] = None,
    store: StoreFile = DEFAULT_STORE,
    author: Annotated[str | None, typer.Option(help="All of this author.")] = None,
) -> None:
    """Use corrections no more: some, or all of an author."""
    of_author = [] if author is None else existing(store).corrections.matching(Filter(author=author))
    if not ids and author is None:
        raise Error.MISSING_OPTION("which corrections?", "give their numbers, or `author`")
    _each([*(ids or ()), *(one.id for one in of_author)], store, lambda kept, one: kept.forget(one.id))


@app.command("undo")
def undo(ids: Ids, store: StoreFile = DEFAULT_STORE) -> None:
    """Take corrections back: what was used before is used again."""
    _each(ids, store, lambda kept, one: kept.undo(one))


def _each(ids: list[int], store: Path, change: Callable[[Corrections, KeptCorrection], object]) -> None:
    kept = existing(store).corrections
    for id in ids:
        one = kept.get(id)
        if one is None or not one.in_force:
            raise Error.UNKNOWN_NAME(f"correction {id}: there is none in use", "look at `list`", file=store)
        change(kept, one)
    say(f"{len(ids):,} corrections changed")


def _pending(one: KeptCorrection) -> KeptCorrection:
    if one.state != "pending":
        raise Error.UNSUPPORTED(f"correction {one.id} waits for no review: it is {one.state}")
    return one
