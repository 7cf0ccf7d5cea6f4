"""A model of CTranslate2 as a run directory: the inverse of `export.ctranslate2`.

CTranslate2's converters read OpenNMT-py, OpenNMT-tf, fairseq and Marian, so its files are a door for models of all of
these, without anything pickled. A folder holds `model.bin`, the vocabularies, and for newer versions `config.json`.
Whatever `model.bin` says has to have a counterpart here: what nobody asked for is a reason to refuse.
"""

import io
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from dragoman import config
from dragoman.errors import Error
from dragoman.export.ctranslate2 import entries
from dragoman.export.origin import TOKENIZER, read_origin
from dragoman.importing.base import NEVER_BIAS, Imported, Weights, fill_rows, languages_of, positions, refusal, tying
from dragoman.importing.vocabularies import Sides, languages_in, tokenizer_of
from dragoman.inference.loading import build_model
from dragoman.models.transformer import Transformer, TransformerConfig
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.positions import SINUSOID_BASE, LearnedPositions
from dragoman.runs.atomic_io import read_bytes, read_json
from dragoman.special_tokens import BOS_ID, PAD_ID, SPECIALS, UNK_ID
from dragoman.text.tokenizers.pair import TokenizerPair, load_tokenizers, pieces_of
from dragoman.text.tokenizers.sentencepiece import MAX_MODEL_BYTES

MAX_BYTES = 16 * 2**30
VERSIONS = range(2, 7)
"""Versions of the file format that are understood."""
HEADS = {"TransformerBase": 8, "TransformerBig": 16}
"""Heads of the older kinds of model, which do not say them; other kinds do."""
ACTIVATIONS = {0: "relu", 1: "gelu_tanh", 2: "silu", 3: "gelu"}
TYPES = {0: torch.float32, 1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.float16, 5: torch.bfloat16}
IGNORED = re.compile(r"decoder/alignment_(layer|heads)|decoder/(alibi_use_positive_positions|scale_alibi)")
"""Names of variables that say nothing about the probabilities."""


class Variables(Weights):
    """The tensors of a `model.bin`. Some of them are settings."""

    def __init__(self, kind: str, tensors: dict[str, Tensor]) -> None:
        super().__init__(tensors)
        self.kind = kind
        self.used.update(filter(IGNORED.fullmatch, tensors))

    def __getitem__(self, name: str) -> Tensor:
        if name not in self:
            raise Error.CANNOT_IMPORT(f"model.bin has no {name}: it is no Transformer that CTranslate2 would load")
        return super().__getitem__(name)

    def number(self, name: str, default: float) -> float:
        """A setting: a tensor with one number."""
        return float(self[name]) if name in self else default


def read_variables(path: Path) -> Variables:
    """Read a `model.bin`. Raises DragomanError for a file that is missing, damaged or of a version not understood."""
    data = read_bytes(path, MAX_BYTES)
    try:
        return _parsed(data)
    except (ValueError, KeyError, RuntimeError) as error:
        raise Error.DAMAGED(f"is no model of CTranslate2, or damaged: {error}", file=path) from error


def _parsed(data: bytes) -> Variables:
    stream = io.BytesIO(data)

    def taken(size: int) -> bytes:
        value = stream.read(size)
        if len(value) < size:
            raise ValueError("it ends too early")
        return value

    def number(size: int) -> int:
        return int.from_bytes(taken(size), "little")

    def string() -> str:
        return taken(number(2)).rstrip(b"\0").decode("utf-8")

    version = number(4)
    if version not in VERSIONS:
        raise ValueError(f"version {version} of the format; known are {VERSIONS.start} to {VERSIONS.stop - 1}")
    kind = string()
    number(4)  # the revision of that kind: what it brought is seen by its variables
    tensors: dict[str, Tensor] = {}
    for _ in range(number(4)):
        name, shape = string(), [number(4) for _ in range(number(1))]
        if version >= 4:
            dtype, size = TYPES[number(1)], number(4)
        else:
            width = number(1)
            dtype, size = {1: torch.int8, 2: torch.int16, 4: torch.float32}[width], width * number(4)
        tensors[name] = torch.frombuffer(bytearray(taken(size)), dtype=dtype).reshape(shape)
    if stream.tell() < len(data):
        for _ in range(number(4)):
            alias, name = string(), string()
            tensors[alias] = tensors[name]
    if rest := len(data) - stream.tell():
        raise ValueError(f"{rest:,} bytes too many")
    return Variables(kind, tensors)


