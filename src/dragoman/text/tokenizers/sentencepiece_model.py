"""Changes to a SentencePiece model that was learnt: pieces that are cut no more, symbols that always are, fillers."""

from collections.abc import Collection

from google.protobuf.message import DecodeError
from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined] # made when imported

from dragoman.errors import Error

_Entry = ModelProto.SentencePiece


def without(model: bytes, pieces: Collection[str]) -> bytes:
    """The model whose text is never cut into `pieces`, but into smaller ones: of BPE those that a piece was merged
    from, of a unigram model the next best way. Raises DragomanError for a damaged model."""
    try:
        parsed = ModelProto.FromString(model)
    except DecodeError as error:
        raise Error.DAMAGED("the SentencePiece model is damaged") from error
    for entry in parsed.pieces:
        if entry.piece in pieces and entry.type == _Entry.NORMAL:
            entry.type = _Entry.UNUSED
    return bytes(parsed.SerializeToString())


def with_symbols(model: bytes, symbols: Collection[str]) -> bytes:
    """The model with further entries, each of which is a piece of its own wherever it stands in a text."""
    entries = [_Entry(piece=symbol, score=0.0, type=_Entry.USER_DEFINED) for symbol in symbols]
    return model + bytes(ModelProto(pieces=entries).SerializeToString())  # of two models one after the other: both


def with_fillers(model: bytes, count: int) -> bytes:
    """The model with `count` further entries that no text is cut into, so that its size is what a program needs."""
    entries = [_Entry(piece=f"<filler{number}>", score=0.0, type=_Entry.UNUSED) for number in range(count)]
    return model + bytes(ModelProto(pieces=entries).SerializeToString())
