"""Step 1 for language models: one long text, or a share of it."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from dragoman.config import by_type, settings
from dragoman.corpora import embedded
from dragoman.errors import Error
from dragoman.text.lines import find, read_lines
from dragoman.text.sources.base import Source


@settings
class TextSource(Source):
    """The share of a text file, plain or `.gz`, between two fractions of its characters, or of its lines.

    What one source ends with, the next can start with: `end: 0.9` and `start: 0.9` share nothing and leave nothing out.
    """

    type: Literal["text"] = "text"
    path: str  #: The file.
    start: Annotated[float, Field(ge=0, le=1)] = 0.0  #: Where the part begins, as a share of the file.
    end: Annotated[float, Field(ge=0, le=1)] = 1.0  #: Where it ends.
    unit: Literal["characters", "lines"] = "characters"  #: Unit of the shares; `lines`: cut between lines only.

    def __post_init__(self) -> None:
        if self.start >= self.end:
            raise ValueError(f"start ({self.start}) must be less than end ({self.end})")

    def paths(self) -> dict[str, list[Path]]:
        return {"path": [find(self.path)]}


EmbeddedPair = Literal["de-en", "zh-en", "en-de", "en-zh"]
"""The pairs of `embedded.PAIRS`, as a setting names them."""


@settings
class EmbeddedTextSource(Source):
    """One side of the embedded corpus, a sentence a line."""

    type: Literal["embedded_text"] = "embedded_text"
    pair: EmbeddedPair = "de-en"  #: Language pair, source first.
    side: Literal["src", "tgt"] = "tgt"  #: Side of the pair.
    split: Literal["train", "valid", "test"]  #: Part of the corpus.
    size: Annotated[int, Field(ge=1)] | None = None  #: Number of sentences; null: the split's own. [sentences]
    seed: int = 1  #: Another seed, another corpus.

    def paths(self) -> dict[str, list[Path]]:
        return {}


PlainSource = Annotated[TextSource | EmbeddedTextSource, by_type]


def read_text(source: PlainSource) -> str:
    """The whole text of a source; each of its lines ends with LF.

    Raises DragomanError for a file that is no UTF-8 text, and when the share holds nothing.
    """
    match source:
        case TextSource():
            return _share(source)
        case EmbeddedTextSource():
            return _embedded_text(source)


def _share(source: TextSource) -> str:
    path = find(source.path)
    lines = [line + "\n" for line in read_lines(path)]
    whole: str | list[str] = lines if source.unit == "lines" else "".join(lines)
    share = whole[int(source.start * len(whole)) : int(source.end * len(whole))]
    if not share:
        raise Error.EMPTY(
            f"nothing lies between {source.start} and {source.end} of its {len(whole):,} {source.unit}", file=path
        )
    return "".join(share)


def _embedded_text(source: EmbeddedTextSource) -> str:
    side = ("src", "tgt").index(source.side)
    sentences = embedded.sentences(source.pair, source.split, source.size, source.seed)
    return "".join(pair[side] + "\n" for pair in sentences)
