"""Documents as jobs: taken in at once, translated behind the requests, kept for an hour."""

import hmac
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from dragoman.errors import DragomanError, Error
from dragoman.formats.base import Options
from dragoman.formats.document import SUFFIXES, format_of, require_bilingual
from dragoman.formats.pdf import output_path
from dragoman.pipeline.document import Report
from dragoman.progress import say
from dragoman.serve.errors import ApiError
from dragoman.serve.metrics import Metrics
from dragoman.serve.scheduler import Cancelled, RequestHandle
from dragoman.serve.service import ANYTHING, AUTO, NO_CHOICES, Choices, Service
from dragoman.serve.usage import Reservation

MAX_RUNNING = 2
"""Documents that are translated at a time."""
MAX_WAITING = 32
"""Documents that may wait."""
KEEP_SECONDS = 3600.0
"""Seconds that a document is kept for after it is done."""

State = Literal["queued", "translating", "done", "error"]


class TooMany(Exception):
    """Too many documents wait."""


@dataclass
class Job:
    """A document: its state, and where its bytes are."""

    id: str
    key: str
    """The secret that goes with it."""
    name: str
    """The client's name of the file, for the download alone."""
    src: str
    tgt: str
    folder: Path
    suffix: str
    handle: RequestHandle
    characters: int = 0
    state: State = "queued"
    error: str = ""
    cause: DragomanError | None = None
    """The error itself, where a person can mend it."""
    done: int = 0
    total: int = 0
    options: Options = ANYTHING
    """Choices for reading it."""
    report: Report = field(default_factory=Report)
    reservation: Reservation | None = None
    """Its characters, of those of its client's key."""
    started: float = 0.0
    ended: float = 0.0
    """When it was done, or given up; 0 before that."""

    @property
    def result(self) -> Path:
        """The file of the translation. It is there when the state is `done`."""
        name = Path(f"result{self.suffix}")
        return self.folder / (output_path(name) if self.suffix == ".pdf" else name)

    @property
    def result_name(self) -> str:
        """The name that a browser saves it under."""
        languages = f"{self.src}-{self.tgt}" if self.options.bilingual else self.tgt
        return f"{Path(self.name).stem}.{languages}{self.result.suffix}"

    @property
    def seconds_left(self) -> int:
        """A guess from how fast it went until now."""
        if not self.done or not self.total:
            return 1 + self.total // 50
        return max(1, round((time.monotonic() - self.started) * (self.total - self.done) / self.done))


class Jobs:
    """The documents of a server. They lie in a folder of their own, which goes away with it."""

    def __init__(self, service: Service, metrics: Metrics, folder: Path | None = None) -> None:
        self.service, self.metrics = service, metrics
        self.folder = Path(tempfile.mkdtemp(prefix="dragoman-", dir=folder))
        self.jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(max_workers=MAX_RUNNING, thread_name_prefix="document")

    def close(self) -> None:
        """Give up what is under way and delete everything."""
        for job in list(self.jobs.values()):
            job.handle.cancel()
        self._threads.shutdown(wait=True, cancel_futures=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def add(
        self, name: str, data: bytes, src: str, tgt: str, choices: Choices = NO_CHOICES, options: Options = ANYTHING,
        *, client: str = "", reserve: Callable[[int], Reservation] | None = None,
    ) -> Job:  # fmt: skip
        """Queue a document of a client. `reserve` is told its characters when they are known.

        Raises DragomanError for a kind of file that is not known, TooMany where too many wait.
        """
        self.tidy()
        suffix = Path(name).suffix.lower()
        if suffix not in SUFFIXES:
            raise Error.UNKNOWN_FORMAT("file format not supported")
        kind = format_of(Path(Path(name).name), data)
        if options.bilingual:
            require_bilingual(kind, Path(name))
        with self._lock:
            if sum(job.state in ("queued", "translating") for job in self.jobs.values()) >= MAX_WAITING:
                raise TooMany
            id = secrets.token_hex(16).upper()
            handle = RequestHandle(self.service.scheduler, background=True, client=client)
            job = Job(
                id, secrets.token_hex(32).upper(), name, src, tgt, self.folder / id, suffix, handle, options=options
            )
            self.jobs[id] = job
        job.folder.mkdir(mode=0o700)
        (job.folder / f"source{suffix}").write_bytes(data)
        self._threads.submit(self._work, job, kind.name, choices, reserve)
        return job

    def find(self, id: str, key: object) -> Job | None:
        """The document of an id; None if there is none, or if the key is not its key."""
        self.tidy()
        job = self.jobs.get(id)
        return job if job and hmac.compare_digest(job.key.encode(), str(key).encode()) else None

    def remove(self, job: Job) -> None:
        """Give a document up and delete it."""
        job.handle.cancel()
        with self._lock:
            self.jobs.pop(job.id, None)
        shutil.rmtree(job.folder, ignore_errors=True)

    def tidy(self) -> None:
        """Delete what is older than an hour."""
        now = time.monotonic()
        for job in list(self.jobs.values()):
            if job.ended and now - job.ended > KEEP_SECONDS:
                self.remove(job)

    def _work(self, job: Job, kind: str, choices: Choices, reserve: Callable[[int], Reservation] | None) -> None:
        source = job.folder / f"source{job.suffix}"
        job.state, job.started = "translating", time.monotonic()

        def advance(done: int, total: int) -> None:
            job.done, job.total = done, total

        def counted(characters: int) -> None:
            job.characters = characters
            job.reservation = reserve(characters) if reserve is not None else None

        def translated(handle: RequestHandle) -> tuple[bytes, Report]:
            if job.src == AUTO:
                job.src = self.service.language_of_document(source, job.tgt, job.options)
            return self.service.translate_document(
                handle, job.src, job.tgt, source, choices=choices, advance=advance, count=counted,
                options=job.options,
            )  # fmt: skip

        outcome = "done"
        try:
            data, report = job.handle.run(translated)
            partial = job.folder / "result.partial"
            partial.write_bytes(data)
            partial.rename(job.result)
            job.report = report
            self.metrics.tag_fallback.inc(report.wrapped)
            job.state = "done"
        except Cancelled:
            job.state, job.error, outcome = "error", "given up", "cancelled"
        except ApiError as error:
            job.state, job.error, outcome = "error", error.message, "refused"
        except DragomanError as error:
            message = str(error).replace(str(source), job.name).replace(source.name, job.name)
            error.file = error.file and error.file.replace(str(source), job.name)
            job.state, job.error, job.cause, outcome = "error", message, error, "error"
        except Exception as error:
            say(f"a document failed: {type(error).__name__}: {error}")
            job.state, job.error, outcome = "error", "internal error", "failed"
        finally:
            if job.reservation is not None:
                job.reservation.settle(job.state == "done")
            job.ended = time.monotonic()
            self.metrics.documents.labels(kind, outcome).inc()
