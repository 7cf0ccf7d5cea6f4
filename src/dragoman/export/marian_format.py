"""Marian's files of weights: `.npz`, and `.bin`, which is mapped into memory and may hold integers.

Both hold named matrices and, as one of them, the options of the model in YAML (`special:model.yml`, int8, ending in
zeros). A `.bin` is, in little-endian numbers of 64 bits: its version (1), the number of items, for each of them the
length of its name, type, number of dimensions and bytes; then the names, each ending in a zero byte, the dimensions (32
bits each), the number of bytes to skip, and the values, which begin at a multiple of 256 bytes.

A matrix of the type `intgemm8` is quantised as browsers compute it: bytes of round(values * m), with m = 127 / the
largest magnitude, then m itself. Every matrix but an embedding is stored transposed, under the shape it has otherwise.
"""

import io
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile  # noqa: TID251 - an exception, and no archive is unpacked

import numpy as np
import yaml

from dragoman.config import from_yaml
from dragoman.errors import Error
from dragoman.runs.atomic_io import read_bytes, replace_bytes

OPTIONS = "special:model.yml"
MAX_BYTES = 16 * 2**30
VERSION, ALIGNMENT = 1, 256
TYPES: dict[int, np.dtype[Any]] = {
    0x101: np.dtype("<i1"),
    0x402: np.dtype("<f2"),
    0x404: np.dtype("<f4"),
    0x408: np.dtype("<f8"),
}
"""Numbers of the types that a plain array may have."""
INTGEMM8 = 0x4101
SHORTLIST_MAGIC = 0xF11A48D5013417F5


class Quantised(NamedTuple):
    """A matrix in 8 bits: values are about `integers / multiplier`."""

    integers: np.ndarray
    multiplier: np.float32

    def values(self) -> np.ndarray:
        """The numbers that it stands for, in float32."""
        numbers: np.ndarray = self.integers.astype(np.float32) / self.multiplier
        return numbers


Items = Mapping[str, "np.ndarray | Quantised"]


def quantise(matrix: np.ndarray) -> Quantised:
    """Round to 8 bits, symmetric about zero; what lies half way goes to the even number."""
    largest = float(np.abs(matrix).max(initial=0.0)) or 1.0
    multiplier = np.float32(127.0 / largest)
    return Quantised(np.clip(np.rint(matrix * multiplier), -127, 127).astype(np.int8), multiplier)


# -- .npz ----------------------------------------------------------------------------------------------------------


def write_npz(path: Path, arrays: Mapping[str, np.ndarray], options: Mapping[str, Any]) -> None:
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **{**arrays, OPTIONS: _packed(options)})
    replace_bytes(path, stream.getvalue())


def read_npz(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """(arrays by name, the options of the model). Raises DragomanError where it is damaged or holds a pickle."""
    data = read_bytes(path, MAX_BYTES)
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, OSError, EOFError, KeyError, BadZipFile, NotImplementedError, MemoryError) as error:
        raise Error.DAMAGED(f"is no .npz of Marian, or damaged: {error}", file=path) from error
    if OPTIONS not in arrays:
        raise Error.CANNOT_IMPORT(f"has no {OPTIONS}, which says what the model is", file=path)
    return arrays, _unpacked(arrays.pop(OPTIONS).tobytes(), path)


def _packed(options: Mapping[str, Any]) -> np.ndarray:
    text = yaml.safe_dump(dict(options), default_flow_style=None, sort_keys=True).encode()
    return np.frombuffer(text + bytes(ALIGNMENT - len(text) % ALIGNMENT), dtype=np.int8)


def _unpacked(data: bytes, path: Path) -> dict[str, Any]:
    try:
        return from_yaml(data.partition(b"\0")[0].decode("utf-8"), f"{path}: {OPTIONS}")
    except UnicodeDecodeError as error:
        raise Error.DAMAGED(f"{OPTIONS} is no UTF-8: {error}", file=path) from error


# -- .bin ----------------------------------------------------------------------------------------------------------


def write_bin(path: Path, items: Items, options: Mapping[str, Any]) -> None:
    """Write named matrices, plain or quantised, with the options of the model."""
    everything: dict[str, np.ndarray | Quantised] = {**items, OPTIONS: _packed(options)}
    headers, names, shapes, bodies = b"", b"", b"", []
    for name, item in everything.items():
        matrix = item.integers if isinstance(item, Quantised) else item
        body = _body(name, item)
        names += name.encode() + b"\0"
        shapes += struct.pack(f"<{matrix.ndim}i", *matrix.shape)
        headers += struct.pack("<4Q", len(name.encode()) + 1, _type(name, item), matrix.ndim, len(body))
        bodies.append(body)
    head = struct.pack("<2Q", VERSION, len(everything)) + headers + names + shapes
    skipped = -(len(head) + 8) % ALIGNMENT
    replace_bytes(path, b"".join([head, struct.pack("<Q", skipped), bytes(skipped), *bodies]))


