"""Token ids of a corpus on disk: encoded once, and memory-mapped ever after.

Five million pairs do not fit into memory as Python lists, and must not be tokenized again at each start. `prepare`
streams pairs through the tokenizers into a folder of flat arrays; `IdCorpus` maps them. The folder appears under its
name only when it is complete, and serves again for as long as corpus, tokenizers and settings are the same.
"""

import contextlib
import hashlib
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.data.encode import Chunk, Encoder, IntArray, Side, encode, id_dtype
from dragoman.errors import DragomanError, writing
from dragoman.progress import Progress
from dragoman.runs import atomic_io
from dragoman.text.corpus import Source
from dragoman.text.lines import container, reporting_os_errors, show
from dragoman.text.sources.base import files_of, fingerprint
from dragoman.text.tokenizers.base import UNK_ID
from dragoman.text.tokenizers.pair import TokenizerPair, save_tokenizers

FORMAT = 1
META = "meta.json"
FILES = ("src.bin", "src_offsets.bin", "tgt.bin", "tgt_offsets.bin", "lines.bin")

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
    """True if an earlier preparation served; the counts are those of that time."""
    seconds: float
    """Duration of this call."""


class IdCorpus:
    """The ids of one split, memory-mapped: `src(row)` and `tgt(row)` are read-only arrays, without specials.

    Raises DragomanError when the folder is no complete prepared corpus, or (where the `vocab_sizes` of source and
    target are given) when it holds ids that a vocabulary does not have.
    """

    def __init__(self, path: str | Path, vocab_sizes: tuple[int, int] | None = None) -> None:
        self.path = Path(path)
        self.meta = _read_meta(self.path)
        self.lines = self._map("lines.bin", "int64")
        """The line of each row in its corpus, counted from 1."""
        self._src, self._src_offsets, self.src_lengths = self._side("src")
        self._tgt, self._tgt_offsets, self.tgt_lengths = self._side("tgt")
        for side, ids, size in zip(("src", "tgt"), (self._src, self._tgt), vocab_sizes or (), strict=False):
            if (max_id := int(ids.max(initial=0))) >= size:  # of the bytes that are there, whatever meta.json says
                raise DragomanError(
                    f"{self.path}: {side} ids go up to {max_id}, but the vocabulary has {size} entries: the folder is "
                    f"damaged, or was made with another tokenizer; {_REMEDY}"
                )

    def __len__(self) -> int:
        return len(self.lines)

    def src(self, row: int) -> IntArray:
        return self._src[self._src_offsets[row] : self._src_offsets[row + 1]]

    def tgt(self, row: int) -> IntArray:
        return self._tgt[self._tgt_offsets[row] : self._tgt_offsets[row + 1]]

    def _side(self, side: str) -> tuple[IntArray, IntArray, IntArray]:
        """(ids, offsets, lengths) of a side."""
        ids = self._map(f"{side}.bin", id_dtype(self.meta[side]["vocab_size"]))
        offsets = self._map(f"{side}_offsets.bin", "int64")
        if len(offsets) != len(self) + 1 or offsets[0] != 0 or offsets[-1] != len(ids):
            raise DragomanError(f"{self.path / f'{side}_offsets.bin'} does not fit {side}.bin: {_REMEDY}")
        return ids, offsets, np.diff(offsets).astype(np.int32)

    def _map(self, name: str, dtype: str) -> IntArray:
        # As a plain array: slices of the memmap class itself cost several times as much.
        return np.asarray(np.memmap(self.path / name, dtype=dtype, mode="r"))


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
    stay in their order all the same.

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
            with contextlib.closing(encode(source.pairs(), encoder, tokenizer_dir, workers)) as chunks:
                checked = _unchanged(_not_empty(chunks, source, title), source, before)
                _write(checked, path.resolve(), vocab_sizes, identity, title)
    corpus = IdCorpus(path, vocab_sizes)
    return corpus, PrepareReport(**corpus.meta["report"], reused=reused, seconds=time.monotonic() - started)


