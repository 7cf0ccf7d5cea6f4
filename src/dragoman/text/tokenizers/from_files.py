"""Tokenizers that a person has already, from their files: taken in as they are, not learnt.

Their entries keep their order behind our four specials, whose own entries there are moved to the front; what they lack
is added. The pieces of the first lines of a corpus are compared with those of the original library, and the run keeps
what it needs of the files.
"""

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from dragoman.config import settings
from dragoman.errors import DragomanError, Error
from dragoman.progress import say
from dragoman.runs.atomic_io import read_bytes
from dragoman.special_tokens import SPECIALS, UNK_ID
from dragoman.text.lines import find, reporting_os_errors
from dragoman.text.tokenizers import hub
from dragoman.text.tokenizers.base import Tokenizer, Vocabulary
from dragoman.text.tokenizers.hub import HubConfig, HubTokenizer
from dragoman.text.tokenizers.language_tags import tag_of
from dragoman.text.tokenizers.pieces import PiecesConfig, PiecesTokenizer
from dragoman.text.tokenizers.resampling import RESAMPLERS
from dragoman.text.tokenizers.sentencepiece import MAX_MODEL_BYTES, processor
from dragoman.text.tokenizers.sentencepiece_model import algorithm, parsed, specials_first
from dragoman.text.tokenizers.symbols import Symbols
from dragoman.text.tokenizers.vocabulary_files import read_vocabulary
from dragoman.text.tokenizers.whitespace import WhitespaceConfig, WhitespaceTokenizer

MAX_COMPARED_LINES = 1000
"""Lines of a corpus whose pieces are compared with those of the original library."""


class Original(NamedTuple):
    """A library, and the pieces that it cuts a text into, by our names."""

    library: str
    pieces: Callable[[str], list[str]]


class FromFiles:
    """Base of settings that name the files of a tokenizer."""

    kind: ClassVar[str] = " of a file"
    """Said behind the `type:`, which a tokenizer that is learnt may have as well."""
    normalizes: ClassVar[bool] = False
    """True if the files say how a text is normalised."""
    vocab_size: int | None
    user_defined_symbols: list[str]

    def paths(self) -> list[str]:
        """The files, as the settings name them."""
        raise NotImplementedError

    def check(self) -> int | None:
        """The number of entries; None: the text says. Raises DragomanError for files that cannot be taken in."""
        return self.build(iter(())).vocab_size + len(self.user_defined_symbols)

    def build(self, texts: Iterator[str]) -> Tokenizer:
        """The tokenizer without the symbols of the settings. Raises DragomanError as `check`."""
        raise NotImplementedError

    def with_symbols(self, made: Any) -> Tokenizer:
        """The tokenizer with the symbols of the settings."""
        raise NotImplementedError

    def original(self, made: Any) -> Original | None:
        """The library whose files these are; None: none, or it is not installed."""
        return None

    def tokenizer(self, lines: Callable[[], Iterator[str]]) -> Tokenizer:
        """The tokenizer, compared with the original. Raises DragomanError where they differ, or as `check`."""
        name, made = self.paths()[0], self.build(lines())
        compared = 0
        if (original := self.original(made)) is not None:
            for text in map(str.strip, itertools.islice(lines(), MAX_COMPARED_LINES)):
                if (ours := made.pieces(made.encode(text))) != (theirs := original.pieces(text)):
                    place = next((n for n, pair in enumerate(zip(ours, theirs, strict=False)) if len({*pair}) > 1), 0)
                    raise Error.MISMATCH(
                        f"{text[:80]!r} is cut into {ours[place : place + 3]} ..., and by {original.library} into "
                        f"{theirs[place : place + 3]} ...", file=name,
                    )  # fmt: skip
                compared += 1
        same = f"; {compared:,} lines are cut as by {original.library}" if original and compared else ""
        say(f"{name}: a tokenizer of {made.vocab_size:,} entries{same}")
        return self.with_symbols(made)

    def require_size(self, size: int, name: str, there: int | None = None) -> None:
        """Raises DragomanError where `vocab_size` says another one; `there`: without specials that were added."""
        if self.vocab_size not in (None, size, there):
            raise Error.CONFLICT(f"tokenizer.vocab_size is {self.vocab_size:,}, and it has {size:,} entries",
                                 "leave tokenizer.vocab_size out", file=name)  # fmt: skip


VocabSize = Annotated[int, Field(ge=5)] | None


