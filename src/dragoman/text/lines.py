"""Bytes to lines: every way in which a text file can shift or garble its lines, refused by file and line.

A line ends at LF and nowhere else (`str.splitlines` would also cut at U+2028 and seven more characters), and bytes are
decoded strictly as UTF-8. Every complaint is a DragomanError of one line.
"""

import bz2
import gzip
import io
import itertools
import lzma
import os
import re
import select
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn, cast

from dragoman.errors import Error, not_installed, show
from dragoman.formats import package
from dragoman.formats.encoding import conversion
from dragoman.languages.codes import is_known, language_of

MAX_LINE_BYTES = 64 * 2**20
"""A longer line is no sentence: a file without line ends, or a decompression bomb."""

PATIENCE_S = 0.05
"""The most seconds between two lines of a batch: no batch waits for a program that writes line by line, and a program
that writes a whole file fills whole batches."""


class Compression(NamedTuple):
    """A way of compressing one file."""

    name: str
    magic: bytes
    """The first bytes of such a file."""
    opened: Callable[[Any], Any]


def _zstd(raw: BinaryIO) -> BinaryIO:
    try:
        import zstandard
    except ImportError as error:
        raise not_installed("zstd data needs a library", "zstd") from error
    return cast(BinaryIO, io.BufferedReader(_Frames(raw, zstandard)))


class _Frames(io.RawIOBase):
    """The content of zstd frames, one after another. A frame that is cut off is an error, unlike in the library."""

    def __init__(self, raw: BinaryIO, zstandard: Any) -> None:
        self.raw, self.zstandard = raw, zstandard
        self.frame: Any = None
        self.compressed, self.content = b"", b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.content:
            self.compressed = self.compressed or self.raw.read(1 << 16)
            if not self.compressed:
                if self.frame is not None:
                    raise EOFError
                return 0
            self.frame = self.frame or self.zstandard.ZstdDecompressor().decompressobj()
            try:
                self.content = self.frame.decompress(self.compressed)
            except self.zstandard.ZstdError as error:
                raise zlib.error(str(error)) from error
            self.compressed = self.frame.unused_data
            self.frame = None if self.frame.eof else self.frame
        count = min(len(buffer), len(self.content))
        buffer[:count] = self.content[:count]
        self.content = self.content[count:]
        return count


COMPRESSIONS = {
    ".gz": Compression("gzip", b"\x1f\x8b", gzip.open),
    ".xz": Compression("xz", b"\xfd7zXZ\x00", lzma.open),
    ".bz2": Compression("bzip2", b"BZh", bz2.open),
    ".zst": Compression("zstd", b"\x28\xb5\x2f\xfd", _zstd),
}
"""The ways in which a text may be compressed, by the end of its file's name."""


def kind_of(path: str | Path) -> str:
    """The end of a file's name, that of its compression left aside, in lower case.

    >>> kind_of("corpus.de.gz"), kind_of("memory.tmx"), kind_of("README")
    ('.de', '.tmx', '')
    """
    path = Path(path)
    return (Path(path.stem) if path.suffix in COMPRESSIONS else path).suffix.lower()


