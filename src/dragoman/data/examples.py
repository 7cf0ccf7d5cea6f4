"""Labelled corpora for classifiers: their settings, their splits, and the part that is held out for validation."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from dragoman.config import Field, by_type, settings
from dragoman.data.image_augment import AugmentConfig
from dragoman.data.random import hash64
from dragoman.errors import Error
from dragoman.text.images import IdxSource, read_images
from dragoman.text.labelled import ExampleSource
from dragoman.text.sources.base import Source


@settings
class HeldOutSource(Source):
    """Validate on a `share` of the training corpus, which is then not trained on.

    A hash of each text or image decides, so that the parts are always the same and a text that comes twice is not in
    both of them.
    """

    type: Literal["held_out"] = "held_out"
    share: float = Field(default=0.1, gt=0, lt=1)  #: Share of the training corpus that is held out.

    def paths(self) -> dict[str, list[Path]]:
        return {}


@settings
class CropConfig:
    """Train on pieces of texts too, so that short ones are recognised: a piece is `min_tokens` or longer."""

    min_tokens: int = Field(default=4, ge=1)  #: Shortest piece. [tokens]
    share: float = Field(default=0.5, ge=0, le=1)  #: Share of an epoch's texts that are cut; the rest stay whole.


@settings
class LabelledCorpus:
    """Which labelled texts to train, validate and test on, and how they are read."""

    train: ExampleSource  #: Training texts.
    valid: Annotated[ExampleSource | HeldOutSource, by_type] = Field(default_factory=HeldOutSource)
    """Validation texts."""
    test: dict[str, ExampleSource] = field(default_factory=dict)  #: Test sets by name, scored after training.
    label_names: dict[str, str] = field(default_factory=dict)
    """Names for the labels of the files, where they are numbers or codes."""
    normalize: Literal["none", "nfc", "nfkc"] = "nfc"  #: Unicode normal form of the texts.
    lowercase: bool = False  #: Lower-case the texts.
    max_tokens: int = Field(default=256, ge=1)
    """A longer text is read up to here, in training and in use: its class is decided on its beginning."""
    crop: CropConfig | None = None


@settings
class ImageCorpus:
    """Which labelled images to train, validate and test on."""

    train: IdxSource  #: Training images.
    valid: Annotated[IdxSource | HeldOutSource, by_type] = Field(default_factory=HeldOutSource)  #: Validation images.
    test: dict[str, IdxSource] = field(default_factory=dict)  #: Test sets by name, scored after training.
    label_names: dict[str, str] = field(default_factory=dict)
    """Names for the labels, which are numbers in the files."""
    augment: AugmentConfig | None = Field(default_factory=AugmentConfig)


@dataclass(frozen=True)
class Split:
    """Texts (a list) or images (an array): `items`; the label of each, and what to call each in a report.

    `numbers`: which of its source each is, counted from 1, where it is not all of them in their order.
    """

    items: Any
    labels: list[str]
    titles: list[str]
    numbers: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: Iterable[int]) -> "Split":
        rows = list(rows)
        numbers = self.numbers or range(1, len(self) + 1)
        return Split(
            [self.items[row] for row in rows],
            [self.labels[row] for row in rows],
            [self.titles[row] for row in rows],
            [numbers[row] for row in rows],
        )


def read_split(source: Any, label_names: dict[str, str]) -> Split:
    """All examples of a source. Raises DragomanError for what its reader refuses, and when there are none."""
    if isinstance(source, IdxSource):
        images = read_images(source)
        labels = [str(label) for label in images.labels.tolist()]
        titles = [f"image {number}" for number in range(1, len(labels) + 1)]
        split = Split(images.pixels, labels, titles)
    else:
        examples = list(source.examples())
        texts = [example.text for example in examples]
        split = Split(texts, [example.label for example in examples], texts)
    if not len(split):
        raise Error.EMPTY("there is nothing to learn or score: a source of the corpus has no examples")
    return Split(split.items, [label_names.get(label, label) for label in split.labels], split.titles)


def read_splits(corpus: LabelledCorpus | ImageCorpus) -> tuple[Split, Split, dict[str, Split]]:
    """(training, validation, tests). Raises DragomanError when holding out leaves one of the first two empty."""
    tests = {name: read_split(source, corpus.label_names) for name, source in corpus.test.items()}
    train = read_split(corpus.train, corpus.label_names)
    if not isinstance(corpus.valid, HeldOutSource):
        return train, read_split(corpus.valid, corpus.label_names), tests
    train, valid = hold_out(train, corpus.valid.share)
    if not len(train) or not len(valid):
        raise Error.TOO_FEW(
            f"corpus.valid.share {corpus.valid.share} leaves {len(train)} examples to train on and {len(valid)} to "
            "validate on",
            "choose another, or name a validation source",
        )
    return train, valid, tests


def hold_out(split: Split, share: float) -> tuple[Split, Split]:
    """(the rest, about `share` of the split): by a hash of each item."""
    held = [_hash(item) < share * 2**64 for item in split.items]
    return (
        split.take(row for row, is_held in enumerate(held) if not is_held),
        split.take(row for row, is_held in enumerate(held) if is_held),
    )


def _hash(item: str | np.ndarray) -> int:
    return hash64(item if isinstance(item, str) else item.tobytes(), "big")
