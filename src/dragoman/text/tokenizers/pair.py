"""Tokenizers of a run: one for both languages or one for each; training, saving and loading them."""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from jaxtyping import Bool
from pydantic import Discriminator, Tag

from dragoman.config import parse, settings, tag, to_dict
from dragoman.errors import DragomanError, Error, writing
from dragoman.runs.atomic_io import read_bytes, read_json, write_json
from dragoman.special_tokens import SPECIALS
from dragoman.text.lines import find
from dragoman.text.tokenizers.base import Tokenizer
from dragoman.text.tokenizers.cased import CasedConfig, CasedTokenizer
from dragoman.text.tokenizers.characters import CharactersConfig, CharactersTokenizer
from dragoman.text.tokenizers.from_files import FromFiles, HubFile, SentencePieceFile, WhitespaceFile
from dragoman.text.tokenizers.hub import HubConfig, HubTokenizer
from dragoman.text.tokenizers.language_tags import TGT, LanguageTags, bare, tag_of
from dragoman.text.tokenizers.moses import MAX_BYTES, Moses, library
from dragoman.text.tokenizers.pieces import PiecesConfig, PiecesTokenizer
from dragoman.text.tokenizers.sentencepiece import SentencePieceConfig, SentencePieceTokenizer
from dragoman.text.tokenizers.subword_nmt import SubwordNmtConfig, SubwordNmtTokenizer
from dragoman.text.tokenizers.symbols import check_spelling
from dragoman.text.tokenizers.whitespace import WhitespaceConfig, WhitespaceTokenizer
from dragoman.text.tokenizers.words import WordsConfig, WordsTokenizer
from dragoman.text.tokenizers.wrapped import WrappedTokenizer


def _kind(value: Any) -> Any:
    """The name by which settings of a tokenizer are told apart: their type, and ` of a file` where it is not learnt."""
    if not isinstance(value, Mapping):
        return tag(type(value))
    kind, key = value.get("type"), FILE_KEYS.get(str(value.get("type")))
    is_file = key is not None and (key in value or (kind == "hub" and "vocab_size" not in value))
    return f"{kind}{FromFiles.kind}" if is_file else kind


FILE_KEYS = {"sentencepiece": "model", "hub": "model", "whitespace": "vocab"}
"""The setting that names the file, of types that may be learnt or imported as well."""
_Single = (
    Annotated[SentencePieceConfig, Tag("sentencepiece")]
    | Annotated[SentencePieceFile, Tag("sentencepiece of a file")]
    | Annotated[CasedConfig, Tag("cased")]
    | Annotated[CharactersConfig, Tag("characters")]
    | Annotated[WordsConfig, Tag("words")]
    | Annotated[WhitespaceConfig, Tag("whitespace")]
    | Annotated[WhitespaceFile, Tag("whitespace of a file")]
    | Annotated[SubwordNmtConfig, Tag("subword_nmt")]
    | Annotated[PiecesConfig, Tag("pieces")]
    | Annotated[HubConfig, Tag("hub")]
    | Annotated[HubFile, Tag("hub of a file")]
)
SingleConfig = Annotated[_Single, Discriminator(_kind)]


@settings
class MosesConfig:
    """Moses' scripts before another tokenizer, undone in translations: needs the extra dragoman[moses] (sacremoses).

    CTranslate2's and ONNX models get tokens, as from any tokenizer; other exports have no place for it.
    """

    type: Literal["moses"] = "moses"
    inner: SingleConfig  #: The tokenizer of the text whose tokens stand between spaces.
    language: str = "en"  #: Whose abbreviations and apostrophes are known.
    punctuation: bool = True  #: Normalise punctuation (`normalize-punctuation.perl`); this is not undone.
    truecase: bool | str = False
    """Words at the beginning of sentences get the letters that they mostly have: learnt from the training text, or a
    file of `train-truecaser.perl`. In translations sentences begin with a capital."""
    lowercase: bool = False  #: Lower-case the text (`lowercase.perl`); this is not undone.
    escape: bool = True  #: Write `'` as `&apos;`, as `tokenizer.perl` does without `-no-escape`.
    aggressive: bool = False  #: Split hyphens: `@-@` (`-a`).

    def __post_init__(self) -> None:
        if self.lowercase and self.truecase:
            raise ValueError("lowercase and truecase: choose one of them")