_ZIP = b"PK\x03\x04"
_POINTER = b"version https://git-lfs.github.com/spec/"
_OTHER_KINDS = (
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it first (`7z x`)"),
    (0, b"Rar!\x1a\x07", "a RAR archive", "unpack it first (`unrar x`)"),
    (257, b"ustar", "a tar archive", "unpack it first (`tar -xf`) and name a file in it"),
    (0, b"\x1f\x9d", "data of `compress`", "unpack it first (`uncompress`)"),
    (0, b"\x04\x22\x4d\x18", "lz4 data", "unpack it first (`lz4 -d`)"),
    (0, b"%PDF-", "a PDF", "save its text as plain UTF-8, a sentence a line"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office file", "save its text as plain UTF-8, a sentence a line"),
    (0, b"{\\rtf", "an RTF document", "save its text as plain UTF-8, a sentence a line"),
    (0, b"PAR1", "a Parquet file", "let its name end in .parquet"),
    (0, b"SQLite format 3\0", "an SQLite database", "write its texts into a file, a sentence a line"),
)
"""Kinds of files that are no text: place and bytes in their beginning, name, what to do."""

_OFFICE = {
    b"word/": "a Word document", b"xl/": "an Excel workbook", b"ppt/": "a PowerPoint presentation",
    b"opendocument": "an OpenDocument file", b"epub": "an e-book",
}  # fmt: skip
"""Zip files that are documents, by text in their first bytes."""


def find(path: str | Path) -> Path:
    """The file as written, else under $DRAGOMAN_DATA, else under ./data; `corpus.zip/NAME` is a file in a zip file.

    Raises DragomanError that lists the places looked at.
    """
    written = Path(os.path.expanduser(path))
    folders = [Path(), Path(os.environ["DRAGOMAN_DATA"])] if os.environ.get("DRAGOMAN_DATA") else [Path()]
    places = list(dict.fromkeys(folder / written for folder in [*folders, Path("data")]))
    for place in places:
        if os.path.exists(place) or container(place) != place:
            return place
    for place in places:
        if os.path.exists(other := _as_on_disk(place)):
            return other
        if os.path.islink(place):
            raise Error.MISSING_FILE(" is a symbolic link to a file that does not exist", file=place)
        bare = place.with_suffix("") if place.suffix in COMPRESSIONS else place
        of_windows = Path(str(place).replace("\\", "/"))
        for other in [of_windows, bare, *(bare.with_name(bare.name + suffix) for suffix in COMPRESSIONS)]:
            if os.path.exists(other):
                raise Error.MISSING_FILE("no such file", f"did you mean {show(other)}?", file=place)
    raise Error.MISSING_FILE(
        f"no such file; looked for {', '.join(map(show, places))} (the environment variable DRAGOMAN_DATA may name "
        "the folder of your corpora)",
        file=written,
    )


def _as_on_disk(path: Path) -> Path:
    """The path with each of its names composed (NFC) or apart (NFD), as it is there: macOS does not tell them apart."""
    there = Path(path.anchor)
    for name in path.parts[bool(path.anchor) :]:
        forms = (name, *(unicodedata.normalize(form, name) for form in ("NFC", "NFD")))
        there /= next((form for form in forms if os.path.exists(there / form)), name)
    return there


def container(path: Path) -> Path:
    """The zip file that a path leads into, as if that were a folder; the path itself for all others."""
    for parent in path.parents:
        if parent.suffix.lower() == ".zip" and parent.is_file():
            return parent
    return path


def is_same_file(one: Path, other: Path) -> bool:
    """True if both names are of the same file."""
    if container(one) != one or container(other) != other:
        return one == other
    return os.path.samefile(one, other)


def read_lines(path: str | Path, *, may_be_empty: bool = False) -> Iterator[str]:
    """The lines of a UTF-8 text file, plain or compressed (`COMPRESSIONS`), without their line ends.

    Raises DragomanError for a file that cannot be read, is another kind of file, is not UTF-8, or is empty where it may
    not be.
    """
    with open_bytes(Path(path)) as stream:
        empty = True
        for line in lines_in(stream, show(path)):
            empty = False
            yield line
    if empty and not may_be_empty:
        raise Error.EMPTY(" is empty", file=path)


def lines_in(stream: BinaryIO, name: str) -> Iterator[str]:
    """The lines of a byte stream (standard input, for example), under the rules of `read_lines`; may be none.

    A line ends at LF only and loses one trailing CR; a byte order mark at the very start is dropped; NUL is refused.
    """
    for number, line in enumerate(raw_lines(stream, name), start=1):
        text = _decode(line, name, number)
        yield text.removeprefix("\ufeff") if number == 1 else text


def raw_lines(stream: BinaryIO, name: str) -> Iterator[bytes]:
    """The lines as bytes, with their line ends. Raises DragomanError for what keeps a line from being read at all."""
    for number in itertools.count(1):
        try:
            line = stream.readline(MAX_LINE_BYTES + 1)
        except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError) as error:
            reason = "is cut off" if isinstance(error, EOFError) else f"is damaged ({error})"
            raise Error.DAMAGED(
                f"the compressed data {reason} after line {number - 1:,}", "fetch it again", file=name
            ) from error
        except OSError as error:
            raise Error.CANNOT_READ(
                f"cannot be read after line {number - 1:,}: {error.strerror or error}", file=name
            ) from error
        if not line:
            return
        if len(line) > MAX_LINE_BYTES:
            raise Error.TOO_LARGE(
                f"a line of more than {MAX_LINE_BYTES:,} bytes", "is this a text file?", file=name, line=number
            )
        if number == 1:
            _refuse_other_kinds(line, name)
        yield line


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """A byte stream of the file's content, decompressed; other archives are told by their first bytes."""
    archive = container(path)
    check_is_file(archive)
    with reporting_os_errors(path), archive.open("rb") as raw:
        if archive != path:
            yield cast(BinaryIO, package.member(show(archive), raw, path.relative_to(archive).as_posix()))
            return
        start = raw.read(8192)
        raw.seek(0)
        _refuse_pointer(start, show(path))
        named = COMPRESSIONS.get(path.suffix)
        compression = next((kind for kind in COMPRESSIONS.values() if start.startswith(kind.magic)), None)
        if named and start and compression is not named:
            raise Error.WRONG_FILE_TYPE(
                f" is not {named.name} data, although its name ends in {path.suffix}",
                "rename or compress it",
                file=path,
            )
        if compression and not named:
            suffix = next(suffix for suffix, kind in COMPRESSIONS.items() if kind is compression)
            raise Error.WRONG_FILE_TYPE(
                f" is {compression.name} data", f"rename it to {show(path.name + suffix)} or unpack it", file=path
            )
        if start.startswith(_ZIP):
            if office := next((name for part, name in _OFFICE.items() if part in start), None):
                raise Error.WRONG_FILE_TYPE(
                    f" is {office}", "save its text as plain UTF-8, a sentence a line", file=path
                )

            names = ", ".join(itertools.islice(package.member_names(raw), 6)) or "no file"
            called = show(path) if path.suffix.lower() == ".zip" else show(path.with_name(path.name + ".zip"))
            renamed = "" if called == show(path) else f"rename it to {called} and "
            raise Error.WRONG_FILE_TYPE(
                f" is a zip file: {renamed}name a file in it, {called}/NAME; it has {names}", file=path
            )
        _refuse_binary(start, show(path))
        if compression:
            with compression.opened(raw) as stream:
                yield stream
        else:
            yield raw


