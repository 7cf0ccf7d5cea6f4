"""Step 1 for images: MNIST's idx format (yann.lecun.com/exdb/mnist), plain or `.gz`.

A file is four bytes (two zeros, 8 for unsigned bytes, the number of dimensions), each dimension as a big-endian 32-bit
number, and then the bytes.
"""

import gzip
import math
import zlib
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

import numpy as np
from jaxtyping import UInt8

from dragoman.config import settings
from dragoman.errors import Error, show
from dragoman.text.lines import find, open_bytes
from dragoman.text.sources.base import Source

MAX_BYTES = 2**31
"""More is no file of this kind (MNIST has 47 MB), but a damaged header."""

_INFLATION = 1_032
"""The most bytes that one byte of gzip data can stand for."""


@settings
class IdxSource(Source):
    """Grey images and their labels in two idx files; label n belongs to image n."""

    type: Literal["idx"] = "idx"
    images: str  #: Idx file of images.
    labels: str  #: Idx file of labels.
    named = ("images", "labels")


class Images(NamedTuple):
    """Grey values, 255 for full ink, and a label for each image."""

    pixels: UInt8[np.ndarray, "count rows columns"]
    labels: UInt8[np.ndarray, " count"]


def read_images(source: IdxSource) -> Images:
    """All images with their labels.

    Raises DragomanError for a file of another kind or length, before memory is taken, and for unequal counts.
    """
    images, labels = find(source.images), find(source.labels)
    data = Images(read_idx(images, 3), read_idx(labels, 1))
    if len(data.pixels) != len(data.labels):
        raise Error.UNEQUAL_COUNTS(
            f" has {len(data.pixels):,} images but {show(labels)} has {len(data.labels):,} labels",
            "are they of the same set?",
            file=images,
        )
    return data


def read_idx(path: Path, num_dims: int) -> np.ndarray:
    """The bytes of an idx file of so many dimensions: 3 for images, 1 for labels.

    Raises DragomanError for a file of another kind or length.
    """
    with open_bytes(path) as stream:
        try:
            return _array(stream, num_dims, path)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise Error.DAMAGED("the gzip data is cut off or damaged", "fetch it again", file=path) from error


def _array(stream: BinaryIO, num_dims: int, path: Path) -> np.ndarray:
    magic = bytes([0, 0, 8, num_dims])
    header = stream.read(4 + 4 * num_dims)
    if not header.startswith(magic):
        raise Error.WRONG_FILE_TYPE(
            f"starts with {header[:4].hex(' ') or 'nothing'}, but idx {'images' if num_dims == 3 else 'labels'} "
            f"start with {magic.hex(' ')}",
            "are images and labels swapped?",
            file=path,
        )
    shape = [int.from_bytes(header[at : at + 4], "big") for at in range(4, len(header), 4)]
    size = math.prod(shape)
    says = f"its header says {' x '.join(f'{dim:,}' for dim in shape)} bytes"
    if len(header) < 4 + 4 * num_dims or not size:
        raise Error.DAMAGED(f"{says}: it is cut off or empty", file=path)
    if size > min(MAX_BYTES, path.stat().st_size * _INFLATION):
        raise Error.DAMAGED(f"{says}, more than the file can hold: it is damaged", file=path)
    data = stream.read(size + 1)
    if len(data) != size:
        raise Error.DAMAGED(
            f"{says}, but there are {'fewer' if len(data) < size else 'more'}", "fetch it again", file=path
        )
    return np.frombuffer(data, dtype=np.uint8).reshape(shape).copy()  # a copy may be written to, bytes may not
