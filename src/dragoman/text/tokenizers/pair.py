"""Tokenizers of a run: one for both languages or one for each; training, saving and loading them."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Literal

from dragoman.config import by_type, settings
from dragoman.errors import DragomanError, writing
from dragoman.runs.atomic_io import read_json, write_json
from dragoman.text.tokenizers.base import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID, Tokenizer, TokenizerPair
from dragoman.text.tokenizers.characters import CharactersConfig, CharactersTokenizer
from dragoman.text.tokenizers.sentencepiece import SentencePieceConfig, SentencePieceTokenizer
from dragoman.text.tokenizers.whitespace import WhitespaceConfig, WhitespaceTokenizer
from dragoman.text.tokenizers.words import WordsConfig, WordsTokenizer

__all__ = [
    "BOS_ID",
    "EOS_ID",
    "PAD_ID",
    "SPECIALS",
    "TOKENIZERS",
    "UNK_ID",
    "CharactersConfig",
    "ReuseConfig",
    "SentencePieceConfig",
    "SeparateConfig",
    "SingleConfig",
    "Tokenizer",
    "TokenizerConfig",
    "TokenizerPair",
    "WhitespaceConfig",
    "WordsConfig",
    "check_tokenizers",
    "load_tokenizers",
    "save_tokenizers",
    "train_tokenizers",
]

SingleConfig = Annotated[SentencePieceConfig | CharactersConfig | WordsConfig | WhitespaceConfig, by_type]


@settings
class SeparateConfig:
    """A tokenizer, and so a vocabulary, for each language."""

    type: Literal["separate"] = "separate"
    src: SingleConfig  #: The source's tokenizer.
    tgt: SingleConfig  #: The target's tokenizer.


@settings
class ReuseConfig:
    """The tokenizer of another run as it is, which is then kept in this one: for fine-tuning."""

    type: Literal["reuse"] = "reuse"
    run: str  #: The other run's directory.


TokenizerConfig = Annotated[
    SentencePieceConfig | CharactersConfig | WordsConfig | WhitespaceConfig | SeparateConfig | ReuseConfig, by_type
]
"""One tokenizer learnt from both languages together, or `type: separate`, or `type: reuse`."""


Lines = Callable[[], Iterator[str]]


def check_tokenizers(config: TokenizerConfig) -> None:
    """Raises DragomanError when a tokenizer of these settings needs a library that is not installed."""
    if isinstance(config, ReuseConfig):
        return
    for single in (config.src, config.tgt) if isinstance(config, SeparateConfig) else (config,):
        TOKENIZERS[single.type].check(single)


def train_tokenizers(config: TokenizerConfig, src_lines: Lines, tgt_lines: Lines) -> TokenizerPair:
    """Learn from the (already normalised) lines of each side. Raises DragomanError when there is nothing to learn."""
    if isinstance(config, ReuseConfig):
        return load_tokenizers(Path(config.run) / "tokenizer")
    if isinstance(config, SeparateConfig):
        src = TOKENIZERS[config.src.type].train(config.src, src_lines())
        tgt = TOKENIZERS[config.tgt.type].train(config.tgt, tgt_lines())
        return TokenizerPair(src, tgt, shared=False)
    both = TOKENIZERS[config.type].train(config, itertools.chain(src_lines(), tgt_lines()))
    return TokenizerPair(both, both, shared=True)


def save_tokenizers(pair: TokenizerPair, directory: Path) -> None:
    """Write plain files: `tokenizers.json` with the types, and a folder for each tokenizer.

    Raises DragomanError when the disk refuses.
    """
    sides = {"shared": pair.src} if pair.shared else {"src": pair.src, "tgt": pair.tgt}
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
        write_json(directory / "tokenizers.json", {side: tokenizer.config.type for side, tokenizer in sides.items()})
        for side, tokenizer in sides.items():
            tokenizer.save(directory / side)


def load_tokenizers(directory: Path) -> TokenizerPair:
    """Read the files of `save_tokenizers`. Raises DragomanError when a file is missing or damaged."""
    path = directory / "tokenizers.json"
    types = read_json(path, dict)
    if set(types) not in ({"shared"}, {"src", "tgt"}) or not all(isinstance(kind, str) for kind in types.values()):
        raise DragomanError(f"{path}: expected the key `shared`, or `src` and `tgt`, with the types of the tokenizers")
    for kind in types.values():
        if kind not in TOKENIZERS:
            raise DragomanError(f"{path}: no tokenizer of type {kind!r}; known: {', '.join(TOKENIZERS)}")
    loaded = {side: TOKENIZERS[kind].load(directory / side) for side, kind in types.items()}
    if "shared" in loaded:
        return TokenizerPair(loaded["shared"], loaded["shared"], shared=True)
    return TokenizerPair(loaded["src"], loaded["tgt"], shared=False)


TOKENIZERS: dict[str, type[Tokenizer]] = {
    "sentencepiece": SentencePieceTokenizer,
    "characters": CharactersTokenizer,
    "words": WordsTokenizer,
    "whitespace": WhitespaceTokenizer,
}
