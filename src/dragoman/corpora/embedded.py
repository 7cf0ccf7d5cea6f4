"""The embedded corpus: made-up sentence pairs that come with the package, German-English and Chinese-English.

The same pair, split, size and seed give the same bytes everywhere. Seed 1 gives the pairs in the order of the data
files. Any other seed draws from the same files: of training a block of 20,000 pairs (there are three) in an order of
its own, then the next block; of a held-out split the pairs in another order. Training has no end: after the last
block come all blocks again, in a new order. Held-out sentences combine words that training shows only apart, and every
word form of them is in each block. `benchmarks/embedded_corpus` has the grammars that made the files.

>>> for german, english in sentences("de-en", "train", size=2):
...     print(german, "|", english)
ich möchte ein bier | i want a beer
ich möchte eine cola | i want a coke
"""

import bz2
import contextlib
import filecmp
import functools
import itertools
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

from dragoman.errors import Error, writing
from dragoman.runs import atomic_io

SIZES = {"train": 20_000, "valid": 500, "test": 1_000}
"""Number of pairs of a split unless told otherwise."""

LIMITS = {"valid": 5_000, "test": 10_000}
"""Number of pairs that a held-out split can give: its sources are all different. Training has no end."""

PAIRS = {"de-en": "de-en", "zh-en": "zh-en", "en-de": "de-en", "en-zh": "zh-en"}
"""Every pair, and the data files that have it; the last two read their files from the other side."""

_FOLDER = Path(__file__).parent / "embedded_text"
_BLOCK = 20_000

Texts = tuple[str, str]


def sentences(pair: str = "de-en", split: str = "train", size: int | None = None, seed: int = 1) -> Iterator[Texts]:
    """Source and target sentences, one pair after another.

    Raises DragomanError for a pair or split that does not exist and for a size that a split cannot give.
    """
    if pair not in PAIRS:
        raise Error.UNKNOWN_NAME(f"embedded corpus: no pair {pair!r}", f"known: {', '.join(PAIRS)}")
    if split not in SIZES:
        raise Error.UNKNOWN_NAME(f"embedded corpus: no split {split!r}", f"known: {', '.join(SIZES)}")
    size = SIZES[split] if size is None else size
    if size < 1:
        raise Error.OUT_OF_RANGE(f"embedded corpus: size {size}", "ask for 1 pair or more")
    if size > LIMITS.get(split, size):
        raise Error.OUT_OF_RANGE(
            f"embedded corpus: size {size}: the {split} split has {LIMITS[split]} pairs", "ask for fewer"
        )
    # checked above, when called; only the stream itself waits for its first reader
    return itertools.islice(_training(pair, seed) if split == "train" else _held_out(pair, split, seed), size)


def write(dir: Path, pair: str = "de-en", seed: int = 1, sizes: dict[str, int] | None = None) -> list[Path]:
    """Write `train.de`, `train.en`, `valid.de` and so on (UTF-8, LF) and return their paths.

    `sizes` names the splits to write; without it all three are written at their usual sizes. Raises DragomanError where
    a file of such a name is there with other content; then nothing has changed.
    """
    streams = {split: sentences(pair, split, size, seed) for split, size in (SIZES if sizes is None else sizes).items()}
    paths = {split: [dir / f"{split}.{language}" for language in pair.split("-")] for split in streams}
    with writing(dir), contextlib.ExitStack() as stack:
        dir.mkdir(parents=True, exist_ok=True)
        for split, stream in streams.items():
            drafts = [stack.enter_context(atomic_io.replaced(path)) for path in paths[split]]
            sides = [draft.open("w", encoding="utf-8", newline="\n") for draft in drafts]
            with sides[0], sides[1]:
                for texts in stream:
                    for side, text in zip(sides, texts, strict=True):
                        side.write(text + "\n")
            for draft, path in zip(drafts, paths[split], strict=True):
                if path.exists() and not filecmp.cmp(draft, path, shallow=False):
                    raise Error.ALREADY_THERE("is there already, with other content", "name another folder", file=path)
    return [path for of_split in paths.values() for path in of_split]


def _read(pair: str, split: str) -> Iterator[Texts]:
    with bz2.open(_FOLDER / f"{PAIRS[pair]}.{split}.tsv.bz2", "rt", encoding="utf-8", newline="\n") as lines:
        for line in lines:
            source, target = line.rstrip("\n").split("\t")
            yield (source, target) if pair == PAIRS[pair] else (target, source)


def _training(pair: str, seed: int) -> Iterator[Texts]:
    if seed == 1:
        yield from _read(pair, "train")
    pairs = _all_training(pair)
    rng = random.Random(f"{PAIRS[pair]} train {seed}")
    for number in itertools.count(seed - 1):
        first = number * _BLOCK % len(pairs)
        yield from _shuffled(pairs[first : first + _BLOCK], rng)


@functools.lru_cache(maxsize=1)
def _all_training(pair: str) -> list[Texts]:
    """All pairs of the training file, which takes a second to read: for corpora of other seeds, one after another."""
    return list(_read(pair, "train"))


def _held_out(pair: str, split: str, seed: int) -> Iterator[Texts]:
    """Every source once, so that a score counts each sentence once."""
    pairs: Iterable[Texts] = _read(pair, split)
    if seed != 1:
        pairs = _shuffled(list(pairs), random.Random(f"{PAIRS[pair]} {split} {seed}"))
    seen = set()
    for source, target in pairs:
        if source not in seen:
            seen.add(source)
            yield source, target


def _shuffled(pairs: list[Texts], rng: random.Random) -> list[Texts]:
    """The pairs in an order that is the same in every version of Python, which `shuffle` does not promise."""
    return sorted(pairs, key=lambda _: rng.random())
