"""Subword units by SentencePiece: byte-pair encoding (Sennrich et al. 2016) or a unigram model (Kudo 2018).

SentencePiece learns and encodes. Drawing other segmentations during training is our own (`resampling.py`), because
SentencePiece draws from a random generator that cannot be keyed, and a run must be repeatable from its seed.
"""

import functools
import io
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import sentencepiece as spm
from pydantic import Field

from dragoman.config import settings
from dragoman.errors import Error
from dragoman.runs.atomic_io import read_bytes
from dragoman.special_tokens import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID
from dragoman.text.lines import reporting_os_errors
from dragoman.text.tokenizers.base import UNK_SURFACE, Tokenizer
from dragoman.text.tokenizers.language_tags import tag_of
from dragoman.text.tokenizers.resampling import RESAMPLERS, WORD_START, Resampler
from dragoman.text.tokenizers.symbols import WHITE_SPACE, Symbols, WhiteSpace, kept_white_space, plain, sample_of

MODEL_FILE = "sentencepiece.model"
MAX_MODEL_BYTES = 16 * 2**20
LETTERLESS = {f"{byte:02X}" for byte in range(256) if 0x80 <= byte < 0xC0 or chr(byte).isspace()}


@settings
class SentencePieceConfig:
    """`sampling` draws another segmentation each time a sentence is trained on: for bpe it is the probability to skip
    a merge (BPE-dropout; 0.1 is common), for unigram the exponent on the pieces' probabilities (Kudo's alpha; smaller
    is wilder); 0 is off. A batch that grows beyond its budget by it is cut into several, and a sentence that would
    have more than `corpus.max_tokens` keeps its usual segmentation (a text that is labelled is read up to there).
    `vocab_size` includes the specials and is an upper bound: a small corpus gives less.
    """

    type: Literal["sentencepiece"] = "sentencepiece"
    marks: ClassVar[tuple[str, ...]] = ()
    algorithm: Literal["bpe", "unigram"] = "bpe"  #: Byte-pair encoding or unigram language model.
    vocab_size: Annotated[int, Field(ge=8)] = 8000  #: Largest vocabulary, specials included. [tokens]
    sampling: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Subword regularisation: BPE-dropout rate, or unigram's alpha; 0: off."""
    character_coverage: Annotated[float, Field(ge=0.98, le=1)] = 1.0
    """Share of the text's characters that have tokens; the rest is `<unk>`."""
    byte_fallback: bool = False  #: Spell unknown characters by bytes.
    split_digits: bool = False  #: Give each digit a token.
    max_sentences: Annotated[int, Field(ge=1)] = 1_000_000
    """Sentences that the tokenizer is learnt from, at most. [sentences]"""
    languages: list[Annotated[str, Field(min_length=1)]] = field(default_factory=list)
    """Codes of several languages: each gets a tag, `<2de>`, which tells the model the language that is asked for."""
    user_defined_symbols: Symbols = field(default_factory=list)
    """Strings such as `<br>` that are a piece of their own wherever a text has them."""
    white_space: WhiteSpace = "normalize"
    """`normalize`: any white space is one space, none at the ends; `keep`: as the text has it, with a piece for each
    kind of it (tab, no-break space ...) in the text that is learnt from; other kinds are a space."""

    def __post_init__(self) -> None:
        if tags := sorted({*map(tag_of, self.languages)}.intersection(self.user_defined_symbols)):
            raise ValueError(f"user_defined_symbols: {tags[0]} is the tag of a language")


