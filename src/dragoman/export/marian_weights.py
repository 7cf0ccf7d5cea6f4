"""Which of Marian's models holds a Transformer of ours, and our weights under its names.

Marian has two implementations. `transformer` is that of all published models, and the one that browsers run: post-norm
(its pre-norm decoders normalise keys in training, but not in translation), a norm's epsilon of 1e-6, sinusoids that it
computes, and a translation begins with a vector of zeros. `transformer-new`, of Marian 1.12, has pre-norm too, RMSNorm,
an epsilon of 1e-5, and tables of positions, one for each side. Such a table holds what the other parts have no place
for: the vector e of our `<s>`. Adding e to every position of the decoder and subtracting it from the vector of every
token leaves all sums as they are, and makes `<s>` zero. A matrix that is tied to the output then gives every logit the
same number less, which softmax does not see. What embeddings are multiplied by, the last norm divides by where the
matrix is tied.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.export.ctranslate2 import for_all_heads, position_table
from dragoman.export.parameter_names import has_wide_heads, named
from dragoman.models.transformer import Transformer
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.feedforward import FeedForward
from dragoman.nn.positions import SINUSOID_BASE, AttentionPositions, SinusoidalPositions
from dragoman.nn.residual import PostNorm, PreNorm
from dragoman.nn.ssru import SSRU
from dragoman.special_tokens import BOS_ID

OLD, NEW = "transformer", "transformer-new"
EPSILONS = {OLD: 1e-6, NEW: 1e-5}
"""Of all norms; they are no option of Marian."""
TOP = {"layer_norm": ("top_ln", "postprocessor->norm"), "layernorm_embedding": ("emb_ln", "preprocessor->norm")}
LAYER = {
    "self_attn_layer_norm": ("self_Wo_ln", "{self}->{place}->norm"),
    "self_attn.q_proj": ("self_{}q", "{self}->selfAttention->qProj"),
    "self_attn.k_proj": ("self_{}k", "{self}->selfAttention->kProj"),
    "self_attn.v_proj": ("self_{}v", "{self}->selfAttention->vProj"),
    "self_attn.out_proj": ("self_{}o", "{self}->selfAttention->oProj"),
    "rnn.forget_proj": ("rnn_{}f", "{self}->rnn->cell->fProj"),
    "rnn.input_proj": ("rnn_{}", "{self}->rnn->cell->iProj"),
    "encoder_attn_layer_norm": ("context_Wo_ln", "crossAttentionBlock->{place}->norm"),
    "encoder_attn.q_proj": ("context_{}q", "crossAttentionBlock->crossAttention->qProj"),
    "encoder_attn.k_proj": ("context_{}k", "crossAttentionBlock->crossAttention->kProj"),
    "encoder_attn.v_proj": ("context_{}v", "crossAttentionBlock->crossAttention->vProj"),
    "encoder_attn.out_proj": ("context_{}o", "crossAttentionBlock->crossAttention->oProj"),
    "final_layer_norm": ("ffn_ffn_ln", "filterBlock->{place}->norm"),
    "fc1": ("ffn_{}1", "filterBlock->layers->at(0)->as<marian::nn::{expand}>()"),
    "fc2": ("ffn_{}2", "filterBlock->layers->at({last})->as<marian::nn::Linear>()"),
}
"""Hugging Face's names of our modules (`parameter_names`), and those in Marian's two implementations."""
SIDES = {
    "encoder": ("TransformerBatchEncoder->encoder", "TransformerEncoderLayer", "selfAttentionBlock"),
    "decoder": ("TransformerBatchDecoder->decoder", "TransformerDecoderLayerWithCrossAttention", "autoRegressiveBlock"),
}
"""The new implementation's names of a side, of the class of its layers, and of the block of self-attention."""


