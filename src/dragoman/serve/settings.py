"""Settings of a server, and limits of its clients."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

Mode = Literal["off", "own", "review", "everybody"]
"""The texts that corrections are used for: their author's alone; everybody's after a review; everybody's at once."""
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True)
class Limits:
    """Limits of what a client may ask for."""

    body_bytes: int = 2**20
    file_bytes: int = 10 * 2**20
    text_characters: int = 5000
    batch: int = 128
    """Texts of a request."""
    alternatives: int = 10
    deadline_seconds: float = 8.0
    """An interactive request is answered in this time, or told that it cannot be."""
    body_seconds: float = 20.0
    """A body has to have come in this time."""
    bodies_bytes: int = 2**27
    """Bytes of all bodies that are held at the same time; a client holds as many as it leaves free, half at most."""
    requests_per_minute: int = 0
    """Of a client without a key, by its address; 0: no limit."""
    documents: int = 64
    """Documents that wait, or are translated, of all clients."""
    documents_per_client: int = 16
    document_characters: int = 2_000_000
    document_seconds: float = 1800.0
    """A document is translated in this time, or given up."""
    document_cpu_seconds: int = 120
    """Seconds of a processor that its file may take to be read and written."""
    document_memory_bytes: int = 2 * 2**30
    """Memory of the process that reads and writes it."""
    disk_bytes: int = 2**30
    """Bytes of all documents and translations that are kept."""
    disk_bytes_per_client: int = 2**28
    characters_per_batch: int = 0
    """Characters of all texts of a request; 0: batch times text_characters."""
    changes_per_minute: int = 200
    """Corrections and glossaries that a client may change."""
    corrections_per_client: int = 10_000
    corrections_in_total: int = 200_000
    """Those that are in force no more and kept to be brought back are counted too."""
    glossaries_per_client: int = 100
    glossary_characters: int = 2**23
    """Characters of all entries of a client's glossaries."""
    glossary_characters_in_total: int = 2**28


@dataclass(frozen=True)
class Patience:
    """Seconds and bytes that a connection is waited for."""

    head_seconds: float = 10.0
    """From the first byte of a request's head to its last."""
    read_seconds: float = 20.0
    """Without a byte of the answer being read."""
    late_bytes: int = 2**21
    """Bytes that are read of a body that goes on after the answer."""
    trusted: bool = False
    """All connections are those of a proxy: there are no shares of addresses."""


@dataclass(frozen=True)
class Settings:
    """Settings of a server."""

    runs: Sequence[Path] = ()
    device: str = "auto"
    engine: str = "pytorch"
    precision: str | None = None
    threads: int | None = None
    store: Path | None = None
    limits: Limits = field(default_factory=Limits)
    key_required: bool = False
    metrics_key: str = ""
    """The bearer that Prometheus has to send; empty: none."""
    corrections: Mode | None = None
    """Whose texts corrections are used for; None: everybody's on a `local` server, else everybody's after a review."""
    open_corrections: bool = False
    """Clients without a key may correct; else a key needs the right to, but on a `local` server."""
    local: bool = False
    """The server is reached from its own machine alone, and not through a proxy."""
    allowed_hosts: Sequence[str] = ()
    """Names that clients call the server by; none: any, but on a `local` server that of the machine alone."""
    documents: bool = True
    explain: bool = False
    """Sentences are explained (`/explain`), by models of their own beside those that are served."""
    work_folder: Path | None = None
    load_first: bool = False
    """The application starts when its runs are loaded; else it starts at once and says 503 until then."""
    access_log: bool = False
    """A line for each request: its route, its status, its time, its client; never what was asked."""
    patience: Patience = field(default_factory=Patience)
    root_path: str = ""
    """The path that the server stands under, behind a proxy: `/translate`."""
    datastores: Sequence[Path] = ()
    """Folders of `dragoman datastore`, each for a run among `runs`."""
