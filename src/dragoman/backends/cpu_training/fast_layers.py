"""The fast implementations of layers for training on a CPU, which `backends.accelerate` puts into a model: in bfloat16
and, with `training.backend=kernels`, in float32.

Each is fast only in a training step (`trains_in`); without gradients, in another type or under a compiler it
computes as the textbook's layer. Shapes are the textbook's.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.backends.cpu_training import layers, projection
from dragoman.backends.cpu_training.projection import (
    from_rows,
    project,
    project_rows,
    to_rows,
    trains_in,
    trains_in_bfloat16,
)
from dragoman.backends.cpu_training.short_attention import MAX_SHORT_KEYS, Sizes, rotary_phase, rotated, short_attention
from dragoman.backends.fused_attention import FusedAttention
from dragoman.models.blocks import DecoderLayer, EncoderLayer
from dragoman.nn.attention import KVCache, MultiHeadAttention
from dragoman.nn.embeddings import OutputProjection
from dragoman.nn.feedforward import FeedForward, SwiGLU
from dragoman.nn.positions import RotaryPositions


class Bfloat16Attention(FusedAttention):
    """Keys and values projected in one product; short sentences stay in rows (`short_attention`)."""

    def forward(self, query: Tensor, memory: Tensor, mask: Tensor | None, maps: list[Tensor] | None = None) -> Tensor:
        is_short = max(query.size(1), memory.size(1)) <= MAX_SHORT_KEYS and not self.positions.reads_queries
        if maps is None and is_short and projection.has_textbook_heads(self) and trains_in_bfloat16(query):
            return self._attend_short(query, memory, mask)
        return super().forward(query, memory, mask, maps)

    def project_kv(self, memory: Tensor, start: int = 0) -> KVCache:
        key, value = project(memory, self.key_proj, self.value_proj)
        return self.kv_cache(key, value, start)

    def attend(
        self, query: Tensor, memory: KVCache, mask: Tensor | None, start: int = 0, maps: list[Tensor] | None = None
    ) -> Tensor:
        (projected,) = project(query, self.query_proj)
        return project(self.context(projected, memory, mask, start, maps), self.output_proj)[0]

    def _attend_short(self, query: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        sizes = Sizes(query.size(0), query.size(1), memory.size(1), self.query_proj.out_features // self.d_head)
        bias = self.positions.bias(query[:, None], 0, memory.size(1))
        phase = rotary_phase(self.positions, 0, query.size(1))
        rows = to_rows(query)
        if memory is query:
            joined = project_rows(rows, self.query_proj, self.key_proj, self.value_proj)
            context = short_attention(joined, None, sizes, mask, bias, phase)
        else:
            kv = project_rows(to_rows(memory), self.key_proj, self.value_proj)
            context = short_attention(project_rows(rows, self.query_proj), kv, sizes, mask, bias, phase)
        return from_rows(project_rows(context, self.output_proj), query.shape[:-1])


class Bfloat16FeedForward(FeedForward):
    """ReLU computed within the first product."""

    def forward(self, x: Tensor) -> Tensor:
        if projection.has_relu_alone(self) and trains_in_bfloat16(x):
            return from_rows(projection.feed_forward(to_rows(x), self.expand, self.contract), x.shape[:-1])
        (hidden,) = project(x, self.expand)
        return project(self.dropout(self.activation(hidden)), self.contract)[0]


class Bfloat16SwiGLU(SwiGLU):
    """Gate and expansion in one product."""

    def forward(self, x: Tensor) -> Tensor:
        gate, hidden = project(x, self.gate, self.expand)
        return project(self.dropout(F.silu(gate) * hidden), self.contract)[0]


class Bfloat16OutputProjection(OutputProjection):
    """Logits in memory of an earlier step."""

    products = torch.bfloat16

    def forward(self, hidden: Tensor) -> Tensor:
        if trains_in(self.products, hidden) and self.bias is None:
            return projection.to_logits(hidden, self.weight, self.products)
        return super().forward(hidden)


class Bfloat16EncoderLayer(EncoderLayer):
    """Each sublayer in its residual connection as one function (`layers`)."""

    products = torch.bfloat16

    def forward(self, x: Tensor, padding_mask: Tensor | None, maps: list[Tensor] | None = None) -> Tensor:
        dtype = self.products
        x = layers.attend(x, self.self_attention_residual, self.self_attention, None, padding_mask, maps, dtype)
        return layers.feed_forward(x, self.feed_forward_residual, self.feed_forward, dtype)


class Bfloat16DecoderLayer(DecoderLayer):
    """Each sublayer in its residual connection as one function (`layers`)."""

    products = torch.bfloat16

    def forward(
        self,
        x: Tensor,
        causal_mask: Tensor,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
        maps: list[Tensor] | None = None,
    ) -> Tensor:
        dtype, cross = self.products, self.cross_attention
        x = layers.attend(x, self.self_attention_residual, self.self_attention, None, causal_mask, maps, dtype)
        if cross is not None:
            x = layers.attend(x, self.cross_attention_residual, cross, memory, memory_mask, maps, dtype)
        return layers.feed_forward(x, self.feed_forward_residual, self.feed_forward, dtype)


class Float32EncoderLayer(Bfloat16EncoderLayer):
    """The same with products in float32."""

    products = torch.float32


class Float32DecoderLayer(Bfloat16DecoderLayer):
    """The same with products in float32."""

    products = torch.float32


class Float32OutputProjection(Bfloat16OutputProjection):
    """The same with products in float32."""

    products = torch.float32


class ComplexRotaryPositions(RotaryPositions):
    """Rotation as one product of complex numbers."""

    def rotate(self, heads: Tensor, start: int) -> Tensor:
        phase = rotary_phase(self, start, heads.size(2)) if trains_in_bfloat16(heads) else None
        return super().rotate(heads, start) if phase is None else rotated(heads, phase)


BFLOAT16_LAYERS: dict[type[nn.Module], type[nn.Module]] = {
    MultiHeadAttention: Bfloat16Attention,
    FeedForward: Bfloat16FeedForward,
    SwiGLU: Bfloat16SwiGLU,
    OutputProjection: Bfloat16OutputProjection,
    RotaryPositions: ComplexRotaryPositions,
    EncoderLayer: Bfloat16EncoderLayer,
    DecoderLayer: Bfloat16DecoderLayer,
}
"""By the textbook's layer."""
FLOAT32_LAYERS: dict[type[nn.Module], type[nn.Module]] = {
    OutputProjection: Float32OutputProjection,
    EncoderLayer: Float32EncoderLayer,
    DecoderLayer: Float32DecoderLayer,
}
"""The layers that gain something in float32; for other layers PyTorch's products are as good."""
