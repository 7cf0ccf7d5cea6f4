"""One owner of a run directory at a time."""

import contextlib
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from dragoman.errors import Error, writing
from dragoman.progress import clock, say

LOCK = "lock.json"
"""File of a run directory that says who works in it."""

_owned: set[Path] = set()
"""The directories that this process owns."""


@contextmanager
def locked(run_dir: Path, remedy: str = "choose another run_dir=...", name: str = LOCK) -> Iterator[None]:
    """Own a run directory, which is made if it is not there, and goes again if nothing was put into it.

    `remedy`: what to do where it cannot be written. `name`: of the file that says who owns it.

    The operating system holds the lock for as long as this process lives and not a moment longer, so that the lock of
    one that was killed is taken over without a question; the file only says who it was. Whoever owns it already may
    take it again. Raises DragomanError naming process, machine and age when another process has it.
    """
    owned = run_dir.resolve()
    if owned in _owned:
        yield
        return
    made = [path for path in (run_dir, *run_dir.parents) if not path.exists()]
    path = run_dir / name
    with writing(run_dir, remedy):
        run_dir.mkdir(parents=True, exist_ok=True)
        file = _own(path)
    with file:
        _owned.add(owned)
        try:
            with writing(path, remedy):
                file.truncate(0)
                json.dump({"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}, file)
                file.flush()
            yield
        finally:
            _owned.discard(owned)
            with contextlib.suppress(OSError):  # a directory that holds something stays
                path.unlink()
                for directory in made:
                    directory.rmdir()


def _own(path: Path) -> IO[str]:
    """The lock file, open and locked."""
    while True:
        file = path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            with file:
                raise Error.IN_USE(f"{_owner(file)} works in it", "wait for it, or end it", file=path.parent) from error
        except OSError as error:
            say(f"{path}: this file system has no locks ({error.strerror}): let no other process work there")
            return file
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()  # its owner deleted it between our opening and our locking: the lock is another file by now


def _owner(file: IO[str]) -> str:
    file.seek(0)
    try:
        owner = json.load(file)
        return f"process {owner['pid']} on {owner['host']} (for {clock(time.time() - owner['since'])} now)"
    except (ValueError, KeyError, TypeError):  # it has the lock and has not written yet, or wrote nothing that we know
        return "another process"
