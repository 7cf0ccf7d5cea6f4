"""The blocks that every attention model is stacked from, and the settings that they share."""

from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.config import Field, OneOf, by_type, settings
from dragoman.errors import Error
from dragoman.models.stacks import INITIALIZATIONS, Block
from dragoman.nn.attention import QKV, KVCache, MultiHeadAttention
from dragoman.nn.dropout import Dropout
from dragoman.nn.embeddings import TokenEmbedding
from dragoman.nn.feedforward import FEED_FORWARDS
from dragoman.nn.kv_cache import DecodingCache
from dragoman.nn.positions import (
    LAYOUTS,
    AlibiPositions,
    AttentionPositions,
    LearnedPositions,
    NoPositions,
    RotaryPositions,
    SinusoidalPositions,
)
from dragoman.nn.relative_positions import RelativePositions
from dragoman.nn.residual import NORM_PLACEMENTS, NORMS, ResidualConnection


class PositionScheme:
    """A position scheme's part in each of the two places that can take one; by default nothing in either."""

    def build(self, d_model: int) -> nn.Module:
        """Vectors to add to the embeddings."""
        return NoPositions(d_model)

    def for_attention(self, num_heads: int, d_head: int) -> AttentionPositions:
        """Positions inside one self-attention."""
        return AttentionPositions()


@settings
class NoPositionConfig(PositionScheme):
    """No positions: an encoder sees a set of words, and a decoder knows order by its causal mask alone."""

    type: Literal["none"] = "none"


@settings
class SinusoidalConfig(PositionScheme):
    """The fixed sine and cosine table; no limit on length."""

    type: Literal["sinusoidal"] = "sinusoidal"
    layout: Annotated[str, OneOf(LAYOUTS)] = "interleaved"
    """Sine and cosine in turn (the paper), or all sines first (`half_split`: Hugging Face's Marian), or all sines first
    with other wavelengths (`fairseq`: tensor2tensor, Marian, M2M100, NLLB, OpenNMT-tf)."""
    offset: int = Field(default=0, ge=0, le=2**16)  #: Number of the first position: 0 in the paper, 2 in M2M100.
    base: float = Field(default=10_000.0, gt=1)  #: The slowest wave takes about 2 pi times so many positions.

    def build(self, d_model: int) -> nn.Module:
        return SinusoidalPositions(d_model, base=self.base, layout=self.layout, offset=self.offset)


@settings
class LearnedConfig(PositionScheme):
    """A trained vector for each of the first `max_len` positions; longer sequences are refused."""

    type: Literal["learned"] = "learned"
    max_len: int = Field(default=512, ge=1, le=2**24)  #: Positions that have a vector. [positions]

    def build(self, d_model: int) -> nn.Module:
        return LearnedPositions(d_model, self.max_len)


@settings
class RotaryConfig(PositionScheme):
    """Queries and keys of self-attention rotated by their position (RoFormer); no limit on length."""

    type: Literal["rotary"] = "rotary"
    base: float = Field(default=10_000.0, gt=1)
    """Base of the wavelengths; a larger one rotates the last dimensions more slowly."""

    def for_attention(self, num_heads: int, d_head: int) -> AttentionPositions:
        return RotaryPositions(d_head, self.base)


@settings
class AlibiConfig(PositionScheme):
    """Scores of self-attention lowered by distance, in each head at its own slope; no limit on length."""

    type: Literal["alibi"] = "alibi"

    def for_attention(self, num_heads: int, d_head: int) -> AttentionPositions:
        return AlibiPositions(num_heads)


@settings
class RelativeConfig(PositionScheme):
    """A trained vector for each distance in self-attention, which keys get added (Shaw et al. 2018)."""

    type: Literal["relative"] = "relative"
    max_distance: int = Field(default=16, ge=1, le=2**16)  #: All distances beyond it have one vector. [positions]

    def for_attention(self, num_heads: int, d_head: int) -> AttentionPositions:
        return RelativePositions(d_head, self.max_distance)


