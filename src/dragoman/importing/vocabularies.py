"""Vocabularies of other programs as tokenizers: lists of tokens, and the SentencePiece models that cut a text."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dragoman.errors import Error
from dragoman.special_tokens import BOS_ID, SPECIALS
from dragoman.text.tokenizers.base import Tokenizer, Vocabulary
from dragoman.text.tokenizers.language_tags import SRC, TGT, LanguageTags
from dragoman.text.tokenizers.pair import TokenizerPair
from dragoman.text.tokenizers.pieces import PiecesConfig, PiecesTokenizer
from dragoman.text.tokenizers.resampling import WORD_START
from dragoman.text.tokenizers.whitespace import WhitespaceConfig, WhitespaceTokenizer

NAMES = {"<blank>": "<pad>"}
"""Their names of specials that we call otherwise."""
FRAMES: dict[str, dict[str, list[str]] | None] = {
    ">>(.+)<<": {"src_before": [TGT]},
    "__([a-z]{2,3})__": {"src_before": [SRC], "tgt_before": [TGT]},
    "([a-z]{3}_[A-Z][a-z]{3})": {"src_before": [SRC], "tgt_before": [TGT]},
    "([a-z]{2}_[A-Z]{2})": None,
}
"""Spellings of languages in the vocabularies of OPUS-MT, M2M100, NLLB and mBART, and where they stand in a text."""


class Sides(NamedTuple):
    """The tokenizers, and of each of their ids the row of their matrices; -1 where they have none."""

    tokenizers: TokenizerPair
    src_rows: list[int]
    tgt_rows: list[int]
    start: str = SPECIALS[BOS_ID]
    """Their token that a translation begins with; empty: a vector of zeros."""


def languages_in(folder: Path, tokens: Sequence[str]) -> LanguageTags | None:
    """The languages that tokens of a vocabulary tell the model; None for none, or for a single language.

    Raises DragomanError for languages where nothing says where their tokens stand.
    """
    for pattern, frame in FRAMES.items():
        tags = {match[1]: token for token in tokens if (match := re.fullmatch(pattern, token))}
        if len(tags) > 1 and frame is None:
            raise Error.CANNOT_IMPORT(
                f"its vocabulary has languages ({', '.join(list(tags)[:3])} ...), and nothing says where they stand",
                "import the model's own folder of Hugging Face",
                file=folder,
            )
        if len(tags) > 1 and frame is not None:
            return LanguageTags(tags=tags, **frame)
    return None


def tokenizer_of(theirs: list[str], folder: Path, spm: bytes | None, start: str) -> tuple[Tokenizer, list[int]]:
    """A side's tokenizer, and the row of theirs of each of its ids."""
    names = [NAMES.get(token, token) for token in theirs]
    place = {name: row for row, name in enumerate(names)}
    if len(place) < len(names):
        raise Error.CANNOT_IMPORT("its vocabulary has a token twice", file=folder)
    needed = [special for special in SPECIALS[1:] if special != SPECIALS[BOS_ID]] + ([start] if start else [])
    if absent := [special for special in dict.fromkeys(needed) if special not in place]:
        raise Error.CANNOT_IMPORT(f"its vocabulary has no {' and no '.join(absent)}", file=folder)
    specials = [place.get(name, -1) for name in SPECIALS]
    specials[BOS_ID] = place[start] if start else -1
    rows = [*specials, *(row for row, name in enumerate(names) if row not in specials)]
    pieces: dict[str, None] = {}
    for name in (names[row] for row in rows[len(SPECIALS) :]):
        while name in SPECIALS or name in pieces:  # a `<s>` that no translation begins with is a piece like others
            name += "'"
        pieces[name] = None
    if spm is not None:
        return PiecesTokenizer(PiecesConfig(vocab_size=len(rows)), Vocabulary(pieces), spm), rows
    if spaced := next((piece for piece in pieces if piece.split() != [piece]), None):
        raise Error.MISSING_OPTION(
            f"its vocabulary has {spaced!r}, and tokens are told by the spaces around them",
            "name its SentencePiece model with `spm`",
            file=folder,
        )
    if start != SPECIALS[BOS_ID] and any(WORD_START in piece for piece in pieces):
        raise Error.MISSING_OPTION(
            "a model of Marian or of Hugging Face, whose tokens are pieces of words",
            "name its SentencePiece model, or both (source.spm, target.spm), with `spm`",
            file=folder,
        )
    tokenizer = WhitespaceTokenizer(WhitespaceConfig(vocab_size=len(pieces) + len(SPECIALS)), Vocabulary(pieces))
    return tokenizer, rows
