"""Marian's files: written, read back bit for bit, and refused where they are damaged."""

import struct
from pathlib import Path

import numpy as np
import pytest
from tests.errors import raises_error

from dragoman.errors import DragomanError, Error
from dragoman.export import marian_format
from dragoman.export.bergamot import is_quantised

RNG = np.random.default_rng(1)
ARRAYS = {
    "Wemb": RNG.normal(size=(16, 8)).astype(np.float32),
    "encoder_l1_ffn_W1": RNG.normal(size=(8, 24)).astype(np.float32),
    "decoder_ff_logit_out_b": RNG.normal(size=(1, 16)).astype(np.float32),
}
OPTIONS = {"type": "transformer", "dim-vocabs": [16, 16], "transformer-preprocess": "", "skip": False}


def test_an_npz_comes_back_bit_for_bit(tmp_path: Path) -> None:
    marian_format.write_npz(tmp_path / "model.npz", ARRAYS, OPTIONS)
    arrays, options = marian_format.read_npz(tmp_path / "model.npz")
    assert options == OPTIONS
    assert arrays.keys() == ARRAYS.keys()
    assert all(np.array_equal(arrays[name], ARRAYS[name]) for name in ARRAYS)
    with np.load(tmp_path / "model.npz") as file:  # Marian reads a text that ends in a zero
        packed = file[marian_format.OPTIONS]
    assert packed.dtype == np.int8
    assert len(packed) % 256 == 0
    assert packed[-1] == 0


def test_a_bin_comes_back_bit_for_bit(tmp_path: Path) -> None:
    items = {name: marian_format.quantise(one) if is_quantised(name) else one for name, one in ARRAYS.items()}
    marian_format.write_bin(tmp_path / "model.bin", items, OPTIONS)
    found, options = marian_format.read_bin(tmp_path / "model.bin")
    assert options == OPTIONS
    assert np.array_equal(found["decoder_ff_logit_out_b"], ARRAYS["decoder_ff_logit_out_b"])
    for name in ("Wemb", "encoder_l1_ffn_W1"):
        matrix, written = found[name], items[name]
        assert isinstance(matrix, marian_format.Quantised)
        assert isinstance(written, marian_format.Quantised)
        assert np.array_equal(matrix.integers, written.integers)
        assert matrix.multiplier == written.multiplier
        assert np.abs(matrix.values() - ARRAYS[name]).max() <= 0.5 / matrix.multiplier + 1e-7
        assert np.abs(matrix.integers).max() == 127


def test_values_of_a_bin_begin_at_multiples_of_256_and_matrices_but_embeddings_are_transposed(tmp_path: Path) -> None:
    items = {name: marian_format.quantise(ARRAYS[name]) for name in ("Wemb", "encoder_l1_ffn_W1")}
    marian_format.write_bin(tmp_path / "model.bin", items, OPTIONS)
    data = (tmp_path / "model.bin").read_bytes()
    assert struct.unpack_from("<2Q", data) == (1, 3)
    sizes = [struct.unpack_from("<4Q", data, 16 + 32 * number)[3] for number in range(3)]
    assert all(size % 256 == 0 for size in sizes)
    first = len(data) - sum(sizes)
    assert first % 256 == 0
    assert data[first : first + 128] == items["Wemb"].integers.tobytes()
    second = first + sizes[0]
    assert data[second : second + 192] == items["encoder_l1_ffn_W1"].integers.T.tobytes()
    assert struct.unpack_from("<f", data, second + 192)[0] == items["encoder_l1_ffn_W1"].multiplier


def test_a_matrix_of_zeros_is_quantised() -> None:
    assert not marian_format.quantise(np.zeros((8, 8), np.float32)).values().any()


@pytest.mark.parametrize("read", ["npz", "bin"])
def test_every_cut_of_a_file_is_refused(tmp_path: Path, read: str) -> None:
    path = tmp_path / f"model.{read}"
    getattr(marian_format, f"write_{read}")(path, ARRAYS, OPTIONS)
    data = path.read_bytes()
    for length in range(0, len(data) - 256, 97):
        path.write_bytes(data[:length])
        with pytest.raises(DragomanError):
            getattr(marian_format, f"read_{read}")(path)


def test_a_pickle_in_an_npz_is_never_opened(tmp_path: Path) -> None:
    np.savez(tmp_path / "model.npz", Wemb=np.array([{}], dtype=object))
    with raises_error(Error.DAMAGED):
        marian_format.read_npz(tmp_path / "model.npz")


def test_types_that_are_packed_for_one_processor_are_refused(tmp_path: Path) -> None:
    marian_format.write_bin(tmp_path / "model.bin", ARRAYS, OPTIONS)
    data = bytearray((tmp_path / "model.bin").read_bytes())
    struct.pack_into("<Q", data, 24, 0x1801)
    (tmp_path / "model.bin").write_bytes(data)
    with raises_error(Error.DAMAGED):
        marian_format.read_bin(tmp_path / "model.bin")


def test_a_binary_shortlist_has_the_layout_that_browsers_check(tmp_path: Path) -> None:
    marian_format.write_lexicon(tmp_path / "lex.bin", [[5, 4], [], [7]], first=3)
    data = (tmp_path / "lex.bin").read_bytes()
    magic, checksum, first, longest, offsets, ids = struct.unpack_from("<6Q", data)
    assert (magic, first, longest, offsets, ids) == (0xF11A48D5013417F5, 3, 2, 4, 3)
    assert struct.unpack_from("<4Q", data, 48) == (0, 2, 2, 3)
    assert struct.unpack_from("<3I", data, 80) == (4, 5, 7)
    assert len(data) == 92
    value = 0
    for unit in struct.unpack_from("<9Q", data, 16):
        value ^= (unit + 0x9E3779B9 + value * 64 + value // 4) % 2**64
    assert checksum == value
