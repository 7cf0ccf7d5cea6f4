"""The `tokenizer.json` of a model of Hugging Face, read by their library `tokenizers`: imported, never learnt.

The library cuts the text and gives ids of theirs; `order.json` says which of theirs each of ours is, as all
vocabularies here begin with the same four specials.
"""

import itertools
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from dragoman.config import settings
from dragoman.errors import DragomanError, Error, not_installed
from dragoman.runs.atomic_io import read_bytes, read_json, write_json
from dragoman.special_tokens import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID
from dragoman.text.tokenizers.base import UNK_SURFACE, Tokenizer

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
        self._theirs = read(model, name)
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

    def with_entries(
        self, kept: list[int], new: Sequence[str], tags: Collection[str] = ()
    ) -> tuple["HubTokenizer", list[int]]:
        """The tokenizer with the entries `kept` and the new ones behind them, and those that it had to keep besides.

        Entries are taken out of the tokenizer.json, and the others numbered anew. `tags`: those that no text is cut
        into."""
        described = json.loads(self.model)
        model = described["model"]
        is_list = isinstance(model["vocab"], list)
        ids = {piece: index for index, (piece, _) in enumerate(model["vocab"])} if is_list else dict(model["vocab"])
        stay = {self.order[index] for index in kept}
        if "merges" in model and len(kept) < self.vocab_size:
            stay |= _merged_from(ids, model["merges"], stay)
            kept = [index for index, theirs in enumerate(self.order) if theirs in stay]
        named = set(range(len(model["vocab"])) if is_list else ids.values()) | {
            one["id"] for one in described["added_tokens"]
        }
        numbers = {theirs: number for number, theirs in enumerate(sorted(stay & named))}
        first = len(numbers)  # of the new ones; rows without any entry come behind them
        numbers |= {theirs: number for number, theirs in enumerate(sorted(stay - named), start=first + len(new))}
        if is_list:
            model["vocab"] = [entry for index, entry in enumerate(model["vocab"]) if index in stay]
            if model.get("unk_id") is not None:
                model["unk_id"] = numbers.get(model["unk_id"])
        else:
            model["vocab"] = {piece: numbers[index] for piece, index in ids.items() if index in stay}
        if "merges" in model:
            model["merges"] = [
                merge for merge in model["merges"] if all(piece in model["vocab"] for piece in _three(merge))
            ]
        added = [{**one, "id": numbers[one["id"]]} for one in described["added_tokens"] if one["id"] in numbers]
        for place, piece in enumerate(new, start=first):
            plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
            added.append({"id": place, "content": piece, "special": piece in tags, **plain})
        if any(piece not in tags for piece in new):
            _join_symbols(described)
        described |= {"added_tokens": added, "post_processor": None, "truncation": None, "padding": None}
        order = [*(numbers[self.order[index]] for index in kept), *range(first, first + len(new))]
        changed = HubTokenizer(
            replace(self.config, vocab_size=len(order)), json.dumps(described, ensure_ascii=False).encode(), order
        )
        return changed, kept

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


def read(model: bytes, name: str) -> Any:
    """The library's own tokenizer, which finds no special in a text. Raises DragomanError for a damaged file."""
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


def _join_symbols(described: dict[str, Any]) -> None:
    """Let a text begin with a space but not what stands behind a symbol: the library prepares each stretch between
    symbols by itself, as if it were a text. White space at the ends of a text is for `HubTokenizer` then."""

    def steps(kind: str) -> list[dict[str, Any]]:
        one = described[kind]
        several = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers"}[kind]
        return [] if one is None else list(one[several]) if one["type"] == "Sequence" else [one]

    spelling = [one for one in steps("normalizer") if one["type"] != "Strip"]
    cutting: list[dict[str, Any]] = []
    for one in steps("pre_tokenizer"):
        prefix = {"type": "Metaspace", "prepend_scheme": "first"}
        if one["type"] == "WhitespaceSplit":
            spelling.append({"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "})
        elif one["type"] == "Metaspace" and one.get("prepend_scheme", "always") == "always":
            cutting.append({"split": True, **one, **prefix})
        elif one["type"] == "ByteLevel" and one["add_prefix_space"]:
            cutting += [{**prefix, "replacement": " ", "split": False}, {**one, "add_prefix_space": False}]
        else:
            cutting.append(one)
    described["normalizer"] = {"type": "Sequence", "normalizers": spelling}
    described["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": cutting}


def _three(merge: Any) -> tuple[str, str, str]:
    """Both parts of a merge, and what they become."""
    first, second = merge.split(" ") if isinstance(merge, str) else merge
    return first, second, first + second


def _merged_from(ids: Mapping[str, int], merges: Iterable[Any], entries: Iterable[int]) -> set[int]:
    """The entries that `entries` are merged from, in as many steps as it takes."""
    parts: dict[str, list[str]] = {}
    for merge in merges:
        first, second, both = _three(merge)
        parts.setdefault(both, []).extend((first, second))
    names = {index: piece for piece, index in ids.items()}
    components: set[int] = set()
    waiting = [names[index] for index in entries if index in names]
    while waiting:
        for part in parts.get(waiting.pop(), ()):
            if part in ids and ids[part] not in components:
                components.add(ids[part])
                waiting.append(part)
    return components