class MosesTokenizer(WrappedTokenizer):
    """A tokenizer of text that has gone through Moses' scripts."""

    config_class = MosesConfig

    def __init__(self, config: MosesConfig, inner: Tokenizer, moses: Moses) -> None:
        super().__init__(replace(config, inner=inner.config), inner)
        self.moses = moses

    def encode(self, text: str) -> list[int]:
        return self.inner.encode(self.moses.before(text))

    def letters(self, text: str) -> list[int]:
        before = self.moses.before(text)
        upto = self.moses.letters(text, before)
        return np.diff(upto[np.cumsum(self.inner.letters(before), dtype=int)], prepend=0).tolist()

    def decode(self, ids: Iterable[int]) -> str:
        return self.moses.after(self.inner.decode(ids))

    def _save_model(self, directory: Path) -> None:
        self.inner.save(directory / "inner")
        if self.moses.truecase_model is not None:
            (directory / "truecase-model.txt").write_bytes(self.moses.truecase_model)

    @classmethod
    def _load_model(cls, config: MosesConfig, directory: Path) -> "MosesTokenizer":
        model = read_bytes(directory / "truecase-model.txt", MAX_BYTES) if config.truecase else None
        return cls(config, TOKENIZERS[config.inner.type].load(directory / "inner"), Moses(config, model))


SideConfig = Annotated[_Single | Annotated[MosesConfig, Tag("moses")], Discriminator(_kind)]


@settings
class SeparateConfig:
    """A tokenizer for each language, and so a vocabulary, unless `joint`."""

    type: Literal["separate"] = "separate"
    src: SideConfig  #: The source's tokenizer.
    tgt: SideConfig  #: The target's tokenizer.
    joint: bool = False  #: An id means the same piece on both sides: two models with one `vocab`.


@settings
class ReuseConfig:
    """The tokenizer of another run, copied unchanged into this run: for fine-tuning."""

    type: Literal["reuse"] = "reuse"
    run: str  #: The other run's directory.


TokenizerConfig = Annotated[
    _Single
    | Annotated[MosesConfig, Tag("moses")]
    | Annotated[SeparateConfig, Tag("separate")]
    | Annotated[ReuseConfig, Tag("reuse")],
    Discriminator(_kind),
]
"""One tokenizer learnt from both languages together, or `type: separate`, or `type: reuse`."""


@dataclass(frozen=True)
class TokenizerPair:
    """The tokenizers of the two sides; if `shared`, an id means the same piece on both.

    Then both are the same object, but for imported ones, which may cut the two languages by two models.
    """

    src: Tokenizer
    tgt: Tokenizer
    shared: bool
    languages: LanguageTags | None = None
    """The tags of the languages, where the model knows several."""

    def between(self, src_lang: str, tgt_lang: str) -> "TokenizerPair":
        """The tokenizers for texts of these languages: the same ones, with the tags around the texts that the model
        reads. Raises DragomanError for a language that the model does not know."""
        if self.languages is None:
            return self
        src, tgt = self.languages.between(self.src, self.tgt, src_lang, tgt_lang)
        return replace(self, src=src, tgt=tgt)

    @functools.cached_property
    def continuations(self) -> Bool[np.ndarray, " vocab"]:
        """(vocab,) bool: the tokens that go on with the word before them, in a language that has spaces."""
        decode, vocab_size = self.tgt.decode, self.tgt.vocab_size
        word = next((token for token in range(len(SPECIALS), vocab_size) if decode([token]).isalpha()), None)
        if word is None:
            return np.zeros(vocab_size, dtype=bool)
        # After a token that is a word by itself, what is decoded without a space before it.
        length = len(decode([word]))
        return np.array([decode([word, token])[length : length + 1].isalnum() for token in range(vocab_size)])


