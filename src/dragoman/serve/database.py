"""The SQLite file of a server: a connection for reading, which no writer holds up, and a connection for writing."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dragoman.cancellation import idle
from dragoman.errors import DragomanError, Error

LOCK_WAIT_S = 0.3
"""Seconds that a server waits for another process that writes: longer would hold up clients who want no more than a
translation."""
LOCK_PAUSE_S = 1.0
"""Seconds after a wait in vain in which nothing is waited for."""
_LOOK = 0.02
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}

Migration = Callable[[sqlite3.Connection], None]


def is_store(path: Path) -> bool:
    """True for an SQLite file."""
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(16) == b"SQLite format 3\0"


class Database:
    """The file. Threads may share it, and other processes may read and write it too."""

    def __init__(self, path: Path | None, migrations: Sequence[Migration], patience: float = 5.0) -> None:
        """`path`: None keeps everything in memory. `migrations`: the first makes a file of version 1 of a new one, and
        so on; a file that has them all is opened without a write.

        Raises DragomanError for a file that is no store, or that another process keeps locked.
        """
        self.path, self.patience = path, patience
        self._writing = threading.RLock()
        self._pause_ends = 0.0
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch(mode=0o600)
                path.chmod(0o600)
            self._writer = self._connection(path)
            self._migrate(migrations)
            self._reader = self._writer if path is None else self._connection(path)
        except (sqlite3.Error, OSError) as error:
            raise self._error(error) from error
        self._reading = self._writing if path is None else threading.RLock()

    def _connection(self, path: Path | None) -> sqlite3.Connection:
        connection = sqlite3.connect(path or ":memory:", check_same_thread=False, isolation_level=None)
        try:
            connection.execute(f"PRAGMA busy_timeout = {1000 * self.patience:.0f}")
            if path is not None and connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA busy_timeout = 0")  # from now on we wait ourselves
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _migrate(self, migrations: Sequence[Migration]) -> None:
        version = self._version()
        if version > len(migrations):
            self._writer.close()
            raise Error.OTHER_VERSION("a store of a newer version", "take a newer Dragoman", file=self.path)
        if version == len(migrations):
            return
        with self.change() as connection:
            for migrate in migrations[self._version() :]:  # another process may have been as quick
                migrate(connection)
            connection.execute(f"PRAGMA user_version = {len(migrations)}")

    def _version(self) -> int:
        return int(self._patiently(lambda: self._writer.execute("PRAGMA user_version").fetchone()[0], self.patience))

    def define(self, name: str, function: Callable[[str], str]) -> None:
        """Let statements that read call a function."""
        self._reader.create_function(name, 1, function, deterministic=True)

    def close(self) -> None:
        with self._writing, self._reading:
            self._reader.close()
            self._writer.close()

    def rows(self, sql: str, *values: object) -> list[Any]:
        """The rows that a statement finds. Raises DragomanError for a file that cannot be read."""
        with self._reading:
            try:
                return self._patiently(lambda: self._reader.execute(sql, values).fetchall(), self.patience)
            except sqlite3.Error as error:
                raise self._error(error) from error

    @contextmanager
    def change(self, patience: float | None = None) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it is done, or nothing.

        Raises DragomanError for a file that cannot be written, `IN_USE` where another process writes for longer than
        `patience` seconds; of the usual patience only a first one waits.
        """
        is_paused = patience is None and time.monotonic() < self._pause_ends
        patience = self.patience if patience is None else patience
        if is_paused or not self._writing.acquire(timeout=patience):
            raise self._in_use()
        try:
            self._patiently(lambda: self._writer.execute("BEGIN IMMEDIATE"), patience)
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            if patience and _is_busy(error):
                self._pause_ends = time.monotonic() + min(LOCK_PAUSE_S, patience)
            raise self._error(error) from error
        finally:
            self._writing.release()

    def changed_elsewhere(self) -> int | None:
        """A number that is another one after each change by another process; None while it cannot be read."""
        if not self._writing.acquire(blocking=False):
            return None
        try:
            return int(self._writer.execute("PRAGMA data_version").fetchone()[0])
        except sqlite3.Error:
            return None
        finally:
            self._writing.release()

    def _patiently(self, work: Callable[[], Any], patience: float) -> Any:
        """The result of work, which is tried again while another process holds the file."""
        deadline = time.monotonic() + patience
        while True:
            try:
                return work()
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() >= deadline:
                    raise
            with idle():
                time.sleep(_LOOK)

    def _error(self, error: sqlite3.Error | OSError) -> DragomanError:
        if _is_busy(error):
            return self._in_use()
        return Error.CANNOT_READ(f"no file to keep keys and corrections in: {error}", file=self.path or "the store")

    def _in_use(self) -> DragomanError:
        return Error.IN_USE("another process writes there", "try again", file=self.path or "the store")


def _is_busy(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF in _BUSY
