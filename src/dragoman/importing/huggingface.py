"""A model of Hugging Face as a run directory: the inverse of `export.huggingface`.

A folder holds `config.json`, the weights as `model.safetensors`, and the files of its tokenizer. The architectures are
siblings: Marian (OPUS-MT), Pegasus, BART, mBART, Blenderbot and M2M100 (NLLB too) differ in where norms stand, in
positions, and in what a text begins and ends with (`FAMILIES`, `_hub`). Weights that are pickled are never opened:
a pickle runs whatever its maker wrote into it.

Rows of the vocabulary come in another order, as ours begin with `<pad>`, `<unk>`, `<s>`, `</s>`. Our `<s>` is whatever
their decoder starts with. Where that is `<pad>` (Marian), `<s>` takes over its row, bias and part in the normaliser,
and our own `<pad>` gets none. Where it is `</s>` (M2M100, BART), `<s>` is a copy that is never said.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from dragoman import config
from dragoman.errors import DragomanError, Error
from dragoman.export import huggingface_weights
from dragoman.export.huggingface import quietly, transformers_library
from dragoman.export.huggingface_tokenizer import Vocabulary as JointVocabulary
from dragoman.export.origin import TOKENIZER, Origin, read_origin
from dragoman.importing.base import NEVER_BIAS, Imported, Weights, fill_rows, languages_of, positions, refusal, tying
from dragoman.importing.huggingface_settings import Ids, of_model, read_search, require_same, search
from dragoman.importing.huggingface_tensors import BIAS, EMBEDDINGS, read_tensors
from dragoman.inference.loading import build_model
from dragoman.models.transformer import Transformer, TransformerConfig
from dragoman.nn.positions import SINUSOID_BASE, LearnedPositions, sinusoidal_table
from dragoman.runs.atomic_io import read_bytes, read_json
from dragoman.special_tokens import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID
from dragoman.text.tokenizers.base import Vocabulary
from dragoman.text.tokenizers.hub import HubConfig, HubTokenizer
from dragoman.text.tokenizers.language_tags import SRC, TGT, LanguageTags
from dragoman.text.tokenizers.pair import TokenizerPair, load_tokenizers
from dragoman.text.tokenizers.pieces import PiecesConfig, PiecesTokenizer
from dragoman.text.tokenizers.sentencepiece import MAX_MODEL_BYTES
from dragoman.text.tokenizers.vocabulary_files import read_table

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "silu": "silu", "swish": "silu", "gelu_new": "gelu_tanh",
               "gelu_pytorch_tanh": "gelu_tanh"}  # fmt: skip
"""Our names of theirs."""
SINUSOID_ERROR = 1e-6
"""Up to it a stored table of sines is the one that is computed."""


class Family(NamedTuple):
    """The choices that an architecture is fixed to."""

    norm_placement: str
    embedding_norm: bool
    position: dict[str, Any] | None
    """Settings of the positions; None: a table in the file."""
    table_offset: int = 0
    """Rows of the position table before the first position."""


HALF_SPLIT = {"type": "sinusoidal", "layout": "half_split"}
FAMILIES = {
    "marian": Family("post", False, HALF_SPLIT),
    "pegasus": Family("pre", False, HALF_SPLIT),
    "blenderbot": Family("pre", False, None),
    "bart": Family("post", True, None, table_offset=2),
    "mbart": Family("pre", True, None, table_offset=2),
    "m2m_100": Family("pre", False, {"type": "sinusoidal", "layout": "fairseq", "offset": 2}),
}
"""By `model_type` of config.json."""


def load(folder: Path, src_lang: str | None, tgt_lang: str | None) -> Imported:
    """Read a folder. Raises DragomanError with all the reasons why it cannot be represented exactly."""
    generation, path = read_search(folder)
    described = _described(folder, generation, path)
    tensors = Weights(read_tensors(folder, described))
    origin = read_origin(folder)
    languages = languages_of(folder, origin, src_lang, tgt_lang)
    sides = (
        _sides(folder, described, generation.get("forced_bos_token_id"), languages)
        if origin is None
        else _own_sides(folder, described, tensors, origin, languages)
    )
    settings, reasons = _settings(described, tensors, sides, SINUSOID_BASE if origin is None else origin.position_base)
    spoken = sides.tokenizers.languages
    decoding, refused = search(generation, path, sides.ids, len(spoken.tgt_before) if spoken else 0)
    if reasons := [*of_model(folder), *reasons, *refused]:
        raise refusal(folder, reasons)
    model = cast(Transformer, build_model(settings, sides.tokenizers).eval())
    with torch.no_grad():
        _fill(model, tensors, sides, FAMILIES[described.model_type])
    if left := tensors.left():
        raise refusal(folder, left)
    if origin is None:
        return Imported(settings, model, sides.tokenizers, sides.languages, "none", decoding)
    require_same(decoding, origin, path)
    decoding = config.to_dict(origin)["decoding"]
    return Imported(settings, model, sides.tokenizers, languages, origin.normalize, decoding, origin.max_src_tokens)


# -- files ---------------------------------------------------------------------------------------------------------


def _described(folder: Path, generation: dict[str, Any], path: Path) -> Any:
    """Its config, with the library's defaults for what it does not say; the library has read the search's as well."""
    kind = read_json(folder / "config.json", dict).get("model_type")
    if kind not in FAMILIES:
        raise Error.CANNOT_IMPORT(
            f"a model of type {kind!r}; imported are {', '.join(FAMILIES)}", file=folder / "config.json"
        )
    transformers = transformers_library()
    with quietly(), _reported(folder / "config.json"):
        described = transformers.AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    with quietly(), _reported(path):
        transformers.GenerationConfig.from_dict(dict(generation))
    return described


@contextlib.contextmanager
def _reported(path: Path) -> Iterator[None]:
    """Tell the complaints of the library, errors of any kind, as ours."""
    try:
        yield
    except DragomanError:
        raise
    except Exception as error:
        raise Error.CANNOT_READ(f"cannot be read: {' '.join(str(error).split())[:300]}", file=path) from error


# -- vocabularies --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sides:
    """The tokenizers, and where their entries stand in the matrices of theirs."""

    tokenizers: TokenizerPair
    languages: tuple[str, str]
    src_rows: list[int]
    """Row of theirs of each id of ours."""
    tgt_rows: list[int]
    never: int | None
    """The id of ours that no translation holds there: a copy of another row, which takes no part in the output."""
    ids: Ids
    src_end: bool = True
    interleaved: bool = False
    """The dimensions of the residual path were given another order by our own export."""


class Entries(NamedTuple):
    """A vocabulary of theirs: the piece of each id, and the ids that have a part of their own."""

    pieces: list[str]
    pad: int
    unk: int
    start: int
    eos: int

    def rows(self, read: Sequence[int]) -> tuple[list[int], int | None]:
        """(for each of our ids the row of their embeddings, the id that no translation holds); `read`: ids of
        frames."""
        taken = {self.pad, self.unk, self.eos}
        if self.start == self.pad:
            never: int | None = PAD_ID
        elif self.start in {*taken, *read}:
            never = BOS_ID
        else:
            never = None
            taken.add(self.start)
        others = [index for index in range(len(self.pieces)) if index not in taken]
        return [self.pad, self.unk, self.start, self.eos, *others], never

    def names(self, rows: Sequence[int]) -> list[str]:
        """The pieces by our ids; a special of theirs that has another part here gets another name."""
        names = dict.fromkeys(SPECIALS)
        for row in rows[len(SPECIALS) :]:
            name = self.pieces[row]
            while name in names:
                name += "'"
            names[name] = None
        return list(names)


def _own_sides(folder: Path, described: Any, tensors: Weights, origin: Origin, languages: tuple[str, str]) -> Sides:
    """The tokenizers that `dragoman export` wrote beside the model."""
    pair = load_tokenizers(folder / TOKENIZER)
    joint = JointVocabulary.of(pair)
    if described.vocab_size != joint.size:
        raise Error.MISMATCH("has other pieces than the model's vocabulary", file=folder / TOKENIZER)
    interleaved = origin.position_layout == "interleaved"
    first = getattr(pair.between(*languages).tgt, "before", ())
    ids = Ids(unk=UNK_ID, **_ids(described), first=frozenset(first))
    return Sides(pair, languages, joint.src_ids, joint.tgt_ids, None, ids, interleaved=interleaved)


def _sides(folder: Path, described: Any, forced: int | None, languages: tuple[str, str]) -> Sides:
    if (folder / "source.spm").is_file():
        return _marian(folder, described, languages)
    transformers = transformers_library()
    with quietly(), _reported(folder):
        theirs = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    if hasattr(theirs, "lang_code_to_token") and (folder / "sentencepiece.bpe.model").is_file():
        return _m2m100(folder, described, theirs, languages)
    if not hasattr(theirs, "backend_tokenizer"):
        raise Error.CANNOT_IMPORT(f"a tokenizer of kind {type(theirs).__name__} is not imported", file=folder)
    return _hub(described, forced, theirs, languages)


def _ids(described: Any) -> dict[str, int]:
    ids = {
        "pad": described.pad_token_id,
        "eos": described.eos_token_id,
        "start": described.decoder_start_token_id,
    }
    for name, value in ids.items():
        if not isinstance(value, int) or not 0 <= value < described.vocab_size:
            raise Error.CANNOT_IMPORT(f"config.json: {value} is no id for {name}")
    return ids


def _table(path: Path) -> dict[str, int]:
    """The id of each piece. Raises DragomanError where two have the same, or one has none."""
    table = read_table(path)
    if "<unk>" not in table:
        raise Error.CANNOT_IMPORT("has no <unk>", file=path)
    return table


def _named(ids: dict[str, int], size: int, path: Path) -> list[str]:
    """The piece of each id; an id without one gets its number for a name."""
    pieces = {index: piece for piece, index in ids.items()}
    if any(not 0 <= index < size for index in pieces):
        raise Error.CANNOT_IMPORT(f"has ids beyond the {size:,} rows of the model", file=path)
    return [pieces.get(index, f"<{index}>") for index in range(size)]


def _pieces(names: list[str], model: Path) -> PiecesTokenizer:
    vocabulary = Vocabulary(names[len(SPECIALS) :])
    return PiecesTokenizer(
        PiecesConfig(vocab_size=len(names)), vocabulary, read_bytes(model, MAX_MODEL_BYTES), str(model)
    )


def _marian(folder: Path, described: Any, languages: tuple[str, str]) -> Sides:
    """Two SentencePiece models over one table of ids, or over one each; several targets have tags like `>>deu<<`."""
    path = folder / "vocab.json"
    table = _table(path)
    tgt_table, tgt_size = table, described.vocab_size
    if not described.share_encoder_decoder_embeddings:
        path = folder / "target_vocab.json"
        tgt_table, tgt_size = _table(path), described.decoder_vocab_size
    sides = []
    for of_side, size in ((table, described.vocab_size), (tgt_table, tgt_size)):
        entries = Entries(_named(of_side, size, path), unk=of_side["<unk>"], **_ids(described))
        rows, never = entries.rows([])
        sides.append((rows, entries.names(rows), never))
    (src_rows, src_names, never), (tgt_rows, tgt_names, _) = sides
    src, tgt = _pieces(src_names, folder / "source.spm"), _pieces(tgt_names, folder / "target.spm")
    tags = {piece[2:-2]: piece for piece in src_names if re.fullmatch(">>.+<<", piece)}
    # A model with one target may have a tag in its vocabulary that it never saw.
    spoken = LanguageTags(tags=tags, src_before=[TGT]) if len(tags) > 1 else None
    if spoken is not None:
        languages = spoken.codes(*languages)
    shared = bool(described.share_encoder_decoder_embeddings)
    ids = Ids(unk=tgt_table["<unk>"], **_ids(described), first=frozenset())
    return Sides(TokenizerPair(src, tgt, shared, spoken), languages, src_rows, tgt_rows, never, ids)


def _m2m100(folder: Path, described: Any, theirs: Any, languages: tuple[str, str]) -> Sides:
    path = folder / "vocab.json"
    spoken_there = {piece: index for piece, index in theirs.lang_token_to_id.items() if index < described.vocab_size}
    table = {**_table(path), **spoken_there}
    entries = Entries(_named(table, described.vocab_size, path), unk=table["<unk>"], **_ids(described))
    tags = {code: token for code, token in theirs.lang_code_to_token.items() if token in table}
    first = [table[token] for token in tags.values()]
    rows, never = entries.rows(first)
    tokenizer = _pieces(entries.names(rows), folder / "sentencepiece.bpe.model")
    spoken = LanguageTags(tags=tags, src_before=[SRC], tgt_before=[TGT])
    ids = Ids(entries.pad, entries.unk, entries.start, entries.eos, frozenset(first))
    return Sides(TokenizerPair(tokenizer, tokenizer, True, spoken), spoken.codes(*languages), rows, rows, never, ids)


def _hub(described: Any, forced: int | None, theirs: Any, languages: tuple[str, str]) -> Sides:
    """A tokenizer of their library. The encoding of an empty text shows which special tokens stand around a text.

    `forced`: the token that the model must write first, by the model's settings.
    """
    size, ids = described.vocab_size, _ids(described)
    added = {piece: index for piece, index in theirs.get_added_vocab().items() if index < size}
    # 1. Tags of languages, such as `en_XX`.
    tags = {piece: piece for piece in sorted(added) if re.fullmatch("[a-z]{2,3}_[A-Z][A-Za-z]{1,3}", piece)}
    spoken = LanguageTags(tags=tags)
    if tags:
        languages = spoken.code(languages[0]), spoken.code(languages[1])
        theirs.src_lang = languages[0]
    # 2. The frame: the tokens before and after a text.
    frame = list(theirs("").input_ids)
    if ids["eos"] not in frame:
        raise Error.CANNOT_IMPORT("its tokenizer does not end a text with </s>")
    end = frame.index(ids["eos"])
    if theirs.unk_token_id not in range(size):
        raise Error.CANNOT_IMPORT(f"its tokenizer has {theirs.unk_token_id} for an unknown piece")
    # 3. What a translation begins with: nothing, one token, or the tag of the target language.
    if not isinstance(forced, int) or not 0 <= forced < size or forced in ids.values():
        forced = None
    first = frozenset() if forced is None else frozenset({forced})
    if tags:
        start_is_tag = ids["start"] in added.values() and theirs.convert_ids_to_tokens(ids["start"]) in tags
        if start_is_tag and ids["start"] != added[languages[1]]:
            start = theirs.convert_ids_to_tokens(ids["start"])
            raise Error.MISSING_OPTION(f"its translations begin with {start}", f"give `tgt_lang` {start}")
        forced = None if start_is_tag else added[languages[1]]
        first = frozenset() if start_is_tag else frozenset(map(added.__getitem__, tags))
    # 4. The rows of their embeddings that our ids use: pieces of text, and special tokens that are read.
    entries = Entries(
        [theirs.convert_ids_to_tokens(index) or f"<{index}>" for index in range(size)],
        unk=theirs.unk_token_id,
        **ids,
    )
    read = [*frame[:end], *frame[end + 1 :], *([] if forced is None else [forced]), *map(added.__getitem__, tags)]
    rows, never = entries.rows(read)
    tokenizer = HubTokenizer(HubConfig(vocab_size=size), theirs.backend_tokenizer.to_str().encode(), rows)

    def name_of(index: int, stands_for: str) -> str:
        """The name of an id in a frame."""
        is_language = tags and index == added[languages[0 if stands_for == SRC else 1]]
        return stands_for if is_language else tokenizer.piece_of(index)

    # 5. The frame by names, with SRC and TGT where a tag depends on the languages of a request.
    after = [name_of(index, SRC) for index in frame[end + 1 :]]
    spoken = replace(
        spoken,
        src_before=[name_of(index, SRC) for index in frame[:end]],
        src_after=[SPECIALS[EOS_ID], *after] if after else [],
        tgt_before=[] if forced is None else [name_of(forced, TGT)],
    )
    is_framed = spoken.src_before or spoken.src_after or spoken.tgt_before
    pair = TokenizerPair(tokenizer, tokenizer, True, spoken if is_framed else None)
    special_ids = Ids(entries.pad, entries.unk, entries.start, entries.eos, first)
    return Sides(pair, languages, rows, rows, never, special_ids, src_end=not after)


# -- settings and weights ------------------------------------------------------------------------------------------


def _settings(described: Any, tensors: Weights, sides: Sides, base: float) -> tuple[TransformerConfig, list[str]]:
    """The settings, and reasons why they are not the whole truth."""
    family = FAMILIES[described.model_type]
    reasons = [
        f"{name} is {first} in the encoder and {second} in the decoder"
        for name in ("ffn_dim", "attention_heads")
        if (first := getattr(described, f"encoder_{name}")) != (second := getattr(described, f"decoder_{name}"))
    ]
    if described.activation_function not in ACTIVATIONS:
        reasons.append(f"activation_function: {described.activation_function} is not known here")
    position, problem = _position(family, tensors, base)
    reasons += problem
    if sides.interleaved and family.position is not None:
        position = {"type": "sinusoidal", "layout": "interleaved"}
    src, tgt, output = (tensors[name] for name in EMBEDDINGS)
    bias = tensors.get(BIAS)
    has_bias = bias is not None and bool(bias.flatten()[sides.tgt_rows].any())
    settings = {
        "d_model": described.d_model,
        "num_heads": described.encoder_attention_heads,
        "d_ff": described.encoder_ffn_dim,
        "num_encoder_layers": described.encoder_layers,
        "num_decoder_layers": described.decoder_layers,
        "dropout": described.dropout,
        "attention_dropout": described.attention_dropout,
        "activation_dropout": described.activation_dropout,
        "activation": ACTIVATIONS.get(described.activation_function, "relu"),
        "norm_placement": family.norm_placement,
        "embedding_norm": family.embedding_norm,
        "position": position,
        "tie_embeddings": tying(src, tgt, output, sides.tgt_rows, sides.tokenizers.shared),
        "scale_embeddings": bool(described.scale_embedding),
        "src_end": sides.src_end,
        "output_bias": has_bias or sides.never is not None,
    }
    return config.parse(TransformerConfig, settings, "settings of the imported model"), reasons


def _position(family: Family, tensors: Weights, base: float) -> tuple[dict[str, Any], list[str]]:
    names = [f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder")]
    src, tgt = (tensors.get(name) for name in names)
    if src is None or tgt is None:
        return (family.position, []) if family.position else ({}, [f"the weights have no {names[src is not None]}"])
    if family.position is not None:
        return family.position, [
            f"{name}: is not the sinusoid that it should be"
            for name, table in zip(names, (src, tgt), strict=True)
            if not _is_sinusoid(table, family.position)
        ]
    return positions(src[family.table_offset :], tgt[family.table_offset :], base)


def _is_sinusoid(table: Tensor, position: dict[str, Any]) -> bool:
    computed = sinusoidal_table(*table.shape, layout=position["layout"], offset=position.get("offset", 0))
    return bool((computed - table).abs().max() <= SINUSOID_ERROR)


def _fill(model: Transformer, tensors: Weights, sides: Sides, family: Family) -> None:
    """Copy every weight into its place."""
    # A table of positions has them in our order.
    reordered = sides.interleaved and family.position is not None
    order = huggingface_weights.order_of(model.src_embedding.tokens.embedding.embedding_dim, reordered)
    for part in huggingface_weights.parts(model):
        part.take(tensors[part.name], order)
    back = order.argsort()
    src, tgt, output = (tensors[name][:, back] for name in EMBEDDINGS)
    fill_rows(model.src_embedding.tokens.embedding.weight, src, sides.src_rows)
    fill_rows(model.tgt_embedding.tokens.embedding.weight, tgt, sides.tgt_rows)
    fill_rows(model.output.weight, output, sides.tgt_rows)
    if model.output.bias is not None:
        bias = tensors.get(BIAS)
        theirs = torch.zeros(len(output)) if bias is None else bias.flatten()
        theirs = theirs.masked_fill(theirs == -torch.inf, NEVER_BIAS)
        rows = [-1 if index == sides.never else row for index, row in enumerate(sides.tgt_rows)]
        fill_rows(model.output.bias, theirs, rows, missing=NEVER_BIAS)
    for side, embedding in (("encoder", model.src_embedding), ("decoder", model.tgt_embedding)):
        if isinstance(embedding.positions, LearnedPositions):
            table = tensors[f"model.{side}.embed_positions.weight"]
            embedding.positions.embedding.weight.copy_(table[family.table_offset :])
