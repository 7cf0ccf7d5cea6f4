"""Make the data files of the embedded corpus again, the same bytes: `cd benchmarks && python -m embedded_corpus DIR`.

A file of training has `BLOCKS` blocks of pairs that each show every word form of the held-out pairs. A held-out file
serves both directions: a pair is in it where its source or its target is new.
"""

import argparse
import bz2
import functools
import itertools
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from . import chinese_sentences, german_sentences
from .grammar import Derivation, split_of

BLOCK, BLOCKS = 20_000, 3
HELD_OUT = {"valid": 5_000, "test": 10_000}

_CLASSIC_EVERY = 100
"""After the classics themselves, one of them again at every hundredth line of training: enough to be learnt."""

_FAMILIAR = 3
"""A held-out sentence keeps to word forms that the first block of training shows at least so often."""

_WORD = re.compile(r"[\w'-]+")

Texts = tuple[str, str]


class _Deriver(Protocol):
    def derive(self) -> Derivation: ...


@dataclass(frozen=True)
class Grammar:
    """A synchronous grammar, and the pairs that training begins with."""

    name: str
    deriver: Callable[[random.Random], _Deriver]
    classics: tuple[Texts, ...]

    def derivations(self, split: str) -> Iterator[Texts]:
        """Endless sentence pairs of one split."""
        grammar = self.deriver(random.Random(f"{self.name} {split} 1"))
        while True:
            source, target, combinations = grammar.derive()
            if split_of(combinations) == split:
                yield source, target

    def training(self) -> Iterator[Texts]:
        """Endless pairs of training, classics between them."""
        stream = self.derivations("train")
        yield from self.classics
        for line in itertools.count(len(self.classics)):
            again = line % _CLASSIC_EVERY == 0
            yield self.classics[line // _CLASSIC_EVERY % len(self.classics)] if again else next(stream)

    def forms(self, pair: Texts) -> list[str]:
        """The word forms of a pair, capitals and all; characters where there are no spaces."""
        source, target = pair
        return [*(source if self.name.startswith("zh") else _WORD.findall(source)), *_WORD.findall(target)]

    @functools.cached_property
    def familiar(self) -> frozenset[str]:
        counts = Counter(form for pair in itertools.islice(self.training(), BLOCK) for form in self.forms(pair))
        return frozenset(form for form, count in counts.items() if count >= _FAMILIAR)

    def blocks(self) -> Iterator[list[Texts]]:
        """Blocks of training; a later block ends with pairs of the first that show the forms which it lacks."""
        stream = self.training()
        first = list(itertools.islice(stream, BLOCK))
        yield first
        while True:
            block = list(itertools.islice(stream, BLOCK))
            counts = Counter(form for pair in block for form in self.forms(pair))
            lacking = {form for form in self.familiar if counts[form] < _FAMILIAR}
            added = [pair for pair in first if not lacking.isdisjoint(self.forms(pair))]
            yield block[: BLOCK - len(added)] + added

    def held_out(self, split: str) -> Iterator[Texts]:
        """Pairs whose words training shows, until each direction has as many sources as the split can give."""
        seen = [set(texts) for texts in zip(*self.classics, strict=True)]
        enough = len(self.classics) + HELD_OUT[split]
        for pair in self.derivations(split):
            if min(map(len, seen)) >= enough:
                return
            new = any(text not in side for text, side in zip(pair, seen, strict=True))
            if new and self.familiar.issuperset(self.forms(pair)):
                yield pair
                for text, side in zip(pair, seen, strict=True):
                    side.add(text)


GRAMMARS = (
    Grammar("de-en", german_sentences.GermanEnglish, german_sentences.CLASSICS),
    Grammar("zh-en", chinese_sentences.ChineseEnglish, chinese_sentences.CLASSICS),
)


def files() -> Iterator[tuple[str, Iterable[Texts]]]:
    """Name and pairs of each data file."""
    for grammar in GRAMMARS:
        training = itertools.chain.from_iterable(itertools.islice(grammar.blocks(), BLOCKS))
        yield f"{grammar.name}.train.tsv.bz2", training
        for split in HELD_OUT:
            yield f"{grammar.name}.{split}.tsv.bz2", grammar.held_out(split)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where to write the files: src/dragoman/corpora/embedded_text")
    parser.add_argument("--lines", type=int, help="only the first so many lines of each file")
    arguments = parser.parse_args()
    for name, pairs in files():
        lines = [f"{source}\t{target}\n" for source, target in itertools.islice(pairs, arguments.lines)]
        (arguments.folder / name).write_bytes(bz2.compress("".join(lines).encode()))


main()