def _type(name: str, item: "np.ndarray | Quantised") -> int:
    if isinstance(item, Quantised):
        return INTGEMM8
    for number, dtype in TYPES.items():
        if dtype == item.dtype:
            return number
    raise TypeError(f"{name}: {item.dtype} is no type of a .bin")


def _body(name: str, item: "np.ndarray | Quantised") -> bytes:
    """The bytes of an item, filled up to a multiple of 256."""
    if isinstance(item, Quantised):
        stored = item.integers if _is_embedding(name) else item.integers.T
        data = np.ascontiguousarray(stored).tobytes() + item.multiplier.tobytes()
    else:
        data = np.ascontiguousarray(item).tobytes()
    return data + bytes(-len(data) % ALIGNMENT)


def _is_embedding(name: str) -> bool:
    return "Wemb" in name


def read_bin(path: Path) -> tuple[dict[str, "np.ndarray | Quantised"], dict[str, Any]]:
    """(matrices by name, the options of the model), as `write_bin` takes them. Raises DragomanError for a damaged file,
    and for a file with types that are made for one kind of processor."""
    data = read_bytes(path, MAX_BYTES)
    try:
        items = _parsed(data)
    except (ValueError, KeyError, struct.error, UnicodeDecodeError, OverflowError, MemoryError) as error:
        raise Error.DAMAGED(f"is no .bin of Marian, or damaged: {error}", file=path) from error
    options = items.pop(OPTIONS, None)
    if not isinstance(options, np.ndarray):
        raise Error.CANNOT_IMPORT(f"has no {OPTIONS}, which says what the model is", file=path)
    return items, _unpacked(options.tobytes(), path)


def _parsed(data: bytes) -> dict[str, "np.ndarray | Quantised"]:
    version, count = struct.unpack_from("<2Q", data)
    if version != VERSION:
        raise ValueError(f"version {version} of the format; known is {VERSION}")
    if count > len(data) // 32:
        raise ValueError("it ends too early")
    headers = [struct.unpack_from("<4Q", data, 16 + 32 * number) for number in range(count)]
    place = 16 + 32 * count
    names, shapes = [], []
    for length, *_ in headers:
        names.append(data[place : place + length].rstrip(b"\0").decode("utf-8"))
        place += length
    for _, _, dimensions, _ in headers:
        shapes.append(struct.unpack_from(f"<{dimensions}i", data, place))
        place += 4 * dimensions
    place += 8 + struct.unpack_from("<Q", data, place)[0]
    items: dict[str, np.ndarray | Quantised] = {}
    for name, shape, (_, kind, _, size) in zip(names, shapes, headers, strict=True):
        if place + size > len(data) or min(shape, default=0) < 0:
            raise ValueError("it ends too early")
        items[name] = _item(name, shape, kind, data[place : place + size])
        place += size
    return items


def _item(name: str, shape: tuple[int, ...], kind: int, body: bytes) -> "np.ndarray | Quantised":
    elements = int(np.prod(shape, dtype=np.int64))
    if kind == INTGEMM8:
        integers = np.frombuffer(body, np.int8, elements)
        rows, columns = shape
        matrix = integers.reshape(shape) if _is_embedding(name) else integers.reshape(columns, rows).T
        return Quantised(matrix, np.float32(np.frombuffer(body, "<f4", 1, elements)[0]))
    if kind not in TYPES:
        raise ValueError(f"{name} has values of type {kind:#x}, which are packed for one processor")
    return np.frombuffer(body, TYPES[kind], elements).reshape(shape)


# -- the shortlist -------------------------------------------------------------------------------------------------


def write_lexicon(path: Path, lists: list[list[int]], first: int) -> None:
    """Write a binary shortlist: the target ids that each source id may need, a list for each source id.

    `first`: so many ids, from 0 on, are candidates always.
    """
    offsets = np.cumsum([0, *map(len, lists)]).astype("<u8")
    ids = np.concatenate([np.sort(np.array(one, dtype="<u4")) for one in lists] or [np.zeros(0, "<u4")])
    body = struct.pack("<4Q", first, max(map(len, lists), default=0), len(offsets), len(ids))
    body += offsets.tobytes() + ids.astype("<u4").tobytes()
    replace_bytes(path, struct.pack("<2Q", SHORTLIST_MAGIC, checksum(body)) + body)


def checksum(data: bytes) -> int:
    """Of whole units of 8 bytes, each added to a mix of the sum before it; what is left over has no part."""
    value, mask = 0, 2**64 - 1
    for unit in np.frombuffer(data[: len(data) // 8 * 8], "<u8").tolist():
        value ^= (unit + 0x9E3779B9 + (value << 6) + (value >> 2)) & mask
        value &= mask
    return value
