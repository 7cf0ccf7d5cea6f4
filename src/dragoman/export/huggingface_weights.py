"""Which architecture of Hugging Face holds a Transformer of ours, and our weights under its names."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from dragoman.export.huggingface_tokenizer import Vocabulary
from dragoman.export.parameter_names import has_wide_heads, named
from dragoman.models.blocks import EncoderLayer
from dragoman.models.transformer import Transformer
from dragoman.nn.feedforward import FeedForward
from dragoman.nn.positions import SINUSOID_BASE, AttentionPositions, SinusoidalPositions
from dragoman.nn.residual import PostNorm, PreNorm
from dragoman.nn.ssru import SSRU

NORM_EPS = 1e-5
"""Of every norm of these architectures; it is not among their settings."""


class Architecture(NamedTuple):
    """One of Hugging Face's encoder-decoders."""

    config: str
    model: str
    """Names of its classes."""
    table_offset: int | None = None
    """Rows of its table of positions before the first position; None: no table, but its own sinusoid."""


def problems(model: Transformer) -> list[str]:
    layer = model.encoder_layers[0]
    attention, residual = layer.self_attention, layer.self_attention_residual
    norm = residual.norm
    reasons = []
    if type(residual) not in PLACEMENTS:
        reasons.append("model.norm_placement: output is in no architecture there: train with post or pre")
    if not isinstance(norm, nn.LayerNorm):
        reasons.append("model.norm: rms is in no encoder-decoder there with our positions: train with layer")
    elif norm.eps != NORM_EPS:
        reasons.append(f"model.norm_eps: {norm.eps:g} is fixed at {NORM_EPS:g} there: train with {NORM_EPS:g}")
    if type(attention.positions) is not AttentionPositions:
        kind = type(attention.positions).__name__.removesuffix("Positions").lower()
        reasons.append(
            f"model.position {{type: {kind}}} is in no encoder-decoder there: train with position {{type: sinusoidal}}"
        )
    if attention.key_proj.out_features != attention.query_proj.out_features:
        reasons.append(
            "model.num_kv_heads is less than num_heads, in no encoder-decoder there: train with num_kv_heads: null"
        )
    if has_wide_heads(model):
        reasons.append("model.d_head: heads split d_model in every encoder-decoder there: train with d_head: null")
    if isinstance(model.decoder_layers[0].self_attention, SSRU):
        reasons.append("model.decoder_autoreg: rnn is in no architecture there: train with self-attention")
    if _activation(layer) is None:
        reasons.append("model.activation: swiglu is in no architecture there: train with relu, silu, gelu or gelu_tanh")
    if not reasons and _kind(model) not in ARCHITECTURES:
        kind = "none" if model.src_embedding.max_len is None else "learned"
        reasons.append(
            f"model.position {{type: {kind}}} with norm_placement: post has an architecture there only with a norm on "
            "the embeddings: train with position {type: sinusoidal}, norm_placement: pre or embedding_norm: true"
        )
    return reasons


def _kind(model: Transformer) -> tuple[str | None, bool, bool]:
    residual = model.encoder_layers[0].self_attention_residual
    embedding = model.src_embedding
    normed, positions = not isinstance(embedding.norm, nn.Identity), embedding.positions
    theirs = (
        isinstance(positions, SinusoidalPositions)
        and positions.layout != "fairseq"
        and not positions.offset
        and positions.base == SINUSOID_BASE
    )
    return PLACEMENTS.get(type(residual)), normed, theirs


def architecture(model: Transformer) -> Architecture:
    return ARCHITECTURES[_kind(model)]


def _activation(layer: EncoderLayer) -> str | None:
    """Hugging Face's name of the activation. Theirs of the tanh approximation are several; this one is PyTorch's."""
    if not isinstance(layer.feed_forward, FeedForward):
        return None
    activation = layer.feed_forward.activation
    if isinstance(activation, nn.GELU):
        return {"none": "gelu", "tanh": "gelu_pytorch_tanh"}[activation.approximate]
    return "silu" if isinstance(activation, nn.SiLU) else "relu"


def config(model: Transformer, vocabulary: Vocabulary, length: int) -> dict[str, Any]:
    layer = model.encoder_layers[0]
    attention = layer.self_attention
    d_model = attention.query_proj.in_features
    tables = [model.src_embedding.tokens.embedding.weight, model.tgt_embedding.tokens.embedding.weight]
    zero_start = model.tgt_embedding.tokens.zero_id is not None  # the output has another row of `<s>`
    all_tied = all(table is model.output.weight for table in tables) and not zero_start
    feed_forward = cast(FeedForward, layer.feed_forward)
    own: dict[str, dict[str, Any]] = {
        "MarianConfig": {"share_encoder_decoder_embeddings": all_tied, "decoder_vocab_size": vocabulary.size},
        "BlenderbotConfig": {"encoder_no_repeat_ngram_size": 0},
    }
    shape = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in {
            "layers": len(getattr(model, f"{side}_layers")),
            "attention_heads": d_model // attention.d_head,
            "ffn_dim": feed_forward.expand.out_features,
        }.items()
    }
    return {
        **shape,
        "vocab_size": vocabulary.size,
        "d_model": d_model,
        "max_position_embeddings": length,
        "activation_function": _activation(layer),
        "scale_embedding": model.src_embedding.tokens.scale != 1.0,
        "dropout": model.src_embedding.dropout.rate,
        "attention_dropout": attention.dropout.rate,
        "activation_dropout": feed_forward.dropout.rate,
        "tie_word_embeddings": all_tied,
        **own.get(architecture(model).config, {}),
    }


