"""Files in Debian packages (.deb) and in tar archives, read one after another, within limits.

Nothing is unpacked by its name: the caller says which names it wants and gets their bytes. Links and devices are left
out; an archive with a name that leads elsewhere is refused.
"""

import bz2
import contextlib
import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

from dragoman.errors import Error, not_installed

MAX_FILE_BYTES = 256 * 2**20
MAX_TOTAL_BYTES = 8 * 2**30
"""Of all files in an archive, wanted or not."""
_AR = b"!<arch>\n"
_AR_HEADER = 60


def is_archive(path: Path) -> bool:
    """True for names of Debian packages and of tar archives."""
    return path.suffix in (".deb", ".tar") or (path.suffixes[-2:-1] == [".tar"] and path.suffix in _OPENED)


def files(path: Path, accepts: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """The (name, bytes) of the regular files in an archive that `accepts` takes by name, in the archive's order.

    Raises DragomanError where the archive is damaged, too large, or has a name that leads out of a folder.
    """
    try:
        with path.open("rb") as raw, contextlib.ExitStack() as opened:
            stream, suffix = _data_of_package(raw, path) if path.suffix == ".deb" else (raw, path.suffix)
            plain = opened.enter_context(_decompressed(stream, suffix, path))
            archive = opened.enter_context(tarfile.open(fileobj=plain, mode="r|", errorlevel=2))
            total = 0
            for member in archive:
                name = _safe_name(member, path)
                total += member.size
                if total > MAX_TOTAL_BYTES:
                    raise Error.TOO_LARGE(f"unpacks to more than {MAX_TOTAL_BYTES // 2**30} GiB", file=path)
                if member.isreg() and accepts(name):
                    if member.size > MAX_FILE_BYTES:
                        raise Error.TOO_LARGE(f"{name!r} is larger than {MAX_FILE_BYTES // 2**20} MiB", file=path)
                    file = archive.extractfile(member)
                    assert file is not None  # a regular file
                    yield name, file.read()
            while plain.read(2**16):  # what follows the last file is empty, but it may be cut off
                pass
    except (tarfile.TarError, EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile, UnicodeError) as error:
        raise Error.DAMAGED(
            f"is cut off or damaged ({error or type(error).__name__})", "get it again", file=path
        ) from error
    except OSError as error:
        raise Error.CANNOT_READ(f"cannot be read: {error.strerror or error}", file=path) from error


def _safe_name(member: tarfile.TarInfo, path: Path) -> str:
    """The name of a file in an archive as a plain relative path; "" for one that no path should have."""
    name = PurePosixPath(member.name.removeprefix("./"))
    if name.is_absolute() or ".." in name.parts:
        raise Error.UNSAFE(f"has a name that leads elsewhere: {member.name[:80]!r}", file=path)
    return str(name) if member.name.isprintable() and "\\" not in member.name else ""


def _data_of_package(raw: IO[bytes], path: Path) -> tuple[IO[bytes], str]:
    """The stream of a package's `data.tar.*`, and how that is compressed."""
    if raw.read(len(_AR)) != _AR:
        raise Error.WRONG_FILE_TYPE("is no Debian package", file=path)
    while len(header := raw.read(_AR_HEADER)) == _AR_HEADER:
        name, size = header[:16].decode("ascii", "replace").strip().rstrip("/"), header[48:58].strip()
        if not size.isdigit() or header[58:] != b"`\n":
            break
        if name.startswith("data.tar"):
            return io.BufferedReader(_Part(raw, int(size))), name.removeprefix("data.tar")
        raw.seek(int(size) + int(size) % 2, io.SEEK_CUR)
    raise Error.DAMAGED("is a Debian package without data", "get it again", file=path)


class _Part(io.RawIOBase):
    """The next `size` bytes of a file."""

    def __init__(self, raw: IO[bytes], size: int) -> None:
        self.raw, self.left = raw, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.raw.read(min(len(buffer), self.left))
        if not data and self.left:
            raise EOFError("the end of the file is missing")
        self.left -= len(data)
        buffer[: len(data)] = data
        return len(data)


def _zstd(raw: IO[bytes]) -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise not_installed("packages packed by zstd need a library", "zstd") from error
    return zstandard.ZstdDecompressor().stream_reader(raw, closefd=False)


_OPENED: dict[str, Callable[[Any], Any]] = {
    ".gz": gzip.open,
    ".xz": lzma.open,
    ".bz2": bz2.open,
    ".zst": _zstd,
    ".tar": contextlib.nullcontext,
    "": contextlib.nullcontext,
}


def _decompressed(stream: IO[bytes], suffix: str, path: Path) -> Any:
    if suffix not in _OPENED:
        raise Error.UNKNOWN_FORMAT(f"is packed in a way that is not read here ({suffix})", file=path)
    return _OPENED[suffix](stream)
