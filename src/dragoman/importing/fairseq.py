"""A Transformer of fairseq as a run directory, from what `deploy/fairseq/to_safetensors.py` wrote of its checkpoint.

A folder holds `fairseq.json` (settings, dictionaries) and `model.safetensors`; the pickle is opened by fairseq alone.
What the settings say has to have a counterpart here, as every tensor has. A translation begins with `</s>` there.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from dragoman import config
from dragoman.errors import Error
from dragoman.export.parameter_names import named
from dragoman.importing.base import (
    NEVER_BIAS,
    Imported,
    Weights,
    fill_modules,
    fill_rows,
    languages_of,
    refusal,
    texts,
    tying,
    whole_number,
)
from dragoman.importing.safetensors_files import read_all
from dragoman.importing.vocabularies import Sides, languages_in, tokenizer_of
from dragoman.inference.loading import build_model
from dragoman.models.transformer import Transformer, TransformerConfig
from dragoman.nn.positions import LearnedPositions
from dragoman.runs.atomic_io import read_bytes, read_json
from dragoman.special_tokens import BOS_ID, EOS_ID, SPECIALS
from dragoman.text.tokenizers.pair import TokenizerPair
from dragoman.text.tokenizers.sentencepiece import MAX_MODEL_BYTES

FILE, WEIGHTS, FORMAT = "fairseq.json", "model.safetensors", "fairseq-model"
KINDS = ("TransformerModel", "TransformerEncoder", "TransformerDecoder")
"""The known classes, with or without `Base` at the end. Other classes with the same tensors compute something else."""
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_fast": "gelu_tanh", "gelu_accurate": "gelu_tanh"}
FIXED: dict[str, Any] = {
    "adaptive_input": False, "adaptive_softmax_cutoff": None, "no_cross_attention": False,
    "cross_self_attention": False, "char_inputs": False, "base_layers": 0, "no_decoder_final_norm": False,
    "merge_src_tgt_embed": False, "tie_adaptive_weights": False, "tie_adaptive_proj": False,
    "layers_to_keep": None, "xformers_att_config": None,
}  # fmt: skip
"""Settings with the only value that they may have."""
READ = re.compile(
    "activation_fn|(embed|ffn_embed|input|output)_dim|layers|attention_heads|normalize_before|learned_pos|"
    "max_(source|target)_positions|share_(decoder_input_output_embed|all_embeddings)|layernorm_embedding|"
    "no_token_positional_embeddings|no_scale_embedding"
)
SILENT = re.compile(
    ".*dropout|_name|embed_path|layerdrop|quant_noise|pq|pq_block_size|scalar|adaptive_softmax_factor|min_params_to_wrap|"
    "(checkpoint|offload)_activations|base_sublayers|base_shuffle|export"
)
"""Settings that say nothing about the probabilities of what the others allow."""
PAD_ROW = 1
"""Row of `<pad>` in every dictionary of fairseq; positions are counted from the one behind it."""


def is_fairseq(folder: Path) -> bool:
    """True if a folder holds what the script wrote."""
    return (folder / FILE).is_file()


def load(folder: Path, src_lang: str | None, tgt_lang: str | None, spm: Sequence[Path] = ()) -> Imported:
    """Read a folder; `spm`: the SentencePiece model that cuts its texts, or one for each side.

    Raises DragomanError with all the reasons why it cannot be represented exactly.
    """
    described = read_json(folder / FILE, dict)
    codes = texts(described.get("languages"), f"{FILE}: languages")
    if len(codes) == 2:
        src_lang, tgt_lang = src_lang or codes[0], tgt_lang or codes[1]
    languages = languages_of(folder, None, src_lang, tgt_lang)
    settings = described.get("settings")
    if not isinstance(settings, dict):
        raise Error.CANNOT_IMPORT("has no settings", file=folder / FILE)
    if reasons := [*_reasons(described), *_setting_reasons(settings)]:
        raise refusal(folder, reasons)
    weights = Weights(read_all([folder / WEIGHTS]))
    sides = _sides(folder, described, weights, spm)
    ours, reasons = _settings(settings, weights, sides)
    if reasons:
        raise refusal(folder, reasons)
    parsed = config.parse(TransformerConfig, ours, "settings of the imported model")
    model = cast(Transformer, build_model(parsed, sides.tokenizers).eval())
    with torch.no_grad():
        _fill(model, weights, sides)
    if left := weights.left():
        raise refusal(folder, left)
    # fairseq-generate's own search: a beam of 5, one token at least (`--min-len`), and 200 at most.
    decoding = {"min_length": 1, "ban_unk": False, "max_length_ratio": 0.0, "max_length_extra": 200}
    return Imported(parsed, model, sides.tokenizers, languages, "none", decoding)


def _reasons(described: dict[str, Any]) -> Iterator[str]:
    """The reasons why it is no plain translation by a Transformer."""
    if described.get("format") != FORMAT:
        yield f"format: {described.get('format')!r}, where {FORMAT!r} is known"
    kinds = texts(described.get("kinds"), f"{FILE}: kinds")
    for theirs, known in itertools.zip_longest(kinds, KINDS, fillvalue=""):
        if theirs.removesuffix("Base") != known:
            yield f"it is a {theirs}, where {known} is known"
    if described.get("task") != "TranslationTask":
        yield f"task: {described.get('task')}, where TranslationTask is known"
    specials = {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>"}
    if described.get("specials") != specials:
        yield f"specials: {described.get('specials')}, where {', '.join(specials.values())} are known"


def _setting_reasons(settings: dict[str, Any], where: str = "") -> Iterator[str]:
    """The settings that have no counterpart here."""
    for name, value in settings.items():
        if name in ("encoder", "decoder", "quant_noise") and isinstance(value, dict) and not where:
            yield from _setting_reasons(value, f"{name}.")
        elif name in FIXED:
            if value != FIXED[name]:
                yield f"{where}{name}: {value}, where {FIXED[name]} is known"
        elif not READ.fullmatch(name) and not SILENT.fullmatch(name):
            yield f"{where}{name}: {value}, which nothing here does"


def _settings(settings: dict[str, Any], weights: Weights, sides: Sides) -> tuple[dict[str, Any], list[str]]:
    """The settings, and reasons why they are not the whole truth."""
    reasons: list[str] = []
    encoder, decoder = ({**settings, **(settings.get(side) or {})} for side in ("encoder", "decoder"))

    def of_both(name: str, default: Any) -> Any:
        first, second = encoder.get(name, default), decoder.get(name, default)
        if first != second:
            reasons.append(f"{name} is {first} in the encoder and {second} in the decoder")
        return first

    src, tgt, output = _matrices(weights)
    heads, activation = (
        whole_number(of_both("attention_heads", 8), "attention_heads"),
        str(settings.get("activation_fn", "relu")),
    )
    if heads < 1 or src.size(1) % heads:
        reasons.append(f"attention_heads: {heads}, of {src.size(1)} features together")
    if activation not in ACTIVATIONS:
        reasons.append(f"activation_fn: {activation}, where {', '.join(ACTIVATIONS)} are known")
    d_ff = len(weights.of_shape("encoder.layers.0.fc1.weight", None, src.size(1)))
    for name, size in (("embed_dim", src.size(1)), ("ffn_embed_dim", d_ff)):
        if (stated := of_both(name, size)) != size:
            reasons.append(f"{name} is {stated}, and the weights have {size}")
    reasons += [
        f"{name.removesuffix('weight')}bias: it is missing"
        for name in weights.tensors
        if ".layers." in name and name.endswith("weight") and f"{name.removesuffix('weight')}bias" not in weights
    ]
    layers = [_layers(weights, side, part.get("layers")) for side, part in (("encoder", encoder), ("decoder", decoder))]
    position: dict[str, Any] = {"type": "sinusoidal", "layout": "fairseq", "offset": PAD_ROW + 1}
    if settings.get("no_token_positional_embeddings"):
        position = {"type": "none"}
    elif of_both("learned_pos", False):
        tables = [_table(weights, side) for side in ("encoder", "decoder")]
        position = {"type": "learned", "max_len": len(tables[0])}
        if tables[0].shape != tables[1].shape:
            reasons.append(f"tables of {len(tables[0]):,} and {len(tables[1]):,} positions: ours have one length")
    return {
        "d_model": src.size(1),
        "num_heads": heads,
        "d_ff": d_ff,
        "num_encoder_layers": layers[0],
        "num_decoder_layers": layers[1],
        "activation": ACTIVATIONS.get(activation),
        "norm_placement": "pre" if of_both("normalize_before", False) else "post",
        "embedding_norm": bool(settings.get("layernorm_embedding")),
        "position": position,
        "tie_embeddings": tying(src, tgt, output, sides.tgt_rows, sides.tokenizers.shared),
        "scale_embeddings": not settings.get("no_scale_embedding"),
        "output_bias": True,
    }, reasons


def _layers(weights: Weights, side: str, layers: Any) -> int:
    numbers = {match[1] for name in weights.tensors if (match := re.match(rf"{side}\.layers\.(\d+)\.", name))}
    if layers != len(numbers):
        raise Error.MISMATCH(f"{side}.layers is {layers}, and the weights have {len(numbers)}")
    return len(numbers)


def _matrices(weights: Weights) -> tuple[Tensor, Tensor, Tensor]:
    """Embeddings of both sides, and the output, which fairseq stores thrice where they are one."""
    src, tgt = weights["encoder.embed_tokens.weight"], weights["decoder.embed_tokens.weight"]
    output = weights.get("decoder.output_projection.weight")
    output = tgt if output is None else output  # of before 2020
    if not src.dim() == tgt.dim() == output.dim() == 2 or tgt.shape != output.shape or src.size(1) != tgt.size(1):
        raise Error.MISMATCH(f"its embeddings are {tuple(src.shape)}, {tuple(tgt.shape)} and {tuple(output.shape)}")
    return src, tgt, output


def _table(weights: Weights, side: str) -> Tensor:
    """The learnt positions of a side, from the one that the first token has."""
    width = weights.of_shape(f"{side}.embed_tokens.weight", None, None).size(1)
    return weights.of_shape(f"{side}.embed_positions.weight", None, width)[PAD_ROW + 1 :]


def _sides(folder: Path, described: dict[str, Any], weights: Weights, spm: Sequence[Path]) -> Sides:
    """The tokenizers of both sides: pieces of SentencePiece, or tokens with spaces between them."""
    start = SPECIALS[EOS_ID]
    tokens: list[list[str]] = []
    for side, matrix in zip(("source", "target"), _matrices(weights), strict=False):
        of_side = described.get(side)
        if not isinstance(of_side, list) or not all(isinstance(token, str) for token in of_side):
            raise Error.CANNOT_IMPORT(f"its {side} is no list of tokens", file=folder / FILE)
        if len(of_side) != len(matrix):
            raise Error.CANNOT_IMPORT(f"{len(of_side):,} tokens of {side}, where the model has {len(matrix):,} rows")
        if any(token.endswith("@@") for token in of_side):
            raise refusal(folder, ["its vocabulary has pieces of subword-nmt (@@), which are not cut here"])
        tokens.append(of_side)
    if languages_in(folder, tokens[0]) is not None:
        raise refusal(folder, ["its dictionary has languages, and nothing says where they stand"])
    models: list[bytes | None] = [read_bytes(path, MAX_MODEL_BYTES) for path in spm] or [None]
    src = tokenizer_of(tokens[0], folder, models[0], start)
    same = tokens[0] == tokens[1]
    tgt = src if same and models[0] == models[-1] else tokenizer_of(tokens[1], folder, models[-1], start)
    return Sides(TokenizerPair(src[0], tgt[0], same), src[1], tgt[1], start)


def _fill(model: Transformer, weights: Weights, sides: Sides) -> None:
    """Copy every tensor into its place."""
    src, tgt, output = _matrices(weights)
    fill_rows(model.src_embedding.tokens.embedding.weight, src, sides.src_rows)
    fill_rows(model.tgt_embedding.tokens.embedding.weight, tgt, sides.tgt_rows)
    fill_rows(model.output.weight, output, sides.tgt_rows)
    assert model.output.bias is not None
    model.output.bias.zero_()
    model.output.bias[BOS_ID] = NEVER_BIAS  # a copy of the row of `</s>`, which has its part there
    for side, embedding in (("encoder", model.src_embedding), ("decoder", model.tgt_embedding)):
        if isinstance(embedding.positions, LearnedPositions):
            embedding.positions.embedding.weight.copy_(_table(weights, side))
        weights.get(f"{side}.version", f"{side}.embed_positions._float_tensor")  # marks without a number of the model
    fill_modules(((one.module, one.huggingface.removeprefix("model.")) for one in named(model)), weights)
