"""Step 1: sentence pairs from files, line by line (`lines.py`), strict about everything that breaks their alignment.

An unequal number of lines stops the reading (`zip` would hide it), and so does a ragged table or a record without its
text. Blank pairs are handed on: they are dropped, as pairs, and counted where the ids are made.

Labelled texts, plain text and images are read in `labelled.py`, `plain.py` and `images.py`; `files_of` and
`fingerprint` are here for all of them.
"""

import hashlib
import itertools
import json
import math
import os
from collections.abc import Iterator
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from dragoman.config import by_type, settings, to_dict
from dragoman.corpora import toy
from dragoman.corpora.toy import ToySource
from dragoman.errors import DragomanError
from dragoman.text.documents import EmbeddedPair, PlainSource, TextSource
from dragoman.text.images import IdxSource
from dragoman.text.labelled import ConcatSource, ExampleSource, LabelledSource, LanguagesSource
from dragoman.text.lines import check_is_file, find, lines_in, read_lines, reporting_os_errors, show
from dragoman.version import __version__

__all__ = [
    "AnySource", "CorpusConfig", "DemoSource", "FilesSource", "JsonlSource", "MixSource", "Pair", "Source", "ToySource",
    "TsvSource",
    "contents", "files_of", "find", "fingerprint", "lines_in", "read_lines", "read_pairs",
]  # fmt: skip


MAX_WEIGHT = 1000.0
"""A pair that comes more often than that in an epoch is a mistake."""


@settings
class FilesSource:
    """Two text files, plain or `.gz`; line n of one is the translation of line n of the other."""

    type: Literal["files"] = "files"
    src: str  #: File of source sentences, a line each.
    tgt: str  #: File of target sentences.
    weights: str | None = None
    """A third file, of one number a line: how often the pair comes in an epoch (2: twice; of pairs with 0.5, half)."""


@settings
class TsvSource:
    """One file of tab-separated columns (counted from 1), without quoting; every line has as many as the first."""

    type: Literal["tsv"] = "tsv"
    path: str  #: The file, plain or `.gz`.
    src_column: Annotated[int, Field(ge=1)] = 1  #: Column of the source.
    tgt_column: Annotated[int, Field(ge=1)] = 2  #: Column of the target.

    def __post_init__(self) -> None:
        if self.src_column == self.tgt_column:
            raise ValueError("src_column and tgt_column must differ")


@settings
class JsonlSource:
    """One JSON object a line, with the two texts under two keys; other keys are ignored."""

    type: Literal["jsonl"] = "jsonl"
    path: str  #: The file, plain or `.gz`.
    src_key: str = "src"  #: Key of the source.
    tgt_key: str = "tgt"  #: Key of the target.

    def __post_init__(self) -> None:
        if self.src_key == self.tgt_key:
            raise ValueError("src_key and tgt_key must differ")


@settings
class DemoSource:
    """Made-up sentences that come with Dragoman, for a first run without any file (`text/embedded/`)."""

    type: Literal["demo"] = "demo"
    pair: EmbeddedPair = "de-en"  #: Language pair, source first.
    split: Literal["train", "valid", "test"]  #: Part of the corpus; no sentence is in two.
    size: Annotated[int, Field(ge=1)] | None = None  #: Number of pairs; null: the split's own. [pairs]
    seed: int = 1  #: Another seed, another corpus.


PairSource = Annotated[FilesSource | TsvSource | JsonlSource | DemoSource | ToySource, by_type]


@settings
class MixSource:
    """Several corpora as one: `weights` say how often the pairs of each come in an epoch; all once, if not given."""

    type: Literal["mix"] = "mix"
    sources: Annotated[list[PairSource], Field(min_length=1)]  #: The corpora.
    weights: list[Annotated[float, Field(ge=0, le=MAX_WEIGHT)]] | None = None
    """Passes over each corpus in an epoch; null: one each. [passes an epoch]"""

    def __post_init__(self) -> None:
        if self.weights is not None and len(self.weights) != len(self.sources):
            raise ValueError(f"{len(self.weights)} weights for {len(self.sources)} sources: give one for each")
        if self.weights is not None and not any(self.weights):
            raise ValueError("all weights are 0: nothing would be left")


Source = Annotated[FilesSource | TsvSource | JsonlSource | DemoSource | ToySource | MixSource, by_type]

