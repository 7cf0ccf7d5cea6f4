"""The parameters of a Transformer under the names that CTranslate2 and Hugging Face have for them."""

from collections.abc import Iterator
from typing import NamedTuple

from torch import nn

from dragoman.models.transformer import Transformer

LAYER = (
    ("self_attention_residual.norm", "self_attention/layer_norm", "self_attn_layer_norm"),
    ("self_attention.query_proj", "self_attention/linear_0", "self_attn.q_proj"),
    ("self_attention.key_proj", "self_attention/linear_0", "self_attn.k_proj"),
    ("self_attention.value_proj", "self_attention/linear_0", "self_attn.v_proj"),
    ("self_attention.output_proj", "self_attention/linear_1", "self_attn.out_proj"),
    ("cross_attention_residual.norm", "attention/layer_norm", "encoder_attn_layer_norm"),
    ("cross_attention.query_proj", "attention/linear_0", "encoder_attn.q_proj"),
    ("cross_attention.key_proj", "attention/linear_1", "encoder_attn.k_proj"),
    ("cross_attention.value_proj", "attention/linear_1", "encoder_attn.v_proj"),
    ("cross_attention.output_proj", "attention/linear_2", "encoder_attn.out_proj"),
    ("feed_forward_residual.norm", "ffn/layer_norm", "final_layer_norm"),
    ("feed_forward.gate", "ffn/linear_0", ""),
    ("feed_forward.expand", "ffn/linear_0", "fc1"),
    ("feed_forward.contract", "ffn/linear_1", "fc2"),
)
"""The norms and linear layers of a layer: ours, CTranslate2's, Hugging Face's. CTranslate2 puts those of one name
together; where there is a gate (which Hugging Face's architectures have not), `expand` stands beside it."""


class Named(NamedTuple):
    """A norm or a linear layer, its names there, and the module that it belongs to."""

    module: nn.Module
    ctranslate2: str
    huggingface: str
    owner: nn.Module


def named(model: Transformer) -> Iterator[Named]:
    """All of them but embeddings, positions and the output."""
    for side, layers, embedding in (
        ("encoder", model.encoder_layers, model.src_embedding),
        ("decoder", model.decoder_layers, model.tgt_embedding),
    ):
        for number, layer in enumerate(layers):
            modules = dict(layer.named_modules())
            for ours, ctranslate2, huggingface in LAYER:
                if ours in modules:
                    beside = "_noact" if ours == "feed_forward.expand" and "feed_forward.gate" in modules else ""
                    yield Named(
                        modules[ours],
                        f"{side}/layer_{number}/{ctranslate2}{beside}",
                        f"model.{side}.layers.{number}.{huggingface}",
                        modules[ours.rpartition(".")[0]],
                    )
        for name, norm in (("layernorm_embedding", embedding.norm), ("layer_norm", getattr(model, f"{side}_norm"))):
            if not isinstance(norm, nn.Identity):
                yield Named(norm, f"{side}/{name}", f"model.{side}.{name}", model)
