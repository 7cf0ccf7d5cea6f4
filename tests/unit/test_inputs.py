"""What classifiers read: keyed numbers, crops, augmentation, held-out parts, pictures."""

import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.errors import raises_error

from dragoman.config import parse
from dragoman.data.examples import (
    CropConfig,
    HeldOutSource,
    ImageCorpus,
    LabelledCorpus,
    Split,
    hold_out,
    read_splits,
)
from dragoman.data.image_augment import RANDOM_NUMBERS_PER_IMAGE, AugmentConfig, augment
from dragoman.data.inputs import (
    ImageInputs,
    ImageReader,
    Inputs,
    TextInputs,
    TextReader,
    cropped,
    read_images_in,
    read_picture,
)
from dragoman.data.random import keyed_uniform
from dragoman.errors import Error
from dragoman.text.tokenizers.sentencepiece import SentencePieceConfig, SentencePieceTokenizer
from dragoman.text.tokenizers.whitespace import WhitespaceConfig, WhitespaceTokenizer

STILL = AugmentConfig(degrees=0, zoom=0, shift=0, bend=0)


def in_epoch(inputs: Inputs, rows: np.ndarray, epoch: int) -> tuple[torch.Tensor, ...]:
    """The model's arguments for rows as they are in an epoch of training."""
    return inputs.in_epoch(rows, epoch, longest=100).collate(np.arange(len(rows)))


def test_keyed_numbers_are_even_and_each_key_has_its_own() -> None:
    rows = np.arange(2000)
    found = keyed_uniform(1, 0, rows, 5)
    assert found.shape == (2000, 5)
    assert found.min() >= 0
    assert found.max() < 1
    counts = np.histogram(found, bins=10, range=(0, 1))[0]
    assert np.abs(counts - 1000).max() < 5 * math.sqrt(900)  # five standard deviations
    assert np.abs(np.corrcoef(found.T) - np.eye(5)).max() < 0.12
    others = [keyed_uniform(*key, rows, 5) for key in ((1, 1), (2, 0), (0, 1))]
    assert len({array.tobytes() for array in [found, *others]}) == 4
    assert np.array_equal(keyed_uniform(1, 0, np.array([7, 3]), 5), found[[7, 3]])
    assert np.array_equal(keyed_uniform(1, 0, rows, 3), found[:, :3])


@pytest.mark.parametrize(
    ("uniform", "expected"),
    [
        ([0.5, 0.9, 0.9], [10, 11, 12, 13, 14, 15]),  # not one of those that are cropped
        ([0.49, 0.0, 0.0], [10, 11]),
        ([0.0, 0.0, 0.99], [14, 15]),
        ([0.0, 0.99, 0.99], [10, 11, 12, 13, 14, 15]),
        ([0.0, 0.5, 0.5], [11, 12, 13, 14]),  # the third of five lengths, the second of three starts
    ],
)
def test_cropped(uniform: list[float], expected: list[int]) -> None:
    ids = np.arange(10, 16)
    assert cropped(ids, np.array(uniform), CropConfig(min_tokens=2, share=0.5)).tolist() == expected


def test_a_text_as_short_as_a_crop_stays_whole() -> None:
    assert cropped(np.array([4, 5]), np.array([0.0, 0.0, 0.9]), CropConfig(min_tokens=2, share=1)).tolist() == [4, 5]


def test_texts_are_cropped_in_training_only_and_by_key() -> None:
    ids = [list(range(4, 4 + length)) for length in range(10, 40)]
    inputs = TextInputs(ids, crop=CropConfig(min_tokens=2, share=1.0), seed=3)
    rows = np.array([5, 20, 11])
    in_use, mask = inputs.collate(rows)
    assert in_use.shape == mask.shape == (3, 32)  # 30 ids and </s>, up to a multiple of 8
    assert mask.sum(dim=1).tolist() == [16, 31, 22]
    first, _ = in_epoch(inputs, rows, 0)
    assert torch.equal(first, in_epoch(inputs, rows, 0)[0])
    second, second_mask = in_epoch(inputs, rows, 1)
    assert first.shape != second.shape or not torch.equal(first, second)
    alone, alone_mask = in_epoch(inputs, rows[1:2], 1)
    assert torch.equal(alone[0, alone_mask[0]], second[1, second_mask[1]])
    piece = alone[0, alone_mask[0]][:-1].tolist()
    assert piece == list(range(piece[0], piece[0] + len(piece)))


