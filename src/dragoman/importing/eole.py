"""A model of eole, OpenNMT-py's successor, as a run directory.

A folder holds `config.json`, `model.00.safetensors` (more parts of a large one) and `vocab.json`, as eole's training
leaves them, and the SentencePiece models that its transforms name. What config.json says has to have a counterpart
here, as every tensor has. A source has no `</s>` there.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from dragoman import config
from dragoman.errors import Error
from dragoman.export.parameter_names import named
from dragoman.importing.base import (
    Imported,
    Weights,
    fill_modules,
    fill_rows,
    languages_of,
    positions,
    refusal,
    texts,
    tying,
    whole_number,
)
from dragoman.importing.safetensors_files import read_all
from dragoman.importing.vocabularies import Sides, tokenizer_of
from dragoman.inference.loading import build_model
from dragoman.models.transformer import Transformer, TransformerConfig
from dragoman.nn.positions import SINUSOID_BASE, LearnedPositions
from dragoman.runs.atomic_io import read_bytes, read_json
from dragoman.special_tokens import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID
from dragoman.text.tokenizers.pair import TokenizerPair
from dragoman.text.tokenizers.sentencepiece import MAX_MODEL_BYTES

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu-tanh": "gelu_tanh", "silu": "silu", "gated-silu": "swiglu"}
NORMS = {"standard": "layer", "standardFP32": "layer", "rms": "rms"}
PENALTIES = {"avg": "average", "wu": "gnmt", "none": "none"}
LENGTH_EXTRA = 5
"""Tokens that its search adds to the longest translation."""
FIXED: dict[str, Any] = {
    "architecture": ("transformer", "custom"), "encoder_type": ("transformer",), "decoder_type": ("transformer",),
    "sliding_window": (0,), "relative_positions_buckets": (0,), "shared_layer_norm": (False,),
    "ffn_layernorm": (False,), "query_norm": (False,), "key_norm": (False,), "value_norm": (False,),
    "parallel_residual": (False,), "num_experts": (0,), "q_gating": (False,), "attn_scaling": (None,),
    "encoder_layer_style": ("standard",), "final_encoder_layer_norm": (True,), "with_cross_attn": (True,),
    "layer_types": (None,), "global_head_dim": (None,), "num_mtp_heads": (0,), "coverage_attn": (False,),
    "generator_function": ("softmax",), "add_estimator": (False,), "left_pad": (False,), "adapter": (None,),
    "embedding_type": ("standard",), "position_shift": (0,), "embedding_layer_norm": (False,),
    "rotary_interleave": (True,), "rotary_dim": (0,), "scaling_type": (None,), "alpha": (None,),
    "xdrope_section": (None,), "interleave_local": (0,), "partial_rotary_factor": (0.0,), "tmax_index": (0,),
    "multidimensional_rope": (False,), "aan_useffn": (False,), "interpolate_mode": (None,),
}  # fmt: skip
"""Settings of the model with the only values that they may have."""
READ = re.compile(
    "heads|heads_kv|head_dim|layers|hidden_size|transformer_ff|mlp_activation_fn|layer_norm|norm_eps|normalize|"
    "add_(qkv|key_|ffn|final_linear_)bias|generator_bias|share_(decoder_)?embeddings|n_positions|rotary_theta|"
    "position_encoding_type"
)
"""Settings that are read, or that the tensors say."""
SILENT = re.compile(
    "(src_|tgt_)?word_vec_size|position_encoding|freeze_word_vecs_.*|token_type_vocab_size|max_position_embeddings|"
    "moe_.*|num_shared_experts|shared_expert_gate|first_k_dense_replace|num_experts_per_tok|qk_norm_post_rope|"
    "alignment_.*|full_context_alignment|lambda_.*|LM_type|global_.*|linear_.*|mtp_.*|input_feed|adapter_bias|"
    "projector_activation_fn|spatial_merge_size|estimator_type|huggingface_model|eole_version|scaling_factor|"
    "(low|high)_freq_factor|original_max_position_embeddings|rotary_theta_local|rotary_dim_global"
)
"""Settings that say nothing about the probabilities of what the others allow."""
BIASES = {"add_qkvbias": r"linear_\w+\.weight$", "add_final_linear_bias": r"final_linear\.weight$",
          "add_ffnbias": r"\.mlp\.\w+\.weight$", "layer_norm": r"norm\.weight$"}  # fmt: skip
"""Settings that tell whether the weights with these names have a bias."""
TRAINING_ONLY = {"filtertoolong", "filtertooshort", "switchout", "tokendrop", "tokenmask", "clean"}
"""Transforms that leave a text as it is when it is translated."""


class Matrices(NamedTuple):
    """Embeddings of both sides, and the output."""

    src: Tensor
    tgt: Tensor
    output: Tensor


def is_eole(folder: Path) -> bool:
    """True if a folder with a config.json holds a model of eole."""
    return (folder / "vocab.json").is_file() and bool(_parts(folder))


def load(folder: Path, src_lang: str | None, tgt_lang: str | None, spm: Sequence[Path] = ()) -> Imported:
    """Read a folder; `spm`: the SentencePiece model that cuts its texts, or one for each side, instead of those that
    it names.

    Raises DragomanError with all the reasons why it cannot be represented exactly.
    """
    languages = languages_of(folder, None, src_lang, tgt_lang)
    described = read_json(folder / "config.json", dict)
    model = _section(described, "model")
    if reasons := [*_reasons(model), *_other_reasons(described)]:
        raise refusal(folder, reasons)
    weights = Weights(read_all(_parts(folder)))
    matrices = _matrices(model, weights)
    sides = _sides(folder, described, spm, matrices)
    settings, reasons = _settings(model, weights, sides, matrices)
    if reasons:
        raise refusal(folder, reasons)
    parsed = config.parse(TransformerConfig, settings, "settings of the imported model")
    ours = cast(Transformer, build_model(parsed, sides.tokenizers).eval())
    with torch.no_grad():
        _fill(ours, weights, sides, matrices)
    if left := weights.left():
        raise refusal(folder, left)
    return Imported(parsed, ours, sides.tokenizers, languages, "none", _decoding(described, folder))


def _parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("model.[0-9][0-9].safetensors"))


def _section(described: dict[str, Any], name: str) -> dict[str, Any]:
    """A part of config.json that is a table. Raises DragomanError for another thing."""
    section = described.get(name) or {}
    if not isinstance(section, dict):
        raise Error.CANNOT_IMPORT(f"config.json: {name} is {type(section).__name__}, and it has to be a table")
    return section


# -- settings ------------------------------------------------------------------------------------------------------


def _reasons(settings: dict[str, Any], where: str = "model") -> Iterator[str]:
    """The settings of the model that have no counterpart here."""
    for name, value in settings.items():
        if name in ("encoder", "decoder", "embeddings", "rope_config") and where.count(".") < 2:
            if isinstance(value, dict):
                yield from _reasons(value, f"{where}.{name}")
            elif value is not None or name in ("encoder", "decoder"):
                yield f"{where}.{name}: {value}: encoder-decoder Transformers alone are known"
        elif name in FIXED:
            if value not in FIXED[name]:
                yield f"{where}.{name}: {value}, where {FIXED[name][0]} is known"
        elif not READ.fullmatch(name) and not SILENT.fullmatch(name):
            yield f"{where}.{name}: {value}, which nothing here does"
    if where == "model" and settings.get("architecture") not in FIXED["architecture"]:
        yield "model.architecture: a Transformer with encoder and decoder is known"


def _other_reasons(described: dict[str, Any]) -> Iterator[str]:
    """The parts of the treatment of texts, and of numbers, that have no counterpart here."""
    for name in texts(described.get("transforms"), "config.json: transforms"):
        if name != "sentencepiece" and name not in TRAINING_ONLY:
            yield f"transforms: {name}, which nothing here does"
    cutting = _section(_section(described, "transforms_configs"), "sentencepiece")
    for side in ("src", "tgt"):
        if cutting.get(f"{side}_subword_vocab") and cutting.get(f"{side}_vocab_threshold"):
            yield f"transforms_configs.sentencepiece.{side}_vocab_threshold: pieces that are rare are cut again"
    if kind := _section(described, "training").get("quant_type"):
        yield f"training.quant_type: {kind}: its weights are quantised"
    for name in ("lora_layers", "lora_embedding"):
        if value := _section(described, "training").get(name):
            yield f"training.{name}: {value}: an adapter is half a model; merge it with eole first"


def _settings(
    model: dict[str, Any], weights: Weights, sides: Sides, matrices: Matrices
) -> tuple[dict[str, Any], list[str]]:
    """The settings, and reasons why they are not the whole truth."""
    reasons: list[str] = []
    encoder, decoder = (_section(model, side) for side in ("encoder", "decoder"))

    def of_both(name: str, default: Any) -> Any:
        first, second = (side.get(name, model.get(name, default)) for side in (encoder, decoder))
        if first != second:
            reasons.append(f"{name} is {first} in the encoder and {second} in the decoder")
        return first

    src, tgt, output = matrices
    d_model, heads = src.size(1), whole_number(of_both("heads", 8), "heads")
    d_ff = len(weights.of_shape("encoder.transformer_layers.0.mlp.gate_up_proj.weight", None, d_model))
    for name, size in (("hidden_size", d_model), ("transformer_ff", d_ff)):
        if (stated := of_both(name, size)) != size:
            reasons.append(f"{name} is {stated}, and the weights have {size}")
    if heads < 1 or d_model % heads or of_both("head_dim", None) not in (None, d_model // heads):
        reasons.append(f"heads: {heads}, of {d_model} features together, are known where they have equal shares")
    activation, norm = str(of_both("mlp_activation_fn", "relu")), str(of_both("layer_norm", "standard"))
    for name, value, known in (("mlp_activation_fn", activation, ACTIVATIONS), ("layer_norm", norm, NORMS)):
        if value not in known:
            reasons.append(f"{name}: {value}, where {', '.join(known)} are known")
    position, problems = _position(model, of_both("rope_config", None) or {}, weights)
    scheme = _section(model, "embeddings").get("position_encoding_type", "SinusoidalInterleaved")
    settings = {
        "d_model": d_model,
        "num_heads": heads,
        "num_kv_heads": of_both("heads_kv", None),
        "d_ff": d_ff,
        "num_encoder_layers": _layers(weights, "encoder", encoder.get("layers", model.get("layers")), reasons),
        "num_decoder_layers": _layers(weights, "decoder", decoder.get("layers", model.get("layers")), reasons),
        "activation": ACTIVATIONS.get(activation),
        "norm": NORMS.get(norm),
        "norm_eps": of_both("norm_eps", 1e-5),
        "norm_placement": "pre",
        "position": position,
        "tie_embeddings": tying(src, tgt, output, sides.tgt_rows, sides.tokenizers.shared),
        "scale_embeddings": str(scheme).startswith("Sinusoidal")
        or bool(_section(model, "embeddings").get("normalize")),
        "src_end": False,
        "output_bias": "generator.bias" in weights,
    }
    return settings, [*reasons, *problems, *_bias_reasons(model, weights)]


def _bias_reasons(model: dict[str, Any], weights: Weights) -> Iterator[str]:
    """The biases that config.json says to be there and that are missing, or the other way round."""
    for name in weights.tensors:
        side, _, rest = name.partition(".")
        setting = next((setting for setting, pattern in BIASES.items() if re.search(pattern, rest)), None)
        if side not in ("encoder", "decoder") or setting is None:
            continue
        kind = {"layer_norm": None, **model, **_section(model, side)}.get(setting)
        is_there = f"{name.removesuffix('weight')}bias" in weights
        expected = kind != "rms" if setting == "layer_norm" else kind
        if expected is not None and bool(expected) != is_there and not name.endswith("linear_keys.weight"):
            yield f"{name.removesuffix('weight')}bias: {'it is there' if is_there else 'missing'}, by {setting}: {kind}"


def _layers(weights: Weights, side: str, layers: Any, reasons: list[str]) -> int:
    numbers = {
        match[1] for name in weights.tensors if (match := re.match(rf"{side}\.transformer_layers\.(\d+)\.", name))
    }
    if layers not in (None, -1, len(numbers)):
        reasons.append(f"model.{side}.layers is {layers}, and the weights have {len(numbers)}")
    return len(numbers)


def _position(model: dict[str, Any], rope: dict[str, Any], weights: Weights) -> tuple[dict[str, Any], list[str]]:
    """The settings of the positions, and why they are not the whole truth."""
    embeddings = _section(model, "embeddings")
    scheme = embeddings.get("position_encoding_type", "SinusoidalInterleaved")
    if scheme is None:
        return {"type": "none"}, []
    if scheme == "Rotary":
        return {"type": "rotary", "base": float(rope.get("rotary_theta", 10_000))}, []
    if scheme == "Learned" and not embeddings.get("normalize"):
        return positions(_table(weights, "src"), _table(weights, "tgt"), SINUSOID_BASE)
    if scheme in ("SinusoidalInterleaved", "SinusoidalConcat"):
        return positions(_table(weights, "src"), _table(weights, "tgt"), SINUSOID_BASE)
    return {}, [f"model.embeddings.position_encoding_type: {scheme}, which nothing here does"]


def _table(weights: Weights, side: str) -> Tensor:
    """The positions of a side, (length, d_model)."""
    learned = f"{side}_emb.pe.weight"
    width = weights.of_shape("src_emb.embeddings.weight", None, None).size(1)
    if learned in weights:
        return weights.of_shape(learned, None, width)
    return weights.of_shape(f"{side}_emb.pe.pe", None, 1, width).squeeze(1)


def _decoding(described: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The settings of its search: from its configuration for inference, or else from its own."""
    inference = _section(described, "inference")
    penalty = PENALTIES.get(str(inference.get("length_penalty", "avg")))
    known = {"beam_size", "length_penalty", "alpha", "min_length", "n_best", "ban_unk_token", "block_ngram_repeat",
             "max_length_ratio"}  # fmt: skip
    still = {"max_length", "batch_size", "batch_type", "world_size", "gpu_ranks", "verbose", "compute_dtype", "seed"}
    left = [f"inference.{name}: {value}" for name, value in inference.items() if value and name not in known | still]
    if left or penalty is None:
        raise refusal(folder, [f"{one}, which nothing here does" for one in left or ["inference.length_penalty"]])
    ratio = inference.get("max_length_ratio", 2)
    if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not ratio > 0:
        raise refusal(folder, [f"inference.max_length_ratio: {ratio}, where lengths go by the source's"])
    return {
        "beam_size": inference.get("beam_size", 5),
        "length_penalty": {"type": penalty, **({} if penalty == "none" else {"alpha": inference.get("alpha", 1.0)})},
        "max_length_ratio": ratio,
        "max_length_extra": max(0, LENGTH_EXTRA - ratio),  # here a source has its `</s>` besides
        "min_length": inference.get("min_length", 0),
        "n_best": inference.get("n_best", 1),
        "ban_unk": inference.get("ban_unk_token", False),
        "no_repeat_ngram": inference.get("block_ngram_repeat", 0),
    }