def load(folder: Path, src_lang: str | None, tgt_lang: str | None, spm: Sequence[Path] = ()) -> Imported:
    """Read a folder; `spm`: the SentencePiece model that cuts its texts, or one for each side.

    Raises DragomanError with all the reasons why it cannot be represented exactly.
    """
    origin = read_origin(folder)
    languages = languages_of(folder, origin, src_lang, tgt_lang)
    variables = read_variables(folder / "model.bin")
    described = read_json(folder / "config.json", dict) if (folder / "config.json").exists() else {}
    reasons = [*_reasons(variables, described)]
    if reasons:
        raise refusal(folder, reasons)
    sides = _sides(folder, variables, spm, _start(variables, described))
    tokenizers = sides.tokenizers
    settings, reasons = _settings(
        variables, described, sides, SINUSOID_BASE if origin is None else origin.position_base
    )
    model = cast(Transformer, build_model(settings, tokenizers).eval())
    with torch.no_grad():
        _fill(model, variables, sides)
    if reasons := [*reasons, *variables.left()]:
        raise refusal(folder, reasons)
    if origin is None:
        if tokenizers.languages is not None:
            languages = tokenizers.languages.codes(*languages)
        return Imported(settings, model, tokenizers, languages)
    decoding = config.to_dict(origin)["decoding"]
    return Imported(settings, model, tokenizers, languages, origin.normalize, decoding, origin.max_src_tokens)


def _reasons(variables: Variables, described: dict[str, Any]) -> Iterator[str]:
    if not variables.kind.startswith("Transformer") or variables.kind.endswith("Relative"):
        yield f"it is a {variables.kind}: encoder-decoder Transformers alone are known"
        return
    if not any(name.startswith("encoder/") for name in variables.tensors):
        yield "it has no encoder: a language model is not imported"
    kinds = {str(one.dtype).removeprefix("torch.") for one in variables.tensors.values() if one.dim() > 1}
    if kinds - {"float32"}:
        yield f"its weights are {', '.join(sorted(kinds))}: convert it without --quantization, and it is exact"
    for name, neutral, why in (
        ("encoder/embeddings_merge", 0.0, "several inputs for each token"),
        ("decoder/alibi", 0.0, "ALiBi in the decoder alone"),
        ("encoder/multi_query_attention", 0.0, "one head of keys in a layout of its own"),
        ("decoder/multi_query_attention", 0.0, "one head of keys in a layout of its own"),
    ):
        if variables.number(name, neutral) != neutral:
            yield f"{name}: {why}"
    if described.get("add_source_bos"):
        yield "add_source_bos: its sources begin with <s>"
    start = described.get("decoder_start_token", SPECIALS[BOS_ID])
    if start not in SPECIALS:
        yield f"decoder_start_token: its translations begin with {start!r}, and nothing says what else they may with"


def _start(variables: Variables, described: dict[str, Any]) -> str:
    """The token that a translation begins with; empty: a vector of zeros, as in Marian."""
    if variables.number("decoder/start_from_zero_embedding", 0.0):
        return ""
    return str(described.get("decoder_start_token", SPECIALS[BOS_ID]))


# -- settings ------------------------------------------------------------------------------------------------------


def _settings(
    variables: Variables, described: dict[str, Any], sides: Sides, base: float
) -> tuple[TransformerConfig, list[str]]:
    """The settings, and reasons why they are not the whole truth."""
    reasons: list[str] = []
    own_start = sides.start == SPECIALS[BOS_ID]

    def of_both(name: str, default: float) -> float:
        first, second = (variables.number(f"{side}/{name}", default) for side in ("encoder", "decoder"))
        if first != second:
            reasons.append(f"{name} is {first:g} in the encoder and {second:g} in the decoder")
        return first

    heads = int(of_both("num_heads", HEADS.get(variables.kind, 8)))
    activation = ACTIVATIONS.get(int(of_both("activation", 0)))
    gated = "encoder/layer_0/ffn/linear_0_noact/weight" in variables
    if activation is None or (gated and activation != "silu"):
        reasons.append("an activation that is not known here")
    pre_norm, scale = bool(of_both("pre_norm", 1)), of_both("scale_embeddings", 1)
    embedding, d_model = _matrix(variables, "encoder"), _matrix(variables, "encoder").size(1)
    scaled = scale != 0.0
    if "encoder/scale_embeddings" in variables and variables["encoder/scale_embeddings"].is_floating_point():
        scaled = scale != 1.0  # there it is the factor
        if scaled and not math.isclose(scale, d_model**0.5, rel_tol=1e-6):
            reasons.append(f"scale_embeddings: embeddings are multiplied by {scale:g}")
    output, tgt_embedding = variables["decoder/projection/weight"], variables["decoder/embeddings/weight"]
    position, problem = _position(variables, base)
    reasons += problem
    settings = {
        "d_model": d_model,
        "num_heads": heads,
        "num_kv_heads": _kv_heads(variables, heads),
        "d_ff": variables["encoder/layer_0/ffn/linear_0/weight"].size(0),
        "num_encoder_layers": _layers(variables, "encoder"),
        "num_decoder_layers": _layers(variables, "decoder"),
        "activation": "swiglu" if gated else activation or "relu",
        "norm": "layer" if "encoder/layer_0/ffn/layer_norm/beta" in variables else "rms",
        "norm_eps": float(described.get("layer_norm_epsilon") or 1e-5),
        "norm_placement": "pre" if pre_norm else "post",
        "embedding_norm": "encoder/layernorm_embedding/gamma" in variables,
        "tie_embeddings": tying(embedding, tgt_embedding, output, sides.tgt_rows, sides.tokenizers.shared),
        "scale_embeddings": scaled,
        # The others are of Marian and transformers, where the tokenizer ends a source, whatever is said here.
        "src_end": bool(described.get("add_source_eos", False)) or not own_start,
        "output_bias": -1 in sides.tgt_rows or not own_start or "decoder/projection/bias" in variables,
        "position": position,
    }
    return config.parse(TransformerConfig, settings, "settings of the imported model"), reasons


