"""Changes to a SentencePiece model that was learnt: pieces that are cut no more, symbols that always are, fillers."""

from collections.abc import Collection

from google.protobuf.message import DecodeError
from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined] # made when imported

from dragoman.errors import Error
from dragoman.special_tokens import SPECIALS, UNK_ID

_Entry = ModelProto.SentencePiece


def parsed(model: bytes, name: str = "the SentencePiece model") -> ModelProto:
    """The content of a model's file. Raises DragomanError for a damaged one."""
    try:
        return ModelProto.FromString(model)
    except DecodeError as error:
        raise Error.DAMAGED(" is damaged, or no SentencePiece model", file=name) from error


def normal_scores(model: bytes) -> dict[str, float]:
    """The score of each piece that a text may be cut into by the model's algorithm alone."""
    return {entry.piece: entry.score for entry in parsed(model).pieces if entry.type == _Entry.NORMAL}


def algorithm(model: bytes) -> str:
    """`unigram`, `bpe`, `word` or `char`."""
    return {1: "unigram", 2: "bpe", 3: "word", 4: "char"}[parsed(model).trainer_spec.model_type]


def specials_first(model: bytes, name: str) -> tuple[bytes, list[int]]:
    """The model with our four specials, by our names, before its other entries; and the old id of each, -1 for none.

    Its own specials are told by their parts there, whatever their names. No text is cut otherwise for it.
    """
    content = parsed(model, name)
    spec, entries = content.trainer_spec, list(content.pieces)
    unknown = [number for number, entry in enumerate(entries) if entry.type == _Entry.UNKNOWN]
    if len(unknown) != 1:
        raise Error.WRONG_SHAPE(f" has {len(unknown) or 'no'} pieces of the kind <unk>, and needs one", file=name)
    places = {entry.piece: number for number, entry in enumerate(entries)}
    order = [places.get(piece, -1) for piece in (spec.pad_piece, "", spec.bos_piece, spec.eos_piece)]
    order[UNK_ID] = unknown[0]
    for ours, (place, special) in enumerate(zip(order, SPECIALS, strict=True)):
        if place < 0 or (entries[place].type != _Entry.CONTROL and ours != UNK_ID):
            order[ours] = places.get(special, -1)
    first = [
        _Entry(piece=special, score=0.0, type=_Entry.UNKNOWN if special == SPECIALS[UNK_ID] else _Entry.CONTROL)
        for special in SPECIALS
    ]
    others = [number for number in range(len(entries)) if number not in order]
    if both := next((entries[number].piece for number in others if entries[number].piece in SPECIALS), None):
        raise Error.WRONG_SHAPE(f" has {both} beside another piece of its part", file=name)
    del content.pieces[:]
    content.pieces.extend([*first, *(entries[number] for number in others)])
    spec.pad_id, spec.unk_id, spec.bos_id, spec.eos_id = range(len(SPECIALS))
    spec.pad_piece, spec.unk_piece, spec.bos_piece, spec.eos_piece = SPECIALS
    spec.vocab_size = len(content.pieces)
    return bytes(content.SerializeToString()), [*order, *others]


def without(model: bytes, pieces: Collection[str]) -> bytes:
    """The model whose text is never cut into `pieces`, but into smaller ones: of BPE those that a piece was merged
    from, of a unigram model the next best way. Raises DragomanError for a damaged model."""
    content = parsed(model)
    for entry in content.pieces:
        if entry.piece in pieces and entry.type == _Entry.NORMAL:
            entry.type = _Entry.UNUSED
    return bytes(content.SerializeToString())


def with_symbols(model: bytes, symbols: Collection[str]) -> bytes:
    """The model with further entries, each of which is a piece of its own wherever it stands in a text."""
    content = parsed(model)
    known = [entry for entry in content.pieces if entry.piece in symbols]
    for entry in known:  # was cut into as other pieces are
        entry.type = _Entry.USER_DEFINED
    model = bytes(content.SerializeToString()) if known else model
    new = [symbol for symbol in symbols if symbol not in {entry.piece for entry in known}]
    entries = [_Entry(piece=symbol, score=0.0, type=_Entry.USER_DEFINED) for symbol in new]
    return model + bytes(ModelProto(pieces=entries).SerializeToString())  # of two models one after the other: both


def with_fillers(model: bytes, count: int) -> bytes:
    """The model with `count` further entries that no text is cut into, so that its size is what a program needs."""
    entries = [_Entry(piece=f"<filler{number}>", score=0.0, type=_Entry.UNUSED) for number in range(count)]
    return model + bytes(ModelProto(pieces=entries).SerializeToString())
