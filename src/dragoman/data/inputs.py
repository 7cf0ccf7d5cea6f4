"""Inputs of classifiers, in memory: token ids of texts, pixels of images, and batches of either with their labels."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from jaxtyping import Float, Int
from PIL import Image
from torch import Tensor
from torch.nn import functional as F

from dragoman.data.batch import WIDTH_MULTIPLE, Ids, collate_src
from dragoman.data.examples import CropConfig, LabelledCorpus
from dragoman.data.image_augment import RANDOM_NUMBERS_PER_IMAGE, AugmentConfig, augment
from dragoman.data.movable import Movable
from dragoman.data.random import keyed_uniform
from dragoman.data.row_order import IntArray
from dragoman.errors import Error
from dragoman.text.images import read_idx
from dragoman.text.lines import find
from dragoman.text.normalize import spelling_of
from dragoman.text.tokenizers.base import Tokenizer


class Inputs(Protocol):
    """Inputs of a classifier, row by row."""

    lengths: IntArray
    """Positions that each row takes in a model, less one (a `BatchPlan` adds one to each)."""

    def collate(self, rows: IntArray) -> tuple[Tensor, ...]:
        """The model's arguments for some rows."""
        ...

    def in_epoch(self, rows: IntArray, epoch: int | None, longest: int) -> "Inputs":
        """Some rows as they are in that epoch of training, of `lengths` of their own; None: as they always are.

        What is drawn has at most `longest` tokens.
        """
        ...


@dataclass(frozen=True, eq=False)
class LabelledBatch(Movable):
    """The arguments of a classifier's `forward`, and the number of the right label of each row."""

    inputs: tuple[Tensor, ...]
    labels: Int[Tensor, " batch"]
    num_positions: int
    """Positions of the model that they take, pads left out."""
    rows: IntArray
    """The number of each in its corpus."""

    def __len__(self) -> int:
        return len(self.labels)


Resample = Callable[[list[int], random.Random], list[int]]
"""`Tokenizer.sample_segmentation`: another segmentation of a text."""


class TextInputs:
    """Texts as token ids; in training segmented anew and cropped where so set, keyed by (seed, epoch, row).

    None has more than `max_tokens`, where that is given: so they are padded to no more either. In use that is to a
    `multiple` of positions.
    """

    def __init__(
        self,
        ids: Sequence[Ids],
        *,
        max_tokens: int | None = None,
        multiple: int = WIDTH_MULTIPLE,
        sample_segmentation: Resample | None = None,
        crop: CropConfig | None = None,
        seed: int = 1,
    ) -> None:
        self.max_tokens, self.multiple = max_tokens, multiple
        self.sample_segmentation, self.crop, self.seed = sample_segmentation, crop, seed
        self.lengths = np.array([len(of_text) for of_text in ids], dtype=np.int32)
        self._flat = np.fromiter((index for of_text in ids for index in of_text), dtype=np.int32)
        self._offsets = np.concatenate([[0], np.cumsum(self.lengths, dtype=np.int64)])

    def ids(self, row: int) -> IntArray:
        return self._flat[self._offsets[row] : self._offsets[row + 1]]

    def collate(self, rows: IntArray) -> tuple[Tensor, ...]:
        """(ids, mask): each text ends with </s>."""
        return collate_src([self.ids(row) for row in rows], self.multiple, self.max_tokens)

    def in_epoch(self, rows: IntArray, epoch: int | None, longest: int) -> "TextInputs":
        texts = [self.ids(row) for row in rows]
        if epoch is not None and (self.sample_segmentation or self.crop):
            uniform = keyed_uniform(self.seed, epoch, rows, 4)
            texts = [self._varied(ids, numbers, longest) for ids, numbers in zip(texts, uniform, strict=True)]
        return TextInputs(texts, multiple=1)

    def _varied(self, ids: IntArray, uniform: np.ndarray, longest: int) -> IntArray:
        if self.sample_segmentation:
            drawn = self.sample_segmentation(ids.tolist(), random.Random(float(uniform[3])))
            ids = np.array(drawn[: self.max_tokens][:longest], dtype=np.int32)
        return cropped(ids, uniform, self.crop) if self.crop else ids


def cropped(ids: IntArray, uniform: np.ndarray, crop: CropConfig) -> IntArray:
    """A piece of a text, or all of it, as three random numbers decide: whether, how long, from where."""
    spare = len(ids) - crop.min_tokens
    if uniform[0] >= crop.share or spare <= 0:
        return ids
    length = crop.min_tokens + int(uniform[1] * (spare + 1))
    start = int(uniform[2] * (len(ids) - length + 1))
    return ids[start : start + length]