def check_is_file(path: Path) -> None:
    """Refuse a file without fixed content, such as a pipe: it is read more than once, and a pipe would also wait for
    ever."""
    if path.is_dir():
        raise Error.WRONG_FILE_TYPE(" is a directory", "name a file in it", file=path)
    if os.path.exists(path) and not path.is_file():
        raise Error.WRONG_FILE_TYPE(" is a pipe or device", "write its content to a file first", file=path)


@contextmanager
def reporting_os_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Error.CANNOT_READ(f"cannot be read: {error.strerror or error}", file=path) from error


def _decode(line: bytes, name: str, number: int) -> str:
    if b"\0" in line:
        if _is_utf16(line):
            _refuse_utf16(name)
        raise Error.NOT_TEXT(
            f"a NUL byte (byte {line.index(0) + 1} of the line)", "is this a text file?", file=name, line=number
        )
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data" and not line.endswith(b"\n"):
            raise Error.DAMAGED(
                "ends in the middle of a character", "is the file cut off?", file=name, line=number
            ) from error
        raise Error.NOT_UTF8(
            f"byte {error.start + 1} of the line (0x{line[error.start]:02X}) is not UTF-8 ({error.reason})",
            f"convert the file, for example with {conversion(line, (language_of_file(name) or 'en',))}",
            file=name,
            line=number,
        ) from error
    return text.removesuffix("\n").removesuffix("\r")


def _refuse_other_kinds(start: bytes, name: str) -> None:
    """The kind of a stream that is no plain text, by its first bytes (`open_bytes` has unpacked what a file held)."""
    for kind, magic in [("a zip file", _ZIP), *((f"{one.name} data", one.magic) for one in COMPRESSIONS.values())]:
        if start.startswith(magic):
            raise Error.WRONG_FILE_TYPE(f" is {kind}", "unpack it first", file=name)
    _refuse_pointer(start, name)
    _refuse_binary(start, name)
    if start.count(b"\r") > 2 and not start.endswith(b"\n"):
        hint = "convert it: tr '\\r' '\\n' < FILE"
        raise Error.WRONG_SHAPE(" has the line ends of old Mac OS, CR alone, and is one line here", hint, file=name)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")) or _is_utf16(start):
        _refuse_utf16(name)


def _refuse_pointer(start: bytes, name: str) -> None:
    if start.startswith(_POINTER):
        raise Error.WRONG_FILE_TYPE(
            " is a Git LFS pointer and not the file itself", "fetch that with `git lfs pull`", file=name
        )


