"""The weights of a Transformer as `search.c` reads them: packed once, with the structures that point to them."""

import ctypes
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from dragoman.backends.cpu_search.library import Layer, Linear, Model, Norm, Stack
from dragoman.models.blocks import DecoderLayer, EncoderLayer, PositionedEmbedding
from dragoman.models.transformer import Transformer
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.embeddings import TokenEmbedding
from dragoman.nn.feedforward import FeedForward, SwiGLU
from dragoman.nn.lora import LoRALinear
from dragoman.nn.positions import (
    AttentionPositions,
    LearnedPositions,
    NoPositions,
    RotaryPositions,
    SinusoidalPositions,
)
from dragoman.nn.residual import PostNorm, PreNorm
from dragoman.nn.ssru import SSRU

ACTIVATIONS: dict[type[nn.Module], int] = {nn.ReLU: 0, nn.GELU: 1, nn.SiLU: 3}
GELU_TANH = 2
PRECISIONS = ("float32", "bfloat16", "int8")
FIRST_POSITIONS = 512
"""Positions of the first tables; longer sentences have them made anew."""


def can_be_packed(model: nn.Module) -> bool:
    """True for a Transformer on the CPU, all of whose layers `search.c` knows."""
    return (
        isinstance(model, Transformer)
        and all(parameter.device.type == "cpu" for parameter in model.parameters())
        and all(_is_known(module) for module in model.modules())
    )


def projection(model: Transformer) -> nn.Linear:
    """The output layer, without what may be around it (`inference/nearest_neighbours.py`)."""
    output = model.output
    return cast(nn.Linear, output if hasattr(output, "weight") else output.output)


def _is_known(module: nn.Module) -> bool:
    if isinstance(module, MultiHeadAttention):
        return type(module.positions) in (AttentionPositions, RotaryPositions)
    if isinstance(module, nn.LayerNorm | nn.RMSNorm):
        return module.weight is not None
    if isinstance(module, FeedForward):
        return type(module.activation) in ACTIVATIONS
    if isinstance(module, PositionedEmbedding):
        return isinstance(module.positions, SinusoidalPositions | LearnedPositions | NoPositions)
    return not isinstance(module, LoRALinear | SSRU)


