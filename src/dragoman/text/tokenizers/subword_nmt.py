"""Byte-pair encoding with the codes of subword-nmt (Sennrich et al. 2016) or fastBPE: learnt there, applied here.

A text is tokenised already: a word is what stands between spaces. A piece that is not the last of its word ends in
`@@`. Codes say which pair of pieces is merged first; `filter`, a list of pieces and counts, takes merges back whose
piece is rarer than `threshold`.
"""

import io
import itertools
import random
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import Field

from dragoman.config import settings
from dragoman.errors import Error
from dragoman.runs.atomic_io import write_text
from dragoman.special_tokens import UNK_ID
from dragoman.text.lines import find, read_lines
from dragoman.text.tokenizers.base import Vocabulary, VocabularyTokenizer
from dragoman.text.tokenizers.from_files import FromFiles, Original, appended
from dragoman.text.tokenizers.symbols import Symbols
from dragoman.text.tokenizers.vocabulary_files import read_vocabulary

GOES_ON, END = "@@", "</w>"
"""The end of a piece that a word goes on behind, and that of a word in codes."""
CODES_FILE, FILTER_FILE = "codes.txt", "filter.txt"
_CACHE_WORDS = 200_000


class Codes(NamedTuple):
    """The rank of each pair that is merged; where `apart`, the end of a word is a symbol of its own (version 0.1).

    `counted`: fastBPE's, which subword-nmt itself does not read."""

    ranks: dict[tuple[str, str], int]
    apart: bool = False
    counted: bool = False

    @classmethod
    def read(cls, path: Path) -> "Codes":
        """Raises DragomanError for a file of another kind."""
        lines = list(read_lines(path))
        version = lines[0].removeprefix("#version: ") if lines[0].startswith("#version:") else ""
        ranks: dict[tuple[str, str], int] = {}
        counted = False
        for number, line in enumerate(lines[bool(version) :], start=1 + bool(version)):
            pair = line.strip("\r\n ").split(" ")
            if pair == [""]:
                continue
            counted = counted or (len(ranks) == 0 and not version and len(pair) == 3)
            if len(pair) != 2 + counted or (counted and not pair[2].isdigit()):
                hint = "subword-nmt's and fastBPE's are a pair of pieces a line; a vocabulary is `vocab`"
                raise Error.WRONG_SHAPE("no codes of subword-nmt", hint, file=path, line=number)
            ranks.setdefault((pair[0], pair[1]), number)
        if any(first.startswith("Ġ") for first, _ in ranks):
            hint = "take its tokenizer.json: tokenizer {type: hub, model: tokenizer.json}"
            raise Error.WRONG_FILE_TYPE("merges of pairs of bytes, no codes of subword-nmt", hint, file=path)
        if not any(END in second for _, second in ranks):
            hint = "codes of subword-nmt or fastBPE have one"
            raise Error.WRONG_SHAPE(f"no pair ends a word ({END})", hint, file=path)
        return cls(ranks, apart=not counted and version in ("", "0.1"), counted=counted)

    def text(self) -> str:
        """The file again, without counts."""
        lines = [f"#version: {'0.1' if self.apart else '0.2'}", *(" ".join(pair) for pair in self.ranks)]
        return "\n".join(lines) + "\n"

    def cut(self, word: str, rng: random.Random | None = None, dropout: float = 0.0) -> list[str]:
        """The pieces of a word, without marks; each merge is left out with probability `dropout` at each step."""
        parts = [*word, END] if self.apart else [*word[:-1], word[-1] + END]
        while len(parts) > 1 and len(word) > 1:
            ranked = [
                (self.ranks[pair], place)
                for place, pair in enumerate(itertools.pairwise(parts))
                if pair in self.ranks and (rng is None or rng.random() >= dropout)
            ]
            best = min(ranked, default=(0, 0))[0]
            if not (places := [place for rank, place in ranked if rank == best]):
                break
            merged: list[str] = []
            place = 0
            while place < len(parts):  # from the left, each place where it may be merged
                width = 2 if place in places else 1
                merged.append("".join(parts[place : place + width]))
                place += width
            parts = merged
        joined = [*parts[:-1], parts[-1].removesuffix(END)]
        return [part for part in joined if part]