def test_a_reader_cuts_lowers_and_resamples() -> None:
    corpus = parse(LabelledCorpus, {"train": {"type": "labelled", "path": "x"}, "lowercase": True, "max_tokens": 3})
    words = WhitespaceTokenizer.train(WhitespaceConfig(), iter(["a b c d e"]))
    inputs = TextReader(words, corpus)(["E d C b a", "A"])
    assert [words.decode(inputs.ids(row)) for row in (0, 1)] == ["e d c", "a"]
    lines = ["the cat sat on the mat", "a cat and a mat", "the cats sat"] * 5
    pieces = SentencePieceTokenizer.train(SentencePieceConfig(vocab_size=40, sampling=0.5), iter(lines))
    sampled = TextReader(pieces, parse(LabelledCorpus, {"train": {"type": "labelled", "path": "x"}}))(
        lines[:1], training=True
    )
    drawn = {tuple(in_epoch(sampled, np.array([0]), epoch)[0][0].tolist()) for epoch in range(8)}
    assert len(drawn) > 1
    assert {pieces.decode(ids) for ids in drawn} == {lines[0]}
    assert len({tuple(sampled.collate(np.array([0]))[0][0].tolist()) for _ in range(8)}) == 1


def test_nothing_to_augment_changes_nothing() -> None:
    images = torch.rand(3, 1, 9, 9)
    torch.testing.assert_close(
        augment(images, torch.rand(3, RANDOM_NUMBERS_PER_IMAGE), STILL), images, atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize(
    ("change", "number", "expected"),
    [
        ({"degrees": 90}, 0, lambda image: image.rot90(1, (-2, -1))),
        ({"shift": 2}, 2, lambda image: torch.nn.functional.pad(image[..., 2:], (0, 2))),
        ({"shift": 2}, 3, lambda image: torch.nn.functional.pad(image[..., 2:, :], (0, 0, 0, 2))),
    ],
)
def test_augment_turns_and_shifts(change: dict[str, float], number: int, expected: Any) -> None:
    """The most that is allowed, in one respect, equals what whole pixels give."""
    images = torch.rand(1, 1, 8, 8)
    uniform = torch.full((1, RANDOM_NUMBERS_PER_IMAGE), 0.5)
    uniform[0, number] = 1.0
    config = AugmentConfig(**{"degrees": 0, "zoom": 0, "shift": 0, "bend": 0, **change})
    torch.testing.assert_close(augment(images, uniform, config), expected(images), atol=1e-4, rtol=1e-4)


def test_bending_moves_parts_by_at_most_so_many_pixels() -> None:
    torch.manual_seed(1)
    ramp = torch.arange(16.0).expand(1, 1, 16, 16)
    moved = augment(ramp, torch.rand(1, RANDOM_NUMBERS_PER_IMAGE), AugmentConfig(degrees=0, zoom=0, shift=0, bend=1.5))
    change = (moved - ramp)[..., 3:-3, 3:-3]  # beyond the edges there is nothing
    assert change.abs().max() < 1.5 * 1.3  # the interpolation overshoots a little
    assert change.abs().max() > 0.1
    assert change.std() > 0.01


def test_images_are_augmented_in_training_only_and_by_key() -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (5, 8, 8), dtype=np.uint8)
    inputs = ImageInputs(pixels, 4, AugmentConfig(), seed=2)
    (in_use,) = inputs.collate(np.array([3, 1]))
    torch.testing.assert_close(in_use[:, 0], torch.from_numpy(pixels[[3, 1]]) / 127.5 - 1)
    (together,) = in_epoch(inputs, np.array([3, 1]), 4)
    (alone,) = in_epoch(inputs, np.array([1]), 4)
    torch.testing.assert_close(together[1:], alone)
    assert not torch.allclose(together, in_epoch(inputs, np.array([3, 1]), 5)[0])


def test_holding_out_is_by_content() -> None:
    texts = [f"text {number % 500}" for number in range(1000)]
    split = Split(texts, [str(number) for number in range(1000)], texts)
    rest, held = hold_out(split, 0.2)
    assert len(rest) + len(held) == 1000
    assert 120 < len(held) < 280
    assert not set(rest.items) & set(held.items)
    assert held.labels == [label for text, label in zip(texts, split.labels, strict=True) if text in set(held.items)]
    assert hold_out(split.take(reversed(range(1000))), 0.2)[1].labels == held.labels[::-1]
    assert [int(label) + 1 for label in rest.labels] == list(rest.numbers)
    assert rest.take([3, 5]).numbers == [rest.numbers[3], rest.numbers[5]]