class PackedTransformer:
    """A model's weights for `search.c`, in one of PRECISIONS."""

    def __init__(self, library: ctypes.CDLL, model: Transformer, precision: str) -> None:
        self.library, self.transformer = library, model
        self.kept = list[Any]()
        self.packed_layers: dict[int, Layer] = {}
        self.tables: dict[tuple[int, float, int | None], int] = {}
        self.kind, self.panel = PRECISIONS.index(precision), library.panel_columns()
        first = model.encoder_layers[0]
        attention, residual = first.self_attention, first.self_attention_residual
        feed_forward = cast(Any, first.feed_forward)
        m = self.model = Model()
        m.d_model, m.d_head, m.d_ff = (
            attention.query_proj.in_features,
            attention.d_head,
            feed_forward.expand.out_features,
        )
        m.num_heads = attention.query_proj.out_features // m.d_head
        m.num_kv_heads = attention.key_proj.out_features // m.d_head
        m.vocab = model.tgt_vocab_size
        m.placement = 0 if isinstance(residual, PreNorm) else 1 if isinstance(residual, PostNorm) else 2
        m.activation = ACTIVATIONS[nn.SiLU if isinstance(feed_forward, SwiGLU) else type(feed_forward.activation)]
        if getattr(getattr(feed_forward, "activation", None), "approximate", "none") == "tanh":
            m.activation = GELU_TANH
        m.encoder = self._stack(model.src_embedding, model.encoder_layers, model.encoder_norm)
        m.decoder = self._stack(model.tgt_embedding, model.decoder_layers, model.decoder_norm)
        self.output = projection(model)
        m.output = self._linears(self.output)
        self.make_tables(FIRST_POSITIONS)
        encoder, decoder = (
            [self._layer(layer) for layer in stack] for stack in (model.encoder_layers, model.decoder_layers)
        )
        self.reading = sum(_multiplications(layer) for layer in encoder)
        """Multiplications of a token that is read, about; and of one that is written."""
        self.writing = m.output.inputs * m.output.outputs + sum(_multiplications(layer) for layer in decoder)

    def make_tables(self, positions: int) -> None:
        """Have tables for so many positions. Old ones are kept: a search on another thread may read them."""
        if positions <= self.model.max_positions:
            return
        own = self.transformer.encoder_layers[0].self_attention.positions
        if isinstance(own, RotaryPositions):
            sines, cosines = own.waves(0, positions).chunk(2, dim=-1)
            self.model.cosines, self.model.sines = self._keep(cosines), self._keep(sines)
        for stack, embedding in (
            (self.model.encoder, self.transformer.src_embedding),
            (self.model.decoder, self.transformer.tgt_embedding),
        ):
            if not isinstance(embedding.positions, NoPositions):
                stack.positions = self._keep(
                    self._padded(embedding.positions(0, min(positions, embedding.max_len or positions)))
                )
        self.model.max_positions = positions

    def _keep(self, tensor: Tensor) -> int:
        tensor = tensor.detach().float().contiguous()
        self.kept.append(tensor)
        return tensor.data_ptr()

    def _padded(self, tensor: Tensor) -> Tensor:
        """The last dimension filled up with zeros to whole panels."""
        return nn.functional.pad(tensor.detach().float(), (0, -tensor.size(-1) % self.panel))

    def _linear(self, weights: Sequence[Tensor], biases: Sequence[Tensor | None]) -> Linear:
        """One layer of the weights of several, their outputs side by side."""
        weight = torch.cat([weight.detach().float() for weight in weights]).contiguous()
        outputs, inputs = weight.shape
        parts = [torch.zeros(len(w)) if b is None else b.detach().float() for w, b in zip(weights, biases, strict=True)]
        bias = self._padded(torch.cat(parts))
        size = self.library.packed_bytes(outputs, inputs, self.kind)
        packed = torch.empty(size + 64, dtype=torch.uint8)
        packed = packed[-packed.data_ptr() % 64 :]
        scales, sums = torch.zeros(len(bias)), torch.zeros(len(bias), dtype=torch.int32)
        kind = self.library.pack(
            weight.data_ptr(), outputs, inputs, self.kind, packed.data_ptr(), scales.data_ptr(), sums.data_ptr()
        )
        self.kept += [packed, bias, scales, sums]
        pointers = (tensor.data_ptr() for tensor in (packed, bias, scales, sums))
        return Linear(*pointers, inputs, outputs, kind)

    def _linears(self, *layers: nn.Linear) -> Linear:
        return self._linear([layer.weight for layer in layers], [layer.bias for layer in layers])

    def _norm(self, module: nn.Module) -> Norm:
        if isinstance(module, nn.Identity):
            return Norm()
        gain, bias = cast(Any, module).weight, getattr(module, "bias", None)
        eps = cast(Any, module).eps
        kept_bias = None if bias is None else self._keep(self._padded(bias))
        return Norm(self._keep(self._padded(gain)), kept_bias, torch.finfo(gain.dtype).eps if eps is None else eps)

    def _tokens(self, tokens: TokenEmbedding) -> int:
        """The scaled vectors, once where source and target have the same."""
        key = id(tokens.embedding.weight), tokens.scale, tokens.zero_id
        if key not in self.tables:
            self.tables[key] = self._keep(self._padded(tokens.vectors() * tokens.scale))
        return self.tables[key]

    def _stack(self, embedding: PositionedEmbedding, layers: Any, final: nn.Module) -> Stack:
        made = (Layer * len(layers))(*map(self._layer, layers))
        self.kept.append(made)
        return Stack(
            self._tokens(embedding.tokens),
            None,
            self._norm(embedding.norm),
            self._norm(final),
            ctypes.addressof(made),
            len(layers),
        )

    def _layer(self, layer: EncoderLayer | DecoderLayer) -> Layer:
        if id(layer) in self.packed_layers:  # one layer may stand in several places
            return self.packed_layers[id(layer)]
        made, own = Layer(), layer.self_attention
        self.packed_layers[id(layer)] = made
        made.self_norm = self._norm(layer.self_attention_residual.norm)
        made.qkv = self._linears(own.query_proj, own.key_proj, own.value_proj)
        made.self_out = self._linears(own.output_proj)
        if isinstance(layer, DecoderLayer) and layer.cross_attention is not None:
            cross = layer.cross_attention
            made.cross_norm = self._norm(cast(Any, layer.cross_attention_residual).norm)
            made.cross_query = self._linears(cross.query_proj)
            made.cross_kv = self._linears(cross.key_proj, cross.value_proj)
            made.cross_out = self._linears(cross.output_proj)
        feed_forward = cast(Any, layer.feed_forward)
        made.ffn_norm = self._norm(layer.feed_forward_residual.norm)
        made.expand, made.contract = self._linears(feed_forward.expand), self._linears(feed_forward.contract)
        if isinstance(feed_forward, SwiGLU):
            made.gate = self._linears(feed_forward.gate)
        return made


def _multiplications(layer: Layer) -> int:
    linears = (getattr(layer, name) for name, kind in Layer._fields_ if kind is Linear)
    return sum(linear.inputs * linear.outputs for linear in linears)
