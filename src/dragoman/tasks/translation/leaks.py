"""Training pairs without pairs of validation and test texts (`corpus.leaks: drop`)."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragoman.data.store import PrepareReport
from dragoman.errors import DragomanError, writing
from dragoman.progress import Progress, say
from dragoman.quality.leakage import Leaks
from dragoman.quality.test_set import TestSet
from dragoman.runs import atomic_io
from dragoman.text.sources.base import Pair, PairSource, files_of, fingerprint

FILE = "leaks.json"


@dataclass(frozen=True)
class WithoutLeaks(PairSource):
    """The pairs of a source but for some, whose numbers are known."""

    source: Any
    left_out: Mapping[int, str]
    """Number of a pair in the source, from 0: the kind of its leak."""
    identity: str
    type: str = "without_leaks"

    def paths(self) -> dict[str, list[Path]]:
        return {"source": files_of(self.source)}

    def contents(self) -> dict[str, str]:
        return {"source": self.identity, "left_out": "", "identity": ""}

    def pairs(self) -> Iterator[Pair]:
        return (pair for number, pair in enumerate(self.source.pairs()) if number not in self.left_out)


def without_leaks(source: PairSource, held_out: Mapping[str, list[Pair]], folder: Path) -> WithoutLeaks:
    """The pairs of a source but for those one side of which stands, or nearly stands, in a held-out text.

    Their numbers are kept in `folder`/leaks.json, from where they are taken again as long as all texts are the same.
    """
    texts = [[name, [(pair.src, pair.tgt) for pair in pairs]] for name, pairs in held_out.items()]
    identity = hashlib.sha256(repr([fingerprint(source), texts]).encode()).hexdigest()
    known = left_out_of(folder, identity)
    if known is not None:
        return WithoutLeaks(source, known, identity)
    tests = [
        TestSet([pair.src for pair in pairs], [[pair.tgt for pair in pairs]], name=name)
        for name, pairs in held_out.items()
        if pairs
    ]
    leaks, left_out = Leaks(tests), dict[int, str]()
    with Progress("looking for held-out text in the training pairs", None) as bar:
        for number, pair in enumerate(source.pairs()):
            bar.advance()
            leak = leaks.of(pair.src, pair.tgt)
            if leak is None and pair.languages:  # of a corpus in all directions, the test has one
                leak = leaks.of(pair.tgt, pair.src)
            if leak:
                left_out[number] = leak[0]
    say(f"left out of training, as they stand in held-out text: {len(left_out):,} pairs")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        atomic_io.replace_text(folder / FILE, atomic_io.to_json({"fingerprint": identity, "left_out": left_out}))
    return WithoutLeaks(source, left_out, identity)


def left_out_of(folder: Path, identity: str | None = None) -> dict[int, str] | None:
    """The numbers in `folder`/leaks.json; None if the file is missing or belongs to other texts than `identity`."""
    try:
        kept = atomic_io.read_json(folder / FILE, dict)
        if identity in (None, kept["fingerprint"]):
            return {int(number): str(kind) for number, kind in kept["left_out"].items()}
    except (DragomanError, KeyError, ValueError, AttributeError):  # not there yet, or not ours
        pass
    return None


def with_leaks(report: PrepareReport, source: Any) -> PrepareReport:
    """The report of a corpus with the pairs that were left out before it was read."""
    if not isinstance(source, WithoutLeaks):
        return report
    dropped = Counter(source.left_out.values())
    return replace(report, pairs_read=report.pairs_read + dropped.total(), dropped={**report.dropped, **dropped})