PositionConfig = Annotated[
    SinusoidalConfig | LearnedConfig | RotaryConfig | AlibiConfig | RelativeConfig | NoPositionConfig, by_type
]
Activation = Annotated[str, OneOf(FEED_FORWARDS)]


@settings
class BlockConfig:
    """Settings that the Transformer, the encoder-only and the decoder-only models share."""

    d_model: int = Field(default=128, ge=2, le=2**16)  #: Features of a position, between all layers. [features]
    num_heads: int = Field(default=4, ge=1, le=2**12)  #: Attention heads; `d_model` is split among them.
    d_head: int | None = Field(default=None, ge=1, le=2**16)  #: Features of a head; null: d_model / num_heads.
    num_kv_heads: int | None = Field(default=None, ge=1)
    """Heads of keys and values (grouped-query attention); null: `num_heads`."""
    d_ff: int = Field(default=512, ge=1, le=2**20)
    """The inner size of the feed-forward network. SwiGLU has three matrices of it, the others two: with 2/3 of their
    d_ff it has as many parameters."""
    dropout: float = Field(default=0.2, ge=0, lt=1)  #: Dropout of embeddings and of every sublayer's output.
    attention_dropout: float = Field(default=0.0, ge=0, lt=1)  #: Dropout of attention weights.
    activation_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout inside the feed-forward network, after the activation."""
    activation: Activation = "relu"  #: Activation of the feed-forward network.
    norm: Annotated[str, OneOf(NORMS)] = "layer"  #: LayerNorm or RMSNorm.
    norm_eps: float = Field(default=1e-5, gt=0)  #: Added to the variance (or mean square) before the root.
    norm_placement: Annotated[str, OneOf(NORM_PLACEMENTS)] = "pre"
    """`post`: norm(x + f(x)); `pre`: x + f(norm(x)); `output`: x + norm(f(x))."""
    embedding_norm: bool = False  #: Norm of the embeddings, after positions are added and before dropout.
    position: PositionConfig = Field(default_factory=SinusoidalConfig)  #: Position scheme.
    initialization: Annotated[str, OneOf(INITIALIZATIONS)] = "xavier_uniform"
    """First weights of projections: Glorot and Bengio's (`xavier_uniform`, `xavier_normal`), `normal` (deviation 0.02:
    BERT, GPT-2), `fairseq` (queries, keys and values times 2^-0.5), `depth_scaled` (layer l times l^-0.5: Marian)."""
    layer_drop: float = Field(default=0.0, ge=0, lt=1)  #: Probability that training leaves a layer out of a pass.
    tied_layers: list[int] = Field(default_factory=list)
    """The layer, from 1, whose weights each layer has, in a translator each of its decoder: [1, 1, 1, 1] is one for all
    four (Marian, ALBERT). Empty: each has its own."""

    def check_sizes(self) -> None:
        """Raises DragomanError when sizes do not fit each other."""
        if self.d_head is None and self.d_model % self.num_heads:
            raise Error.WRONG_SETTING(
                f"model.d_model ({self.d_model}) must be a multiple of model.num_heads ({self.num_heads})"
            )
        if self.num_kv_heads is not None and self.num_heads % self.num_kv_heads:
            raise Error.WRONG_SETTING(
                f"model.num_heads ({self.num_heads}) must be a multiple of model.num_kv_heads ({self.num_kv_heads})"
            )

    def positioned(self, embedding: TokenEmbedding) -> "PositionedEmbedding":
        norm = self.new_norm() if self.embedding_norm else nn.Identity()
        return PositionedEmbedding(embedding, self.position.build(self.d_model), norm, self.dropout)

    def self_attention(self) -> MultiHeadAttention:
        d_head = self.d_head or self.d_model // self.num_heads
        return self._attention(self.position.for_attention(self.num_heads, d_head))

    def cross_attention(self) -> MultiHeadAttention:
        """Attention without positions: positions in two different sequences have no distance."""
        return self._attention(None)

    def _attention(self, positions: AttentionPositions | None) -> MultiHeadAttention:
        return MultiHeadAttention(
            self.d_model,
            self.num_heads,
            self.attention_dropout,
            num_kv_heads=self.num_kv_heads,
            positions=positions,
            d_head=self.d_head,
        )

    def causal_attention(self) -> MultiHeadAttention:
        """The self-attention of a decoder, or the layer in its place."""
        return self.self_attention()

    def feed_forward(self) -> nn.Module:
        return FEED_FORWARDS[self.activation](self.d_model, self.d_ff, self.activation_dropout)

    def new_norm(self) -> nn.Module:
        return NORMS[self.norm](self.d_model, eps=self.norm_eps)

    def residual(self) -> ResidualConnection:
        return NORM_PLACEMENTS[self.norm_placement](self.new_norm(), self.dropout)

    def final_norm(self) -> nn.Module:
        """Norm at the end of a stack, unless its output is normalised already."""
        return nn.Identity() if NORM_PLACEMENTS[self.norm_placement].normalises_output else self.new_norm()


class PositionedEmbedding(nn.Module):
    """dropout(norm(token embedding + position))."""

    def __init__(self, tokens: TokenEmbedding, positions: nn.Module, norm: nn.Module, dropout: float) -> None:
        super().__init__()
        self.tokens, self.positions, self.norm, self.dropout = tokens, positions, norm, Dropout(dropout)

    @property
    def max_len(self) -> int | None:
        """Number of positions; None: no limit."""
        return self.positions.max_len if isinstance(self.positions, LearnedPositions) else None

    def forward(self, ids: Int[Tensor, "batch len"], start: int = 0) -> Float[Tensor, "batch len d_model"]:
        """`start`: the position of the first column (decoding feeds one column at a time)."""
        return self.dropout(self.norm(self.tokens(ids) + self.positions(start, ids.size(1))))


MemoryCache = tuple[KVCache, Bool[Tensor, "_sentences 1 1 _src_len"]]
"""Keys and values of the memory (`project_memory`) and its padding mask."""


class EncoderLayer(Block):
    """Self-attention, then feed-forward, each in its residual connection."""

    def __init__(self, config: BlockConfig) -> None:
        super().__init__()
        self.layer_drop = config.layer_drop
        self.self_attention, self.feed_forward = config.self_attention(), config.feed_forward()
        self.self_attention_residual, self.feed_forward_residual = config.residual(), config.residual()

    def forward(
        self,
        x: Float[Tensor, "batch src_len d_model"],
        padding_mask: Bool[Tensor, "batch 1 1 src_len"] | None,
        maps: list[Tensor] | None = None,
    ) -> Float[Tensor, "batch src_len d_model"]:
        """`maps`, if given, gets the layer's attention map appended (`MultiHeadAttention.forward`)."""
        x = self.self_attention_residual(x, lambda y: self.self_attention(y, y, padding_mask, maps))
        return self.feed_forward_residual(x, self.feed_forward)


