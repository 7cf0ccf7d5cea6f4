"""Documents as tasks: taken in at once, translated behind the requests, kept for an hour.

Clients take turns, whoever of them has sent most. What they have on the disk is bounded: when it is full, results go
that were made first.
"""

import contextlib
import errno
import hmac
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from filelock import FileLock

from dragoman.errors import DragomanError, Error
from dragoman.formats.base import Options
from dragoman.formats.document import SUFFIXES, format_of, require_bilingual
from dragoman.formats.pdf import output_path
from dragoman.pipeline.document import Report
from dragoman.progress import say
from dragoman.runs.lock import give_back
from dragoman.serve.document_process import Bounds, DocumentProcess
from dragoman.serve.errors import ApiError
from dragoman.serve.fairness import FairThreads
from dragoman.serve.logs import traced
from dragoman.serve.metrics import Metrics
from dragoman.serve.scheduler import Cancelled, DeadlineExceeded, RequestHandle
from dragoman.serve.service import AUTO, DEFAULT_OPTIONS, DEFAULT_PARAMS, Service, TranslateParams
from dragoman.serve.settings import Limits
from dragoman.serve.usage import Reservation

MAX_RUNNING = 2
"""Documents that are translated at the same time, at most one for each client, so that a second client gets a place."""
KEEP_SECONDS = 3600.0
"""Seconds that a document is kept for after it is done."""

State = Literal["queued", "translating", "done", "error"]

FOLDER, LOCK = "dragoman-documents-", ".in-use"
"""The beginning of a server's folder's name, and the end of that of the file beside it, locked while it lives."""


class TooMany(Exception):
    """Too many documents wait."""


class NoRoom(TooMany):
    """Raised where unfinished documents fill the disk."""


@dataclass
class DocumentTask:
    """A document: its state, and where its bytes are."""

    id: str
    key: str
    """The secret of the document."""
    name: str
    """The client's name of the file, for the download alone."""
    src: str
    tgt: str
    folder: Path
    suffix: str
    handle: RequestHandle
    client: str = ""
    """Whoever sent it."""
    bytes: int = 0
    """Bytes that it takes on the disk: its own, or those of its translation."""
    characters: int = 0
    state: State = "queued"
    error: str = ""
    cause: DragomanError | None = None
    """The error itself, where a person can mend it."""
    done: int = 0
    total: int = 0
    options: Options = DEFAULT_OPTIONS
    """Choices for reading it."""
    report: Report = field(default_factory=Report)
    reservation: Reservation | None = None
    """Its characters, reserved for its client's key."""
    started: float = 0.0
    ended: float = 0.0
    """The time when it was done or given up; 0 before."""
    is_fetched: bool = False
    """Its translation was handed out."""

    @property
    def source(self) -> Path:
        """The file as it was sent. It is there until the document is done."""
        return self.folder / f"source{self.suffix}"

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