Lines = Callable[[], Iterator[str]]

_LANGUAGES = "languages.json"


def check_tokenizers(config: TokenizerConfig, spelling: Callable[[str], str]) -> None:
    """Raises DragomanError when a tokenizer of these settings needs a library that is not installed, and where it is to
    keep what no text of this spelling has."""
    singles = singles_of(config)
    if fault := check_spelling(singles, spelling):
        raise Error.CONFLICT(fault)
    if any(isinstance(one, MosesConfig) for one in (config, *(getattr(config, side, None) for side in ("src", "tgt")))):
        library()
    for single in singles:  # libraries before files
        TOKENIZERS[single.type].check(single)
    for single in singles:
        if isinstance(single, FromFiles):
            single.check()


def source_files(config: TokenizerConfig) -> list[Path]:
    """The files that a tokenizer is made of; no files if it is learnt. Raises DragomanError for a missing file."""
    if isinstance(config, ReuseConfig):
        return sorted(path for path in (Path(config.run) / "tokenizer").rglob("*") if path.is_file())
    return [find(name) for one in singles_of(config) if isinstance(one, FromFiles) for name in one.paths()]


def singles_of(config: TokenizerConfig) -> list[Any]:
    """The settings of each side, or of both together: the inner settings of Moses' tokenizers, and no settings for a
    tokenizer of another run."""
    if isinstance(config, SeparateConfig):
        return [*singles_of(config.src), *singles_of(config.tgt)]
    if isinstance(config, MosesConfig):
        return [config.inner]
    return [] if isinstance(config, ReuseConfig) else [config]


def with_symbols(config: Any, symbols: Sequence[str]) -> Any:
    """The settings with more symbols. Raises ValueError for a tokenizer that takes none.

    >>> with_symbols(CharactersConfig(user_defined_symbols=["<br>"]), ["<br>", "<b>"]).user_defined_symbols
    ['<br>', '<b>']
    """
    if not symbols or isinstance(config, ReuseConfig):  # the other run's has them, or not
        return config
    if isinstance(config, SeparateConfig):
        return replace(config, src=with_symbols(config.src, symbols), tgt=with_symbols(config.tgt, symbols))
    own = getattr(config, "user_defined_symbols", None)
    if own is None:
        raise ValueError(
            f"corpus.augment, corpus.context: tokenizer {{type: {config.type}}} takes no symbols; take sentencepiece"
        )
    return replace(config, user_defined_symbols=list(dict.fromkeys([*own, *symbols])))


def train_tokenizers(config: TokenizerConfig, src_lines: Lines, tgt_lines: Lines) -> TokenizerPair:
    """Learn from the (already normalised) lines of each side. Raises DragomanError when there is nothing to learn."""
    if isinstance(config, ReuseConfig):
        return load_tokenizers(Path(config.run) / "tokenizer")
    if isinstance(config, SeparateConfig):
        src, tgt = _train("src", config.src, src_lines), _train("tgt", config.tgt, tgt_lines)
        if config.joint and pieces_of(src) != pieces_of(tgt):
            raise Error.MISMATCH("tokenizer.joint: the two have other entries", "give both the same `vocab`")
        return TokenizerPair(src, tgt, shared=config.joint)
    join = _in_turn if isinstance(config, FromFiles) else itertools.chain  # the first lines are compared: of both
    both = _made(config, lambda: join(src_lines(), tgt_lines()))
    codes = getattr(config, "languages", [])
    languages = LanguageTags(tags={code: tag_of(code) for code in codes}, src_before=[TGT]) if codes else None
    return TokenizerPair(both, both, shared=True, languages=languages)


def _train(side: str, config: Any, lines: Lines) -> Tokenizer:
    try:
        return _made(config, lines)
    except DragomanError as error:
        raise error.within(f"tokenizer.{side}: ") from error