def _refuse_binary(start: bytes, name: str) -> None:
    for place, magic, kind, hint in _OTHER_KINDS:
        if start.startswith(magic, place):
            raise Error.WRONG_FILE_TYPE(f" is {kind}", hint, file=name)


def refuse_array(first: str, path: Path) -> None:
    """Raises DragomanError for the first line of a JSON text that has not an object in each line."""
    if first.lstrip().startswith("[") or first.strip() == "{":
        kind = "a JSON array" if first.lstrip().startswith("[") else "one JSON object over several lines"
        raise Error.WRONG_SHAPE(
            f" is {kind}, and not an object a line (JSON Lines)",
            f"write each object in a line of its own: jq -c '.[]' {path.name}",
            file=path,
        )


_JSON = re.compile(r"""\[\s*[\[{]\s*["\]}]|\[\s*"[^"]*"\s*[,\]]|\{\s*"[^"]*"\s*:""")


def refuse_json(first: str, path: Path) -> None:
    """Raises DragomanError for the first line of what should be a text and is JSON, or is called so and begins so."""
    is_called_json = any(suffix in (".json", ".jsonl", ".ndjson") for suffix in path.suffixes)
    if _JSON.match(first.lstrip()) or (is_called_json and first.lstrip()[:1] in ("[", "{")):
        refuse_array(first, path)
        raise Error.WRONG_SHAPE(
            " is JSON Lines and not a text, a sentence a line", "corpus.train={type: jsonl, path: ...}", file=path
        )


def lines_of_text(path: Path) -> Iterator[str]:
    """As `read_lines`, of a file that is a text and no JSON."""
    for number, line in enumerate(read_lines(path), start=1):
        if number == 1:
            refuse_json(line, path)
        yield line


def _is_utf16(line: bytes) -> bool:
    """True if as many bytes are zero as in a text of ASCII letters, two bytes to each. A few are a mistake instead."""
    return line.count(b"\0") * 3 >= len(line) and line.count(b"\0") >= 4


def _refuse_utf16(name: str) -> NoReturn:
    raise Error.NOT_UTF8(" looks like UTF-16", "convert it with `iconv -f UTF-16 -t UTF-8`", file=name)


STREAM_LINES = 2048
"""The number of lines that are read ahead, to sort them by length."""


def in_chunks(lines: Iterable[str], size: int, waiting: Callable[[], bool] = lambda: False) -> Iterator[list[str]]:
    """Lists of `size` lines. One is shorter at the end, and where the next line has not come yet (`waiting`)."""
    source = iter(lines)
    for first in source:
        chunk = [first]
        while len(chunk) < size and not waiting():
            if (line := next(source, None)) is None:
                break
            chunk.append(line)
        yield chunk


class LiveInput:
    """A pipe or terminal that somebody may still write to: lines as they come, for `lines_in`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._held, self._ended = descriptor, bytearray(), False

    def readline(self, limit: int) -> bytes:
        """The next line with its line end, or the first `limit` bytes of it; waits for it. Empty at the end."""
        searched = 0
        while (end := self._held.find(b"\n", searched, limit)) < 0 and len(self._held) < limit and not self._ended:
            searched = len(self._held)
            self._read()
        length = end + 1 if end >= 0 else limit
        line = bytes(self._held[:length])
        del self._held[:length]
        return line

    def waiting(self) -> bool:
        """True where the next line is not there yet, nor within `PATIENCE_S`."""
        while b"\n" not in self._held and not self._ended:
            try:
                if not select.select([self._descriptor], [], [], PATIENCE_S)[0]:
                    return True
            except OSError:  # Windows waits for sockets alone
                return True
            self._read()
        return False

    def _read(self) -> None:
        data = os.read(self._descriptor, 2**16)
        self._held += data
        self._ended = not data


def language_of_file(path: str | Path) -> str:
    """The language code that a file name ends in, before `.txt` too; "" where it ends in none.

    `in`, an old code of Indonesian, is rather the input of a program here.

    >>> [language_of_file(name) for name in ("corpus.de", "a.zho_Hans.gz", "b.zh-CN", "c.eng.txt", "d.txt", "e.src")]
    ['de', 'zho_Hans', 'zh-CN', 'eng', '', '']
    """
    name = Path(path)
    for ends in (COMPRESSIONS, (".txt",)):
        name = name.with_suffix("") if name.suffix.lower() in ends else name
    code = name.suffix[1:]
    return code if len(language_of(code)) <= 3 and is_known(code) and code != "in" else ""
