"""Images in idx files: pixels as they were, and damaged headers refused before memory is taken."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.errors import raises_error

from dragoman.errors import Error
from dragoman.text.images import IdxSource, read_images
from dragoman.text.sources.base import files_of, fingerprint

PIXELS = np.arange(3 * 4 * 5, dtype=np.uint8).reshape(3, 4, 5)
LABELS = np.array([7, 0, 255], dtype=np.uint8)


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


def write(folder: Path, images: bytes = idx(PIXELS), labels: bytes = idx(LABELS), suffix: str = "") -> IdxSource:
    pack = gzip.compress if suffix else bytes
    for name, content in (("images", images), ("labels", labels)):
        (folder / f"{name}{suffix}").write_bytes(pack(content))
    return IdxSource(images=str(folder / f"images{suffix}"), labels=str(folder / f"labels{suffix}"))


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_pixels_and_labels_come_back(tmp_path: Path, suffix: str) -> None:
    source = write(tmp_path, suffix=suffix)
    found = read_images(source)
    for array, expected in ((found.pixels, PIXELS), (found.labels, LABELS)):
        assert array.dtype == np.uint8
        assert array.flags.writeable
        np.testing.assert_array_equal(array, expected, strict=True)
    assert [path.name for path in files_of(source)] == [f"images{suffix}", f"labels{suffix}"]


@settings(max_examples=30)
@given(shape=st.tuples(*[st.integers(1, 6)] * 3), content=st.data(), suffix=st.sampled_from(["", ".gz"]))
def test_any_shape(
    tmp_path_factory: pytest.TempPathFactory, shape: tuple[int, int, int], content: st.DataObject, suffix: str
) -> None:
    size = int(np.prod(shape))
    pixels = np.frombuffer(content.draw(st.binary(min_size=size, max_size=size)), dtype=np.uint8).reshape(shape)
    labels = np.zeros(shape[0], dtype=np.uint8)
    found = read_images(write(tmp_path_factory.mktemp("idx"), idx(pixels), idx(labels), suffix))
    np.testing.assert_array_equal(found.pixels, pixels, strict=True)


@pytest.mark.parametrize(
    ("images", "code"),
    [
        (idx(LABELS), Error.WRONG_FILE_TYPE),
        (b"\0\0\x0d\x03" + idx(PIXELS)[4:], Error.WRONG_FILE_TYPE),
        (b"PNG!", Error.WRONG_FILE_TYPE),
        (b"", Error.WRONG_FILE_TYPE),
        (idx(PIXELS)[:10], Error.DAMAGED),
        (idx(PIXELS[:0]), Error.DAMAGED),
        (idx(PIXELS)[:-1], Error.DAMAGED),
        (idx(PIXELS) + b"\0", Error.DAMAGED),
        (struct.pack(">HBB3I", 0, 8, 3, 2**32 - 1, 2**32 - 1, 2**32 - 1), Error.DAMAGED),
        (struct.pack(">HBB3I", 0, 8, 3, 60_000, 28, 28), Error.DAMAGED),
        (idx(PIXELS[:2]), Error.UNEQUAL_COUNTS),
    ],
)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_damage_is_refused(tmp_path: Path, images: bytes, code: Error, suffix: str) -> None:
    source = write(tmp_path, images, suffix=suffix)
    with raises_error(code, f"images{suffix}"):
        read_images(source)


def test_swapped_files_are_told(tmp_path: Path) -> None:
    source = write(tmp_path)
    with raises_error(Error.WRONG_FILE_TYPE, "labels"):
        read_images(IdxSource(images=source.labels, labels=source.images))


@pytest.mark.parametrize("cut", [15, -9, -3])
def test_damaged_gzip_is_refused(tmp_path: Path, cut: int) -> None:
    source = write(tmp_path, suffix=".gz")
    path = Path(source.images)
    path.write_bytes(path.read_bytes()[:cut])
    with raises_error(Error.DAMAGED, "images.gz"):
        read_images(source)


def test_fingerprint_covers_both_files(tmp_path: Path) -> None:
    source = write(tmp_path)
    first = fingerprint(source)
    write(tmp_path, labels=idx(LABELS[::-1]))
    assert fingerprint(source) != first
