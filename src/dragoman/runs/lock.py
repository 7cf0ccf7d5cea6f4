"""One owner of a run directory at a time."""

import contextlib
import errno
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, SoftFileLock, Timeout

from dragoman.errors import Error, writing
from dragoman.progress import clock, say

LOCK = "lock.json"
"""File of a run directory that says who works in it. The lock is another: nobody can read a locked one on Windows."""

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""Errors of file systems without locks, such as some NFS."""

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
        lock = _own(path)
    _owned.add(owned)
    try:
        with writing(path, remedy):
            owner = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}
            path.write_text(json.dumps(owner), encoding="utf-8")
        yield
    finally:
        _owned.discard(owned)
        with contextlib.suppress(OSError):
            path.unlink()
        give_back(lock)
        with contextlib.suppress(OSError):  # a directory that holds something stays
            for directory in made:
                directory.rmdir()


def _own(path: Path) -> FileLock:
    """The lock, held. `path`: of the file that says who owns it."""
    lock = FileLock(path.with_name(f"{path.name}.held"), timeout=0, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise Error.IN_USE(f"{_owner(path)} works in it", "wait for it, or end it", file=path.parent) from error
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        say(f"{path}: this file system has no locks ({error.strerror}): let no other process work there")
    return lock


def give_back(lock: FileLock) -> None:
    """Delete the file of a lock and release the lock. The file goes first, so that nobody waits for a deleted file.
    Windows cannot delete an open file; there the library deletes it."""
    with contextlib.suppress(OSError):
        Path(lock.lock_file).unlink()
    lock.release()


@contextmanager
def held(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold the lock of a file, which stays; False where its folder is gone, or another has it and nobody `wait`s.

    Where the file system has no locks a file beside it is the lock, for as long as it is there.
    """
    how: dict[str, Any] = {"timeout": -1 if wait else 0, "thread_local": False}
    with contextlib.ExitStack() as stack:
        try:
            try:
                stack.enter_context(FileLock(path, **how, fallback_to_soft=False))
            except OSError as error:
                if error.errno not in NO_LOCKS:
                    raise
                stack.enter_context(SoftFileLock(f"{path}.soft", **how))
        except (Timeout, FileNotFoundError):  # its folder is gone
            yield False
        else:
            yield True


def _owner(path: Path) -> str:
    try:
        owner = json.loads(path.read_text(encoding="utf-8"))
        return f"process {owner['pid']} on {owner['host']} (for {clock(time.time() - owner['since'])} now)"
    except (OSError, ValueError, KeyError, TypeError):  # it has the lock and has not written yet, or nothing known
        return "another process"
