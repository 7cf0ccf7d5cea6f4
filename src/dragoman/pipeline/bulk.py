"""Bulk translation: a file of any number of lines, in blocks that any number of workers share, each exactly once.

    OUT/manifest.json        what is translated, by what: lines and SHA-256 of the input, weights, decoding
    OUT/blocks/00000017.txt  a block that is done; written beside its place and renamed
    OUT/blocks/00000017.lock held by the worker that is at it
    OUT/BIG.txt              all of it, once the last block is done; then `blocks` is gone

A worker takes the next block that is neither done nor held. The operating system holds a lock as long as the process
lives, so the blocks of one that was killed are free again. Translations do not depend on their batch (docs), so where
blocks begin and who translates them makes no difference to any byte.
"""

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from dragoman.errors import Error, writing
from dragoman.progress import Progress, say
from dragoman.runs import atomic_io
from dragoman.runs.lock import held
from dragoman.text.lines import COMPRESSIONS, read_lines

BLOCK_LINES = 10_000
MANIFEST = "manifest.json"
BLOCKS = "blocks"
WAIT_S = 0.5
"""Between looks whether the blocks that other workers are at are done."""

Translate = Callable[[int, list[str]], list[str]]
"""The output for each of some lines, line ends included; the first number is that of the first line, from 1."""


