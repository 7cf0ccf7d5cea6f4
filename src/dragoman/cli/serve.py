"""`dragoman serve`, and `dragoman keys` for its keys."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.errors import DragomanError


def serve(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(help="Runs to serve, one for each direction. [default: the demo's]", show_default=False),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0: all of this machine's.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any free one.")] = 5000,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    engine: Annotated[str, typer.Option(help="pytorch, or ctranslate2 (ctranslate2-fast is the same).")] = "pytorch",
    precision: Annotated[
        str | None, typer.Option(help="float32, bfloat16; int8 with ctranslate2. [default: float32]")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads that translate. [default: one for each core]")
    ] = None,
    store: Annotated[
        Path | None, typer.Option(help="File of keys and corrections. [default: serve.sqlite beside the first run]")
    ] = None,
    key_required: Annotated[bool, typer.Option("--key-required", help="Serve clients with an API key alone.")] = False,
    requests_per_minute: Annotated[int, typer.Option(min=0, help="Of a client without a key; 0: no limit.")] = 0,
    characters: Annotated[int, typer.Option(min=1, help="Characters of a text, at most.")] = 5000,
    deadline: Annotated[float, typer.Option(min=0.1, help="Seconds that a request may take.")] = 8.0,
    no_documents: Annotated[bool, typer.Option("--no-documents", help="Take no files.")] = False,
    no_corrections: Annotated[bool, typer.Option("--no-corrections", help="Take no corrections.")] = False,
    metrics_key: Annotated[
        str, typer.Option(envvar="DRAGOMAN_METRICS_KEY", help="What /metrics asks for as a bearer.")
    ] = "",
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="Believe X-Forwarded-For and -Proto of a proxy on this machine.")
    ] = False,
    work_folder: Annotated[
        Path | None, typer.Option(help="Where documents lie while they are translated. [default: the system's]")
    ] = None,
    access_log: Annotated[bool, typer.Option("--access-log", help="A line for each request (never its text).")] = False,
) -> None:
    """Serve translators: a page for people, and the APIs of LibreTranslate, DeepL and our own for programs.

    SIGHUP loads the runs anew without a pause; SIGTERM answers what was accepted and stops.

    Examples:

        dragoman serve runs/mine

        dragoman serve runs/de-en runs/en-fr --host 0.0.0.0 --key-required
    """
    try:
        from dragoman.serve.app import Settings
        from dragoman.serve.http import Limits
        from dragoman.serve.process import run_server
    except ImportError as error:
        raise DragomanError(f"serving needs {error.name}: pip install 'dragoman[serve]'") from error

    paths = runs or [_demo_run()]
    settings = Settings(
        paths, device, engine, precision, threads, store or paths[0].resolve().parent / "serve.sqlite",
        Limits(text_characters=characters, deadline_s=deadline, requests_per_minute=requests_per_minute),
        key_required, metrics_key, not no_corrections, not no_documents, work_folder,
    )  # fmt: skip
    run_server(settings, host, port, behind_proxy=behind_proxy, access_log=access_log)


def _demo_run() -> Path:
    """The demo's run, trained now if it is not there."""
    from dragoman.experiments.demo import RECIPE
    from dragoman.progress import say
    from dragoman.runs import checkpoint
    from dragoman.tasks import recipes

    recipe: Any = recipes.load(RECIPE, [])
    run = Path(recipe.run_dir)
    if not checkpoint.list_checkpoints(run):
        say("no run is named: training the demo's translator first, which takes about two minutes")
        run = recipes.run(recipe).run_dir
    return run


keys_app = typer.Typer(name="keys", no_args_is_help=True, help="API keys of a server: `add`, `list`, `remove`.")

StoreFile = Annotated[Path, typer.Option("--store", help="The server's file of keys and corrections.")]
_STORE = Path("runs/serve.sqlite")


@keys_app.command("add")
def add_key(
    name: Annotated[str, typer.Argument(help="Whose it is.", show_default=False)],
    store: StoreFile = _STORE,
    per_minute: Annotated[int | None, typer.Option(min=1, help="Requests a minute. [default: no limit]")] = None,
    per_month: Annotated[int | None, typer.Option(min=1, help="Characters a month. [default: no limit]")] = None,
) -> None:
    """Make a key and print it: it is kept as a hash and cannot be shown again."""
    from dragoman.serve.store import Store

    typer.echo(Store(store).add_key(name, per_minute, per_month))


@keys_app.command("list")
def list_keys(store: StoreFile = _STORE) -> None:
    """List the keys: name, requests a minute, characters a month, characters used this month."""
    kept = _existing(store)
    for key in kept.all_keys():
        limits = ("-" if limit is None else f"{limit}" for limit in (key.per_minute, key.per_month))
        typer.echo("\t".join([key.name, *limits, str(kept.characters(key.name))]))


@keys_app.command("remove")
def remove_key(
    name: Annotated[str, typer.Argument(help="Whose it is.", show_default=False)], store: StoreFile = _STORE
) -> None:
    """Remove a key: from now on it opens nothing."""
    _existing(store).remove_key(name)


def corrections(
    src: Annotated[str, typer.Argument(help="Language code of the sources.", show_default=False)],
    tgt: Annotated[str, typer.Argument(help="Language code of the translations.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The TMX to write.", show_default=False)],
    store: StoreFile = _STORE,
) -> None:
    """Write the corrections that a server was given, as a TMX: for `dragoman adapt`, `--memory`, other programs.

    Example: dragoman corrections de en -o corrections.tmx
    """
    from dragoman.errors import writing
    from dragoman.formats.bitext import tmx_of
    from dragoman.progress import say
    from dragoman.runs import atomic_io

    found = _existing(store).corrections(src, tgt)
    if not found:
        raise DragomanError(f"{store}: no corrections from {src} to {tgt}")
    with writing(output):
        atomic_io.replace_bytes(output, tmx_of([(item.src, item.tgt) for item in found], src, tgt))
    say(f"{output}: {len(found):,} corrections")


def _existing(store: Path) -> Any:
    from dragoman.serve.store import Store

    if not store.is_file():
        raise DragomanError(f"{store}: no such file: `dragoman serve` or `dragoman keys add` make it")
    return Store(store)