@settings
class SentencePieceFile(FromFiles):
    """A SentencePiece model that there is already; its own normalisation is all (`corpus.normalize: none`).

    Its ids are as in its file, or those of `vocab`; our four specials come first. It may be Marian's .spm.
    """

    type: Literal["sentencepiece"] = "sentencepiece"
    normalizes: ClassVar[bool] = True
    model: str  #: File of the SentencePiece model.
    vocab: str | None = None
    """File of a vocabulary beside it: fairseq's dict.txt, Marian's vocab.yml, vocab.json ...; null: the model's own."""
    vocab_size: VocabSize = None  #: Entries that it has, specials included; need not be given. [tokens]
    sampling: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Subword regularisation: BPE-dropout rate, or unigram's alpha; 0: off."""
    languages: list[Annotated[str, Field(min_length=1)]] = field(default_factory=list)
    """Codes of several languages: each gets a tag, `<2de>`, which tells the model the language that is asked for."""
    user_defined_symbols: Symbols = field(default_factory=list)
    """Strings such as `<br>` that are a piece of their own wherever a text has them."""

    def paths(self) -> list[str]:
        return [name for name in (self.model, self.vocab) if name is not None]

    def build(self, texts: Iterator[str]) -> PiecesTokenizer:
        content, name = _read(self.model, MAX_MODEL_BYTES)
        try:
            pieces = [entry.piece for entry in parsed(content, name).pieces]
        except DragomanError:
            pieces = []
        if not pieces:
            raise Error.WRONG_FILE_TYPE("no SentencePiece model, or damaged", OTHER_KINDS, file=name)
        there = processor(content, name).GetPieceSize()
        if self.vocab is None:
            content, order = specials_first(content, name)
            names = [pieces[number] for number in order[len(SPECIALS) :]]
        else:
            names = [entry.token for entry in read_vocabulary(find(self.vocab))]
            if not {*pieces} & {*names}:
                raise Error.MISMATCH(f"has no piece of {self.model}: it is of another model", file=find(self.vocab))
        vocabulary = Vocabulary(names)
        self.require_size(len(vocabulary), self.vocab or name, there)
        if self.sampling and algorithm(content) not in RESAMPLERS:
            raise Error.CONFLICT(f"tokenizer.sampling: a model of {algorithm(content)}s has one way alone", file=name)
        return PiecesTokenizer(
            PiecesConfig(vocab_size=len(vocabulary), sampling=self.sampling), vocabulary, content, name
        )

    def with_symbols(self, made: PiecesTokenizer) -> PiecesTokenizer:
        tags = [tag_of(code) for code in self.languages]
        kept = list(range(made.vocab_size))
        new = [*self.user_defined_symbols, *tags]
        return made.with_entries(kept, new, tags) if new else made

    def original(self, made: PiecesTokenizer) -> Original:
        theirs = processor(*_read(self.model, MAX_MODEL_BYTES))

        def pieces(text: str) -> list[str]:
            cut = zip(theirs.EncodeAsPieces(text), theirs.EncodeAsIds(text), strict=True)
            names = (SPECIALS[UNK_ID] if index == theirs.unk_id() else piece for piece, index in cut)
            return [piece if made.vocabulary.encode(piece) != UNK_ID else SPECIALS[UNK_ID] for piece in names]

        return Original("SentencePiece", pieces)


@settings
class WhitespaceFile(FromFiles):
    """A vocabulary that there is already, for text whose tokens stand between spaces."""

    type: Literal["whitespace"] = "whitespace"
    vocab: str  #: File of the vocabulary: fairseq's dict.txt, vocab.yml, vocab.json, a token a line ...
    vocab_size: VocabSize = None  #: Entries that it has, specials included; need not be given. [tokens]
    user_defined_symbols: Symbols = field(default_factory=list)  #: Further tokens.

    def paths(self) -> list[str]:
        return [self.vocab]

    def build(self, texts: Iterator[str]) -> WhitespaceTokenizer:
        path = find(self.vocab)
        vocabulary = Vocabulary(entry.token for entry in read_vocabulary(path))
        self.require_size(len(vocabulary), str(path))
        return WhitespaceTokenizer(WhitespaceConfig(vocab_size=len(vocabulary)), vocabulary)

    def with_symbols(self, made: WhitespaceTokenizer) -> WhitespaceTokenizer:
        vocabulary, symbols = appended(made.vocabulary, self.user_defined_symbols), self.user_defined_symbols
        return WhitespaceTokenizer(
            WhitespaceConfig(vocab_size=len(vocabulary), user_defined_symbols=symbols), vocabulary
        )


