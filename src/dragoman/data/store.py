"""Token ids of a corpus on disk: encoded once, and read from there ever after.

Five million pairs do not fit into memory as Python lists, and must not be tokenized again at each start. `prepare`
streams pairs through the tokenizers into a folder of flat arrays; `IdCorpus` maps them, or reads from them where they
are very many. The folder appears under its name only when it is complete, and serves again for as long as corpus,
tokenizers and settings are the same.
"""

import contextlib
import hashlib
import itertools
import json
import os
import tempfile
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from dragoman.data.encode import Chunk, Encoder, IntArray, Side, encode, id_dtype
from dragoman.data.row_order import MIN_ROWS_ON_DISK
from dragoman.errors import DragomanError, Error, show, writing
from dragoman.progress import Progress, say
from dragoman.runs import atomic_io
from dragoman.special_tokens import UNK_ID
from dragoman.text.corpus import Source
from dragoman.text.lines import container, reporting_os_errors
from dragoman.text.sources.base import files_of, fingerprint
from dragoman.text.tokenizers.pair import TokenizerPair, save_tokenizers

FORMAT = 1
META = "meta.json"
FILES = ("src.bin", "src_offsets.bin", "tgt.bin", "tgt_offsets.bin", "lines.bin")

PROGRESS = "progress.json"
SAVE_PAIRS = 1_000_000
"""Pairs between notes of how far a preparation is: a kill loses no more than that."""

MAX_CHECKED_IDS = 2**26
"""Ids of a side that are looked at when a store is opened."""

_REMEDY = "delete the folder and prepare the corpus again"


@dataclass(frozen=True, kw_only=True)
class PrepareReport:
    """Figures of the pairs of a source. Tokens are those of the pairs kept, without specials."""

    pairs_read: int
    pairs_kept: int
    dropped: dict[str, int]
    """Reason -> pairs: "blank source", "blank target", "blank both", "longer than N tokens"."""
    src_tokens: int
    tgt_tokens: int
    src_unknown: int
    """Tokens that are <unk>."""
    tgt_unknown: int
    reused: bool
    """True if an earlier preparation served; then it made the counts."""
    seconds: float
    """Duration of this call."""


class IdCorpus:
    """The ids of one split on disk: `src(row)` and `tgt(row)` are read-only arrays, without specials.

    Raises DragomanError when the folder is no complete prepared corpus, or (where the `vocab_sizes` of source and
    target are given) when it holds ids that a vocabulary does not have.
    """

    def __init__(self, path: str | Path, vocab_sizes: tuple[int, int] | None = None) -> None:
        self.path = Path(path)
        self.meta = _read_meta(self.path)
        self.lines = self._map("lines.bin", "int64")
        """The line of each row in its corpus, counted from 1."""
        self._src, self.src_lengths = self._side("src", (vocab_sizes or (None, None))[0])
        self._tgt, self.tgt_lengths = self._side("tgt", (vocab_sizes or (None, None))[1])

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def is_read(self) -> bool:
        """True where each sentence is read when it is asked for, as there are too many to map."""
        return len(self) > MIN_ROWS_ON_DISK

    def src(self, row: int) -> IntArray:
        return self._src[row]

    def tgt(self, row: int) -> IntArray:
        return self._tgt[row]

    def pairs(self, rows: Sequence[int] | IntArray) -> list[tuple[IntArray, IntArray]]:
        """(source, target) of each row; quicker than one by one where the corpus lies on a disk."""
        return list(zip(self._src.sentences(rows), self._tgt.sentences(rows), strict=True))

    def _side(self, side: str, vocab_size: int | None) -> tuple["_Mapped | _Read", Any]:
        """(sentences, lengths) of a side; ids are looked at where the size of its vocabulary is given."""
        dtype = id_dtype(self.meta[side]["vocab_size"])
        ids, offsets = self._map(f"{side}.bin", dtype), self._map(f"{side}_offsets.bin", "int64")
        if len(offsets) != len(self) + 1 or offsets[0] != 0 or offsets[-1] != len(ids):
            raise Error.DAMAGED(f" does not fit {side}.bin", _REMEDY, file=self.path / f"{side}_offsets.bin")
        # of the bytes that are there, whatever meta.json says
        if vocab_size is not None and (max_id := _largest(ids)) >= vocab_size:
            raise Error.DAMAGED(
                f"{side} ids go up to {max_id}, but the vocabulary has {vocab_size} entries: the folder is damaged, "
                "or was made with another tokenizer",
                _REMEDY,
                file=self.path,
            )
        if self.is_read:
            files = self.path / f"{side}.bin", self.path / f"{side}_offsets.bin"
            return _Read(*files, np.dtype(dtype)), Lengths(files[1])
        return _Mapped(ids, offsets), np.diff(offsets).astype(np.int32)

    def _map(self, name: str, dtype: str) -> IntArray:
        # As a plain array: slices of the memmap class itself cost several times as much.
        return np.asarray(np.memmap(self.path / name, dtype=dtype, mode="r"))


