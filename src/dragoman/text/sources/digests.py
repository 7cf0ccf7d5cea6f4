"""SHA-256 of corpus files; large ones that were hashed before and have not changed since are not read again.

A file is taken for unchanged if its path, size and time of last change are the same, as `make` and `rsync` do it. Of
files below `LARGE_FILE_BYTES` the content is always read.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dragoman.runs import atomic_io

LARGE_FILE_BYTES = 2**26
"""Bytes of a file that takes noticeable time to hash."""

_known: dict[str, str] = {}
_places: list[Path] = []
"""Files that digests are remembered in, the innermost last."""


def sha256_of(path: Path, stream: Any) -> bytes:
    """The digest of the whole of a file, opened from its start."""
    state = path.stat()
    if state.st_size < LARGE_FILE_BYTES:
        return hashlib.file_digest(stream, "sha256").digest()
    key = f"{path.resolve()} {state.st_size} {state.st_mtime_ns}"
    if key not in _known:
        _look_up()
    if key not in _known:
        _known[key] = hashlib.file_digest(stream, "sha256").hexdigest()
        _note()
    return bytes.fromhex(_known[key])


@contextlib.contextmanager
def remembered(path: Path) -> Iterator[None]:
    """Within, know the digests that the file holds, and add to it what is found. Other processes may do so as well."""
    _places.append(path)
    try:
        yield
    finally:
        _places.pop()


def _look_up() -> None:
    for path in _places:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            digests = json.loads(path.read_text(encoding="utf-8"))
            _known.update({str(key): bytes.fromhex(value).hex() for key, value in digests.items()})


def _note() -> None:
    for path in _places[-1:]:
        if path.parent.is_dir():
            with contextlib.suppress(OSError):  # it is hashed again next time
                atomic_io.replace_text(path, json.dumps(_known, indent=1))