class SentencePieceTokenizer(Tokenizer):
    """`decode(encode(x)) == " ".join(x.split())` for text of known characters; `x` itself with `white_space: keep`.

    The word mark "▁" (U+2581) counts as a space in text.
    """

    config_class = SentencePieceConfig

    def __init__(self, config: SentencePieceConfig, model: bytes, name: str = "the SentencePiece model") -> None:
        super().__init__(config)
        self.model, self._processor = model, processor(model, name)
        self.sampling = config.sampling > 0
        specials = tuple(self._processor.IdToPiece(index) for index in range(min(4, self.vocab_size)))
        if specials != SPECIALS:
            raise Error.MISMATCH(f" begins with {', '.join(specials)}, not with {', '.join(SPECIALS)}", file=name)
        self._spaces = kept_white_space(config, lambda letter: self.id_of(letter) != UNK_ID)

    @classmethod
    def train(cls, config: SentencePieceConfig, lines: Iterator[str]) -> Self:
        sample, symbols = sample_of(config, lines)
        model = io.BytesIO()
        try:
            spm.SentencePieceTrainer.train(
                sentence_iterator=iter(sample),
                model_writer=model,
                model_type=config.algorithm,
                vocab_size=config.vocab_size,
                hard_vocab_limit=False,
                character_coverage=config.character_coverage,
                byte_fallback=config.byte_fallback,
                split_digits=config.split_digits,
                normalization_rule_name="identity",  # normalisation is a step of its own, text/normalize.py
                add_dummy_prefix=True,
                remove_extra_whitespaces=config.white_space == "normalize",
                pad_id=PAD_ID,
                unk_id=UNK_ID,
                bos_id=BOS_ID,
                eos_id=EOS_ID,
                control_symbols=[*map(tag_of, config.languages), *config.marks],
                user_defined_symbols=symbols,
                unk_surface=UNK_SURFACE,
                num_threads=4,  # fixed: the sums of the unigram model depend on it
                minloglevel=2,
            )
        except RuntimeError as error:
            reason = _reason(error).replace("with --character_coverage option", "(tokenizer.character_coverage)")
            raise Error.WRONG_SETTING(f"the tokenizer cannot be learnt: {reason}") from error
        return cls(config, model.getvalue())

    @property
    def vocab_size(self) -> int:
        return int(self._processor.GetPieceSize())

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._processor.EncodeAsIds(plain(text, self._spaces))
        return ids

    def letters(self, text: str) -> list[int]:
        # Here an unknown piece is spelt as in the text. A character of several bytes is counted at its first.
        pieces: list[str] = self._processor.EncodeAsPieces(plain(text, self._spaces))
        spelt = (re.fullmatch("<0x([0-9A-F]{2})>", piece) for piece in pieces)
        return [
            len(piece.replace(WORD_START, "").strip()) if byte is None else int(byte[1] not in LETTERLESS)
            for piece, byte in zip(pieces, spelt, strict=True)
        ]

    def decode(self, ids: Iterable[int]) -> str:
        kept = [index for index in self._checked(ids) if index not in (PAD_ID, BOS_ID, EOS_ID)]
        return str(self._processor.DecodeIds(kept))

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [self._processor.IdToPiece(index) for index in self._checked(ids)]

    def id_of(self, piece: str) -> int:
        return int(self._processor.PieceToId(piece))

    def is_control(self, index: int) -> bool:
        """True for an entry that no text is cut into: a special, or the tag of a language."""
        return bool(self._processor.IsControl(index))

    @functools.cached_property
    def symbols(self) -> dict[int, str]:
        """The pieces of `user_defined_symbols` and of kept white space, by id."""
        kept = WHITE_SPACE if self.config.white_space == "keep" else ""
        ids = {self.id_of(symbol): symbol for symbol in (*self.config.user_defined_symbols, *kept)}
        return {index: symbol for index, symbol in ids.items() if index != UNK_ID}

    def score(self, index: int) -> float:
        """The score of a piece: for bpe the later it was merged the lower, for unigram its log probability."""
        return float(self._processor.GetScore(index))

    def sample_segmentation(self, ids: list[int], rng: random.Random) -> list[int]:
        return self._resampler(ids, rng) if self.sampling else ids

    @functools.cached_property
    def _resampler(self) -> Resampler:
        processor = self._processor
        usable = (
            index
            for index in range(len(SPECIALS), self.vocab_size)
            if not (processor.IsControl(index) or processor.IsByte(index) or processor.IsUnknown(index))
            and index not in self.symbols
        )
        pieces = {index: (processor.IdToPiece(index), processor.GetScore(index)) for index in usable}
        return RESAMPLERS[self.config.algorithm](pieces, self.config.sampling)

    def _save_model(self, directory: Path) -> None:
        (directory / MODEL_FILE).write_bytes(self.model)

    @classmethod
    def _load_model(cls, config: SentencePieceConfig, directory: Path) -> Self:
        path = directory / MODEL_FILE
        with reporting_os_errors(path):
            return cls(config, read_bytes(path, MAX_MODEL_BYTES), name=str(path))


def processor(model: bytes, name: str) -> Any:
    """SentencePiece's own object of a model. Raises DragomanError for a damaged one."""
    try:
        return spm.SentencePieceProcessor(model_proto=model)
    except RuntimeError as error:
        raise Error.DAMAGED(f" is damaged: {error}", file=name) from error


def _reason(error: RuntimeError) -> str:
    """SentencePiece's message without the place in its source."""
    return " ".join(str(error).split("] ")[-1].split()) or str(error)
