"""Plain text for models of one side, and what a recipe's `corpus:` says of it.

One long text is token ids on disk, encoded once and memory-mapped ever after; or each line is read by itself.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dragoman.config import Field, settings
from dragoman.data.encode import id_dtype
from dragoman.data.inputs import TextInputs
from dragoman.data.row_order import IntArray
from dragoman.errors import Error, writing
from dragoman.special_tokens import UNK_ID
from dragoman.text.normalize import spelling_of
from dragoman.text.plain_sources import PlainSource
from dragoman.text.tokenizers.base import Tokenizer


@settings
class PlainCorpusConfig:
    """Which texts to train, validate and test on."""

    train: PlainSource  #: Training text.
    valid: PlainSource  #: Validation text.
    test: dict[str, PlainSource] = Field(default_factory=dict)  #: Test texts by name, scored after training.
    normalize: Literal["none", "nfc", "nfkc"] = "nfc"  #: Unicode normal form of the text.


@settings
class LinesCorpusConfig(PlainCorpusConfig):
    """Which texts to train, validate and test on. Each line is read by itself; blank ones are left out."""

    lowercase: bool = False  #: Lower-case the text.
    max_tokens: int = Field(default=128, ge=1)  #: A longer line is read up to here. [tokens]


@settings
class TextCorpusConfig(PlainCorpusConfig):
    """Which texts to train, validate and test on. Each is one long row of tokens, read in windows of `block_len`."""

    block_len: int = Field(default=256, ge=1)  #: Length of a window: the longest context of a prediction. [tokens]
    min_context: int = Field(default=1, ge=1)
    """In validation and tests every prediction has seen at least so many tokens. 1: windows side by side, as in
    training. More is nearer to what generation sees, and takes block_len / (block_len - min_context + 1) times the
    time."""

    def __post_init__(self) -> None:
        if self.min_context > self.block_len:
            raise ValueError(f"min_context {self.min_context} is more than block_len {self.block_len}")


@dataclass(frozen=True)
class TextReport:
    """Figures of a prepared text. `unknown` counts its `<unk>`s, `seconds` is how long this call took."""

    characters: int
    tokens: int
    unknown: int
    reused: bool
    seconds: float


def encode(tokenizer: Tokenizer, text: str) -> IntArray:
    """The ids of a text (already normalised) in one row; a line feed is `</s>`."""
    return np.fromiter(tokenizer.encode_text(text), dtype=id_dtype(tokenizer.vocab_size))


def prepare_text(
    read: Callable[[], str], tokenizer: Tokenizer, directory: Path, *, made_from: str
) -> tuple[IntArray, TextReport]:
    """The ids of a text, from `directory` if they are there and were `made_from` the same, otherwise encoded now.

    Raises DragomanError for what `read` refuses, and when the directory cannot be written.
    """
    started = time.monotonic()
    stored = _stored(directory, made_from)
    if stored is None:
        text = read()
        ids = encode(tokenizer, text)
        report = TextReport(len(text), len(ids), int((ids == UNK_ID).sum()), reused=True, seconds=0.0)
        _store(directory, ids, {"made_from": made_from, "report": asdict(report)})
        stored = ids, replace(report, reused=False)
    ids, report = stored
    return ids, replace(report, seconds=time.monotonic() - started)


def _stored(directory: Path, made_from: str) -> tuple[IntArray, TextReport] | None:
    """The stored ids, unless they are something else, incomplete or damaged: then it is made again."""
    try:
        meta = json.loads((directory / "meta.json").read_text(encoding="utf-8"))
        report = TextReport(**meta["report"])
        ids = np.load(directory / "ids.npy", mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return (ids, report) if meta["made_from"] == made_from and ids.shape == (report.tokens,) else None


def _store(directory: Path, ids: IntArray, meta: dict[str, Any]) -> None:
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "meta.json").unlink(missing_ok=True)  # the ids are without a description until they are whole
        np.save(directory / "ids.npy", ids, allow_pickle=False)
        (directory / "meta.json").write_text(json.dumps(meta), encoding="utf-8")


def lines_of(source: PlainSource, corpus: LinesCorpusConfig) -> list[str]:
    """The lines of a text as they are read. Raises DragomanError where all are blank."""
    spelling = spelling_of(corpus)
    lines = [spelling(line) for line in source.text().split("\n") if line.strip()]
    if not lines:
        raise Error.EMPTY("a text of the corpus has no line that is not blank")
    return lines


def encoded(lines: Sequence[str], tokenizer: Tokenizer, corpus: LinesCorpusConfig) -> TextInputs:
    """The ids of lines, cut at `max_tokens`."""
    limit = corpus.max_tokens
    return TextInputs([tokenizer.encode(line)[:limit] for line in lines], max_tokens=limit, multiple=1)
