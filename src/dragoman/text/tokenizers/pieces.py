"""SentencePiece with a table of ids beside it, as Marian and fairseq keep their vocabularies: imported, never learnt.

SentencePiece cuts the text; which id a piece has is said by the table, and a piece that is not in it is `<unk>`. Two
tokenizers, one for each language, may have the same table (OPUS-MT): then a pair of them has one vocabulary.
"""

import functools
import random
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field

from dragoman.config import settings
from dragoman.runs.atomic_io import read_bytes
from dragoman.special_tokens import SPECIALS, UNK_ID
from dragoman.text.tokenizers.base import UNK_SURFACE, Vocabulary, VocabularyTokenizer
from dragoman.text.tokenizers.resampling import RESAMPLERS, WORD_START, Resampler
from dragoman.text.tokenizers.sentencepiece import MAX_MODEL_BYTES, MODEL_FILE, processor
from dragoman.text.tokenizers.sentencepiece_model import algorithm, normal_scores, with_symbols, without


@settings
class PiecesConfig:
    """An imported tokenizer, or a tokenizer made of the `model` of `type: sentencepiece`."""

    type: Literal["pieces"] = "pieces"
    vocab_size: Annotated[int, Field(ge=5)]  #: Entries of its table, specials included. [tokens]
    sampling: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Subword regularisation: BPE-dropout rate, or unigram's alpha; 0: off."""


class PiecesTokenizer(VocabularyTokenizer):
    """White space is as the SentencePiece model has it; its own normalisation is part of it.

    An entry that no text is ever cut into, such as the tag of a language, is in the table all the same.
    """

    config_class = PiecesConfig

    def __init__(
        self, config: PiecesConfig, vocabulary: Vocabulary, model: bytes, name: str = "the SentencePiece model"
    ) -> None:
        super().__init__(config, vocabulary)
        self.sampling = config.sampling > 0
        self.model, self._processor = model, processor(model, name)
        # What SentencePiece never writes has no id by way of a text: "__de__" in a text is no tag.
        self._of_text = {piece: index for piece in self.model_pieces() if (index := vocabulary.encode(piece)) != UNK_ID}

    def model_pieces(self) -> list[str]:
        """The pieces of the SentencePiece model, in its own order."""
        return [self._processor.IdToPiece(number) for number in range(self._processor.GetPieceSize())]

    def encode(self, text: str) -> list[int]:
        return [self._of_text.get(piece, UNK_ID) for piece in self._processor.EncodeAsPieces(text)]

    def letters(self, text: str) -> list[int]:
        return [len(piece.replace(WORD_START, "")) for piece in self._processor.EncodeAsPieces(text)]

    def decode(self, ids: Iterable[int]) -> str:
        pieces = self.vocabulary.surfaces(ids)
        # What is unknown, and what its model does not know, is shown as it is.
        text = self._processor.DecodePieces([f"{WORD_START}{UNK_SURFACE}" if p == UNK_SURFACE else p for p in pieces])
        return str(text).replace(WORD_START, " ").strip()

    def sample_segmentation(self, ids: list[int], rng: random.Random) -> list[int]:
        try:
            return self._resampler(ids, rng) if self.sampling else ids
        except KeyError:  # the table lacks a letter of a piece that it has
            return ids

    @functools.cached_property
    def _resampler(self) -> Resampler:
        scores = normal_scores(self.model).items()
        pieces = {self._of_text[piece]: (piece, score) for piece, score in scores if piece in self._of_text}
        return RESAMPLERS[algorithm(self.model)](pieces, self.config.sampling)

    def with_entries(self, kept: Sequence[int], new: Sequence[str], tags: Collection[str] = ()) -> "PiecesTokenizer":
        """The tokenizer with the entries `kept` and the new ones behind them; no text is cut into `tags`."""
        names = self.pieces(range(self.vocab_size))
        gone = set(names) - {names[index] for index in kept}
        model = without(self.model, gone) if gone else self.model
        if symbols := [symbol for symbol in new if symbol not in tags]:
            model = with_symbols(model, symbols)
        stay = [names[index] for index in kept[len(SPECIALS) :]]
        vocabulary = Vocabulary(dict.fromkeys([*stay, *new]))
        return PiecesTokenizer(replace(self.config, vocab_size=len(vocabulary)), vocabulary, model)

    def _save_model(self, directory: Path) -> None:
        super()._save_model(directory)
        (directory / MODEL_FILE).write_bytes(self.model)

    @classmethod
    def _load_model(cls, config: PiecesConfig, directory: Path) -> Self:
        path = directory / MODEL_FILE
        vocabulary = Vocabulary.load(directory / "vocabulary.json")
        return cls(config, vocabulary, read_bytes(path, MAX_MODEL_BYTES), name=str(path))
