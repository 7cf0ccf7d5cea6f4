"""`dragoman serve`: translators behind a page and APIs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.errors import not_installed
from dragoman.experiments.demo import RECIPE
from dragoman.progress import say
from dragoman.runs import checkpoint
from dragoman.serve.settings import Limits, Settings
from dragoman.tasks import recipes


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
    root_path: Annotated[
        str, typer.Option(help="The path that a proxy serves it under: /translate. [default: none]", show_default=False)
    ] = "",
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
        from dragoman.serve.process import run_server
    except ImportError as error:
        raise not_installed(f"serving needs {error.name}", "serve") from error

    paths = runs or [_demo_run()]
    settings = Settings(
        paths, device, engine, precision, threads, store or paths[0].resolve().parent / "serve.sqlite",
        Limits(text_characters=characters, deadline_seconds=deadline, requests_per_minute=requests_per_minute),
        key_required, metrics_key, not no_corrections, not no_documents, work_folder, root_path=root_path,
    )  # fmt: skip
    run_server(settings, host, port, behind_proxy=behind_proxy, access_log=access_log)


def _demo_run() -> Path:
    """The demo's run, trained now if it is not there."""
    recipe: Any = recipes.load(RECIPE, [])
    run = Path(recipe.run_dir)
    if not checkpoint.list_checkpoints(run):
        say("no run is named: training the demo's translator first, which takes about two minutes")
        run = recipes.run(recipe).run_dir
    return run
