"""Steps 2 and 3: what every tokenizer can do, and the vocabulary file that most of them share."""

import heapq
import json
import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from dragoman import config as settings_io
from dragoman.errors import Error
from dragoman.runs.atomic_io import read_json, write_json
from dragoman.special_tokens import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID

UNK_SURFACE = "⁇"
"""The text that `decode` writes for the unknown piece: visible, and in no one's text."""


class Tokenizer(ABC):
    """Text to token ids and back.

    `encode` never adds specials, and text that spells one ("<s>") never becomes its id. `decode` leaves out padding,
    `<s>` and `</s>` and shows the unknown piece as UNK_SURFACE. A saved tokenizer is plain files; loading runs no code.
    """

    config_class: ClassVar[Any]

    sampling: bool = False
    """True where `sample_segmentation` gives other segmentations."""

    before: Sequence[int] = ()
    """The ids that every text of `encode` begins with, such as the tag of its language."""
    after: Sequence[int] = ()
    """Tokens that it ends with."""

    def __init__(self, config: Any) -> None:
        self.config = config

    @classmethod  # noqa: B027 (most need no library)
    def check(cls, config: Any) -> None:
        """Raises DragomanError when a library that the settings ask for is not installed."""

    @classmethod
    def train(cls, config: Any, lines: Iterator[str]) -> Self:
        """A tokenizer learnt from lines of text, always the same one.

        Raises DragomanError if there is no text, and for a type that is imported: one without a method of its own.
        """
        raise Error.UNSUPPORTED(
            f"tokenizer {{type: {config.type}}} is imported, not learnt", "use `dragoman import`, or another type"
        )

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """Number of ids, specials included."""

    @abstractmethod
    def encode(self, text: str) -> list[int]: ...

    def encode_part(self, text: str) -> list[int]:
        """The ids of a part of a text: `encode` without what stands around a whole one."""
        return self.encode(text)

    def encode_like(self, ids: list[int], text: str) -> list[int]:
        """The ids of a text in the place of the one that `ids` spell: with the same tags around it."""
        return self.encode(text)

    @abstractmethod
    def decode(self, ids: Iterable[int]) -> str:
        """The text of the ids. Raises DragomanError for an id outside of the vocabulary."""

    @abstractmethod
    def letters(self, text: str) -> list[int]:
        """Number of characters, spaces not counted, of each id of `encode(text)`, unknown or not."""

    def encode_text(self, text: str) -> Iterator[int]:
        """The ids of a text of any number of lines: each line is `encode`d by itself, and each LF is `</s>`."""
        for number, line in enumerate(text.split("\n")):
            if number:
                yield EOS_ID
            yield from self.encode(line)

    def decode_text(self, ids: Iterable[int]) -> str:
        """The text that `encode_text` took, its line feeds for certain and its lines as exactly as `decode` can."""
        lines: list[list[int]] = [[]]
        for index in ids:
            if index == EOS_ID:
                lines.append([])
            else:
                lines[-1].append(index)
        return "\n".join(map(self.decode, lines))

    @abstractmethod
    def pieces(self, ids: Iterable[int]) -> list[str]:
        """The vocabulary's name of each id, specials included. Raises DragomanError for an id outside of it."""

    @abstractmethod
    def id_of(self, piece: str) -> int:
        """The id of a piece, specials included; UNK_ID for a piece that is not in the vocabulary."""

    def sample_segmentation(self, ids: list[int], rng: random.Random) -> list[int]:
        """Another segmentation of the text that `ids` spell, drawn with `rng`; the same ids if there is none."""
        return ids

    def _checked(self, ids: Iterable[int]) -> list[int]:
        numbers, size = [int(index) for index in ids], self.vocab_size
        for index in numbers:
            if not 0 <= index < size:
                raise Error.UNKNOWN_TOKEN(f"token id {index} is outside of the vocabulary of {size:,} pieces")
        return numbers

    def _save_model(self, directory: Path) -> None:
        raise NotImplementedError

    @classmethod
    def _load_model(cls, config: Any, directory: Path) -> Self:
        raise NotImplementedError

    def save(self, directory: Path) -> None:
        """Write the settings and the model as plain files into `directory`."""
        directory.mkdir(parents=True, exist_ok=True)
        write_json(directory / "config.json", settings_io.to_dict(self.config))
        self._save_model(directory)

    @classmethod
    def load(cls, directory: Path) -> Self:
        """The tokenizer that `save` wrote. Raises DragomanError when a file is missing or damaged."""
        path = directory / "config.json"
        return cls._load_model(settings_io.parse(cls.config_class, read_json(path, dict), source=str(path)), directory)


