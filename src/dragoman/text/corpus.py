"""Step 1: sentence pairs from files or from the program, and which of them train, validate and test a model.

A corpus format is a file of `text/sources/` and a row of `SinglePairs`. Blank pairs are handed on: they are dropped and
counted where the ids are made. Labelled texts, plain text and images are read in `labelled.py`, `plain_sources.py` and
`images.py`.
"""

import itertools
from collections.abc import Iterator
from dataclasses import field, replace
from typing import Annotated, Any, Literal

from pydantic import Field

from dragoman.config import by_type, settings
from dragoman.errors import Error
from dragoman.text.augment import ContextConfig, TextAugmentConfig
from dragoman.text.lines import kind_of
from dragoman.text.sources.base import Pair, PairSource, SingleFileSource, SourceList
from dragoman.text.sources.demo import DemoSource
from dragoman.text.sources.exchange import PoSource, TmxSource, XliffSource
from dragoman.text.sources.files import FilesSource
from dragoman.text.sources.jsonl import JsonlSource
from dragoman.text.sources.parallel import ParallelSource
from dragoman.text.sources.parquet import ParquetSource
from dragoman.text.sources.stream import StreamSource
from dragoman.text.sources.toy import ToySource
from dragoman.text.sources.tsv import TsvSource
from dragoman.text.sources.weights import MAX_WEIGHT, TemperatureWeights, repeated

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
            for pair in repeated(part, ((pair, weight) for pair in part.pairs())):
                yield pair._replace(line=next(number))

    def with_weights(self) -> Iterator[tuple[Pair, float]]:
        number = itertools.count(1)
        for part, weight in zip(self.sources, self.passes(), strict=True):
            for pair, own in part.with_weights():
                yield pair._replace(line=next(number)), own * weight

    def unweighted(self) -> "MixSource":
        return replace(self, weights=None, sources=[part.unweighted() for part in self.sources])


Source = Annotated[_Single | MixSource, by_type]
TrainSource = Annotated[_Single | MixSource | StreamSource, by_type]


@settings
class CollectionConfig:
    """Files in two languages of many kinds, from which training, validation and test pairs are made (docs/files.md).

    TMX, PO, MO, XLIFF, CSV, TSV, XLSX, JSONL, Parquet, and documents or texts of which there is one in each language.
    """

    paths: Annotated[list[str], Field(min_length=1)]  #: Folders, files, or patterns such as `memories/**/*.tmx`.
    columns: tuple[str, str] | None = None
    """Columns of tables, by heading or number from 1; null: by what their first rows say."""
    documents: Literal["file", "folder"] = "file"
    """The document that a pair belongs to: its file, or the first folder in its path. No document is split."""
    held_out: Annotated[int, Field(ge=1)] = 1000
    """Pairs for validation, and as many for the test; at most a fiftieth of all. [pairs]"""


@settings
class CorpusConfig:
    """Which pairs to train, validate and test on; `max_tokens` of either side at most."""

    src_lang: Annotated[str, Field(min_length=1)]  #: Language of the source: `de`, `deu_Latn`, `de-DE`.
    tgt_lang: Annotated[str, Field(min_length=1)]  #: Language of the target; any spelling of a code will do.
    train: TrainSource  #: Training pairs.
    valid: Source  #: Validation pairs, scored during training.
    test: dict[str, Source] = field(default_factory=dict)  #: Test sets by name, scored after training.
    files: CollectionConfig | None = None  #: Files that `train`, `valid` and the test `held_out` are made from.
    normalize: Literal["none", "nfc", "nfkc"] = "nfc"  #: Unicode normal form of both sides.
    augment: TextAugmentConfig = field(default_factory=TextAugmentConfig)  #: Messy copies of training pairs.
    context: ContextConfig = field(default_factory=ContextConfig)  #: Sentences before each one, to read with it.
    max_tokens: Annotated[int, Field(ge=1)] = 256  #: Longest side of a pair. [tokens]
    weights_in: Literal["epoch", "loss"] = "epoch"
    """Where the weights of training pairs and corpora count: `epoch`: a pair comes as often; `loss`: it comes once, and
    its loss is multiplied by its weight, as Marian's `--data-weighting` does. The sum is divided by the tokens."""
    longer_pairs: Literal["drop", "cut"] = "drop"
    """Of training and validation: left out, as halves of sentences teach to break off, or their ends cut off."""
    leaks: Literal["keep", "drop"] = "keep"
    """Training pairs of which a side stands, or nearly stands, in a test or validation set: kept, or left out."""
    doctor: Literal["refuse", "warn", "skip"] = "refuse"
    """Reaction before training to a corpus that `dragoman doctor` finds broken in its first pairs."""

    def __post_init__(self) -> None:
        if self.leaks == "drop" and isinstance(self.train, StreamSource):
            raise ValueError("leaks: a stream is read while it is trained on; leave them out before")
        if self.weights_in == "loss" and self.trained_on == self.train:
            raise ValueError("weights_in=loss: no pair of `train` has a weight; give `weights`")
        if self.weights_in == "loss" and self.context.src:
            raise ValueError("weights_in=loss: of single sentences; leave out `context`")

    @property
    def trained_on(self) -> Any:
        """The training pairs as they come in an epoch."""
        return self.train.unweighted() if self.weights_in == "loss" else self.train


SINGLE_FILES: dict[str, type[SingleFileSource]] = {
    ".tsv": TsvSource,
    ".jsonl": JsonlSource,
    ".tmx": TmxSource,
    ".xlf": XliffSource,
    ".xliff": XliffSource,
    ".po": PoSource,
    ".parquet": ParquetSource,
}
"""The kind of source of a single file, by the end of its name."""


def source_of_file(path: str, src_lang: str, tgt_lang: str, columns: tuple[str, str] | None = None) -> Any:
    """The source that a single file is, by the end of its name; None for another kind.

    `columns`: the keys of the texts in its records; None: those that the first record has for the languages.
    Raises DragomanError for a file whose languages have to be said, or whose records have no such keys.
    """
    cls = SINGLE_FILES.get(kind_of(path))
    if cls is TmxSource:
        if not (src_lang and tgt_lang):
            raise Error.MISSING_OPTION("say with `src_lang` and `tgt_lang` which of its languages are meant", file=path)
        return TmxSource(path=path, src_lang=src_lang, tgt_lang=tgt_lang)
    source: Any = None if cls is None else cls(path=path)  # type: ignore[call-arg]
    if isinstance(source, JsonlSource | ParquetSource) and (record := source.first()):
        from dragoman.text.sources.records import PAIR, columns_of  # of such files alone

        keys = columns_of(record, PAIR, columns, (src_lang, tgt_lang), path)
        return replace(source, src_key=keys[0], tgt_key=keys[1])
    return source