def _identity(source: Source, tokenizer_dir: Path, normalize: str, max_tokens: int, more: Sequence[str]) -> str:
    """SHA-256 over everything that decides what the ids are."""
    files = sorted(path for path in tokenizer_dir.rglob("*") if path.is_file())
    tokenizer = [
        (str(path.relative_to(tokenizer_dir)), hashlib.sha256(path.read_bytes()).hexdigest()) for path in files
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
        raise DragomanError(f"{path / META}: cannot be read ({error.strerror}): {_REMEDY}") from error
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise DragomanError(f"{path / META} is damaged: {_REMEDY}") from error
    if meta["format"] != FORMAT:
        raise DragomanError(f"{path} was prepared by another version of dragoman: {_REMEDY}")
    for name, size in sizes.items():
        found = (path / name).stat().st_size if (path / name).is_file() else None
        if found != size:
            state = "is missing" if found is None else f"has {found:,} bytes instead of {size:,}: it is damaged"
            raise DragomanError(f"{path / name} {state}: {_REMEDY}")
    return meta


def _refuse_foreign(path: Path) -> None:
    """A folder that is rebuilt is deleted first, so it must hold nothing but a prepared corpus."""
    if path.exists() and not path.is_dir():
        raise DragomanError(f"{path} is a file: name a folder for the prepared corpus")
    there = {entry.name for entry in path.iterdir() if not entry.name.startswith(".")} if path.exists() else set()
    foreign = sorted(there - {META, *FILES})  # those with a dot are of file managers
    if foreign:
        raise DragomanError(f"{path} holds other things ({foreign[0]}): name a new folder for the prepared corpus")


def _not_empty(chunks: Iterator[Chunk], source: Source, title: str) -> Iterator[Chunk]:
    """The chunks again. Raises DragomanError at their end when all of their pairs were dropped."""
    kept, dropped = 0, Counter[str]()
    for chunk in chunks:
        kept += len(chunk.lines)
        dropped += chunk.dropped
        yield chunk
    if not kept:
        origin = " and ".join(map(show, files_of(source))) or f"the {source.type} corpus"
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in dropped.items()) or "the source is empty"
        raise DragomanError(
            f"{title}: no sentence pair of {origin} is left ({reasons}): check the files and corpus.max_tokens"
        )


def _states(source: Source) -> list[tuple[Path, int, int]]:
    """(file, size, time of the last change) of each file of a source."""
    found = []
    for path in files_of(source):
        with reporting_os_errors(path):
            state = container(path).stat()
            found.append((path, state.st_size, state.st_mtime_ns))
    return found


def _unchanged(chunks: Iterator[Chunk], source: Source, before: list[tuple[Path, int, int]]) -> Iterator[Chunk]:
    """The chunks again. Raises DragomanError at their end when a file is not what it was `before` it was read: the
    store would be kept as that of a text that it does not hold.
    """
    yield from chunks
    for old, new in zip(before, _states(source), strict=True):
        if old != new:
            raise DragomanError(f"{show(old[0])} changed while it was read: start again when nothing writes to it")


def _write(chunks: Iterator[Chunk], path: Path, vocab_sizes: tuple[int, int], identity: str, title: str) -> None:
    """Write the store atomically."""
    with writing(path), atomic_io.replaced(path) as building:
        building.mkdir(parents=True)
        meta = {"format": FORMAT, "fingerprint": identity, **_write_arrays(chunks, building, vocab_sizes, title)}
        meta["files"] = {name: (building / name).stat().st_size for name in FILES}
        (building / META).write_text(json.dumps(meta, indent=1, ensure_ascii=False), encoding="utf-8")


def _write_arrays(chunks: Iterator[Chunk], path: Path, vocab_sizes: tuple[int, int], title: str) -> dict[str, Any]:
    """Append chunk after chunk to the files; what `meta.json` says of them."""
    dropped: Counter[str] = Counter()
    kept = 0
    with contextlib.ExitStack() as stack:
        files = {name: stack.enter_context((path / name).open("wb")) for name in FILES}
        sides = {side: _SideCounts(size) for side, size in zip(("src", "tgt"), vocab_sizes, strict=True)}
        for side in sides:
            files[f"{side}_offsets.bin"].write(np.zeros(1, dtype=np.int64).tobytes())
        progress = stack.enter_context(Progress(title, total=None))
        for chunk in chunks:
            for side, part in (("src", chunk.src), ("tgt", chunk.tgt)):
                files[f"{side}_offsets.bin"].write(sides[side].add(part).tobytes())
                files[f"{side}.bin"].write(part.ids.tobytes())
            files["lines.bin"].write(chunk.lines.tobytes())
            dropped += chunk.dropped
            kept += len(chunk.lines)
            progress.advance(len(chunk.lines) + chunk.dropped.total(), dropped=f"{dropped.total():,}")
    report = {"pairs_read": kept + dropped.total(), "pairs_kept": kept, "dropped": dict(sorted(dropped.items()))}
    for side, counts in sides.items():
        report |= {f"{side}_tokens": counts.tokens, f"{side}_unknown": counts.unknown}
    return {"report": report, **{side: asdict(counts) for side, counts in sides.items()}}


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
