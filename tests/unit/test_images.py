"""Images in idx files: pixels as they were, and damaged headers refused before memory is taken."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import DragomanError
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


@settings(deadline=None, max_examples=30)
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
    ("images", "complaint"),
    [
        (idx(LABELS), "images: starts with 00 00 08 01, but idx images start with 00 00 08 03: are images and labels"),
        (b"\0\0\x0d\x03" + idx(PIXELS)[4:], "starts with 00 00 0d 03"),
        (b"PNG!", "starts with 50 4e 47 21"),
        (b"", "starts with nothing"),
        (idx(PIXELS)[:10], "images: its header says .* it is cut off or empty"),
        (idx(PIXELS[:0]), "its header says 0 x 4 x 5 bytes: it is cut off or empty"),
        (idx(PIXELS)[:-1], "its header says 3 x 4 x 5 bytes, but there are fewer: fetch it again"),
        (idx(PIXELS) + b"\0", "its header says 3 x 4 x 5 bytes, but there are more: fetch it again"),
        (struct.pack(">HBB3I", 0, 8, 3, 2**32 - 1, 2**32 - 1, 2**32 - 1), "more than the file can hold: it is damaged"),
        (struct.pack(">HBB3I", 0, 8, 3, 60_000, 28, 28), "60,000 x 28 x 28 bytes, more than the file can hold"),
        (idx(PIXELS[:2]), "images has 2 images but .*labels has 3 labels: are they of the same set"),
    ],
)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_damage_is_refused(tmp_path: Path, images: bytes, complaint: str, suffix: str) -> None:
    source = write(tmp_path, images, suffix=suffix)
    with pytest.raises(DragomanError, match=complaint.replace("images:", f"images{suffix}:").replace(
        "images has", f"images{suffix} has").replace("labels has", f"labels{suffix} has")):  # fmt: skip
        read_images(source)


def test_swapped_files_are_told(tmp_path: Path) -> None:
    source = write(tmp_path)
    with pytest.raises(DragomanError, match="are images and labels swapped"):
        read_images(IdxSource(images=source.labels, labels=source.images))


@pytest.mark.parametrize("cut", [15, -9, -3])
def test_damaged_gzip_is_refused(tmp_path: Path, cut: int) -> None:
    source = write(tmp_path, suffix=".gz")
    path = Path(source.images)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(DragomanError, match=r"images.gz: the gzip data is cut off or damaged"):
        read_images(source)


def test_fingerprint_covers_both_files(tmp_path: Path) -> None:
    source = write(tmp_path)
    first = fingerprint(source)
    write(tmp_path, labels=idx(LABELS[::-1]))
    assert fingerprint(source) != first