class Vocabulary:
    """Pieces by id, special pieces first; a piece of text that is spelled like a special piece is never looked up as
    that."""

    def __init__(self, pieces: Iterable[str]) -> None:
        self._pieces = [*SPECIALS, *pieces]
        self._ids = {piece: index for index, piece in enumerate(self._pieces) if index >= len(SPECIALS)}
        assert len(self._ids) == len(self._pieces) - len(SPECIALS), "a piece twice"
        assert self._ids.keys().isdisjoint(SPECIALS), "a special among the pieces"

    @classmethod
    def of_tokens(
        cls, tokens: Iterable[str], *, max_size: int | None = None, min_count: int = 1, first: Sequence[str] = ()
    ) -> "Vocabulary":
        """The tokens `first` and the most frequent ones, ties in code point order; `max_size` includes the specials.

        Raises DragomanError when no token is left.
        """
        known = {*SPECIALS, *first}
        counts: Mapping[str, int] = Counter(token for token in tokens if token not in known)
        entries = ((-count, token) for token, count in counts.items() if count >= min_count)
        ordered = sorted(entries) if max_size is None else heapq.nsmallest(max(0, max_size - len(known)), entries)
        if not ordered and not first:
            raise Error.EMPTY(f"the vocabulary is empty: the training text has no token at least {min_count} times")
        return cls([*first, *(token for _, token in ordered)])

    def __len__(self) -> int:
        return len(self._pieces)

    def __getitem__(self, index: int) -> str:
        if not 0 <= index < len(self._pieces):
            raise Error.UNKNOWN_TOKEN(f"token id {index} is outside of the vocabulary of {len(self._pieces):,} pieces")
        return self._pieces[index]

    def encode(self, token: str) -> int:
        """The id of a token of a text; UNK_ID for an unknown token, and for a token that spells a special piece."""
        return self._ids.get(token, UNK_ID)

    def id_of(self, piece: str) -> int:
        """The id of a piece by its name, specials included."""
        return SPECIALS.index(piece) if piece in SPECIALS else self.encode(piece)

    def surfaces(self, ids: Iterable[int]) -> list[str]:
        """The pieces to show: without padding, `<s>`, `</s>`, and UNK_SURFACE for the unknown one."""
        kept = (index for index in ids if index not in (PAD_ID, BOS_ID, EOS_ID))
        return [UNK_SURFACE if index == UNK_ID else self[index] for index in kept]

    def save(self, path: Path) -> None:
        write_json(path, self._pieces)

    @classmethod
    def load(cls, path: Path) -> "Vocabulary":
        """Raises DragomanError unless the file is a JSON list of distinct strings that starts with the specials."""
        pieces = read_json(path, list)
        wrong = next((piece for piece in pieces if not isinstance(piece, str)), None)
        if wrong is not None or None in pieces:
            raise Error.WRONG_SHAPE(f"a piece must be a string, found {json.dumps(wrong)}", file=path)
        if tuple(pieces[: len(SPECIALS)]) != SPECIALS:
            raise Error.WRONG_SHAPE(f"begins with {pieces[:4]}, not with {', '.join(SPECIALS)}", file=path)
        if len(set(pieces)) < len(pieces):
            raise Error.WRONG_SHAPE(f"{Counter(pieces).most_common(1)[0][0]!r} is there twice", file=path)
        return cls(pieces[len(SPECIALS) :])


class VocabularyTokenizer(Tokenizer):
    """A tokenizer whose model is a Vocabulary in one JSON file."""

    def __init__(self, config: Any, vocabulary: Vocabulary) -> None:
        super().__init__(config)
        self.vocabulary = vocabulary

    @property
    def vocab_size(self) -> int:
        return len(self.vocabulary)

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [self.vocabulary[index] for index in ids]

    def id_of(self, piece: str) -> int:
        return self.vocabulary.id_of(piece)

    def _save_model(self, directory: Path) -> None:
        self.vocabulary.save(directory / "vocabulary.json")

    @classmethod
    def _load_model(cls, config: Any, directory: Path) -> Self:
        return cls(config, Vocabulary.load(directory / "vocabulary.json"))


def sample_lines(lines: Iterator[str], size: int) -> list[str]:
    """At most `size` of the lines, uniformly, in memory of that size and always the same ones (Vitter 1985, R)."""
    rng = random.Random(1)
    kept: list[str] = []
    for number, line in enumerate(lines):
        if number < size:
            kept.append(line)
        elif (place := rng.randrange(number + 1)) < size:
            kept[place] = line
    return kept