# -- vocabularies --------------------------------------------------------------------------------------------------


def _sides(folder: Path, described: dict[str, Any], spm: Sequence[Path], matrices: Matrices) -> Sides:
    """The tokenizers of both sides: pieces of SentencePiece, or tokens with spaces between them."""
    path = folder / "vocab.json"
    vocabulary = read_json(path, dict)
    start = vocabulary.get("decoder_start_token", SPECIALS[BOS_ID])
    if start != SPECIALS[BOS_ID]:
        raise refusal(folder, [f"vocab.json: decoder_start_token: {start!r}, where {SPECIALS[BOS_ID]} is known"])
    theirs = {SPECIALS[BOS_ID]: "bos_token", SPECIALS[EOS_ID]: "eos_token", SPECIALS[UNK_ID]: "unk_token"}
    specials = _section(vocabulary, "specials")
    for ours, name in theirs.items():
        if specials.get(name, ours) != ours:
            raise refusal(folder, [f"vocab.json: specials.{name}: {specials[name]!r}, where {ours} is known"])
    [pad] = texts([specials.get("pad_token", "<blank>")], "vocab.json: specials.pad_token")
    tokens = []
    for side, matrix in zip(("src", "tgt"), matrices, strict=False):
        of_side = vocabulary.get(side)
        if not isinstance(of_side, list) or not all(isinstance(token, str) for token in of_side):
            raise Error.CANNOT_IMPORT(f"its {side} is no list of tokens", file=path)
        if len(of_side) != len(matrix):
            raise Error.CANNOT_IMPORT(f"{len(of_side):,} tokens, where the model has {len(matrix):,} rows", file=path)
        tokens.append([SPECIALS[PAD_ID] if token == pad else token for token in of_side])
    paths = spm or _models(folder, described)
    models: list[bytes | None] = [read_bytes(one, MAX_MODEL_BYTES) for one in paths] or [None]
    src = tokenizer_of(tokens[0], folder, models[0], start)
    same = tokens[0] == tokens[1]
    tgt = src if same and models[0] == models[-1] else tokenizer_of(tokens[1], folder, models[-1], start)
    return Sides(TokenizerPair(src[0], tgt[0], same), src[1], tgt[1], start)


