"""Changes to a SentencePiece model that was learnt: pieces that are cut no more, and symbols that always are.

The file is a protocol buffer: fields one after the other, each with a key (its number and kind) before it. Field 1 is
an entry of the vocabulary, and in it field 1 is the piece, 2 its score and 3 its kind; of a field that comes twice the
later one counts. So nothing has to be rewritten but the entries meant, and all else stays as it is to the byte.
"""

from collections.abc import Collection, Iterator

from dragoman.errors import Error

_NORMAL, _USER_DEFINED, _UNUSED = 1, 4, 5
"""Kinds of entries: one that text is cut into, one that is cut out wherever it stands, one that is not used."""

_BYTES, _FLOAT, _NUMBER = 2, 5, 0
"""Kinds of fields: so many bytes, four bytes, a number of any length."""


def without(model: bytes, pieces: Collection[str]) -> bytes:
    """The model whose text is never cut into `pieces`, but into smaller ones: of BPE those that a piece was merged
    from, of a unigram model the next best way. Raises DragomanError for a damaged model."""
    unwanted = {piece.encode() for piece in pieces}
    kind = _key(3, _NUMBER) + _varint(_UNUSED)
    made = []
    for number, wire, body in _fields(model):
        is_entry = number == 1 and wire == _BYTES
        if is_entry and _piece(body) in unwanted and _kind(body) == _NORMAL:
            body += kind
        made.append(_field(number, wire, body))
    return b"".join(made)


def with_symbols(model: bytes, symbols: Collection[str]) -> bytes:
    """The model with further entries, each of which is a piece of its own wherever it stands in a text."""
    made = []
    for symbol in symbols:
        entry = _field(1, _BYTES, symbol.encode()) + _field(2, _FLOAT, bytes(4)) + _key(3, _NUMBER)
        made.append(_field(1, _BYTES, entry + _varint(_USER_DEFINED)))
    return model + b"".join(made)


def _piece(entry: bytes) -> bytes:
    return next((body for number, _, body in _fields(entry) if number == 1), b"")


def _kind(entry: bytes) -> int:
    found = [body for number, _, body in _fields(entry) if number == 3]
    return _read_varint(found[-1], 0)[0] if found else _NORMAL


def _fields(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """(number, kind, content) of each field. Raises DragomanError for what is no protocol buffer."""
    place = 0
    while place < len(data):
        key, place = _read_varint(data, place)
        number, wire = key >> 3, key & 7
        if wire == _BYTES:
            length, place = _read_varint(data, place)
            end = place + length
        elif wire == _NUMBER:
            end = _read_varint(data, place)[1]
        elif wire in (_FLOAT, 1):
            end = place + (4 if wire == _FLOAT else 8)
        else:
            end = len(data) + 1
        if end > len(data):
            raise Error.DAMAGED("the SentencePiece model is damaged")
        yield number, wire, data[place:end]
        place = end


def _field(number: int, wire: int, body: bytes) -> bytes:
    return _key(number, wire) + (_varint(len(body)) if wire == _BYTES else b"") + body


def _key(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; all bytes but the last have the highest bit set."""
    made = []
    while True:
        value, low = value >> 7, value & 0x7F
        made.append(low | (0x80 if value else 0))
        if not value:
            return bytes(made)


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    """(number, the place behind it)."""
    value = shift = 0
    while place < len(data) and shift < 64:
        byte, place = data[place], place + 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
    raise Error.DAMAGED("the SentencePiece model is damaged")
