"""The embedded corpus: sentence pairs from small synchronous grammars of our own, German-English and Chinese-English.

It needs no file and no network, streams without end, and the same pair, split and seed give the same bytes
everywhere. Test sentences combine what training shows only apart.

>>> for german, english in sentences("de-en", "train", size=2):
...     print(german, "|", english)
ich möchte ein bier | i want a beer
ich möchte eine cola | i want a coke
"""

import contextlib
import filecmp
import functools
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from dragoman.corpora.embedded import chinese_sentences, german_sentences
from dragoman.corpora.embedded.grammar import Derivation, split_of
from dragoman.errors import DragomanError, writing
from dragoman.runs import atomic_io

SPLITS = ("train", "valid", "test")
SIZES = {"train": 20_000, "valid": 500, "test": 1_000}
"""Number of pairs of a split unless told otherwise."""

LIMITS = {"valid": 5_000, "test": 10_000}
"""Number of pairs that a held-out split can give: its sources are all different. Training has no end."""

_CLASSIC_EVERY = 100
"""After the classics themselves, one of them again at every hundredth line of training: enough to be learnt."""

_FAMILIAR = 3
"""A held-out sentence keeps to word forms that the usual training pairs of its seed show at least so often."""

_WORD = re.compile(r"[\w'-]+")


class _Deriver(Protocol):
    def derive(self) -> Derivation: ...


class Pair(NamedTuple):
    """One direction of one grammar, from `source` to `target` as the grammar tells them."""

    source: str
    target: str
    grammar: Callable[[random.Random], _Deriver]
    classics: tuple[tuple[str, str], ...]
    reversed: bool = False


def sentences(
    pair: str = "de-en", split: str = "train", size: int | None = None, seed: int = 1
) -> Iterator[tuple[str, str]]:
    """Source and target sentences, one pair after another, in constant memory for training at any size.

    Raises DragomanError for a pair or split that does not exist and for a size that a split cannot give.
    """
    direction = _direction(pair)
    wanted = _size(split, SIZES.get(split, 0) if size is None else size)
    # checked above, when called; only the stream itself waits for its first reader
    derived = _training(direction, wanted, seed) if split == "train" else _held_out(direction, split, wanted, seed)
    return ((target, source) for source, target in derived) if direction.reversed else derived


def write(dir: Path, pair: str = "de-en", seed: int = 1, sizes: dict[str, int] | None = None) -> list[Path]:
    """Write `train.de`, `train.en`, `valid.de` and so on (UTF-8, LF) and return their paths.

    `sizes` names the splits to write; without it all three are written at their usual sizes. Raises DragomanError where
    a file of such a name is there with other content; then nothing has changed.
    """
    _direction(pair)
    languages = pair.split("-")
    streams = {split: sentences(pair, split, size, seed) for split, size in (SIZES if sizes is None else sizes).items()}
    paths = {split: [dir / f"{split}.{language}" for language in languages] for split in streams}
    with writing(dir), contextlib.ExitStack() as stack:
        dir.mkdir(parents=True, exist_ok=True)
        for split, stream in streams.items():
            drafts = [stack.enter_context(atomic_io.replaced(path)) for path in paths[split]]
            sides = [draft.open("w", encoding="utf-8", newline="\n") for draft in drafts]
            with sides[0], sides[1]:
                for pair_of_texts in stream:
                    for side, text in zip(sides, pair_of_texts, strict=True):
                        side.write(text + "\n")
            for draft, path in zip(drafts, paths[split], strict=True):
                if path.exists() and not filecmp.cmp(draft, path, shallow=False):
                    raise DragomanError(f"{path}: is there already, with other content: name another folder")
    return [path for of_split in paths.values() for path in of_split]


def _direction(pair: str) -> Pair:
    if pair not in PAIRS:
        raise DragomanError(f"embedded corpus: no pair {pair!r}: known: {', '.join(PAIRS)}")
    return PAIRS[pair]


def _size(split: str, size: int) -> int:
    if split not in SPLITS:
        raise DragomanError(f"embedded corpus: no split {split!r}: known: {', '.join(SPLITS)}")
    if size < 1:
        raise DragomanError(f"embedded corpus: size {size}: ask for 1 pair or more")
    if size > LIMITS.get(split, size):
        raise DragomanError(f"embedded corpus: size {size}: the {split} split has {LIMITS[split]} pairs; ask for fewer")
    return size


def _derivations(direction: Pair, split: str, seed: int) -> Iterator[tuple[str, str]]:
    """Endless sentence pairs of one split."""
    grammar = direction.grammar(random.Random(f"{direction.source}-{direction.target} {split} {seed}"))
    while True:
        source, target, combinations = grammar.derive()
        if split_of(combinations) == split:
            yield source, target


def _training(direction: Pair, size: int, seed: int) -> Iterator[tuple[str, str]]:
    stream = _derivations(direction, "train", seed)
    classics = direction.classics
    for line in range(size):
        if line < len(classics):
            yield classics[line]
        elif line % _CLASSIC_EVERY == 0:
            yield classics[line // _CLASSIC_EVERY % len(classics)]
        else:
            yield next(stream)


def _held_out(direction: Pair, split: str, size: int, seed: int) -> Iterator[tuple[str, str]]:
    """Every source once, so that a score counts each sentence once; no word that training does not show."""
    familiar = _familiar(direction, seed)
    side = 1 if direction.reversed else 0
    seen = {classic[side] for classic in direction.classics}
    left = size
    for pair in _derivations(direction, split, seed):
        if pair[side] in seen or not familiar.issuperset(_forms(direction, *pair)):
            continue
        seen.add(pair[side])
        yield pair
        left -= 1
        if not left:
            return


@functools.cache
def _familiar(direction: Pair, seed: int) -> frozenset[str]:
    counts: Counter[str] = Counter()
    for pair in _training(direction, SIZES["train"], seed):
        counts.update(_forms(direction, *pair))
    return frozenset(form for form, count in counts.items() if count >= _FAMILIAR)


def _forms(direction: Pair, source: str, target: str) -> list[str]:
    """The word forms of a pair, capitals and all; characters where there are no spaces."""
    words = source if direction.source == "zh" else _WORD.findall(source)
    return [*words, *_WORD.findall(target)]


_GERMAN = Pair("de", "en", german_sentences.GermanEnglish, german_sentences.CLASSICS)
_CHINESE = Pair("zh", "en", chinese_sentences.ChineseEnglish, chinese_sentences.CLASSICS)
PAIRS: dict[str, Pair] = {
    "de-en": _GERMAN,
    "zh-en": _CHINESE,
    "en-de": _GERMAN._replace(reversed=True),
    "en-zh": _CHINESE._replace(reversed=True),
}
"""Every pair by name; the last two read the same grammars from the other side."""