@dataclass(frozen=True)
class Manifest:
    """The identity of the work: equal for all workers that share it."""

    input: str
    lines: int
    sha256: str
    """Bytes of the lines, uncompressed, each with one line feed."""
    decoding: str
    """SHA-256 over the weights and all options that a translation depends on."""
    block_lines: int

    @property
    def blocks(self) -> int:
        return -(-self.lines // self.block_lines)


def output_name(source: Path) -> str:
    """The name of the translation: the name of the text, without the ending of its compression."""
    return source.stem if source.suffix in COMPRESSIONS else source.name


def shard_of(text: str) -> tuple[int, int]:
    """`2/8`, the second of eight shards, as (its number from 0, how many there are). Raises DragomanError.

    >>> shard_of("2/8")
    (1, 8)
    """
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise Error.WRONG_OPTION(f"`shard` {text}", "write it as 1/8 to 8/8")
    return int(number) - 1, int(count)


class Work:
    """A translation that several workers share, in the folder `folder`."""

    def __init__(self, source: Path, folder: Path, decoding: str, block_lines: int = BLOCK_LINES) -> None:
        """Begin, or join what has begun. Raises DragomanError where the folder holds the work of something else."""
        self.source, self.folder = source, folder
        self.output = folder / output_name(source)
        if self.output.exists() and source.exists() and self.output.samefile(source):
            raise Error.SAME_FILE(
                "is the text that is read, and would be lost", "name another folder", file=self.output
            )
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        with held(folder / "manifest.lock"):
            self.manifest = self._described(decoding, block_lines)

    def _described(self, decoding: str, block_lines: int) -> Manifest:
        path = self.folder / MANIFEST
        fields = atomic_io.read_json(path, dict) if path.exists() else None
        lines, digest = _counted(self.source)
        manifest = Manifest(self.source.name, lines, digest, decoding, block_lines)
        if fields is None:
            with writing(path):
                atomic_io.replace_text(path, atomic_io.to_json(asdict(manifest)))
        elif {name: fields.get(name) for name in asdict(manifest)} != asdict(manifest):
            other = next(name for name, value in asdict(manifest).items() if fields.get(name) != value)
            what = {"decoding": "weights or options", "block_lines": "size of blocks"}.get(other, f"input ({other})")
            raise Error.OTHER_CONTENT(
                f"holds a translation of another {what}", "name another folder with -o", file=self.folder
            )
        return manifest

    @property
    def is_done(self) -> bool:
        return self.output.exists()

    def path(self, block: int) -> Path:
        return self.folder / BLOCKS / f"{block:08d}.txt"

    def left(self, shard: tuple[int, int] = (0, 1)) -> list[int]:
        """The blocks of a shard that are not done."""
        if self.is_done:
            return []
        number, count = shard
        return [block for block in range(number, self.manifest.blocks, count) if not self.path(block).exists()]

    @contextlib.contextmanager
    def claimed(self, block: int) -> Iterator[bool]:
        """True if this worker alone may do the block now; it is not done."""
        folder = self.folder / BLOCKS
        if self.is_done:
            yield False
            return
        folder.mkdir(exist_ok=True)
        with held(folder / f"{block:08d}.lock", wait=False) as mine:
            yield mine and not self.path(block).exists() and not self.is_done

    def write(self, block: int, texts: list[str], count: int) -> None:
        """Store what a block of `count` lines was translated to."""
        assert len(texts) == count, "an output for each line"
        with writing(self.path(block)):
            atomic_io.replace_text(self.path(block), "".join(texts))

    def join(self) -> bool:
        """Put the blocks together if all are there; True where the whole is."""
        with held(self.folder / "manifest.lock"):
            if self.is_done:
                return True
            paths = [self.path(block) for block in range(self.manifest.blocks)]
            if not all(path.exists() for path in paths):
                return False
            digest = hashlib.sha256()
            with writing(self.output), atomic_io.replaced(self.output) as partial, partial.open("wb") as file:
                for path in paths:
                    data = path.read_bytes()
                    digest.update(data)
                    file.write(data)
            record = {**asdict(self.manifest), "output": self.output.name, "output_sha256": digest.hexdigest()}
            atomic_io.replace_text(self.folder / MANIFEST, atomic_io.to_json(record))
        atomic_io.remove(self.folder / BLOCKS)
        return True


class Blocks:
    """The blocks of a text, read once in their order; from the start again where an earlier one is asked for."""

    def __init__(self, source: Path, block_lines: int) -> None:
        self.source, self.block_lines = source, block_lines
        self._lines: Iterator[str] = iter(())
        self._next = -1

    def __getitem__(self, block: int) -> list[str]:
        if self._next < 0 or block < self._next:
            self._lines, self._next = read_lines(self.source, may_be_empty=True), 0
        while True:
            lines = [line for _, line in zip(range(self.block_lines), self._lines, strict=False)]
            self._next += 1
            if self._next > block:
                return lines


def do_block(work: Work, blocks: Blocks, block: int, translate: Translate) -> int:
    """Translate a block unless it is done or another worker is at it; the lines that were translated."""
    with work.claimed(block) as mine:
        if not mine:
            return 0
        lines = blocks[block]
        work.write(block, translate(1 + block * work.manifest.block_lines, lines), len(lines))
        return len(lines)


def run_worker(work: Work, translate: Translate, shard: tuple[int, int] | None = None) -> None:
    """Translate blocks until no block is left. Without a shard, wait until all blocks are done, also the blocks of
    other workers."""
    blocks, manifest = Blocks(work.source, work.manifest.block_lines), work.manifest
    todo = work.left(shard or (0, 1))
    done = manifest.lines - len(todo) * manifest.block_lines if shard is None else 0
    with Progress(
        f"translating {work.source.name}", manifest.lines if shard is None else None, done=max(0, done)
    ) as bar:
        while todo:
            count = 0
            for block in todo:
                lines = do_block(work, blocks, block, translate)
                count += lines
                bar.advance(lines)
            todo = work.left(shard or (0, 1))
            if todo and not count:
                time.sleep(WAIT_S)  # others are at them; if one dies, its block is taken here
    finish(work)


def finish(work: Work) -> None:
    """Put the blocks together if all are there, and say what has become of them."""
    if work.join():
        atomic_io.remove(work.folder / BLOCKS)  # where one that came late has made it again
        say(f"{work.output}: {work.manifest.lines:,} lines")
    else:
        say(f"{work.folder}: this shard is done; the last of the others puts all together")


def _counted(source: Path) -> tuple[int, str]:
    """(lines, SHA-256 of them)."""
    digest, count = hashlib.sha256(), 0
    with Progress(f"counting {source.name}", None) as bar:
        for line in read_lines(source, may_be_empty=True):
            digest.update(line.encode() + b"\n")
            count += 1
            bar.advance()
    return count, digest.hexdigest()
