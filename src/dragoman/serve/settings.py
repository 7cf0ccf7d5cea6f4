"""Settings of a server, and limits of its clients."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


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
    requests_per_minute: int = 0
    """Of a client without a key, by its address; 0: no limit."""
    characters_per_batch: int = 0
    """Characters of all texts of a request; 0: batch times text_characters."""


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
    suggestions: bool = True
    """Corrections are taken."""
    documents: bool = True
    work_folder: Path | None = None
    load_first: bool = False
    """The application starts when its runs are loaded; else it starts at once and says 503 until then."""
    root_path: str = ""
    """The path that the server stands under, behind a proxy: `/translate`."""
