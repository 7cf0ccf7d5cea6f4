"""`dragoman serve`: translators behind a page and APIs."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.options import Datastores
from dragoman.errors import Error, not_installed
from dragoman.progress import say
from dragoman.runs import checkpoint
from dragoman.runs.events import METRICS, last_event, read_events
from dragoman.serve.hosts import is_loopback
from dragoman.serve.settings import MODES, Limits, Mode, Settings

Corrections = Annotated[
    str | None,
    typer.Option(
        help="Whose texts corrections are used for: off (none are taken), own (their author's), review (everybody's "
        "once somebody has approved them), everybody. [default: everybody on 127.0.0.1 without a proxy, else review]",
        show_default=False,
    ),
]
CorrectionsWithoutKey = Annotated[
    bool, typer.Option("--corrections-without-key", help="Let everybody correct, not keys with the right alone.")
]
StoreFile = Annotated[
    Path | None, typer.Option(help="File of keys and corrections. [default: serve.sqlite beside the first run]")
]
Precision = Annotated[str | None, typer.Option(help="float32, bfloat16 or int8: the faster. [default: float32]")]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads that translate. [default: one for each core]")]
RootPath = Annotated[
    str, typer.Option(help="The path that a proxy serves it under: /translate. [default: none]", show_default=False)
]
MetricsKey = Annotated[str, typer.Option(envvar="DRAGOMAN_METRICS_KEY", help="What /metrics asks for as a bearer.")]
WorkFolder = Annotated[
    Path | None, typer.Option(help="Where documents lie while they are translated. [default: the system's]")
]
DocumentCharacters = Annotated[int, typer.Option(min=1, help="Characters of a document, at most.")]
Disk = Annotated[int, typer.Option(min=1, help="MiB of documents and translations kept; a client has a quarter.")]
AllowedHost = Annotated[
    list[str] | None,
    typer.Option(
        help="A name that clients call the server by; again for more. [default: on 127.0.0.1 that of the machine "
        "itself, else any]",
        show_default=False,
    ),
]


def serve(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(help="Runs to serve, one for each direction. [default: the demo's]", show_default=False),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0: all of this machine's.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any free one.")] = 5000,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    engine: Annotated[str, typer.Option(help="pytorch, or ctranslate2 (ctranslate2-fast is the same).")] = "pytorch",
    precision: Precision = None,
    threads: Threads = None,
    store: StoreFile = None,
    datastore: Datastores = None,
    key_required: Annotated[bool, typer.Option("--key-required", help="Serve clients with an API key alone.")] = False,
    requests_per_minute: Annotated[int, typer.Option(min=0, help="Of a client without a key; 0: no limit.")] = 0,
    characters: Annotated[int, typer.Option(min=1, help="Characters of a text, at most.")] = 5000,
    deadline: Annotated[float, typer.Option(min=0.1, help="Seconds that a request may take.")] = 8.0,
    document_characters: DocumentCharacters = Limits.document_characters,
    disk: Disk = Limits.disk_bytes // 2**20,
    explain: Annotated[bool, typer.Option("--explain", help="Explain sentences (/explain), as on 127.0.0.1.")] = False,
    no_documents: Annotated[bool, typer.Option("--no-documents", help="Take no files.")] = False,
    corrections: Corrections = None,
    corrections_without_key: CorrectionsWithoutKey = False,
    no_corrections: Annotated[bool, typer.Option("--no-corrections", help="The same as --corrections off.")] = False,
    metrics_key: MetricsKey = "",
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="Believe X-Forwarded-For and -Proto of a proxy on this machine.")
    ] = False,
    allowed_host: AllowedHost = None,
    root_path: RootPath = "",
    work_folder: WorkFolder = None,
    access_log: Annotated[bool, typer.Option("--access-log", help="A line for each request (never its text).")] = False,
) -> None:
    """Serve translators: a page for people, and the APIs of LibreTranslate, DeepL and our own for programs.

    SIGHUP loads the runs anew without a pause; SIGTERM answers what was accepted and stops.

    Examples:

        dragoman serve runs/mine

        dragoman serve runs/de-en runs/en-fr --host 0.0.0.0 --key-required
    """
    run_server = _server()
    paths = runs or [_demo_run()]
    is_local = is_loopback(host) and not behind_proxy
    settings = Settings(
        paths, device, engine, precision, threads, store or paths[0].resolve().parent / "serve.sqlite",
        Limits(
            text_characters=characters, deadline_seconds=deadline, requests_per_minute=requests_per_minute,
            document_characters=document_characters, disk_bytes=disk * 2**20, disk_bytes_per_client=disk * 2**18,
        ),
        key_required, metrics_key, _mode(corrections, no_corrections, corrections_without_key),
        corrections_without_key, is_local, allowed_host or (),
        documents=not no_documents, explain=explain or is_local, work_folder=work_folder, root_path=root_path,
        datastores=datastore or (),
    )  # fmt: skip
    run_server(settings, host, port, behind_proxy=behind_proxy, access_log=access_log)


def _mode(mode: str | None, no_corrections: bool, without_key: bool) -> Mode | None:
    """Whose texts corrections are used for, if it is said. Raises DragomanError for what is no mode."""
    if no_corrections:
        mode = "off"
    if mode is not None and mode not in MODES:
        raise Error.WRONG_OPTION(f"`corrections`: {mode}", f"take one of {', '.join(MODES)}")
    if without_key and mode in ("off", "own"):
        raise Error.CONFLICT(f"`corrections_without_key`: with `corrections` {mode} nobody's are everybody's")
    return mode


def _server() -> Any:
    """The function that serves. Raises DragomanError where a library of it is not installed."""
    try:
        from dragoman.serve.process import run_server
    except ImportError as error:
        if error.name in sys.stdlib_module_names:  # of Python itself
            raise
        raise not_installed(f"serving needs {error.name}", "serve") from error
    return run_server


def _demo_run() -> Path:
    """The demo's run, trained now if it is not there, and on if it was stopped."""
    from dragoman.experiments.demo import RECIPE
    from dragoman.tasks import recipes

    recipe: Any = recipes.load(RECIPE, [])
    run = Path(recipe.run_dir)
    log = run / METRICS
    is_stopped = log.exists() and last_event(read_events(log), "end").get("reason") == "interrupted"
    if is_stopped or not checkpoint.list_checkpoints(run):
        say("no run is named: training the demo's translator first, which takes about two minutes")
        recipes.run_to_end(recipe)
    return run