@settings
class SubwordNmtConfig(FromFiles):
    """Codes of subword-nmt or fastBPE that there are already, for text whose tokens stand between spaces."""

    type: Literal["subword_nmt"] = "subword_nmt"
    kind: ClassVar[str] = ""
    codes: str  #: File of the codes.
    vocab: str | None = None
    """File of the vocabulary: fairseq's dict.txt, vocab.yml, vocab.json, a token a line; null: the text's pieces."""
    filter: str | None = None  #: Pieces and counts that merges must have, as subword-nmt's `--vocabulary`.
    threshold: Annotated[int, Field(ge=0)] = 0  #: Least count in `filter`, as `--vocabulary-threshold`. [occurrences]
    vocab_size: Annotated[int, Field(ge=5)] | None = None
    """Largest vocabulary, specials included, of the text's pieces; of `vocab` what it has. [tokens]"""
    sampling: Annotated[float, Field(ge=0, le=1)] = 0.0  #: BPE-dropout rate in training; 0: off.
    user_defined_symbols: Symbols = field(default_factory=list)
    """Tokens that are never cut, as subword-nmt's `--glossaries`; a symbol stands between spaces."""

    def paths(self) -> list[str]:
        return [name for name in (self.codes, self.vocab, self.filter) if name is not None]

    def check(self) -> int | None:
        _, _, vocabulary = self._parts()
        return self.vocab_size if vocabulary is None else len(vocabulary) + len(self.user_defined_symbols)

    def build(self, texts: Iterator[str]) -> "SubwordNmtTokenizer":
        codes, kept, vocabulary = self._parts()
        if vocabulary is None:
            cutter = Cutter(codes, kept)
            pieces = (
                piece
                for text in texts
                for word in words(text)
                for piece in (*cutter(word), *(marked([*word]) if self.sampling else ()))  # letters are drawn, too
            )
            vocabulary = Vocabulary.of_tokens(pieces, max_size=self.vocab_size)
        # The run has the files; where they were is nobody's business.
        files: dict[str, Any] = {"codes": CODES_FILE, "filter": None if kept is None else FILTER_FILE}
        saved = SubwordNmtConfig(**files, sampling=self.sampling, vocab_size=len(vocabulary))
        return SubwordNmtTokenizer(saved, vocabulary, codes, kept)

    def with_symbols(self, made: Any) -> "SubwordNmtTokenizer":
        vocabulary = appended(made.vocabulary, self.user_defined_symbols)
        changes = {"vocab_size": len(vocabulary), "user_defined_symbols": self.user_defined_symbols}
        return SubwordNmtTokenizer(replace(made.config, **changes), vocabulary, made.codes, made.kept)

    def original(self, made: Any) -> Original | None:
        try:
            from subword_nmt.apply_bpe import BPE
        except ImportError:
            return None
        lines = "\n".join(read_lines(find(self.codes)))
        theirs = BPE(io.StringIO(made.codes.text() if made.codes.counted else lines), vocab=made.kept)

        def pieces(text: str) -> list[str]:
            cut: list[str] = theirs.segment_tokens(text.strip("\r\n ").split(" "))
            return made.pieces([made.vocabulary.encode(piece) for piece in cut])

        return Original("subword-nmt", pieces)

    def _parts(self) -> tuple[Codes, frozenset[str] | None, Vocabulary | None]:
        """Codes, the pieces of `filter`, the vocabulary. Raises DragomanError for files that do not fit each other."""
        codes, kept, vocabulary = Codes.read(find(self.codes)), None, None
        if self.filter is not None:
            rows = read_vocabulary(find(self.filter))
            kept = frozenset(entry.token for entry in rows if entry.occurrences >= self.threshold)
        elif self.threshold:
            raise Error.MISSING_OPTION("tokenizer.threshold is of counts", "name their file as tokenizer.filter")
        if self.vocab is not None:
            pieces = [entry.token for entry in read_vocabulary(find(self.vocab))]
            if not any(piece.endswith(GOES_ON) for piece in pieces):
                why = f"no piece in it ends in {GOES_ON}, as those that {self.codes} makes do"
                raise Error.MISMATCH(why, "is it of other codes?", file=find(self.vocab))
            vocabulary = Vocabulary(pieces)
            self.require_size(len(vocabulary), self.vocab)
        return codes, kept, vocabulary


def words(text: str) -> list[str]:
    """The tokens of a text: only U+0020 stands between them, as in subword-nmt."""
    return [word for word in text.strip("\r\n ").split(" ") if word]


