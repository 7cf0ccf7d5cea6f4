"""One long text as token ids on disk: encoded once, memory-mapped ever after. What a recipe's `corpus:` says of it."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from dragoman.config import settings
from dragoman.data.encode import id_dtype
from dragoman.data.row_order import IntArray
from dragoman.errors import Error
from dragoman.text.documents import PlainSource
from dragoman.text.tokenizers.base import UNK_ID, Tokenizer


@settings
class TextCorpusConfig:
    """Which texts to train, validate and test on. Each is one long row of tokens, read in windows of `block_len`."""

    train: PlainSource  #: Training text.
    valid: PlainSource  #: Validation text.
    test: dict[str, PlainSource] = Field(default_factory=dict)  #: Test texts by name, scored after training.
    normalize: Literal["none", "nfc", "nfkc"] = "nfc"  #: Unicode normal form of the text.
    block_len: Annotated[int, Field(ge=1)] = 256  #: Length of a window: the longest context of a prediction. [tokens]
    min_context: Annotated[int, Field(ge=1)] = 1
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
    found = _stored(directory, made_from)
    if found is None:
        text = read()
        ids = encode(tokenizer, text)
        report = TextReport(len(text), len(ids), int((ids == UNK_ID).sum()), reused=True, seconds=0.0)
        _store(directory, ids, {"made_from": made_from, "report": asdict(report)})
        found = ids, replace(report, reused=False)
    ids, report = found
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
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "meta.json").unlink(missing_ok=True)  # the ids are without a description until they are whole
        np.save(directory / "ids.npy", ids, allow_pickle=False)
        (directory / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
    except OSError as error:
        raise Error.CANNOT_WRITE(f"cannot be written: {error.strerror or error}", file=directory) from error
