"""Reading a small file that may come from a stranger."""

import os
import stat
from pathlib import Path

from dragoman.errors import DragomanError


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