class DecoderLayer(Block):
    """Causal self-attention, attention to the encoder's memory, feed-forward, each in its residual connection.

    Without `cross_attention` it is the block of a language model (Radford et al. 2018), and `memory` is None.
    """

    def __init__(self, config: BlockConfig, cross_attention: bool = True) -> None:
        super().__init__()
        self.layer_drop = config.layer_drop
        self.self_attention = config.causal_attention()
        self.cross_attention = config.cross_attention() if cross_attention else None
        self.feed_forward = config.feed_forward()
        self.self_attention_residual = config.residual()
        self.cross_attention_residual = config.residual() if cross_attention else nn.Identity()
        self.feed_forward_residual = config.residual()

    def forward(
        self,
        x: Float[Tensor, "batch tgt_len d_model"],
        causal_mask: Bool[Tensor, "1 1 tgt_len tgt_len"],
        memory: Float[Tensor, "batch src_len d_model"] | None = None,
        memory_mask: Bool[Tensor, "batch 1 1 src_len"] | None = None,
        maps: list[Tensor] | None = None,
    ) -> Float[Tensor, "batch tgt_len d_model"]:
        """`maps`, if given, gets the layer's attention maps appended, self before cross."""
        x = self.self_attention_residual(x, lambda y: self.self_attention(y, y, causal_mask, maps))
        if self.cross_attention is not None:
            cross = self.cross_attention
            x = self.cross_attention_residual(x, lambda y: cross(y, memory, memory_mask, maps))
        return self.feed_forward_residual(x, self.feed_forward)

    def project_memory(self, memory: Float[Tensor, "sentences src_len d_model"]) -> KVCache:
        """Keys and values of the memory, for every `decode_step`."""
        assert self.cross_attention is not None
        return self.cross_attention.project_kv(memory)

    def decode_step(
        self,
        x: Float[Tensor, "rows new d_model"],
        caches: Sequence[DecodingCache],
        causal_mask: Bool[Tensor, "1 1 new past_and_new"] | None = None,
        memories: Sequence[MemoryCache] = (),
    ) -> tuple[Float[Tensor, "rows new d_model"], list[DecodingCache]]:
        """`forward` for new positions after the positions in `caches`: (their output, the caches with them).

        The rows of each cache are neighbours, in the order of `caches`. Each group of rows attends to its own past, of
        any length, and to its own memory; everything else is computed for all rows at once. Rows after the rows of
        all caches, which only make up their number, attend to nothing. A single new position sees everything and needs
        no `causal_mask`.
        """
        groups = [cache.num_rows for cache in caches]
        new_caches: list[DecodingCache] = []

        def attend_to_past(y: Tensor) -> Tensor:
            parts = zip(*(split_groups(part, groups) for part in self.self_attention.project_qkv(y)), strict=True)
            contexts = []
            for cache, part in zip(caches, parts, strict=True):
                context, new_cache = cache.attend(self.self_attention, QKV(*part), causal_mask)
                contexts.append(context)
                new_caches.append(new_cache)
            return self.self_attention.output_proj(join_groups(contexts, x.size(0)))

        x = self.self_attention_residual(x, attend_to_past)
        if self.cross_attention is not None:
            cross = self.cross_attention

            def attend_to_memory(y: Tensor) -> Tensor:
                contexts = []
                for query, (memory, mask) in zip(split_groups(cross.query_proj(y), groups), memories, strict=True):
                    # The hypotheses of a sentence become query positions of one attention, so that the keys of the
                    # memory are stored once for each sentence.
                    grouped = query.view(memory.key.size(0), -1, query.size(-1))  # (sentences, rows each, d_model)
                    contexts.append(cross.context(grouped, memory, mask).view_as(query))
                return cross.output_proj(join_groups(contexts, x.size(0)))

            x = self.cross_attention_residual(x, attend_to_memory)
        return self.feed_forward_residual(x, self.feed_forward), new_caches


def split_groups(x: Tensor, groups: Sequence[int]) -> Sequence[Tensor]:
    """The rows of each group of `x`, (rows, new, width): neighbours. Rows after the last group are left out."""
    rows = x[: sum(groups)]
    return [rows] if len(groups) == 1 else rows.split(groups)


def join_groups(parts: list[Tensor], num_rows: int) -> Tensor:
    """The rows of all groups, (rows, new, width) each, and zeros after them up to `num_rows`."""
    joined = parts[0] if len(parts) == 1 else torch.cat(parts)
    return joined if joined.size(0) == num_rows else F.pad(joined, (0, 0, 0, 0, 0, num_rows - joined.size(0)))
