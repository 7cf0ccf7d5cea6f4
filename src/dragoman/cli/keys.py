"""API keys of a server: `add`, `list`, `rights`, `remove`."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import DEFAULT_STORE, StoreFile
from dragoman.errors import Error
from dragoman.serve.store import Store, this_month

app = typer.Typer(no_args_is_help=True, help=__doc__)


@app.command("add")
def add_key(
    name: Annotated[str, typer.Argument(help="Whose it is.", show_default=False)],
    store: StoreFile = DEFAULT_STORE,
    per_minute: Annotated[int | None, typer.Option(min=1, help="Requests a minute. [default: no limit]")] = None,
    per_month: Annotated[int | None, typer.Option(min=1, help="Characters a month. [default: no limit]")] = None,
    may: Annotated[
        list[str] | None,
        typer.Option(
            help="A right: correct, or review (let the corrections of others be used for everybody); again for both.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Make a key and print it: it is kept as a hash and cannot be shown again.

    Example: dragoman keys add anna --may correct --may review
    """
    typer.echo(Store(store).add_key(name, per_minute, per_month, rights=may or ()))


@app.command("rights")
def set_rights(
    name: Annotated[str, typer.Argument(help="Whose key it is.", show_default=False)],
    rights: Annotated[
        list[str] | None, typer.Argument(help="correct, review, or both. [default: none]", show_default=False)
    ] = None,
    store: StoreFile = DEFAULT_STORE,
) -> None:
    """Give a key these rights and no others; a running server knows at once."""
    existing(store).set_rights(name, rights or ())


@app.command("list")
def list_keys(store: StoreFile = DEFAULT_STORE) -> None:
    """List the keys: name, requests a minute, characters a month, characters used this month, rights."""
    kept = existing(store)
    used = kept.usage(this_month())
    for key in kept.all_keys():
        limits = ("-" if limit is None else f"{limit}" for limit in (key.per_minute, key.per_month))
        rights = " ".join(sorted(key.rights)) or "-"
        typer.echo("\t".join([key.name, *limits, str(used.get(key.name, 0)), rights]))


@app.command("remove")
def remove_key(
    name: Annotated[str, typer.Argument(help="Whose it is.", show_default=False)], store: StoreFile = DEFAULT_STORE
) -> None:
    """Remove a key: from now on it opens nothing."""
    existing(store).remove_key(name)


def existing(store: Path) -> Store:
    if not store.is_file():
        raise Error.MISSING_FILE("no such file", "`dragoman serve` or `dragoman keys add` make it", file=store)
    return Store(store)