def _in_turn(src: Iterator[str], tgt: Iterator[str]) -> Iterator[str]:
    return (line for pair in itertools.zip_longest(src, tgt) for line in pair if line is not None)


def _made(config: Any, lines: Lines) -> Tokenizer:
    if isinstance(config, MosesConfig):
        moses = Moses.of(config, lines)
        return MosesTokenizer(config, _made(config.inner, lambda: map(moses.before, lines())), moses)
    return config.tokenizer(lines) if isinstance(config, FromFiles) else TOKENIZERS[config.type].train(config, lines())


def save_tokenizers(pair: TokenizerPair, directory: Path) -> None:
    """Write plain files: `tokenizers.json` with the types, and a folder for each tokenizer.

    Raises DragomanError when the disk refuses.
    """
    src, tgt = bare(pair.src), bare(pair.tgt)
    sides = {"shared": src} if src is tgt else {"src": src, "tgt": tgt}
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
        types = {side: tokenizer.config.type for side, tokenizer in sides.items()}
        write_json(
            directory / "tokenizers.json", {**types, **({"joint": True} if pair.shared and len(sides) > 1 else {})}
        )
        for side, tokenizer in sides.items():
            tokenizer.save(directory / side)
        if pair.languages is not None:
            write_json(directory / _LANGUAGES, to_dict(pair.languages))


def load_tokenizers(directory: Path) -> TokenizerPair:
    """Read the files of `save_tokenizers`. Raises DragomanError when a file is missing or damaged."""
    path = directory / "tokenizers.json"
    types = read_json(path, dict)
    joint = types.pop("joint", False) is True
    if set(types) not in ({"shared"}, {"src", "tgt"}) or not all(isinstance(kind, str) for kind in types.values()):
        raise Error.WRONG_SHAPE(
            "expected the key `shared`, or `src` and `tgt`, with the types of the tokenizers", file=path
        )
    for kind in types.values():
        if kind not in TOKENIZERS:
            raise Error.UNKNOWN_NAME(f"no tokenizer of type {kind!r}", f"known: {', '.join(TOKENIZERS)}", file=path)
    loaded = {side: TOKENIZERS[kind].load(directory / side) for side, kind in types.items()}
    src, tgt = loaded.get("src", loaded.get("shared")), loaded.get("tgt", loaded.get("shared"))
    assert src is not None
    assert tgt is not None
    if joint and pieces_of(src) != pieces_of(tgt):
        raise Error.MISMATCH("says `joint`, and the two tokenizers have other pieces", file=path)
    tags = directory / _LANGUAGES
    languages = parse(LanguageTags, read_json(tags, dict), str(tags)) if tags.exists() else None
    return TokenizerPair(src, tgt, shared=joint or src is tgt, languages=languages)


def tokenizer_settings(pair: TokenizerPair) -> dict[str, Any]:
    """The settings of both tokenizers, as a recipe has them."""
    src, tgt = (to_dict(bare(one).config) for one in (pair.src, pair.tgt))
    if bare(pair.src) is bare(pair.tgt):
        return src
    both = {"src": src, "tgt": tgt, "joint": pair.shared}
    return to_dict(parse(SeparateConfig, both, "settings of the tokenizers"))


def pieces_of(tokenizer: Tokenizer) -> list[str]:
    """The pieces of a vocabulary in the order of their ids."""
    return tokenizer.pieces(range(tokenizer.vocab_size))


TOKENIZERS: dict[str, type[Tokenizer]] = {
    "sentencepiece": SentencePieceTokenizer,
    "cased": CasedTokenizer,
    "characters": CharactersTokenizer,
    "words": WordsTokenizer,
    "whitespace": WhitespaceTokenizer,
    "subword_nmt": SubwordNmtTokenizer,
    "pieces": PiecesTokenizer,
    "hub": HubTokenizer,
    "moses": MosesTokenizer,
}
