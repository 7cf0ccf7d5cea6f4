"""Step 1: sentence pairs from files or from the program, and which of them train, validate and test a model.

A corpus format is a file of `text/sources/` and a row of `Source`. Blank pairs are handed on: they are dropped, as
pairs, and counted where the ids are made. Labelled texts, plain text and images are read in `labelled.py`,
`documents.py` and `images.py`.
"""

import itertools
from collections.abc import Iterator
from dataclasses import field, replace
from typing import Annotated, Literal

from pydantic import Field

from dragoman.config import by_type, settings
from dragoman.text.augment import TextAugmentConfig
from dragoman.text.sources.base import Pair, PairSource, SourceList
from dragoman.text.sources.demo import DemoSource
from dragoman.text.sources.exchange import PoSource, TmxSource, XliffSource
from dragoman.text.sources.files import MAX_WEIGHT, FilesSource, repeated
from dragoman.text.sources.jsonl import JsonlSource
from dragoman.text.sources.parallel import ParallelSource
from dragoman.text.sources.parquet import ParquetSource
from dragoman.text.sources.stream import StreamSource
from dragoman.text.sources.temperature import TemperatureWeights
from dragoman.text.sources.toy import ToySource
from dragoman.text.sources.tsv import TsvSource

_Single = (
    FilesSource
    | TsvSource
    | JsonlSource
    | TmxSource
    | XliffSource
    | PoSource
    | ParquetSource
    | ParallelSource
    | DemoSource
    | ToySource
)
SinglePairs = Annotated[_Single, by_type]


@settings
class MixSource(SourceList, PairSource):
    """Several corpora as one: `weights` say how often the pairs of each come in an epoch; all once, if not given.

    They are a list of numbers, or `{temperature: 5}`: by the sizes of the corpora.
    """

    type: Literal["mix"] = "mix"
    sources: Annotated[list[SinglePairs], Field(min_length=1)]  #: The corpora.
    weights: list[Annotated[float, Field(ge=0, le=MAX_WEIGHT)]] | TemperatureWeights | None = None
    """Passes over each corpus in an epoch; null: one each. [passes an epoch]"""

    def __post_init__(self) -> None:
        if isinstance(self.weights, list) and len(self.weights) != len(self.sources):
            raise ValueError(f"{len(self.weights)} weights for {len(self.sources)} sources: give one for each")
        if isinstance(self.weights, list) and not any(self.weights):
            raise ValueError("all weights are 0: nothing would be left")

    def passes(self) -> list[float]:
        """Passes over each corpus in an epoch."""
        if isinstance(self.weights, TemperatureWeights):
            return self.weights.passes([sum(1 for _ in part.pairs()) for part in self.sources])
        return self.weights or [1.0] * len(self.sources)

    def pairs(self) -> Iterator[Pair]:
        number = itertools.count(1)
        for part, weight in zip(self.sources, self.passes(), strict=True):
            for pair in repeated((pair, weight) for pair in part.pairs()):
                yield pair._replace(line=next(number))

    def unweighted(self) -> "MixSource":
        return replace(self, weights=None, sources=[part.unweighted() for part in self.sources])


Source = Annotated[_Single | MixSource, by_type]
TrainSource = Annotated[_Single | MixSource | StreamSource, by_type]


@settings
class CorpusConfig:
    """Which pairs to train, validate and test on; `max_tokens` of either side at most."""

    src_lang: Annotated[str, Field(min_length=1)]  #: Language code of the source, such as `de`.
    tgt_lang: Annotated[str, Field(min_length=1)]  #: Language code of the target.
    train: TrainSource  #: Training pairs.
    valid: Source  #: Validation pairs, scored during training.
    test: dict[str, Source] = field(default_factory=dict)  #: Test sets by name, scored after training.
    normalize: Literal["none", "nfc", "nfkc"] = "nfc"  #: Unicode normal form of both sides.
    augment: TextAugmentConfig = field(default_factory=TextAugmentConfig)  #: Messy copies of training pairs.
    max_tokens: Annotated[int, Field(ge=1)] = 256  #: Longest side of a pair. [tokens]
    longer_pairs: Literal["drop", "cut"] = "drop"
    """Of training and validation: left out, as halves of sentences teach to break off, or their ends cut off."""
    doctor: Literal["refuse", "warn", "skip"] = "refuse"
    """Reaction before training to a corpus that `dragoman doctor` finds broken in its first pairs."""
