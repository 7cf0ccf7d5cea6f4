"""Atomic writes: after a crash or a power failure a file or directory is the old one or the new one, whole.

It is written beside its place, synced, and renamed, which a file system does wholly or not at all. What is in memory
when the power fails is lost, and a program may be killed between any two operations, so the operations are few and all
of them are here. Tests end the program before and after each of them, and try every loss of what was not synced yet.
"""

import codecs
import contextlib
import errno
import json
import os
import re
import shutil
import stat
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from dragoman import config
from dragoman.errors import DragomanError, Error

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")

MAX_JSON_BYTES = 16 * 2**20
"""Of a file in a run directory, which may come from strangers: what is parsed may take 25 times as much memory."""


_NOT_IN_NAMES = re.compile(r"""[<>:"/\\|?*\x00-\x1f]|[ .]$|^(?=(con|prn|aux|nul|com\d|lpt\d)(\.|$))""", re.IGNORECASE)
"""Of Windows: characters, ends, and names of devices."""


def file_names(names: Iterable[str]) -> list[str]:
    """Names of things, such as test sets, as names of files on every system; none is another's where case is nothing.

    >>> file_names(["news", "wmt/14", "wmt_14", "News", "aux"])
    ['news', 'wmt_14', 'wmt_14_', 'News_', '_aux']
    """
    made: dict[str, str] = {}
    for name in names:
        name = _NOT_IN_NAMES.sub("_", name)
        while (folded := unicodedata.normalize("NFC", name).casefold()) in made:
            name += "_"
        made[folded] = name
    return list(made.values())


# -- operations ----------------------------------------------------------------------------------------------------


def make_directory(path: Path) -> None:
    path.mkdir(parents=True)


def write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def write_tensors(path: Path, tensors: Mapping[str, Any]) -> None:
    from safetensors.torch import save_file  # whoever only writes text should not wait for PyTorch

    path.touch()
    mode = path.stat().st_mode
    save_file({name: tensor.detach().contiguous() for name, tensor in tensors.items()}, path)
    path.chmod(mode)  # the library's own files are their owner's alone


def sync(path: Path) -> None:
    """Return when a file's bytes, or a directory's list of names, are on the disk.

    Windows opens no directories, whose names it writes by itself, and syncs files that are open for writing.
    """
    if fcntl is None and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDONLY if fcntl else os.O_RDWR)
    try:
        if hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync alone hands the bytes to the drive, which may keep them back
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        else:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rename(path: Path, to: Path) -> None:
    """Rename in one move. A file at `to` is replaced; a directory must not be there.

    Windows refuses while a virus scanner reads the new file, so it is tried again for a second.
    """
    waits: tuple[float, ...] = (0.05, 0.2, 0.8) if fcntl is None else ()
    for wait_s in waits:
        with contextlib.suppress(PermissionError):
            path.replace(to)
            return
        time.sleep(wait_s)
    path.replace(to)


def remove(path: Path) -> None:
    """Remove a file or a whole directory; fine if it is not there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # nor is it there when its folder is a file
            path.unlink()


# -- atomic writes -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Write the file or directory `path` atomically: the block writes it at the place that it is given.

    When the block raises, what was at `path` stays as it was and nothing is left beside it.
    """
    partial = path.with_name(path.name + ".tmp")
    remove(partial)  # of a process that was killed
    try:
        yield partial
        publish(partial, path)
    except BaseException as error:
        remove(partial)
        if isinstance(error, OSError) and error.filename is not None:  # the file that is meant
            error.filename = str(error.filename).replace(str(partial), str(path))
        raise


def publish(partial: Path, path: Path) -> None:
    """Sync what was written at `partial`, a file or a directory, and rename it to `path`."""
    for inner in sorted(partial.rglob("*"), reverse=True):  # a directory after what is in it
        sync(inner)
    sync(partial)
    if path.is_dir():
        drop(path)
    rename(partial, path)
    sync(path.parent)


def drop(path: Path) -> None:
    """Remove a file or directory; renamed first, so that a half-removed one is never found under its name."""
    if path.exists():
        dropped = path.with_name(f"{path.name}.dropped.tmp")
        remove(dropped)
        try:
            rename(path, dropped)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            dropped = path  # it came with the image of a container, whose overlay renames no such directory
        remove(dropped)


def replace_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with replaced(path) as partial:
        write_text(partial, text)


def replace_bytes(path: Path, data: bytes) -> None:
    """Write a file atomically."""
    with replaced(path) as partial, partial.open("wb") as file:
        file.write(data)


def to_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, ensure_ascii=False, indent=0 if isinstance(value, list) else 2))


# -- reading -------------------------------------------------------------------------------------------------------


def read_text(path: Path, limit: int) -> str:
    """The UTF-8 text of a regular file of at most `limit` bytes.

    Its name may be a link to something that never ends or never begins, so what is opened is looked at, and no more is
    read than is allowed. Raises OSError, UnicodeDecodeError, and DragomanError for a file of another kind or larger.
    """
    return read_bytes(path, limit).decode("utf-8")


def read_bytes(path: Path, limit: int) -> bytes:
    # A pipe would wait for somebody to write; Windows would change line ends.
    flags = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, os.O_RDONLY | flags)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Error.WRONG_FILE_TYPE("is no regular file", file=path)
        data = file.read(limit + 1)
    if len(data) > limit:
        raise Error.TOO_LARGE(f"of more than {limit:,} bytes; nothing of that kind is so large", file=path)
    return data


def json_problem(error: Exception) -> str:
    """The reason why a text is no JSON, and the column; the line is the caller's, who knows it of the file."""
    return f"{error.msg} (column {error.colno})" if isinstance(error, json.JSONDecodeError) else str(error)


def read_json(path: Path, kind: type[T]) -> T:
    """The JSON value of type `kind` in a file. Raises DragomanError when it is missing, damaged or something else."""
    try:
        value = json.loads(read_text(path, MAX_JSON_BYTES))
    except DragomanError:
        raise
    except OSError as error:
        raise Error.CANNOT_READ(f"cannot be read: {error.strerror}", file=path) from error
    except UnicodeDecodeError as error:
        raise Error.NOT_UTF8(f"is not UTF-8: {error}", file=path) from error
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise Error.BAD_SYNTAX(f"not valid JSON: {json_problem(error)}", file=path, line=line) from error
    if not isinstance(value, kind):
        raise Error.WRONG_SHAPE(f"expected a JSON {'list' if kind is list else 'object'}", file=path)
    return value


def read_yaml(path: str | Path) -> dict[str, Any]:
    """The mapping in a YAML file.

    Raises DragomanError when the file is missing, is not UTF-8 or YAML, or holds something else than a mapping.
    """
    try:
        data = read_bytes(Path(path), config.MAX_BYTES)
        utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))  # YAML allows it, and PowerShell writes it
        text = data.decode("utf-16" if utf16 else "utf-8")
    except DragomanError:
        raise
    except FileNotFoundError as error:
        raise Error.MISSING_FILE("no such file", file=path) from error
    except OSError as error:
        raise Error.CANNOT_READ(f"cannot be read: {error.strerror}", file=path) from error
    except UnicodeDecodeError as error:
        raise Error.NOT_UTF8(f"is not UTF-8: {error}", "save it in UTF-8", file=path) from error
    return config.from_yaml(text, str(path))
