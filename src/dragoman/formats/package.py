"""Zip files that are documents: the only module that reads and writes them, within limits.

Nothing is unpacked to disk and no name in an archive is followed: parts are read one by one into memory.
"""

import io
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import IO

from dragoman.errors import Error
from dragoman.progress import say

MAX_PARTS = 20_000
MAX_PART_BYTES = 256 * 2**20
MAX_TOTAL_BYTES = 2 * 2**30
MAX_RATIO = 200
"""A part of more than a megabyte that is packed tighter is a bomb."""


_SIGNATURE = re.compile(r"(?:^|/)_xmlsignatures/|^META-INF/\w*signatures\.xml$", re.IGNORECASE)


class Package:
    """The parts of a zip file, in their order."""

    def __init__(self, data: bytes, name: str) -> None:
        self.name = name
        try:
            try:  # many programs write names in UTF-8 without a word about it
                self._zip = zipfile.ZipFile(io.BytesIO(data), metadata_encoding="utf-8")
            except UnicodeDecodeError:
                self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
            raise Error.DAMAGED(f"a broken zip file: {error}", file=name) from error
        infos = self._zip.infolist()
        if len(infos) > MAX_PARTS:
            raise Error.TOO_LARGE(f"{len(infos):,} parts, more than {MAX_PARTS:,}", file=name)
        if sum(info.file_size for info in infos) > MAX_TOTAL_BYTES:
            raise Error.TOO_LARGE(f"unpacks to more than {MAX_TOTAL_BYTES // 2**30} GiB", file=name)
        if twice := [part for part, count in Counter(info.filename for info in infos).items() if count > 1]:
            raise Error.DAMAGED(f"a part twice: {twice[0]!r}", file=name)
        for info in infos:
            if info.flag_bits & 1:
                raise Error.LOCKED("is protected by a password", "save it without one", file=name)
            if info.file_size > MAX_PART_BYTES:
                raise Error.TOO_LARGE(
                    f"its part {info.filename!r} is larger than {MAX_PART_BYTES // 2**20} MiB", file=name
                )
            if info.file_size > 2**20 and info.file_size > MAX_RATIO * max(info.compress_size, 1):
                raise Error.UNSAFE(f"its part {info.filename!r} is packed {MAX_RATIO} times: a zip bomb", file=name)

    def names(self) -> list[str]:
        return self._zip.namelist()

    def read(self, name: str) -> bytes:
        """The bytes of a part. Raises DragomanError for a damaged part."""
        info = self._zip.getinfo(name)
        try:
            with self._zip.open(info) as file:
                data = file.read(MAX_PART_BYTES + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError) as error:
            raise Error.DAMAGED(f"its part {name!r} is damaged: {error}", file=self.name) from error
        if len(data) > info.file_size:
            raise Error.UNSAFE(f"its part {name!r} is larger than it says: a zip bomb", file=self.name)
        return data

    def written(self, changed: Mapping[str, bytes]) -> bytes:
        """The package with some parts changed. Order, dates and ways of packing stay."""
        if any(_SIGNATURE.search(name) for name in self.names()):
            say(
                f"{self.name}: is signed: the signature is not one of the translation, so that programs will warn of it"
            )
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", allowZip64=True) as target:
            target.comment = self._zip.comment
            for info in self._zip.infolist():
                part = zipfile.ZipInfo(info.filename, info.date_time)
                for name in ("compress_type", "external_attr", "create_system", "comment", "internal_attr"):
                    setattr(part, name, getattr(info, name))
                part.extra = info.extra if info.filename == "mimetype" else b""
                data = changed.get(info.filename)
                target.writestr(part, self.read(info.filename) if data is None else data)
        return out.getvalue()


def member(path: str, stream: IO[bytes], name: str) -> IO[bytes]:
    """A stream of one file in a zip file, decompressed as it is read."""
    try:
        package = zipfile.ZipFile(stream)
        names = [info.filename for info in package.infolist() if not info.is_dir()]
        if name not in names:
            raise Error.MISSING_FILE(f" has no file {name!r}; it has {', '.join(names[:8])}", file=path)
        return package.open(name)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise Error.DAMAGED(f"a broken zip file: {error}", file=path) from error


def member_names(stream: IO[bytes]) -> Iterator[str]:
    """The names of the files in a zip file; none where it is broken."""
    try:
        yield from (info.filename for info in zipfile.ZipFile(stream).infolist() if not info.is_dir())
    except zipfile.BadZipFile:
        return