class DocumentTasks:
    """The documents of a server. They lie in a folder of their own, which goes away with it."""

    def __init__(self, service: Service, metrics: Metrics, limits: Limits, folder: Path | None = None) -> None:
        self.service, self.metrics, self.limits = service, metrics, limits
        work = folder or Path(tempfile.gettempdir())
        _tidy_folders(work)
        self.folder = work / f"{FOLDER}{secrets.token_hex(8)}"
        self._in_use = FileLock(self.folder.with_suffix(LOCK), thread_local=False)
        self._in_use.acquire()  # before the folder is there, which another server would else take for a dead one's
        self.folder.mkdir(mode=0o700)
        self.tasks: dict[str, DocumentTask] = {}
        self._lock = threading.Lock()
        self._threads = FairThreads(MAX_RUNNING, "document")

    def close(self) -> None:
        """Cancel running translations and delete everything."""
        for task in list(self.tasks.values()):
            task.handle.cancel()
        self._threads.shutdown()
        self.delete()

    def delete(self) -> None:
        """Delete what clients have sent, whoever works on it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        give_back(self._in_use)

    def add(
        self, name: str, data: bytes, src: str, tgt: str, params: TranslateParams = DEFAULT_PARAMS,
        options: Options = DEFAULT_OPTIONS, *, client: str = "", reserve: Callable[[int], Reservation] | None = None,
    ) -> DocumentTask:  # fmt: skip
        """Queue a document of a client. `reserve` is told its characters when they are known.

        Raises DragomanError for a kind of file that is not known, TooMany where too many wait, of all clients or of
        this one, NoRoom where they leave no room for it.
        """
        self.tidy()
        suffix = Path(name).suffix.lower()
        if suffix not in SUFFIXES:
            raise Error.UNKNOWN_FORMAT("file format not supported")
        kind = format_of(Path(Path(name).name), data)
        if options.bilingual:
            require_bilingual(kind, Path(name))
        with self._lock:
            self._check_number(client)
            self._make_room(client, len(data))
            id = secrets.token_hex(16).upper()
            handle = RequestHandle(self.service.scheduler, background=True, client=client)
            task = DocumentTask(
                id, secrets.token_hex(32).upper(), name, src, tgt, self.folder / id, suffix, handle, client, len(data),
                options=options,
            )  # fmt: skip
            self.tasks[id] = task
        try:
            task.folder.mkdir(mode=0o700)
            task.source.write_bytes(data)
        except OSError as error:
            self.remove(task)
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise NoRoom from error
            raise
        self._threads.submit(client, self._work, task, kind.name, params, reserve)
        return task

    def _check_number(self, client: str) -> None:
        """Raises TooMany where no document of a client may wait beside those that do."""
        waiting = [task.client for task in self.tasks.values() if task.state in ("queued", "translating")]
        limits = self.limits
        if len(waiting) >= limits.documents or waiting.count(client) >= limits.documents_per_client:
            raise TooMany

    def _make_room(self, client: str, size: int) -> None:
        """Delete translations, fetched ones and the oldest first, until there is room for a document of a client: its
        own where it has too much, anybody's where all have. Raises NoRoom where that is not enough."""
        for most, tasks in (
            (self.limits.disk_bytes_per_client, [task for task in self.tasks.values() if task.client == client]),
            (self.limits.disk_bytes, [*self.tasks.values()]),
        ):
            taken = size + sum(task.bytes for task in tasks)
            done = sorted((task for task in tasks if task.ended), key=lambda task: (not task.is_fetched, task.ended))
            if taken - sum(task.bytes for task in done) > most:
                raise NoRoom
            for task in done:
                if taken > most:
                    taken -= task.bytes
                    self._delete(task)

    def find(self, id: str, key: object) -> DocumentTask | None:
        """The document of an id; None if there is none, or if the key is not its key."""
        self.tidy()
        task = self.tasks.get(id)
        return task if task and hmac.compare_digest(task.key.encode(), str(key).encode()) else None

    def remove(self, task: DocumentTask) -> None:
        """Give a document up and delete it."""
        task.handle.cancel()
        with self._lock:
            self._delete(task)

    def _delete(self, task: DocumentTask) -> None:
        self.tasks.pop(task.id, None)
        shutil.rmtree(task.folder, ignore_errors=True)

    def tidy(self) -> None:
        """Delete documents that are older than an hour."""
        now = time.monotonic()
        for task in list(self.tasks.values()):
            if task.ended and now - task.ended > KEEP_SECONDS:
                self.remove(task)

    def _work(
        self, task: DocumentTask, kind: str, params: TranslateParams, reserve: Callable[[int], Reservation] | None
    ) -> None:
        limits = self.limits
        task.state, task.started = "translating", time.monotonic()
        task.handle.deadline = task.started + limits.document_seconds

        def advance(done: int, total: int) -> None:
            task.done, task.total = done, total

        def counted(characters: int) -> None:
            task.characters = characters
            if characters > limits.document_characters:
                most = f"{characters:,} characters: more than {limits.document_characters:,}"
                raise Error.TOO_LARGE(most, "split it", file=task.name)
            task.reservation = reserve(characters) if reserve is not None else None

        def translated(handle: RequestHandle) -> Report:
            bounds = Bounds(limits.document_cpu_seconds, limits.document_memory_bytes, limits.disk_bytes_per_client)
            with DocumentProcess(task.source, partial, task.options, bounds) as document:
                if task.src == AUTO:
                    task.src = self.service.language_of_document(document, task.tgt)
                return self.service.translate_document(
                    handle, task.src, task.tgt, document, params=params, advance=advance, count=counted
                )

        outcome, partial = "done", task.folder / "result.partial"
        try:
            task.report = task.handle.run(translated)
            partial.rename(task.result)
            self.metrics.tag_fallback.inc(task.report.wrapped)
            task.state = "done"
        except DeadlineExceeded:
            task.cause = Error.TOO_LARGE(
                f"takes more than {limits.document_seconds:,.0f} s to translate", "split it", file=task.name
            )
            task.state, task.error, outcome = "error", str(task.cause), "error"
        except Cancelled:
            task.state, task.error, outcome = "error", "given up", "cancelled"
        except ApiError as error:
            task.state, task.error, outcome = "error", error.message, "refused"
        except DragomanError as error:
            message = str(error).replace(str(task.source), task.name).replace(task.source.name, task.name)
            error.file = error.file and error.file.replace(str(task.source), task.name)
            task.state, task.error, task.cause, outcome = "error", message, error, "error"
        except Exception as error:
            say(f"a document failed: {traced(error)}")
            task.state, task.error, outcome = "error", "internal error", "failed"
        finally:
            if task.reservation is not None:
                task.reservation.settle(task.state == "done")
            for path in (task.source, partial):
                path.unlink(missing_ok=True)
            task.bytes = task.result.stat().st_size if task.state == "done" else 0
            task.ended = time.monotonic()
            self.metrics.documents.labels(kind, outcome).inc()


def _tidy_folders(work: Path) -> None:
    """Delete what servers have left that were killed: folders whose lock nobody holds."""
    for path in work.glob(f"{FOLDER}*{LOCK}"):
        lock = FileLock(path, timeout=0, thread_local=False)
        with contextlib.suppress(OSError):  # somebody else's
            lock.acquire()
            shutil.rmtree(path.with_suffix(""), ignore_errors=True)
            give_back(lock)