AnySource = Source | ExampleSource | PlainSource | IdxSource
"""Sources of every kind of model: pairs, labelled texts, plain text, images."""


@settings
class CorpusConfig:
    """Which pairs to train, validate and test on; `max_tokens` of either side, longer pairs are dropped."""

    src_lang: Annotated[str, Field(min_length=1)]  #: Language code of the source, such as `de`.
    tgt_lang: Annotated[str, Field(min_length=1)]  #: Language code of the target.
    train: Source  #: Training pairs.
    valid: Source  #: Validation pairs, scored during training.
    test: dict[str, Source] = field(default_factory=dict)  #: Test sets by name, scored after training.
    normalize: Literal["none", "nfc", "nfkc"] = "nfc"  #: Unicode normal form of both sides.
    max_tokens: Annotated[int, Field(ge=1)] = 256  #: Longest side of a pair; longer pairs are dropped. [tokens]
    doctor: Literal["refuse", "warn", "skip"] = "refuse"
    """Reaction before training to a corpus that `dragoman doctor` finds broken in its first pairs."""


class Pair(NamedTuple):
    """A sentence pair and where it stands: its line (or record) number, counted from 1."""

    line: int
    src: str
    tgt: str


def read_pairs(source: Source) -> Iterator[Pair]:
    """The pairs of a source, one after another, blank ones included.

    Raises DragomanError at the first thing that is wrong, with file and line; at the end if line counts differ.
    """
    match source:
        case FilesSource(weights=None):
            return _pairs_of_files(find(source.src), find(source.tgt))
        case FilesSource():
            weights = find(source.weights or "")
            return _weighted(_pairs_of_files(find(source.src), find(source.tgt)), _weights_of(weights), show(weights))
        case TsvSource():
            return _pairs_of_tsv(source, find(source.path))
        case JsonlSource():
            return _pairs_of_jsonl(source, find(source.path))
        case DemoSource():
            return _pairs_of_demo(source)
        case ToySource():
            return (Pair(number, *pair) for number, pair in enumerate(toy.pairs(source), start=1))
        case MixSource():
            return _pairs_of_mix(source)


def unweighted(source: Source) -> Source:
    """The same pairs, each of them once."""
    match source:
        case FilesSource():
            return replace(source, weights=None)
        case MixSource():
            sources: list[Any] = [unweighted(part) for part in source.sources]
            return replace(source, weights=None, sources=sources)
        case _:
            return source


def files_of(source: AnySource) -> list[Path]:
    """The files whose content makes up the source, where `find` finds them; none for what the program makes."""
    return [path for files in _files_by_setting(source).values() for path in files]


def contents(source: AnySource) -> dict[str, str]:
    """SHA-256 (hex) of the bytes behind each setting that names files: `{"src": "9f86...", "tgt": "60303..."}`.

    A corpus that was moved or is named by another path is the same corpus. Nothing for what the program makes.
    """
    if isinstance(
        source, ConcatSource | MixSource
    ):  # a list is one setting, so that how its parts are read counts here too
        parts = "".join(map(fingerprint, source.sources))
        return {"sources": hashlib.sha256(parts.encode()).hexdigest()}
    return {setting: _digest(files) for setting, files in _files_by_setting(source).items()}


def fingerprint(source: AnySource) -> str:
    """SHA-256 (hex) over how the source is read and the bytes of its files: equal means the same content again.

    Where the program makes the text itself, its version stands for the content.
    """
    found = contents(source)
    naming = {setting.split(".")[0] for setting in found}
    reading = {key: value for key, value in to_dict(source).items() if key not in naming}
    return hashlib.sha256(json.dumps([reading, found or __version__]).encode()).hexdigest()


def _files_by_setting(source: AnySource) -> dict[str, list[Path]]:
    match source:
        case FilesSource():
            weights = {"weights": [find(source.weights)]} if source.weights else {}
            return {"src": [find(source.src)], "tgt": [find(source.tgt)], **weights}
        case TsvSource() | JsonlSource() | LabelledSource() | TextSource():
            return {"path": [find(source.path)]}
        case IdxSource():
            return {"images": [find(source.images)], "labels": [find(source.labels)]}
        case LanguagesSource():
            return {f"files.{label}": list(map(find, paths)) for label, paths in source.files.items()}
        case ConcatSource() | MixSource():
            return {"sources": [path for part in source.sources for path in files_of(part)]}
        case _:  # made by the program, or a share of another source
            return {}