def problems(model: Transformer, kinds: Sequence[str] = (OLD, NEW)) -> list[str]:
    """Why Marian cannot hold this model, a line each with what to change in the recipe."""
    layer = model.encoder_layers[0]
    reasons = []
    if type(layer.self_attention_residual) not in (PostNorm, PreNorm):
        reasons.append("model.norm_placement: output is no transformer-postprocess of Marian: train with post or pre")
    if type(layer.self_attention.positions) is not AttentionPositions:
        name = type(layer.self_attention.positions).__name__.removesuffix("Positions").lower()
        reasons.append(f"model.position: {name} is not in Marian's encoder-decoders: train with sinusoidal or learned")
    feed_forward = layer.feed_forward
    if not isinstance(feed_forward, FeedForward) or not isinstance(feed_forward.activation, nn.ReLU | nn.SiLU):
        reasons += ["model.activation: Marian's transformer-ffn-activation is relu or swish: train with relu or silu"]
    if has_wide_heads(model):
        reasons.append("model.d_head: Marian's heads split dim-emb among them: train with d_head: null")
    if not model.src_end:
        reasons.append("model.src_end: false: Marian's sources end with </s>: train with true")
    if not reasons and kind_of(model) not in kinds:
        reasons += _kind_problems(model, kinds)
    return reasons


def _kind_problems(model: Transformer, kinds: Sequence[str]) -> Iterator[str]:
    norm = model.encoder_layers[0].self_attention_residual.norm
    if NEW in kinds:
        yield f"model.norm_eps: {cast(Any, norm).eps:g} is {EPSILONS[NEW]:g} in Marian: train with that"
        return
    if not isinstance(model.encoder_layers[0].self_attention_residual, PostNorm):
        yield "model.norm_placement: pre: decoders with transformer-preprocess n do not translate as they were trained"
    if not isinstance(norm, nn.LayerNorm) or cast(Any, norm).eps != EPSILONS[OLD]:
        yield f"model.norm: has to be layer, with model.norm_eps: {EPSILONS[OLD]:g}"
    if not is_computed(model.src_embedding.positions):
        yield "model.position: has to be {type: sinusoidal, layout: fairseq}, which is computed there"
    if not _starts_from_zero(model):
        yield "model.zero_start: has to be true: translations begin with a vector of zeros"


def kind_of(model: Transformer) -> str | None:
    """Marian's implementation that holds the model; None: neither."""
    residual = model.encoder_layers[0].self_attention_residual
    epsilon = cast(Any, residual.norm).eps
    computed = is_computed(model.src_embedding.positions) and _starts_from_zero(model)
    layer_norm = isinstance(residual, PostNorm) and isinstance(residual.norm, nn.LayerNorm)
    if computed and layer_norm and epsilon == EPSILONS[OLD]:
        return OLD
    return NEW if epsilon == EPSILONS[NEW] else None


def is_computed(positions: nn.Module) -> bool:
    """True for the sinusoids that Marian computes: all sines first, the slowest one with a rate of 1/10,000."""
    return (
        isinstance(positions, SinusoidalPositions)
        and (positions.layout, positions.offset, positions.base) == ("fairseq", 0, SINUSOID_BASE)
    )  # fmt: skip


def _starts_from_zero(model: Transformer) -> bool:
    return not model.tgt_embedding.tokens.vectors()[BOS_ID].any()


@dataclass(frozen=True)
class Naming:
    """The settings that the names of a model's parameters depend on."""

    kind: str
    pre: bool
    activation: str
    tied_layers: tuple[int, ...] = ()
    """Of the decoder: the number whose weights each layer has, from 1; empty: its own."""
    rnn: bool = False
    """True for a decoder with an SSRU."""

    @classmethod
    def of(cls, model: Transformer, kind: str) -> "Naming":
        layer = model.encoder_layers[0]
        relu = isinstance(cast(FeedForward, layer.feed_forward).activation, nn.ReLU)
        pre, activation = isinstance(layer.self_attention_residual, PreNorm), "relu" if relu else "swish"
        return cls(kind, pre, activation, tied_layers(model), has_ssru(model))

    def names(self, path: str, module: nn.Module) -> tuple[str, str]:
        """The names of weight and bias. `path`: Hugging Face's name of the module."""
        _, side, *rest = path.split(".")
        old, new = TOP[rest[0]] if len(rest) == 1 else LAYER[".".join(rest[2:])]
        number = int(rest[1]) if len(rest) > 1 else None
        if self.rnn and side == "decoder":
            old = old.replace("self_Wo_ln", "rnn_ffn_ln")
        is_norm, rms = not isinstance(module, nn.Linear), isinstance(module, nn.RMSNorm)
        if self.kind == OLD:
            stem = f"{side}_" if number is None else f"{side}_l{self._layer(side, number)}_"
            if not is_norm:
                return (stem + old).format("W"), (stem + old).format("b")
            before = "_pre" if rest[0] == "layernorm_embedding" or (self.pre and number is not None) else ""
            old = old.replace("_ln", "_rms") if rms else old
            return f"{stem}{old}_scale{before}", f"{stem}{old}_bias{before}"
        root, layer, block = SIDES[side]
        relu = self.activation == "relu"
        new = new.format(
            self=block,
            place="preprocessor" if self.pre else "postprocessor",
            expand="LinearReluDropout" if relu else "Linear",
            last=1 if relu else 3,
        )
        stem = root if number is None else f"{root}->layers->at({number})->as<marian::nn::{layer}>()"
        return f"{stem}->{new}->weight", f"{stem}->{new}->bias"

    def _layer(self, side: str, number: int) -> int:
        return self.tied_layers[number] if self.tied_layers and side == "decoder" else number + 1

    def position_table(self, side: str) -> str:
        """The name of a side's table of positions."""
        return f"{SIDES[side][0]}->positionEmbedding->embeddings"


