"""Step 1: sentence pairs from files, line by line, strict about everything that shifts or garbles them.

Three habits keep pairs aligned: a line ends at LF and nowhere else (`str.splitlines` would also cut at U+2028 and seven
more characters), bytes are decoded strictly as UTF-8, and an unequal number of lines stops the reading (`zip` would
hide it). Every complaint is a DragomanError of one line that names file and line.
"""

import gzip
import hashlib
import itertools
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, NamedTuple, NoReturn, cast

from pydantic import Field

from dragoman.config import by_type, settings, to_dict
from dragoman.errors import DragomanError
from dragoman.version import __version__

MAX_LINE_BYTES = 64 * 2**20
"""A longer line is no sentence: a file without line ends, or a decompression bomb."""

_GZIP = b"\x1f\x8b"
_ARCHIVES = {b"PK\x03\x04": "zip", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2"}


@settings
class FilesSource:
    """Two text files, plain or `.gz`; line n of one is the translation of line n of the other."""

    type: Literal["files"] = "files"
    src: str
    tgt: str


@settings
class TsvSource:
    """One file of tab-separated columns (counted from 1), without quoting; every line has as many as the first."""

    type: Literal["tsv"] = "tsv"
    path: str
    src_column: Annotated[int, Field(ge=1)] = 1
    tgt_column: Annotated[int, Field(ge=1)] = 2

    def __post_init__(self) -> None:
        if self.src_column == self.tgt_column:
            raise ValueError("src_column and tgt_column must differ")


@settings
class JsonlSource:
    """One JSON object a line, with the two texts under two keys; other keys are ignored."""

    type: Literal["jsonl"] = "jsonl"
    path: str
    src_key: str = "src"
    tgt_key: str = "tgt"

    def __post_init__(self) -> None:
        if self.src_key == self.tgt_key:
            raise ValueError("src_key and tgt_key must differ")


@settings
class DemoSource:
    """Made-up sentences that come with Dragoman, for a first run without any file (`text/embedded.py`)."""

    type: Literal["demo"] = "demo"
    pair: str = "de-en"
    split: Literal["train", "valid", "test"]
    size: Annotated[int, Field(ge=1)] | None = None
    seed: int = 1


Source = Annotated[FilesSource | TsvSource | JsonlSource | DemoSource, by_type]


@settings
class CorpusConfig:
    """Which pairs to train, validate and test on; `max_tokens` of either side, longer pairs are dropped."""

    src_lang: Annotated[str, Field(min_length=1)]
    tgt_lang: Annotated[str, Field(min_length=1)]
    train: Source
    valid: Source
    test: dict[str, Source] = field(default_factory=dict)
    normalize: Literal["none", "nfc", "nfkc"] = "nfc"
    max_tokens: Annotated[int, Field(ge=1)] = 256


class Pair(NamedTuple):
    """A sentence pair and where it stands: its line (or record) number, counted from 1."""

    line: int
    src: str
    tgt: str


def find(path: str | Path) -> Path:
    """The file as written, else under $DRAGOMAN_DATA, else under ./data.

    Raises DragomanError that lists the places looked at.
    """
    written = Path(path).expanduser()
    folders = [Path(), Path(os.environ["DRAGOMAN_DATA"])] if os.environ.get("DRAGOMAN_DATA") else [Path()]
    places = list(dict.fromkeys(folder / written for folder in [*folders, Path("data")]))
    for place in places:
        if os.path.exists(place):
            return place
    for place in places:
        if os.path.islink(place):
            raise DragomanError(f"{_show(place)} is a symbolic link to a file that does not exist")
        other = place.with_suffix("") if place.suffix == ".gz" else place.with_name(place.name + ".gz")
        if os.path.exists(other):
            raise DragomanError(f"{_show(place)}: no such file; did you mean {_show(other)}?")
    raise DragomanError(
        f"{_show(written)}: no such file; looked for {', '.join(map(_show, places))} "
        "(the environment variable DRAGOMAN_DATA may name the folder of your corpora)"
    )


def read_lines(path: str | Path) -> Iterator[str]:
    """The lines of a UTF-8 text file, plain or `.gz`, without their line ends.

    Raises DragomanError for a file that cannot be read, is empty, is another kind of file, or is not UTF-8.
    """
    with _open(Path(path)) as stream:
        empty = True
        for line in lines_in(stream, _show(path)):
            empty = False
            yield line
    if empty:
        raise DragomanError(f"{_show(path)} is empty")


def lines_in(stream: BinaryIO, name: str) -> Iterator[str]:
    """The lines of a byte stream (standard input, for example), under the rules of `read_lines`; may be none.

    A line ends at LF only and loses one trailing CR; a byte order mark at the very start is dropped; NUL is refused.
    """
    for number in itertools.count(1):
        try:
            line = stream.readline(MAX_LINE_BYTES + 1)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            reason = "is cut off" if isinstance(error, EOFError) else f"is damaged ({error})"
            raise DragomanError(f"{name}: the gzip data {reason} after line {number - 1:,}: fetch it again") from error
        except OSError as error:
            raise DragomanError(f"{name}: cannot be read after line {number - 1:,}: {error.strerror}") from error
        if not line:
            return
        if len(line) > MAX_LINE_BYTES:
            raise DragomanError(f"{name}:{number}: a line of more than {MAX_LINE_BYTES:,} bytes; is this a text file?")
        text = _decode(line, name, number)
        yield text.removeprefix("\ufeff") if number == 1 else text


def read_pairs(source: Source) -> Iterator[Pair]:
    """The pairs of a source, one after another, blank ones included.

    Raises DragomanError at the first thing that is wrong, with file and line; at the end if line counts differ.
    """
    match source:
        case FilesSource():
            return _pairs_of_files(find(source.src), find(source.tgt))
        case TsvSource():
            return _pairs_of_tsv(source, find(source.path))
        case JsonlSource():
            return _pairs_of_jsonl(source, find(source.path))
        case DemoSource():
            return _pairs_of_demo(source)


def files_of(source: Source) -> list[Path]:
    """The files whose content makes up the source, where `find` finds them; none for the demo."""
    match source:
        case FilesSource():
            return [find(source.src), find(source.tgt)]
        case TsvSource() | JsonlSource():
            return [find(source.path)]
        case DemoSource():
            return []


def fingerprint(source: Source) -> str:
    """SHA-256 (hex) over the source's settings and the bytes of its files: equal means the same pairs again.

    The demo's sentences are made by the program, so there its version stands for the content.
    """
    total = hashlib.sha256(json.dumps(to_dict(source), sort_keys=True).encode())
    if isinstance(source, DemoSource):
        total.update(__version__.encode())
    for path in files_of(source):
        _check_is_file(path)
        with _reporting_os_errors(path), path.open("rb") as stream:
            total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()


def _pairs_of_files(src: Path, tgt: Path) -> Iterator[Pair]:
    if os.path.samefile(src, tgt):
        raise DragomanError(f"{_show(src)} is given as both src and tgt: name one file for each language")
    sides = (read_lines(src), read_lines(tgt))
    for line, texts in enumerate(itertools.zip_longest(*sides), start=1):
        if None in texts:
            counts = [line - (text is None) + sum(1 for _ in side) for text, side in zip(texts, sides, strict=True)]
            raise DragomanError(
                f"{_show(src)} has {counts[0]:,} lines but {_show(tgt)} has {counts[1]:,}: line n of one must be the "
                "translation of line n of the other; find the line that is missing or was cut in two"
            )
        yield Pair(line, *texts)


def _pairs_of_tsv(source: TsvSource, path: Path) -> Iterator[Pair]:
    needed = max(source.src_column, source.tgt_column)
    expected = 0
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        expected = expected or len(columns)
        if len(columns) < needed:
            raise DragomanError(f"{_show(path)}:{number}: {_columns(len(columns))}, but column {needed} is asked for")
        if len(columns) != expected:
            raise DragomanError(
                f"{_show(path)}:{number}: {_columns(len(columns))}, but line 1 has {expected}: "
                "is there a tab inside a text?"
            )
        yield Pair(number, columns[source.src_column - 1], columns[source.tgt_column - 1])


def _columns(count: int) -> str:
    return "1 tab-separated column" if count == 1 else f"{count} tab-separated columns"


def _pairs_of_jsonl(source: JsonlSource, path: Path) -> Iterator[Pair]:
    for number, line in enumerate(read_lines(path), start=1):
        where = f"{_show(path)}:{number}"
        try:
            record = json.loads(line, object_pairs_hook=_distinct)
        except (ValueError, RecursionError) as error:
            raise DragomanError(
                f"{where}: not a JSON object: {error}" if line.strip() else f"{where}: blank"
            ) from error
        if not isinstance(record, dict):
            raise DragomanError(f"{where}: expected a JSON object, found {_json_type(record)}")
        yield Pair(number, _text(record, source.src_key, where), _text(record, source.tgt_key, where))


def _distinct(items: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(items)
    if len(record) < len(items):
        names = [key for key, _ in items]
        raise ValueError(f"key {next(key for key in names if names.count(key) > 1)!r} twice")
    return record


def _text(record: dict[str, Any], key: str, where: str) -> str:
    if key not in record:
        raise DragomanError(f"{where}: no key {key!r}; it has {', '.join(map(repr, record)) or 'none'}")
    text = record[key]
    if not isinstance(text, str):
        raise DragomanError(f"{where}: {key!r} must be a string, found {_json_type(text)}")
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise DragomanError(f"{where}: {key!r} holds a NUL character or half a surrogate pair")
    return text


def _json_type(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _pairs_of_demo(source: DemoSource) -> Iterator[Pair]:
    from dragoman.text import embedded

    sentences = embedded.sentences(source.pair, source.split, source.size, source.seed)
    for number, (src, tgt) in enumerate(sentences, start=1):
        yield Pair(number, src, tgt)


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    """A byte stream of the file's text, decompressed; what is not text is refused by its first bytes."""
    _check_is_file(path)
    with _reporting_os_errors(path), path.open("rb") as raw:
        start = raw.read(8)
        raw.seek(0)
        zipped = start.startswith(_GZIP)
        if path.suffix == ".gz" and start and not zipped:
            raise DragomanError(f"{_show(path)} is not gzip data, although its name ends in .gz: rename or compress it")
        if path.suffix != ".gz" and zipped:
            raise DragomanError(f"{_show(path)} is gzip data: rename it to {_show(path.name + '.gz')} or unpack it")
        for magic, kind in _ARCHIVES.items():
            if start.startswith(magic):
                raise DragomanError(f"{_show(path)} is a {kind} file, not text: unpack it first (or pack it as .gz)")
        if zipped:
            with gzip.GzipFile(fileobj=raw) as stream:
                yield cast(BinaryIO, stream)
        else:
            yield raw


def _check_is_file(path: Path) -> None:
    """Refuse what has no fixed content: it is read more than once (a pipe would also wait for ever)."""
    if path.is_dir():
        raise DragomanError(f"{_show(path)} is a directory: name a file in it")
    if os.path.exists(path) and not path.is_file():
        raise DragomanError(f"{_show(path)} is a pipe or device: write its content to a file first")


@contextmanager
def _reporting_os_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DragomanError(f"{_show(path)}: cannot be read: {error.strerror or error}") from error


def _decode(line: bytes, name: str, number: int) -> str:
    if number == 1 and line.startswith((b"\xff\xfe", b"\xfe\xff")):
        _refuse_utf16(name)
    if b"\0" in line:
        if line.count(b"\0") * 3 >= len(line):
            _refuse_utf16(name)
        raise DragomanError(f"{name}:{number}: a NUL byte (byte {line.index(0) + 1} of the line): is this a text file?")
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data" and not line.endswith(b"\n"):
            raise DragomanError(f"{name}:{number}: ends in the middle of a character: is the file cut off?") from error
        raise DragomanError(
            f"{name}:{number}: byte {error.start + 1} of the line (0x{line[error.start]:02X}) is not UTF-8 "
            f"({error.reason}): convert the file, for example with `iconv -f WINDOWS-1252 -t UTF-8`"
        ) from error
    return text.removesuffix("\n").removesuffix("\r")


def _refuse_utf16(name: str) -> NoReturn:
    raise DragomanError(f"{name} looks like UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`")


def _show(path: str | Path) -> str:
    """The path for a message, which stays one readable line whatever the file is called."""
    return str(path) if str(path).isprintable() else repr(str(path))