class MappedParameter(NamedTuple):
    """A parameter of ours and its name there."""

    name: str
    ours: Tensor
    path: tuple[int, ...]
    """The dimensions of a weight that lie on the residual path, whose order may differ in Hugging Face's layout."""

    def there(self, order: Tensor) -> Tensor:
        """Ours in the order of theirs: their dimension number i is our number `order[i]`."""
        values = self.ours
        for dimension in self.path:
            values = values.index_select(dimension, order)
        return values

    def take(self, theirs: Tensor, order: Tensor) -> None:
        """Copy theirs into ours: the inverse of `there`."""
        for dimension in self.path:
            theirs = theirs.index_select(dimension, order.argsort())
        self.ours.copy_(theirs)


def parts(model: Transformer) -> Iterator[MappedParameter]:
    """Every parameter but embeddings, positions and what makes logits, whose rows are looked up."""
    for module, _, name, *_ in named(model):
        reads = reads_residual(name)
        yield MappedParameter(f"{name}.weight", cast(Tensor, module.weight), (1,) if reads else (0,))
        yield MappedParameter(f"{name}.bias", cast(Tensor, module.bias), () if reads else (0,))


def reads_residual(name: str) -> bool:
    """True for a projection that reads the residual path, which is then its columns. A projection that writes to the
    path has it in its rows, and a norm in its only dimension."""
    return name.endswith(("q_proj", "k_proj", "v_proj", "fc1"))


def order_of(d_model: int, interleaved: bool) -> Tensor:
    """The dimensions of the residual path in the order of theirs: of sines and cosines in turn, first all sines."""
    dimensions = torch.arange(d_model)
    return torch.cat([dimensions[0::2], dimensions[1::2]]) if interleaved else dimensions


def is_reordered(model: Transformer) -> bool:
    """True where the residual path has another order there: a sinusoid that is interleaved here and theirs is not."""
    positions = model.src_embedding.positions
    return (
        architecture(model).table_offset is None
        and isinstance(positions, SinusoidalPositions)
        and positions.layout == "interleaved"
    )


@torch.no_grad()
def weights(model: Transformer, vocabulary: Vocabulary, length: int, theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state of their model, `theirs`, with every weight replaced by ours; only sinusoids are their own.

    Raises KeyError when one of theirs is none of ours.
    """
    offset = architecture(model).table_offset
    order = order_of(model.src_embedding.tokens.embedding.embedding_dim, is_reordered(model))
    state = {part.name: part.there(order) for part in parts(model)}

    def spread(matrix: Tensor, ids: list[int]) -> Tensor:
        rows = torch.zeros(vocabulary.size, matrix.size(1))
        rows[ids] = matrix[:, order].float().cpu()
        return rows

    for side, embedding, ids in (
        ("encoder", model.src_embedding, vocabulary.src_ids),
        ("decoder", model.tgt_embedding, vocabulary.tgt_ids),
    ):
        name = f"model.{side}"
        state[f"{name}.embed_tokens.weight"] = spread(embedding.tokens.vectors(), ids)
        if offset is None:
            state[f"{name}.embed_positions.weight"] = theirs[f"{name}.embed_positions.weight"]
        else:
            table = embedding.positions(0, length)[:, order]
            unused = table.new_zeros(offset, table.size(1))
            state[f"{name}.embed_positions.weight"] = torch.cat([unused, table])
    state["model.shared.weight"] = state["model.encoder.embed_tokens.weight"]
    state["lm_head.weight"] = spread(model.output.weight, vocabulary.tgt_ids)
    # What is no piece of the target has no probability.
    state["final_logits_bias"] = torch.full((1, vocabulary.size), -torch.inf)
    state["final_logits_bias"][0, vocabulary.tgt_ids] = (
        0.0 if model.output.bias is None else model.output.bias.float().cpu()
    )
    unused_names = state.keys() - theirs.keys()
    assert unused_names <= {"model.shared.weight"}, unused_names  # which Marian has only where all are tied
    return {name: state[name] for name in theirs}


PLACEMENTS: dict[type[nn.Module], str] = {PostNorm: "post", PreNorm: "pre"}

_BART = Architecture("BartConfig", "BartForConditionalGeneration", table_offset=2)
_MBART = Architecture("MBartConfig", "MBartForConditionalGeneration", table_offset=2)
ARCHITECTURES: dict[tuple[str | None, bool, bool], Architecture] = {
    ("post", False, True): Architecture("MarianConfig", "MarianMTModel"),
    ("pre", False, True): Architecture("PegasusConfig", "PegasusForConditionalGeneration"),
    ("pre", False, False): Architecture("BlenderbotConfig", "BlenderbotForConditionalGeneration", table_offset=0),
    ("post", True, True): _BART,
    ("post", True, False): _BART,
    ("pre", True, True): _MBART,
    ("pre", True, False): _MBART,
}
"""By norm placement, whether embeddings are normed, and whether positions are the paper's sinusoid, from 0 on.

Other sinusoids, such as M2M100's, are a table there: M2M100 itself has no bias of the output, which our `<s>` needs."""