class Parameter(NamedTuple):
    """A parameter of ours and its name there."""

    name: str
    ours: Tensor
    attention: MultiHeadAttention | None
    """The attention that it belongs to, whose heads of keys and values may be fewer than there."""

    def there(self, kind: str) -> np.ndarray:
        """Ours in the shape of theirs."""
        values = for_all_heads(self.ours.detach().float().cpu(), self.attention)
        if values.dim() == 2:
            return values.T.contiguous().numpy()
        return (values[None] if kind == OLD else values).numpy()


def parameters(model: Transformer, naming: Naming) -> Iterator[Parameter]:
    """All but embeddings, positions and the output."""
    for one in named(model):
        names = naming.names(one.huggingface, one.module)
        attention = one.owner if isinstance(one.owner, MultiHeadAttention) else None
        for name, values in zip(names, (one.module.weight, getattr(one.module, "bias", None)), strict=True):
            if values is not None:
                yield Parameter(name, cast(Tensor, values), attention)


# -- writing -------------------------------------------------------------------------------------------------------


@torch.no_grad()
def arrays(model: Transformer, kind: str, rows: tuple[list[int], list[int]], length: int) -> dict[str, np.ndarray]:
    """The weights by their names there. `rows`: our id of each of theirs, for each side; `length`: of tables."""
    naming = Naming.of(model, kind)
    by_name = {one.name: one.there(kind) for one in parameters(model, naming)}
    for one in named(model):
        if isinstance(one.module, nn.RMSNorm):  # which has a bias there
            by_name[naming.names(one.huggingface, one.module)[1]] = np.zeros(len(one.module.weight), np.float32)
    src, tgt, tie = model.src_embedding.tokens, model.tgt_embedding.tokens, tie_of(model)
    table = has_table(model, kind)
    factor = tgt.scale / (1.0 if table else math.sqrt(tgt.embedding.embedding_dim))
    shift = tgt.vectors()[BOS_ID] * tgt.scale if table else torch.zeros(tgt.embedding.embedding_dim)
    src_shift = shift if tie == "all" else torch.zeros_like(shift)
    # With the row of `<s>` as it is: no translation begins with it there, and the output has it too.
    matrices = {
        "encoder": src.embedding.weight * factor - src_shift,
        "decoder": tgt.embedding.weight * factor - shift,
    }
    if table:
        for side, embedding, moved in (
            ("encoder", model.src_embedding, src_shift),
            ("decoder", model.tgt_embedding, shift),
        ):
            by_name[naming.position_table(side)] = _array(position_table(embedding, length) + moved)
    if tie == "all":
        by_name["Wemb"] = _array(matrices["decoder"][rows[1]])
    else:
        by_name["encoder_Wemb"] = _array(matrices["encoder"][rows[0]])
        by_name["decoder_Wemb"] = _array(matrices["decoder"][rows[1]])
    if tie == "none":
        by_name["decoder_ff_logit_out_Wt"] = _array(model.output.weight[rows[1]])
    elif factor != 1.0:
        last = "layer_norm" if isinstance(model.decoder_layers[0].self_attention_residual, PreNorm) else (
            f"layers.{len(model.decoder_layers) - 1}.final_layer_norm")  # fmt: skip
        norm = model.decoder_layers[0].self_attention_residual.norm
        for name in naming.names(f"model.decoder.{last}", norm):
            if name in by_name:
                by_name[name] = (by_name[name] / np.float32(factor)).astype(np.float32)
    bias = model.output.bias
    by_name["decoder_ff_logit_out_b"] = _array(torch.zeros(1, len(rows[1])) if bias is None else bias[rows[1]][None])
    return by_name