@dataclass(frozen=True)
class _Mapped:
    """The sentences of a side, memory-mapped: the quickest way while all of it may stay in memory."""

    ids: IntArray
    offsets: IntArray

    def __getitem__(self, row: int) -> IntArray:
        return self.ids[self.offsets[row] : self.offsets[row + 1]]

    def sentences(self, rows: Sequence[int] | IntArray) -> list[IntArray]:
        return [self[row] for row in rows]


class _Read:
    """The sentences of a side with very many, each read when it is asked for.

    Of a mapped file a sentence brings up to half a megabyte into the memory of the process: 8 GB after 600 steps.
    """

    def __init__(self, ids: Path, offsets: Path, dtype: "np.dtype[Any]") -> None:
        self._ids, self._offsets = ids.open("rb"), offsets.open("rb")
        for file in (self._ids, self._offsets):
            weakref.finalize(self, file.close)
        self._dtype = dtype

    def __getitem__(self, row: int) -> IntArray:
        return self.sentences([row])[0]

    def sentences(self, rows: Sequence[int] | IntArray) -> list[IntArray]:
        """The sentences of the rows. The disk is told of all before the first is waited for: 7 ms a batch, not 35."""
        size = self._dtype.itemsize
        read = self._parts(self._offsets, [(8 * int(row), 16) for row in rows])
        bounds = [np.frombuffer(part, dtype=np.int64).tolist() for part in read]
        parts = self._parts(self._ids, [(size * begin, size * (end - begin)) for begin, end in bounds])
        return [np.frombuffer(part, dtype=self._dtype) for part in parts]

    def _parts(self, file: IO[bytes], places: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes at each (offset, number of bytes) of a file."""
        if hasattr(os, "posix_fadvise"):  # not on macOS
            for offset, count in places:
                os.posix_fadvise(file.fileno(), offset, count, os.POSIX_FADV_WILLNEED)
        if hasattr(os, "pread"):
            return [os.pread(file.fileno(), count, offset) for offset, count in places]
        with open(file.name, "rb") as own:  # Windows: several threads may read
            return [own.read(count) for offset, count in places if own.seek(offset) == offset]


class Lengths:
    """The lengths of very many rows, computed from a file of offsets on demand. The file is read, not mapped: after a
    walk through a mapped file all of it would be in memory.
    """

    def __init__(self, offsets: Path) -> None:
        self._offsets = offsets
        self._len = offsets.stat().st_size // 8 - 1

    def __len__(self) -> int:
        return self._len

    def __getitem__(self, rows: slice) -> IntArray:
        begin, end, step = rows.indices(len(self))
        assert step == 1, "lengths of neighbouring rows"
        offsets = np.fromfile(self._offsets, dtype=np.int64, count=max(0, end - begin) + 1, offset=8 * begin)
        return np.diff(offsets).astype(np.int32)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> IntArray:
        return self[:].astype(dtype) if dtype is not None else self[:]


def _largest(ids: IntArray) -> int:
    """The largest id; of very many, the largest in blocks all over the file: reading all takes minutes."""
    if len(ids) <= MAX_CHECKED_IDS:
        return int(ids.max(initial=0))
    block = MAX_CHECKED_IDS // 64
    starts = np.linspace(0, len(ids) - block, 64).astype(np.int64)
    return max(int(ids[start : start + block].max()) for start in starts)


def prepare(
    source: Source,
    tokenizers: TokenizerPair,
    dir: str | Path,
    *,
    normalize: str,
    max_tokens: int,
    workers: int,
    languages: tuple[str, str] = ("src", "tgt"),
    cut: bool = False,
) -> tuple[IdCorpus, PrepareReport]:
    """Encode the pairs of a source into the folder `dir`, or find that it holds exactly these already.

    A pair with a blank side, or with more than `max_tokens` on either side, is dropped as a pair and counted; with
    `cut` a side that is too long loses its end instead. A large corpus is encoded by `workers` processes; its pairs
    stay in their order all the same. What is encoded of a very large one is kept when the work is killed: the next call
    goes on from there.

    Raises DragomanError for what the reader of `source` refuses, when no pair is left, and when `dir` holds something
    else. After an error or Ctrl-C while reading or encoding, `dir` is as it was.
    """
    started = time.monotonic()
    path = Path(dir)
    title = f"encoding {path.name}"
    _refuse_foreign(path)
    vocab_sizes = tokenizers.src.vocab_size, tokenizers.tgt.vocab_size
    with contextlib.ExitStack() as stack:
        with writing("the temporary folder (TMPDIR)"):
            tokenizer_dir = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-")))
        save_tokenizers(tokenizers, tokenizer_dir)
        before = _states(source)
        more = [*(languages if tokenizers.languages else ()), *(["cut"] if cut else [])]
        identity = _identity(source, tokenizer_dir, normalize, max_tokens, more)
        reused = _holds(path, identity)
        if not reused:
            encoder = Encoder(tokenizers, normalize, max_tokens, languages, cut)
            building = _Building(path.resolve(), vocab_sizes, identity, title)
            pairs = itertools.islice(source.pairs(), building.read, None)
            with contextlib.closing(encode(pairs, encoder, tokenizer_dir, workers)) as chunks:
                building.write(chunks, lambda: _refuse(building, source, before))
    corpus = IdCorpus(path, vocab_sizes)
    return corpus, PrepareReport(**corpus.meta["report"], reused=reused, seconds=time.monotonic() - started)


def _identity(source: Source, tokenizer_dir: Path, normalize: str, max_tokens: int, more: Sequence[str]) -> str:
    """SHA-256 over everything that decides what the ids are."""
    files = sorted(path for path in tokenizer_dir.rglob("*") if path.is_file())
    tokenizer = [
        (path.relative_to(tokenizer_dir).as_posix(), hashlib.sha256(path.read_bytes()).hexdigest()) for path in files
    ]
    parts = [FORMAT, fingerprint(source), tokenizer, normalize, max_tokens, *more]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _holds(path: Path, identity: str) -> bool:
    try:
        return bool(_read_meta(path)["fingerprint"] == identity)
    except DragomanError:
        return False


def _read_meta(path: Path) -> dict[str, Any]:
    """The description of a store. Raises DragomanError when it, or a file that it describes, is missing or damaged."""
    try:
        meta: dict[str, Any] = {"format": None, **json.loads((path / META).read_text(encoding="utf-8"))}
        sizes = {name: int(meta["files"][name]) for name in FILES}
    except OSError as error:
        raise Error.CANNOT_READ(f"cannot be read ({error.strerror})", _REMEDY, file=path / META) from error
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise Error.DAMAGED(" is damaged", _REMEDY, file=path / META) from error
    if meta["format"] != FORMAT:
        raise Error.OTHER_VERSION(" was prepared by another version of dragoman", _REMEDY, file=path)
    for name, size in sizes.items():
        actual = (path / name).stat().st_size if (path / name).is_file() else None
        if actual != size:
            state = "is missing" if actual is None else f"has {actual:,} bytes instead of {size:,}: it is damaged"
            raise Error.DAMAGED(f" {state}", _REMEDY, file=path / name)
    return meta


def _refuse_foreign(path: Path) -> None:
    """A folder that is rebuilt is deleted first, so it must hold nothing but a prepared corpus."""
    if path.exists() and not path.is_dir():
        raise Error.WRONG_FILE_TYPE(" is a file", "name a folder for the prepared corpus", file=path)
    there = {entry.name for entry in path.iterdir() if not entry.name.startswith(".")} if path.exists() else set()
    foreign = sorted(there - {META, *FILES})  # those with a dot are of file managers
    if foreign:
        raise Error.ALREADY_THERE(
            f" holds other things ({foreign[0]})", "name a new folder for the prepared corpus", file=path
        )


def _states(source: Source) -> list[tuple[Path, int, int]]:
    """(file, size, time of the last change) of each file of a source."""
    states = []
    for path in files_of(source):
        with reporting_os_errors(path):
            state = container(path).stat()
            states.append((path, state.st_size, state.st_mtime_ns))
    return states


def _refuse(building: "_Building", source: Source, before: list[tuple[Path, int, int]]) -> None:
    """Raises DragomanError when all pairs were dropped, and when a file is not what it was `before` it was read: the
    store would not hold the text whose name it has."""
    if not building.kept:
        origin = " and ".join(map(show, files_of(source))) or f"the {source.type} corpus"
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in building.dropped.items())
        raise Error.EMPTY(
            f"{building.title}: no sentence pair of {origin} is left ({reasons or 'the source is empty'})",
            "check the files and corpus.max_tokens",
        )
    for old, new in zip(before, _states(source), strict=True):
        if old != new:
            raise Error.CHANGED(" changed while it was read", "start again when nothing writes to it", file=old[0])


class _Building:
    """A store that is being written, in a folder beside its place, with a note of how far it is every `SAVE_PAIRS`."""

    def __init__(self, path: Path, vocab_sizes: tuple[int, int], identity: str, title: str) -> None:
        self.path, self.identity, self.title = path, identity, title
        self.folder = path.with_name(path.name + ".part")
        self.dropped: Counter[str] = Counter()
        self.kept = 0
        self.sides = {side: _SideCounts(size) for side, size in zip(("src", "tgt"), vocab_sizes, strict=True)}
        self.sizes = dict.fromkeys(FILES, 0)
        if not self._goes_on():
            with writing(path):
                atomic_io.remove(self.folder)
                self.folder.mkdir(parents=True)

    @property
    def read(self) -> int:
        """The number of pairs that are done, including dropped pairs."""
        return self.kept + self.dropped.total()

    def _goes_on(self) -> bool:
        """Go on with the files of a call that was killed, if it stored the same pairs and its files are whole."""
        try:
            note = json.loads((self.folder / PROGRESS).read_text(encoding="utf-8"))
            sizes = {name: int(note["sizes"][name]) for name in FILES}
            whole = all((self.folder / name).stat().st_size >= size for name, size in sizes.items())
            if note["fingerprint"] != self.identity or not whole:
                return False
            self.sides = {side: _SideCounts(**note["sides"][side]) for side in self.sides}
            self.dropped, self.kept, self.sizes = Counter(note["dropped"]), int(note["kept"]), sizes
        except (OSError, ValueError, KeyError, TypeError):
            return False
        say(f"{self.title}: going on after {self.read:,} pairs")
        return True

    def write(self, chunks: Iterable[Chunk], check: Callable[[], None]) -> None:
        """Append chunk after chunk to the files, `check` what came out, and publish the folder under its name."""
        try:
            with writing(self.path):
                self._append(chunks)
                check()
                report = {
                    "pairs_read": self.read,
                    "pairs_kept": self.kept,
                    "dropped": dict(sorted(self.dropped.items())),
                }
                for side, counts in self.sides.items():
                    report |= {f"{side}_tokens": counts.tokens, f"{side}_unknown": counts.unknown}
                meta = {"format": FORMAT, "fingerprint": self.identity, "report": report}
                meta |= {side: asdict(counts) for side, counts in self.sides.items()}
                meta["files"] = {name: (self.folder / name).stat().st_size for name in FILES}
                atomic_io.write_text(self.folder / META, json.dumps(meta, indent=1, ensure_ascii=False))
                (self.folder / PROGRESS).unlink(missing_ok=True)
                atomic_io.publish(self.folder, self.path)
        except BaseException as error:
            # Ctrl-C in long work loses nothing of it; what is wrong with the corpus is wrong with what is done, too.
            if isinstance(error, DragomanError) or not (self.folder / PROGRESS).exists():
                atomic_io.remove(self.folder)
            raise

    def _append(self, chunks: Iterable[Chunk]) -> None:
        with contextlib.ExitStack() as stack:
            files = {name: stack.enter_context((self.folder / name).open("ab")) for name in FILES}
            for name, file in files.items():
                file.truncate(self.sizes[name])
            if not self.read:
                for side in self.sides:
                    files[f"{side}_offsets.bin"].write(np.zeros(1, dtype=np.int64).tobytes())
            progress = stack.enter_context(Progress(self.title, total=None, done=self.read))
            noted = self.read
            for chunk in chunks:
                for side, part in (("src", chunk.src), ("tgt", chunk.tgt)):
                    files[f"{side}_offsets.bin"].write(self.sides[side].add(part).tobytes())
                    files[f"{side}.bin"].write(part.ids.tobytes())
                files["lines.bin"].write(chunk.lines.tobytes())
                self.dropped += chunk.dropped
                self.kept += len(chunk.lines)
                progress.advance(len(chunk.lines) + chunk.dropped.total(), dropped=f"{self.dropped.total():,}")
                if self.read - noted >= SAVE_PAIRS:
                    noted = self.read
                    self._note(files)

    def _note(self, files: Mapping[str, IO[bytes]]) -> None:
        for file in files.values():
            file.flush()
            os.fsync(file.fileno())
        note = {
            "fingerprint": self.identity,
            "kept": self.kept,
            "dropped": self.dropped,
            "sides": {side: asdict(counts) for side, counts in self.sides.items()},
            "sizes": {name: file.tell() for name, file in files.items()},
        }
        atomic_io.replace_text(self.folder / PROGRESS, json.dumps(note))


@dataclass
class _SideCounts:
    """State of a side while it is written."""

    vocab_size: int
    tokens: int = 0
    unknown: int = 0
    max_id: int = 0

    def add(self, side: Side) -> IntArray:
        """Count a part of the side; the offsets at which its sentences end."""
        ends: IntArray = self.tokens + np.cumsum(side.lengths)
        self.tokens += len(side.ids)
        self.unknown += int((side.ids == UNK_ID).sum())
        self.max_id = max(self.max_id, int(side.ids.max(initial=0)))
        return ends
