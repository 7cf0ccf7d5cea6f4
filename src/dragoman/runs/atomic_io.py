"""The operations on a disk that keeping a run safe is made of: few, small and in one place.

What is in memory when the power fails is lost, and a program may be killed between any two of these. So a file or a
directory is written beside its place, synced, and renamed, which a file system does wholly or not at all. Tests end the
program before and after each of these operations, and replay every loss of what was not synced yet.
"""

import fcntl
import json
import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError


def make_directory(path: Path) -> None:
    path.mkdir(parents=True)


def write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def write_tensors(path: Path, tensors: Mapping[str, Any]) -> None:
    from safetensors.torch import save_file  # whoever only writes text should not wait for PyTorch

    save_file({name: tensor.detach().contiguous() for name, tensor in tensors.items()}, path)


def sync(path: Path) -> None:
    """Return when a file's bytes, or a directory's list of names, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync alone hands the bytes to the drive, which may keep them back
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        else:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rename(path: Path, to: Path) -> None:
    """In one move; a file that is there already is replaced by it, a directory must not be there."""
    path.replace(to)


def remove(path: Path) -> None:
    """A file or a whole directory; fine if it is not there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def replace_text(path: Path, text: str) -> None:
    """Write a file that is at any time the old one or the new one, whole."""
    partial = path.with_name(path.name + ".tmp")
    write_text(partial, text)
    sync(partial)
    rename(partial, path)
    sync(path.parent)


def to_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_text(path: Path, limit: int) -> str:
    """The UTF-8 text of a regular file of at most `limit` bytes.

    Its name may be a link to something that never ends or never begins, so what is opened is looked at, and no more is
    read than is allowed. Raises OSError, UnicodeDecodeError, and DragomanError for a file of another kind or larger.
    """
    return read_bytes(path, limit).decode("utf-8")


def read_bytes(path: Path, limit: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would wait for somebody to write
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise DragomanError(f"{path}: is no regular file")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise DragomanError(f"{path}: of more than {limit:,} bytes; nothing of that kind is so large")
    return data