def _matrix(variables: Variables, side: str) -> Tensor:
    """A side's embeddings."""
    several = f"{side}/embeddings_0/weight"
    return variables[several if several in variables else f"{side}/embeddings/weight"]


def _layers(variables: Variables, side: str) -> int:
    numbers = {int(match[1]) for name in variables.tensors if (match := re.match(rf"{side}/layer_(\d+)/", name))}
    return len(numbers)


def _position(variables: Variables, base: float) -> tuple[dict[str, Any], list[str]]:
    """The settings of the positions, and why they are not the whole truth."""
    rotary = [name for name in variables.tensors if name.endswith("/rotary_dim")]
    if rotary:
        known = {(float(variables[name]), variables.number(name.replace("dim", "interleave"), 1.0)) for name in rotary}
        bases = {variables.number(name.replace("dim", "base"), 10_000.0) for name in rotary}
        everywhere = len(rotary) == _layers(variables, "encoder") + _layers(variables, "decoder")
        if known != {(0.0, 1.0)} or len(bases) > 1 or not everywhere:
            return {}, ["rotary positions of a part of each head, of its halves, or of some layers alone"]
        return {"type": "rotary", "base": bases.pop()}, []
    names = [f"{side}/position_encodings/encodings" for side in ("encoder", "decoder")]
    if not any(name in variables for name in names):
        return {"type": "sinusoidal", "layout": "fairseq", "offset": 1}, []  # those that CTranslate2 computes
    return positions(variables[names[0]], variables[names[1]], base)