def marked(parts: Sequence[str]) -> list[str]:
    """The parts of a word, each but the last with the mark."""
    return [*(part + GOES_ON for part in parts[:-1]), parts[-1]]


class Cutter:
    """Words to pieces with their marks, remembered."""

    def __init__(self, codes: Codes, kept: Collection[str] | None) -> None:
        self._codes, self._kept, self._known = codes, kept, dict[str, list[str]]()
        self._parts = {first + second: (first, second) for first, second in reversed(codes.ranks)}

    def __call__(self, word: str, rng: random.Random | None = None, dropout: float = 0.0) -> list[str]:
        if rng is not None:
            return self._marked(self._codes.cut(word, rng, dropout))
        if word not in self._known:
            if len(self._known) >= _CACHE_WORDS:
                self._known.clear()
            self._known[word] = self._marked(self._codes.cut(word))
        return self._known[word]

    def _marked(self, parts: list[str]) -> list[str]:
        last = len(parts) - 1
        if self._kept is None or (last == 0 and len(parts[0]) == 1):  # a word of one letter is not looked up there
            return marked(parts)
        return [piece for place, part in enumerate(parts) for piece in self._seen(part, place == last)]

    def _seen(self, part: str, is_last: bool) -> Iterator[str]:
        """The part, or what it was merged from where the filter lacks it, and so on."""
        piece = part + GOES_ON * (not is_last)
        assert self._kept is not None
        parts = None if piece in self._kept else self._parts.get(part + END * is_last)
        if parts is None:
            yield from [piece] if part else []
            return
        yield from self._seen(parts[0], False)
        yield from self._seen(parts[1].removesuffix(END), is_last)


class SubwordNmtTokenizer(VocabularyTokenizer):
    """`decode(encode(x)) == " ".join(x.split())` for text of known pieces."""

    config_class = SubwordNmtConfig

    def __init__(
        self, config: SubwordNmtConfig, vocabulary: Vocabulary, codes: Codes, kept: frozenset[str] | None
    ) -> None:
        super().__init__(config, vocabulary)
        self.codes, self.kept, self.sampling = codes, kept, config.sampling > 0
        self._cutter, self._symbols = Cutter(codes, kept), frozenset(config.user_defined_symbols)

    def encode(self, text: str) -> list[int]:
        return [self.vocabulary.encode(piece) for word in words(text) for piece in self._pieces(word)]

    def letters(self, text: str) -> list[int]:
        pieces = (piece.removesuffix(GOES_ON) for word in words(text) for piece in self._pieces(word))
        return [sum(not letter.isspace() for letter in piece) for piece in pieces]

    def _pieces(self, word: str) -> list[str]:
        return [word] if word in self._symbols else self._cutter(word)

    def decode(self, ids: Iterable[int]) -> str:
        text = "".join(piece.removesuffix(GOES_ON) if piece.endswith(GOES_ON) else f"{piece} "
                       for piece in self.vocabulary.surfaces(ids))  # fmt: skip
        return text.strip(" ")

    def sample_segmentation(self, ids: list[int], rng: random.Random) -> list[int]:
        if not self.sampling:
            return ids
        result: list[int] = []
        word: list[int] = []
        for index in ids:
            word.append(index)
            if not self.vocabulary[index].endswith(GOES_ON):
                result += self._drawn(word, rng)
                word = []
        return result + word

    def _drawn(self, word: list[int], rng: random.Random) -> list[int]:
        """Another segmentation of a word; the same one where a piece of it, or of the other, is unknown."""
        text = self.decode(word)
        if text in self._symbols or UNK_ID in word:
            return word
        drawn = [self.vocabulary.encode(piece) for piece in self._cutter(text, rng, self.config.sampling)]
        return word if UNK_ID in drawn else drawn

    def _save_model(self, directory: Path) -> None:
        super()._save_model(directory)
        write_text(directory / CODES_FILE, self.codes.text())
        if self.kept is not None:
            write_text(directory / FILTER_FILE, "".join(f"{piece} 1\n" for piece in sorted(self.kept)))

    @classmethod
    def _load_model(cls, config: SubwordNmtConfig, directory: Path) -> Self:
        path = directory / FILTER_FILE
        kept = frozenset(entry.token for entry in read_vocabulary(path)) if config.filter is not None else None
        vocabulary = Vocabulary.load(directory / "vocabulary.json")
        return cls(config, vocabulary, Codes.read(directory / CODES_FILE), kept)
