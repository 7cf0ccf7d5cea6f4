"""The `tokenizer.json` of a model of Hugging Face, read by their library `tokenizers`: imported, never learnt.

The library cuts the text and gives ids of theirs; `order.json` says which of theirs each of ours is, as all
vocabularies here begin with the same four specials.
"""

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from dragoman.config import settings
from dragoman.errors import DragomanError, Error, not_installed
from dragoman.runs.atomic_io import read_bytes, read_json, write_json
from dragoman.text.tokenizers.base import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID, UNK_SURFACE, Tokenizer

MAX_BYTES = 256 * 2**20
_MODEL_FILE = "tokenizer.json"
_ORDER_FILE = "order.json"


@settings
class HubConfig:
    """An imported tokenizer; needs the extra dragoman[huggingface]."""

    type: Literal["hub"] = "hub"
    vocab_size: Annotated[int, Field(ge=5)]  #: Entries of its vocabulary, specials included. [tokens]


class HubTokenizer(Tokenizer):
    """Text that spells a special or the tag of a language is text, or unknown: it never becomes that id.

    `order`: the id there of each id here; two of ours may be one of theirs, of which texts become the later one.
    """

    config_class = HubConfig

    def __init__(self, config: HubConfig, model: bytes, order: list[int], name: str = "the tokenizer.json") -> None:
        super().__init__(config)
        self.model, self.order = model, order
        self._theirs = _read(model, name)
        if not all(isinstance(index, int) and index >= 0 for index in order) or len(order) < len(SPECIALS):
            raise Error.DAMAGED(f" does not fit {_ORDER_FILE}: one of them is damaged", file=name)
        self._ours = {theirs: ours for ours, theirs in enumerate(order)}
        # Some of their models find a special in a text that spells it; a text is a text here.
        added = self._theirs.get_added_tokens_decoder()
        special = [index for index, one in added.items() if one.special]
        self._symbols = {index: one.content for index, one in added.items() if not one.special}
        self._of_text = self._ours | dict.fromkeys([*special, order[UNK_ID]], UNK_ID)
        names: dict[str, int] = {special: index for index, special in enumerate(SPECIALS)}
        for ours in range(len(SPECIALS), len(order)):
            piece = self._theirs.id_to_token(order[ours]) or f"<{order[ours]}>"
            while piece in names:  # a special of theirs that has another part here
                piece += "'"
            names[piece] = ours
        self._names, self._ids = list(names), names

    @classmethod
    def check(cls, config: HubConfig) -> None:
        _library()

    @property
    def vocab_size(self) -> int:
        return len(self.order)

    def encode(self, text: str) -> list[int]:
        text = text.strip() if self._symbols else text  # no space of a stretch between two symbols is left out
        return [self._of_text.get(index, UNK_ID) for index in self._theirs.encode(text, add_special_tokens=False).ids]

    def letters(self, text: str) -> list[int]:
        offsets = self._theirs.encode(text, add_special_tokens=False).offsets
        counts, seen = [], 0
        for start, end in offsets:  # bytes of one character all have its place
            counts.append(sum(not letter.isspace() for letter in text[max(start, seen) : end]))
            seen = max(seen, end)
        return counts

    def decode(self, ids: Iterable[int]) -> str:
        parts: list[list[int]] = [[]]
        for index in self._checked(ids):
            if index == UNK_ID:
                parts.append([])
            elif index not in (PAD_ID, BOS_ID, EOS_ID):
                parts[-1].append(self.order[index])
        return f" {UNK_SURFACE} ".join(self._text(part).strip() for part in parts).strip()

    def _text(self, theirs: list[int]) -> str:
        if type(self._theirs.decoder).__name__ != "ByteLevel":
            return str(self._theirs.decode(theirs, skip_special_tokens=True))
        # It would take the letters of a symbol for bytes.
        runs = ((symbol, list(run)) for symbol, run in itertools.groupby(theirs, self._symbols.get))
        texts = (
            symbol * len(run) if symbol else self._theirs.decode(run, skip_special_tokens=True) for symbol, run in runs
        )
        return "".join(texts)

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [self._names[index] for index in self._checked(ids)]

    def id_of(self, piece: str) -> int:
        return self._ids.get(piece, UNK_ID)

    def piece_of(self, theirs: int) -> str:
        """The piece of an id of theirs."""
        return self._names[self._ours[theirs]]

    def _save_model(self, directory: Path) -> None:
        (directory / _MODEL_FILE).write_bytes(self.model)
        write_json(directory / _ORDER_FILE, self.order)

    @classmethod
    def _load_model(cls, config: HubConfig, directory: Path) -> Self:
        path = directory / _MODEL_FILE
        return cls(config, read_bytes(path, MAX_BYTES), read_json(directory / _ORDER_FILE, list), name=str(path))


def _library() -> Any:
    try:
        import tokenizers
    except ImportError as error:
        raise not_installed("tokenizer {type: hub} needs tokenizers", "huggingface") from error
    return tokenizers


def _read(model: bytes, name: str) -> Any:
    try:
        theirs = _library().Tokenizer.from_buffer(model)
    except DragomanError:
        raise
    except Exception as error:  # the library raises its own kind, which is Exception itself
        raise Error.DAMAGED(f" is damaged: {error}", file=name) from error
    theirs.no_padding()
    theirs.no_truncation()
    theirs.encode_special_tokens = True
    return theirs