def _kv_heads(variables: Variables, heads: int) -> int | None:
    """Heads of keys and values, of which others may be copies in every attention; None: all of them."""
    projections: list[Tensor] = []
    for name, tensor in variables.tensors.items():
        if re.search(r"attention/linear_[01]/(weight|bias)$", name):
            part = {True: 3, False: 2}["self_attention" in name]
            if name.split("/")[-2] == ("linear_0" if part == 3 else "linear_1"):
                projections += tensor.chunk(part)[part - 2 :]
    for kept in range(1, heads):
        if heads % kept:
            continue
        if all(torch.equal(one, _ungrouped(one, heads, kept).repeat_interleave(heads // kept, 0).flatten(0, 1))
               for one in projections):  # fmt: skip
            return kept
    return None


def _ungrouped(projection: Tensor, heads: int, kept: int) -> Tensor:
    """The first head of each group, (kept, d_head, ...)."""
    return projection.unflatten(0, (heads, -1))[:: heads // kept]


# -- vocabularies --------------------------------------------------------------------------------------------------


def _sides(folder: Path, variables: Variables, spm: Sequence[Path], start: str) -> Sides:
    """The tokenizers of both sides: those that `dragoman export` wrote beside the model, or SentencePiece's pieces, or
    their vocabularies' tokens with spaces between them."""
    tokens = [_tokens(folder, kind, len(_matrix(variables, side))) for kind, side in
              (("source", "encoder"), ("target", "decoder"))]  # fmt: skip
    if (folder / TOKENIZER / "tokenizers.json").exists():
        pair = load_tokenizers(folder / TOKENIZER)
        for tokenizer, theirs in zip((pair.src, pair.tgt), tokens, strict=True):
            if pieces_of(tokenizer) != theirs:
                raise Error.MISMATCH("has other pieces than the model's vocabulary", file=folder / TOKENIZER)
        return Sides(pair, list(range(pair.src.vocab_size)), list(range(pair.tgt.vocab_size)))
    models: list[bytes | None] = [read_bytes(path, MAX_MODEL_BYTES) for path in spm]
    models = models or [None]
    src = tokenizer_of(tokens[0], folder, models[0], start)
    same = tokens[0] == tokens[1]
    tgt = src if same and models[0] == models[-1] else tokenizer_of(tokens[1], folder, models[-1], start)
    return Sides(TokenizerPair(src[0], tgt[0], same, languages_in(folder, tokens[0])), src[1], tgt[1], start)


def _tokens(folder: Path, kind: str, rows: int) -> list[str]:
    for name in (f"{kind}_vocabulary", "shared_vocabulary"):
        if (path := folder / f"{name}.json").exists():
            tokens = [str(token) for token in read_json(path, list)]
            break
        if (path := folder / f"{name}.txt").exists():
            try:
                tokens = read_bytes(path, MAX_BYTES).decode("utf-8").split("\n")
            except UnicodeDecodeError as error:
                raise Error.NOT_UTF8(f"is no UTF-8: {error}", file=path) from error
            tokens = tokens[:-1] if tokens[-1] == "" else tokens
            break
    else:
        raise Error.MISSING_FILE(f"has no {kind}_vocabulary.json, .txt or shared_vocabulary", file=folder)
    if len(tokens) == rows - 1 and SPECIALS[UNK_ID] not in tokens:
        tokens.append(SPECIALS[UNK_ID])  # OpenNMT-tf has a last row for all that is unknown
    if len(tokens) != rows:
        raise Error.CANNOT_IMPORT(f"{len(tokens):,} tokens, where the model has {rows:,} rows", file=path)
    return tokens


# -- weights -------------------------------------------------------------------------------------------------------


def _fill(model: Transformer, variables: Variables, sides: Sides) -> None:
    """Copy every weight; what the export put together is taken apart."""
    fill_rows(model.src_embedding.tokens.embedding.weight, _matrix(variables, "encoder"), sides.src_rows)
    fill_rows(model.tgt_embedding.tokens.embedding.weight, variables["decoder/embeddings/weight"], sides.tgt_rows)
    fill_rows(model.output.weight, variables["decoder/projection/weight"], sides.tgt_rows)
    if model.output.bias is not None:
        name = "decoder/projection/bias"
        theirs = variables[name] if name in variables else torch.zeros(max(sides.tgt_rows) + 1)
        fill_rows(model.output.bias, theirs, sides.tgt_rows, missing=NEVER_BIAS)
        if sides.start not in ("", SPECIALS[BOS_ID]):  # a copy of the row of another token, which has its part there
            model.output.bias[PAD_ID if sides.start == SPECIALS[PAD_ID] else BOS_ID] = NEVER_BIAS
    for side, embedding in (("encoder", model.src_embedding), ("decoder", model.tgt_embedding)):
        if isinstance(embedding.positions, LearnedPositions):
            embedding.positions.embedding.weight.copy_(variables[f"{side}/position_encodings/encodings"])
    biased = {tuple(name.split("/")[-3:-1]) for name in variables.tensors if name.endswith("/bias")}
    for name, (modules, attention) in entries(model).items():
        kinds = ("weight", "bias") if isinstance(modules[0], nn.Linear) else ("gamma", "beta")
        for kind, ours in zip(kinds, ("weight", "bias"), strict=True):
            if kind == "bias" and "attention" in name and tuple(name.split("/")[-2:]) not in biased:
                # OpenNMT-py's attention has none in any layer, where no option asks for them.
                for bias in (getattr(module, ours, None) for module in modules):
                    if bias is not None:
                        bias.zero_()
            elif getattr(modules[0], ours, None) is not None:
                values = variables[f"{name}/{kind}"].chunk(len(modules))
                for module, theirs in zip(modules, values, strict=True):
                    _take(getattr(module, ours), theirs, attention)


def _take(ours: Tensor, theirs: Tensor, attention: MultiHeadAttention | None) -> None:
    """Copy a parameter; of keys and values the first head of each group."""
    if attention is not None and len(ours) < len(theirs):
        heads = attention.query_proj.out_features // attention.d_head
        theirs = _ungrouped(theirs, heads, len(ours) // attention.d_head).flatten(0, 1)
    ours.copy_(theirs)