def appended(vocabulary: Vocabulary, symbols: Sequence[str]) -> Vocabulary:
    """The vocabulary, and behind it the symbols that it lacks."""
    pieces = [vocabulary[index] for index in range(len(SPECIALS), len(vocabulary))]
    return Vocabulary(dict.fromkeys([*pieces, *symbols]))


NAMES = (
    ("<pad>", "[PAD]", "<|pad|>", "<blank>"),
    ("<unk>", "[UNK]", "<|unk|>"),
    ("<s>", "[CLS]", "<bos>", "[BOS]", "<|startoftext|>", "<|begin_of_text|>"),
    ("</s>", "[SEP]", "<eos>", "[EOS]", "<|endoftext|>", "<|end_of_text|>"),
)
"""Names of our four specials in a tokenizer.json, the likeliest first."""


@settings
class HubFile(FromFiles):
    """A Hugging Face tokenizer.json that there is already; its own normalisation is all (`corpus.normalize: none`).

    What it puts around a text (`[CLS]`, `</s>`) is left out. Needs the extra dragoman[huggingface].
    """

    type: Literal["hub"] = "hub"
    normalizes: ClassVar[bool] = True
    model: str  #: File of the tokenizer.json.
    vocab_size: VocabSize = None  #: Entries that it has, specials included; need not be given. [tokens]
    user_defined_symbols: Symbols = field(default_factory=list)
    """Strings such as `<br>` that are a piece of their own wherever a text has them."""

    def paths(self) -> list[str]:
        return [self.model]

    def build(self, texts: Iterator[str]) -> HubTokenizer:
        content, name = _read(self.model, hub.MAX_BYTES)
        try:
            described = json.loads(content)
            model, added = described["model"], described["added_tokens"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise Error.WRONG_FILE_TYPE("no tokenizer.json", OTHER_KINDS, file=name) from error
        ids = dict(hub.read(content, name).get_vocab())
        unknown = _unknown(model, ids)
        whole = model.get("byte_fallback") or "ByteLevel" in json.dumps(
            [described.get("pre_tokenizer"), described.get("decoder")]
        )
        if unknown is None and not whole:
            raise Error.WRONG_SHAPE("has no <unk>: letters that it does not know are lost", file=name)
        specials = [next((one for one in names if one in ids), names[0]) for names in NAMES]
        specials[UNK_ID] = unknown or specials[UNK_ID]
        there, marked = max(ids.values(), default=-1) + 1, {one["content"] for one in added}
        for special in specials:
            index = ids.setdefault(special, max(ids.values(), default=-1) + 1)
            if special not in marked:
                plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
                added.append({"id": index, "content": special, "special": True, **plain})
        first = [ids[special] for special in specials]
        order = [*first, *sorted(set(ids.values()) - set(first))]
        self.require_size(len(order), name, there)
        model |= {"dropout": None} if "dropout" in model else {}  # which would draw in translation, too
        written = json.dumps(described, ensure_ascii=False).encode()
        return HubTokenizer(HubConfig(vocab_size=len(order)), written, order, name)

    def with_symbols(self, made: HubTokenizer) -> HubTokenizer:
        new = [symbol for symbol in self.user_defined_symbols if made.id_of(symbol) == UNK_ID]
        return made.with_entries(list(range(made.vocab_size)), new)[0] if new else made

    def original(self, made: HubTokenizer) -> Original:
        theirs = hub.read(*_read(self.model, hub.MAX_BYTES))
        unknown = {one: SPECIALS[UNK_ID] for one, token in theirs.get_added_tokens_decoder().items() if token.special}
        if getattr(theirs.model, "dropout", None):
            theirs.model.dropout = None

        def pieces(text: str) -> list[str]:
            cut = theirs.encode(text, add_special_tokens=False).ids
            return [unknown.get(index) or made.piece_of(index) for index in cut]

        return Original("tokenizers", pieces)


def _unknown(model: dict[str, Any], ids: dict[str, int]) -> str | None:
    """The piece for what a model does not know; None: it has none."""
    if isinstance(model.get("unk_id"), int):
        return str(model["vocab"][model["unk_id"]][0])
    named = model.get("unk_token")
    return named if named in ids else None


OTHER_KINDS = (
    "SentencePiece models are `model` of {type: sentencepiece}, a tokenizer.json of {type: hub}, codes are `codes` of "
    "{type: subword_nmt}, lists of tokens `vocab`"
)


def _read(path: str, limit: int) -> tuple[bytes, str]:
    """(content, name) of a file. Raises DragomanError where it is not there."""
    file = find(path)
    with reporting_os_errors(file):
        return read_bytes(file, limit), str(file)