def has_ssru(model: Transformer) -> bool:
    return isinstance(model.decoder_layers[0].self_attention, SSRU)


def tied_layers(model: Transformer) -> tuple[int, ...]:
    """For each layer of the decoder the number, from 1, of the first one with its weights; empty: all differ."""
    layers = list(model.decoder_layers)
    return () if len(set(layers)) == len(layers) else tuple(layers.index(layer) + 1 for layer in layers)


def has_table(model: Transformer, kind: str) -> bool:
    """True if positions are a table there: others than Marian computes, or `<s>` is not zero."""
    return kind == NEW and not (is_computed(model.src_embedding.positions) and _starts_from_zero(model))


def tie_of(model: Transformer) -> str:
    """Setting `tie_embeddings` of a model."""
    src, tgt = (one.tokens.embedding.weight for one in (model.src_embedding, model.tgt_embedding))
    if model.output.weight is not tgt:
        return "none"
    return "all" if src is tgt else "output"


def _array(values: Tensor) -> np.ndarray:
    return values.detach().float().cpu().contiguous().numpy()


def options(model: Transformer, kind: str, sizes: tuple[int, int], version: str) -> dict[str, Any]:
    """Marian's options of the model."""
    layer, tie = model.encoder_layers[0], tie_of(model)
    pre = isinstance(layer.self_attention_residual, PreNorm)
    norm = "r" if isinstance(layer.self_attention_residual.norm, nn.RMSNorm) else "n"
    feed_forward = cast(FeedForward, layer.feed_forward)
    return {
        **DEFAULTS,
        "type": kind,
        "version": version,
        "dim-vocabs": list(sizes),
        "dim-emb": layer.self_attention.query_proj.in_features,
        "enc-depth": len(model.encoder_layers),
        "dec-depth": len(model.decoder_layers),
        "transformer-heads": layer.self_attention.query_proj.out_features // layer.self_attention.d_head,
        "transformer-dim-ffn": feed_forward.expand.out_features,
        "transformer-ffn-activation": "relu" if isinstance(feed_forward.activation, nn.ReLU) else "swish",
        "transformer-preprocess": norm if pre else "",
        "transformer-postprocess": "da" if pre else f"da{norm}",
        "transformer-postprocess-top": norm if pre else "",
        "transformer-postprocess-emb": "d" if isinstance(model.src_embedding.norm, nn.Identity) else f"{norm}d",
        "transformer-train-position-embeddings": has_table(model, kind),
        "transformer-tied-layers": list(tied_layers(model)) if kind == OLD else [],
        **({"transformer-decoder-autoreg": "rnn", "dec-cell": "ssru"} if has_ssru(model) else {}),
        "tied-embeddings-all": tie == "all",
        "tied-embeddings": tie == "output",
    }


DEFAULTS: dict[str, Any] = {
    "dec-cell": "gru", "dec-cell-base-depth": 2, "dec-cell-high-depth": 1, "dim-rnn": 1024, "enc-cell": "gru",
    "enc-cell-depth": 1, "enc-type": "bidirectional", "factors-combine": "sum", "factors-dim-emb": 0, "input-types": [],
    "layer-normalization": False, "lemma-dependency": "", "lemma-dim-emb": 0, "output-omit-bias": False,
    "right-left": False, "skip": False, "tied-embeddings-src": False, "transformer-aan-activation": "swish",
    "transformer-aan-depth": 2, "transformer-aan-nogate": False, "transformer-decoder-autoreg": "self-attention",
    "transformer-decoder-dim-ffn": 0, "transformer-decoder-ffn-depth": 0, "transformer-depth-scaling": False,
    "transformer-dim-aan": 2048, "transformer-disable-position-embeddings": False, "transformer-ffn-depth": 2,
    "transformer-guided-alignment-layer": "last", "transformer-no-affine": False, "transformer-no-bias": False,
    "transformer-no-projection": False, "transformer-pool": False, "transformer-rnn-projection": False,
    "transformer-tied-layers": [], "transformer-train-positions": False, "ulr": False, "ulr-dim-emb": 0,
    "ulr-trainable-transformation": False,
}  # fmt: skip
"""Options of models that ours are not, or that are as Marian has them."""
