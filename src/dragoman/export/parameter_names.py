"""The parameters of a Transformer under the names that CTranslate2, Hugging Face, fairseq and eole have for them."""

from collections.abc import Iterator
from typing import NamedTuple

from torch import nn

from dragoman.models.transformer import Transformer

LAYER = (
    ("self_attention_residual.norm", "self_attention/layer_norm", "self_attn_layer_norm", "input_layernorm"),
    ("self_attention.query_proj", "self_attention/linear_0", "self_attn.q_proj", "self_attn.linear_query"),
    ("self_attention.key_proj", "self_attention/linear_0", "self_attn.k_proj", "self_attn.linear_keys"),
    ("self_attention.value_proj", "self_attention/linear_0", "self_attn.v_proj", "self_attn.linear_values"),
    ("self_attention.output_proj", "self_attention/linear_1", "self_attn.out_proj", "self_attn.final_linear"),
    ("self_attention.forget_proj", "", "rnn.forget_proj", ""),
    ("self_attention.input_proj", "", "rnn.input_proj", ""),
    ("cross_attention_residual.norm", "attention/layer_norm", "encoder_attn_layer_norm", "precontext_layernorm"),
    ("cross_attention.query_proj", "attention/linear_0", "encoder_attn.q_proj", "context_attn.linear_query"),
    ("cross_attention.key_proj", "attention/linear_1", "encoder_attn.k_proj", "context_attn.linear_keys"),
    ("cross_attention.value_proj", "attention/linear_1", "encoder_attn.v_proj", "context_attn.linear_values"),
    ("cross_attention.output_proj", "attention/linear_2", "encoder_attn.out_proj", "context_attn.final_linear"),
    ("feed_forward_residual.norm", "ffn/layer_norm", "final_layer_norm", "post_attention_layernorm"),
    ("feed_forward.gate", "ffn/linear_0", "", "mlp.gate_up_proj"),
    ("feed_forward.expand", "ffn/linear_0", "fc1", "mlp.gate_up_proj"),
    ("feed_forward.contract", "ffn/linear_1", "fc2", "mlp.down_proj"),
)
"""The norms and linear layers of a layer: ours, CTranslate2's, Hugging Face's (fairseq's too), eole's. CTranslate2 puts
those of one name together; where there is a gate (which Hugging Face's architectures have not), `expand` stands beside
it. A decoder with an SSRU is in Marian alone."""


def has_wide_heads(model: Transformer) -> bool:
    """True if all heads together are not as wide as the model (`model.d_head`)."""
    joined = model.encoder_layers[0].self_attention.output_proj
    return joined.in_features != joined.out_features


class Named(NamedTuple):
    """A norm or a linear layer, its names there, and the module that it belongs to."""

    module: nn.Module
    ctranslate2: str
    huggingface: str
    eole: str
    owner: nn.Module


def named(model: Transformer) -> Iterator[Named]:
    """All of them but embeddings, positions and the output."""
    for side, layers, embedding in (
        ("encoder", model.encoder_layers, model.src_embedding),
        ("decoder", model.decoder_layers, model.tgt_embedding),
    ):
        for number, layer in enumerate(layers):
            modules = dict(layer.named_modules())
            for ours, ctranslate2, huggingface, eole in LAYER:
                if ours in modules:
                    gated = ours == "feed_forward.expand" and "feed_forward.gate" in modules
                    yield Named(
                        modules[ours],
                        f"{side}/layer_{number}/{ctranslate2}{'_noact' if gated else ''}",
                        f"model.{side}.layers.{number}.{huggingface}",
                        f"{side}.transformer_layers.{number}.{'mlp.up_proj' if gated else eole}",
                        modules[ours.rpartition(".")[0]],
                    )
        for name, norm in (("layernorm_embedding", embedding.norm), ("layer_norm", getattr(model, f"{side}_norm"))):
            if not isinstance(norm, nn.Identity):
                yield Named(norm, f"{side}/{name}", f"model.{side}.{name}", f"{side}.{name}", model)