def _models(folder: Path, described: dict[str, Any]) -> list[Path]:
    """The SentencePiece models that its transforms name, in the folder whatever folder they were in."""
    if "sentencepiece" not in texts(described.get("transforms"), "config.json: transforms"):
        return []
    cutting = _section(_section(described, "transforms_configs"), "sentencepiece")
    names = [cutting.get(f"{side}_subword_model") for side in ("src", "tgt")]
    if described.get("share_vocab"):
        names[1] = names[0]
    paths = [folder / Path(str(name)).name for name in names]
    for path in paths:
        if not path.is_file():
            raise Error.MISSING_OPTION(
                "no such SentencePiece model, which its transforms name", "name it with `spm`", file=path
            )
    return paths


# -- weights -------------------------------------------------------------------------------------------------------


def _matrices(model: dict[str, Any], weights: Weights) -> Matrices:
    """The matrices; one that is shared is stored once. Raises DragomanError where they do not fit each other."""
    src = weights["src_emb.embeddings.weight"]
    tgt = src if model.get("share_embeddings") else weights["tgt_emb.embeddings.weight"]
    output = tgt if model.get("share_decoder_embeddings") else weights["generator.weight"]
    if not src.dim() == tgt.dim() == output.dim() == 2 or tgt.shape != output.shape or src.size(1) != tgt.size(1):
        raise Error.MISMATCH(f"its embeddings are {tuple(src.shape)}, {tuple(tgt.shape)} and {tuple(output.shape)}")
    return Matrices(src, tgt, output)


def _fill(model: Transformer, weights: Weights, sides: Sides, matrices: Matrices) -> None:
    """Copy every tensor into its place."""
    fill_rows(model.src_embedding.tokens.embedding.weight, matrices.src, sides.src_rows)
    fill_rows(model.tgt_embedding.tokens.embedding.weight, matrices.tgt, sides.tgt_rows)
    fill_rows(model.output.weight, matrices.output, sides.tgt_rows)
    if model.output.bias is not None:
        fill_rows(model.output.bias, weights.of_shape("generator.bias", len(matrices.output)), sides.tgt_rows)
    for side, embedding in (("src", model.src_embedding), ("tgt", model.tgt_embedding)):
        if isinstance(embedding.positions, LearnedPositions):
            embedding.positions.embedding.weight.copy_(_table(weights, side))
    fill_modules(((one.module, one.eole) for one in named(model)), weights)
    for name, theirs in weights.tensors.items():
        if name.endswith(".layer_scalar") and bool((theirs == 1.0).all()):  # of another family, where it is learnt
            weights.get(name)
