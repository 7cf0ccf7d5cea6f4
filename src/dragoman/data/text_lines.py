"""Lines of plain text for an encoder: which they are, and how they are read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dragoman.config import Field, settings
from dragoman.data.inputs import TextInputs
from dragoman.errors import Error
from dragoman.text.documents import PlainSource, read_text
from dragoman.text.normalize import spelling_of
from dragoman.text.tokenizers.base import Tokenizer


@settings
class LinesCorpusConfig:
    """Which texts to train, validate and test on. Each line is read by itself; blank ones are left out."""

    train: PlainSource  #: Training text.
    valid: PlainSource  #: Validation text.
    test: dict[str, PlainSource] = Field(default_factory=dict)  #: Test texts by name, scored after training.
    normalize: Literal["none", "nfc", "nfkc"] = "nfc"  #: Unicode normal form of the text.
    lowercase: bool = False  #: Lower-case the text.
    max_tokens: int = Field(default=128, ge=1)  #: A longer line is read up to here. [tokens]


def lines_of(source: PlainSource, corpus: LinesCorpusConfig) -> list[str]:
    """The lines of a text as they are read. Raises DragomanError where all are blank."""
    spelling = spelling_of(corpus)
    found = [spelling(line) for line in read_text(source).split("\n") if line.strip()]
    if not found:
        raise Error.EMPTY("a text of the corpus has no line that is not blank")
    return found


@dataclass(frozen=True)
class Lines:
    """Lines as text and as ids."""

    text: Sequence[str]
    inputs: TextInputs


def encoded(lines: Sequence[str], tokenizer: Tokenizer, corpus: LinesCorpusConfig) -> Lines:
    """Lines with their ids, cut at `max_tokens`."""
    limit = corpus.max_tokens
    ids = [tokenizer.encode(line)[:limit] for line in lines]
    return Lines(lines, TextInputs(ids, max_tokens=limit, multiple=1))