class TextReader:
    """Text to inputs: normalised, lower-cased if so set, tokenized, cut at `max_tokens`. One path for all uses."""

    def __init__(self, tokenizer: Tokenizer, corpus: LabelledCorpus) -> None:
        self.tokenizer, self.corpus = tokenizer, corpus
        self.spelling = spelling_of(corpus)

    def __call__(self, texts: Sequence[str], *, training: bool = False, seed: int = 1) -> TextInputs:
        """`training`: segmented anew and cropped in each epoch, where tokenizer and corpus are so set."""
        tokenizer, limit = self.tokenizer, self.corpus.max_tokens
        return TextInputs(
            [tokenizer.encode(self.spelling(text))[:limit] for text in texts],
            max_tokens=limit,
            sample_segmentation=tokenizer.sample_segmentation if training and tokenizer.sampling else None,
            crop=self.corpus.crop if training else None,
            seed=seed,
        )


@dataclass
class ImageInputs:
    """Grey images of one size; in training changed a little, keyed by (seed, epoch, row)."""

    pixels: np.ndarray
    num_patches: int
    augmentation: AugmentConfig | None = None
    seed: int = 1

    def __post_init__(self) -> None:
        self.lengths = np.full(len(self.pixels), self.num_patches, dtype=np.int32)

    def collate(self, rows: IntArray) -> tuple[Tensor, ...]:
        """(images,): (batch, 1, height, width), from -1 for no ink to 1."""
        return (self._grey(rows) / 127.5 - 1.0,)

    def in_epoch(self, rows: IntArray, epoch: int | None, longest: int) -> "ImageInputs":
        images = self._grey(rows)
        if epoch is not None and self.augmentation:
            uniform = torch.from_numpy(keyed_uniform(self.seed, epoch, rows, RANDOM_NUMBERS_PER_IMAGE)).float()
            images = augment(images, uniform, self.augmentation)
        return ImageInputs(images[:, 0].numpy(), self.num_patches)

    def _grey(self, rows: IntArray) -> Float[Tensor, "batch 1 height width"]:
        return torch.from_numpy(self.pixels[rows][:, None]).float()


class ImageReader:
    """Images to inputs: paths of pictures, or grey values from 0 to 255 (height, width), in the size of the model."""

    def __init__(self, image_size: int, num_patches: int) -> None:
        self.image_size, self.num_patches = image_size, num_patches

    def __call__(
        self, images: Sequence[Any], *, augmentation: AugmentConfig | None = None, seed: int = 1
    ) -> ImageInputs:
        size = (self.image_size, self.image_size)
        pictures = [read_picture(image) if isinstance(image, str | Path) else image for image in images]
        pixels = np.stack([image if image.shape == size else _resized(image, size) for image in pictures])
        return ImageInputs(pixels, self.num_patches, augmentation, seed)


def read_images_in(path: str | Path) -> tuple[list[str], Sequence[Any]]:
    """(names, images) of a file: an idx file of images (named as MNIST names them, `...-ubyte`), or one picture."""
    if str(path).removesuffix(".gz").endswith("-ubyte"):
        pixels = read_idx(find(path), 3)
        return [f"{path}:{number}" for number in range(1, len(pixels) + 1)], list(pixels)
    return [str(path)], [read_picture(path)]


def read_picture(path: str | Path) -> Float[np.ndarray, "height width"]:
    """Grey values from 0 (black) to 255 (white) of a picture file; transparent parts count as white.

    Raises DragomanError when the file cannot be read as a picture.
    """
    try:
        with Image.open(path) as picture:
            if picture.mode.startswith("I"):  # grey, in 16 bits
                return np.asarray(picture) / 257.0
            values = np.asarray(picture.convert("RGBA"), dtype=np.float64)
    except (OSError, SyntaxError, ValueError) as error:
        raise Error.DAMAGED(f"cannot be read as a picture: {error}", file=path) from error
    alpha = values[..., 3] / 255.0
    return values[..., :3] @ _LUMA * alpha + 255.0 * (1.0 - alpha)


_LUMA = np.array([0.299, 0.587, 0.114])
"""Brightness of red, green and blue (ITU-R BT.601)."""


def _resized(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    pixels = torch.as_tensor(image, dtype=torch.float32)[None, None]
    return F.interpolate(pixels, size=size, mode="bilinear", antialias=True)[0, 0].numpy()
