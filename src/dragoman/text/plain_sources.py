"""Step 1 for language models: one long text, or a share of it."""

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
    named = ("path",)

    def __post_init__(self) -> None:
        if self.start >= self.end:
            raise ValueError(f"start ({self.start}) must be less than end ({self.end})")

    def text(self) -> str:
        """The share; each of its lines ends with LF. Raises DragomanError where it holds nothing."""
        path = find(self.path)
        lines = [line + "\n" for line in read_lines(path)]
        whole: str | list[str] = lines if self.unit == "lines" else "".join(lines)
        share = whole[int(self.start * len(whole)) : int(self.end * len(whole))]
        if not share:
            raise Error.EMPTY(
                f"nothing lies between {self.start} and {self.end} of its {len(whole):,} {self.unit}", file=path
            )
        return "".join(share)


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

    def text(self) -> str:
        side = ("src", "tgt").index(self.side)
        sentences = embedded.sentences(self.pair, self.split, self.size, self.seed)
        return "".join(pair[side] + "\n" for pair in sentences)


PlainSource = Annotated[TextSource | EmbeddedTextSource, by_type]
