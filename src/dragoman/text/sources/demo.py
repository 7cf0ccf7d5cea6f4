"""Pairs of the corpus that comes with Dragoman."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from dragoman.config import settings
from dragoman.corpora import embedded
from dragoman.text.plain_sources import EmbeddedPair
from dragoman.text.sources.base import Pair, PairSource


@settings
class DemoSource(PairSource):
    """Made-up sentences that come with Dragoman, for a first run without any file (`corpora/embedded.py`)."""

    type: Literal["demo"] = "demo"
    pair: EmbeddedPair = "de-en"  #: Language pair, source first.
    split: Literal["train", "valid", "test"]  #: Part of the corpus; no sentence is in two.
    size: Annotated[int, Field(ge=1)] | None = None  #: Number of pairs; null: the split's own. [pairs]
    seed: int = 1  #: Another seed, another corpus.

    def pairs(self) -> Iterator[Pair]:
        sentences = embedded.sentences(self.pair, self.split, self.size, self.seed)
        return (Pair(number, src, tgt) for number, (src, tgt) in enumerate(sentences, start=1))