def _digest(files: list[Path]) -> str:
    total = hashlib.sha256()
    for path in files:
        check_is_file(path)
        with reporting_os_errors(path), path.open("rb") as stream:
            total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()


def _pairs_of_files(src: Path, tgt: Path) -> Iterator[Pair]:
    if os.path.samefile(src, tgt):
        raise DragomanError(f"{show(src)} is given as both src and tgt: name one file for each language")
    sides = (read_lines(src), read_lines(tgt))
    for line, texts in enumerate(itertools.zip_longest(*sides), start=1):
        if None in texts:
            counts = [line - (text is None) + sum(1 for _ in side) for text, side in zip(texts, sides, strict=True)]
            raise DragomanError(
                f"{show(src)} has {counts[0]:,} lines but {show(tgt)} has {counts[1]:,}: line n of one must be the "
                "translation of line n of the other; find the line that is missing or was cut in two"
            )
        yield Pair(line, *texts)


def _weights_of(path: Path) -> Iterator[float]:
    for number, line in enumerate(read_lines(path), start=1):
        try:
            weight = float(line)
        except ValueError as error:
            raise DragomanError(f"{show(path)}:{number}: {line[:40]!r} is not a number") from error
        if not 0 <= weight <= MAX_WEIGHT:  # nor NaN, which is not between them either
            raise DragomanError(f"{show(path)}:{number}: a weight of {weight:g}: give one from 0 to {MAX_WEIGHT:g}")
        yield weight


def _weighted(pairs: Iterator[Pair], weights: Iterator[float], name: str) -> Iterator[Pair]:
    """Each pair as often as its weight says; a fraction is added to the next weight: with 0.5, every other pair."""
    total, given = 0.0, 0
    for pair, weight in itertools.zip_longest(pairs, weights):
        if pair is None or weight is None:
            than = "more" if pair is None else "fewer"
            raise DragomanError(f"{name} has {than} lines than there are pairs: give each pair one number")
        total += weight
        while given < math.floor(total + 1e-9):
            given += 1
            yield pair


def _pairs_of_mix(source: MixSource) -> Iterator[Pair]:
    number = itertools.count(1)
    for part, weight in zip(source.sources, source.weights or [1.0] * len(source.sources), strict=True):
        pairs, weights = itertools.tee(read_pairs(part))
        for pair in _weighted(pairs, (weight for _ in weights), part.type):
            yield Pair(next(number), pair.src, pair.tgt)


def _pairs_of_tsv(source: TsvSource, path: Path) -> Iterator[Pair]:
    needed = max(source.src_column, source.tgt_column)
    expected = 0
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        expected = expected or len(columns)
        if len(columns) < needed:
            raise DragomanError(f"{show(path)}:{number}: {_columns(len(columns))}, but column {needed} is asked for")
        if len(columns) != expected:
            raise DragomanError(
                f"{show(path)}:{number}: {_columns(len(columns))}, but line 1 has {expected}: "
                "is there a tab inside a text?"
            )
        src, tgt = columns[source.src_column - 1], columns[source.tgt_column - 1]
        _check_one_line(src + tgt, f"{show(path)}:{number}")
        yield Pair(number, src, tgt)


def _columns(count: int) -> str:
    return "1 tab-separated column" if count == 1 else f"{count} tab-separated columns"


def _pairs_of_jsonl(source: JsonlSource, path: Path) -> Iterator[Pair]:
    for number, line in enumerate(read_lines(path), start=1):
        where = f"{show(path)}:{number}"
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
    _check_one_line(text, f"{where}: {key!r}")
    return text


def _check_one_line(text: str, where: str) -> None:
    """A text is one line everywhere behind its reader: in files that are split off, and in translations."""
    if "\n" in text or "\r" in text:
        raise DragomanError(
            f"{where}: a line break inside of a text: make it a pair for each line, or replace the break by a space"
        )


def _json_type(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _pairs_of_demo(source: DemoSource) -> Iterator[Pair]:
    from dragoman.corpora import embedded

    sentences = embedded.sentences(source.pair, source.split, source.size, source.seed)
    for number, (src, tgt) in enumerate(sentences, start=1):
        yield Pair(number, src, tgt)