def test_splits_of_a_corpus(tmp_path: Path) -> None:
    train = tmp_path / "train.tsv"
    train.write_text("".join(f"{number % 2}\ttext {number}\n" for number in range(50)), encoding="utf-8")
    source = {"type": "labelled", "path": str(train)}
    settings = {"train": source, "test": {"same": source}, "label_names": {"1": "odd"}}
    rest, held, tests = read_splits(parse(LabelledCorpus, settings))
    assert len(rest) + len(held) == len(tests["same"]) == 50
    assert set(rest.labels) == set(held.labels) == {"0", "odd"}
    with raises_error(Error.TOO_FEW):
        read_splits(parse(LabelledCorpus, {**settings, "valid": {"type": "held_out", "share": 1e-9}}))


def idx(values: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, values.ndim]) + b"".join(int(size).to_bytes(4, "big") for size in values.shape)
    return header + values.astype(np.uint8).tobytes()


def test_images_of_idx_files_are_held_out_too(tmp_path: Path) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (40, 6, 6))
    (tmp_path / "images").write_bytes(idx(pixels))
    (tmp_path / "labels").write_bytes(idx(np.arange(40) % 3))
    source = {"type": "idx", "images": str(tmp_path / "images"), "labels": str(tmp_path / "labels")}
    corpus = parse(ImageCorpus, {"train": source, "label_names": {"2": "two"}})
    assert isinstance(corpus.valid, HeldOutSource)
    rest, held, _ = read_splits(corpus)
    assert len(rest) + len(held) == 40
    assert held.titles[0].startswith("image ")
    number = int(held.titles[0].removeprefix("image ")) - 1
    assert np.array_equal(held.items[0], pixels[number])
    assert held.labels[0] == ["0", "1", "two"][number % 3]
    assert ImageReader(6, 4)(rest.items).pixels.shape == (len(rest), 6, 6)


def picture(path: Path, values: np.ndarray) -> str:
    from matplotlib.image import imsave

    imsave(path, values.astype(np.uint8))
    return str(path)


def test_pictures_become_grey_values(tmp_path: Path) -> None:
    colours = np.zeros((2, 3, 3))
    colours[0] = [[255, 0, 0], [0, 255, 0], [0, 0, 255]]
    colours[1] = 255
    found = read_picture(picture(tmp_path / "colours.png", colours))
    np.testing.assert_allclose(found, [[76.2, 149.7, 29.1], [255.0] * 3], atol=0.1)
    clear = np.zeros((2, 2, 4))
    clear[0, :, 3] = 255
    np.testing.assert_allclose(read_picture(picture(tmp_path / "clear.png", clear)), [[0, 0], [255, 255]], atol=0.1)


def test_pictures_are_resized_to_the_model(tmp_path: Path) -> None:
    left_half = np.zeros((20, 10, 3))
    left_half[:, :5] = 200
    inputs = ImageReader(4, 4)([picture(tmp_path / "half.png", left_half), np.full((4, 4), 7, dtype=np.uint8)])
    np.testing.assert_allclose(inputs.pixels[0], [[200, 200, 0, 0]] * 4, atol=40)
    np.testing.assert_allclose(inputs.pixels[0].mean(), 100, atol=1)
    assert (inputs.pixels[1] == 7).all()


def test_an_idx_file_has_many_images(tmp_path: Path) -> None:
    path = tmp_path / "some-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(idx(np.arange(8).reshape(2, 2, 2))))
    names, images = read_images_in(path)
    assert names == [f"{path}:1", f"{path}:2"]
    assert np.array_equal(images[1], [[4, 5], [6, 7]])


@pytest.mark.parametrize("content", [b"", b"no picture", b"\x89PNG\r\n\x1a\nbroken"])
def test_what_is_no_picture_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.png"
    path.write_bytes(content)
    with raises_error(Error.DAMAGED, "broken.png"):
        read_picture(path)
    with raises_error(Error.DAMAGED, "missing.png"):
        read_picture(tmp_path / "missing.png")
