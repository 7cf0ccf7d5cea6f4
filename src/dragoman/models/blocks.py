"""The blocks that every attention model is stacked from, and the settings that they share."""

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dragoman.config import Field, by_type, settings
from dragoman.errors import DragomanError
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.dropout import Dropout
from dragoman.nn.embeddings import TokenEmbedding
from dragoman.nn.feedforward import FeedForward
from dragoman.nn.norms import NORM_PLACEMENTS, NORMS
from dragoman.nn.positions import LearnedPositions, SinusoidalPositions


@settings
class SinusoidalConfig:
    """The fixed sine and cosine table; no limit on length."""

    type: Literal["sinusoidal"] = "sinusoidal"

    def build(self, d_model: int) -> nn.Module:
        return SinusoidalPositions(d_model)


@settings
class LearnedConfig:
    """A trained vector for each of the first `max_len` positions; longer sequences are refused."""

    type: Literal["learned"] = "learned"
    max_len: int = Field(default=512, ge=1)

    def build(self, d_model: int) -> nn.Module:
        return LearnedPositions(d_model, self.max_len)


@settings
class BlockConfig:
    """What the Transformer, the encoder-only and the decoder-only models set in common."""

    d_model: int = Field(default=128, ge=2)
    num_heads: int = Field(default=4, ge=1)
    d_ff: int = Field(default=512, ge=1)
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """After embeddings and after every sublayer."""
    attention_dropout: float = Field(default=0.0, ge=0, lt=1)
    """On attention weights."""
    activation_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Inside the feed-forward network, after the activation."""
    activation: Literal["relu", "gelu"] = "relu"
    norm: Literal["layer"] = "layer"
    norm_placement: Literal["post", "pre"] = "pre"
    position: Annotated[SinusoidalConfig | LearnedConfig, by_type] = Field(default_factory=SinusoidalConfig)

    def check_sizes(self) -> None:
        """Raises DragomanError when sizes do not fit each other."""
        if self.d_model % self.num_heads:
            raise DragomanError(
                f"model.d_model ({self.d_model}) must be a multiple of model.num_heads ({self.num_heads})"
            )

    def positioned(self, embedding: TokenEmbedding) -> "PositionedEmbedding":
        return PositionedEmbedding(embedding, self.position.build(self.d_model), self.dropout)

    def attention(self) -> MultiHeadAttention:
        return MultiHeadAttention(self.d_model, self.num_heads, self.attention_dropout)

    def feed_forward(self) -> FeedForward:
        return FeedForward(self.d_model, self.d_ff, self.activation, self.activation_dropout)

    def residual(self) -> nn.Module:
        return NORM_PLACEMENTS[self.norm_placement](NORMS[self.norm](self.d_model), self.dropout)

    def final_norm(self) -> nn.Module:
        """What a stack ends in: its output has been normalised already, or it has not."""
        return NORMS[self.norm](self.d_model) if self.norm_placement == "pre" else nn.Identity()


class PositionedEmbedding(nn.Module):
    """dropout(token embedding + position)."""

    def __init__(self, tokens: TokenEmbedding, positions: nn.Module, dropout: float) -> None:
        super().__init__()
        self.tokens, self.positions, self.dropout = tokens, positions, Dropout(dropout)

    def forward(self, ids: Int[Tensor, "batch len"], start: int = 0) -> Float[Tensor, "batch len d_model"]:
        """`start`: the position of the first column (decoding feeds one column at a time)."""
        return self.dropout(self.tokens(ids) + self.positions(start, ids.size(1)))


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each in its residual connection."""

    def __init__(self, config: BlockConfig) -> None:
        super().__init__()
        self.self_attention, self.feed_forward = config.attention(), config.feed_forward()
        self.self_attention_residual, self.feed_forward_residual = config.residual(), config.residual()

    def forward(
        self, x: Float[Tensor, "batch src_len d_model"], mask: Bool[Tensor, "batch 1 1 src_len"]
    ) -> Float[Tensor, "batch src_len d_model"]:
        x = self.self_attention_residual(x, lambda y: self.self_attention(y, y, mask))
        return self.feed_forward_residual(x, self.feed_forward)


@dataclass(frozen=True)
class LayerCache:
    """Keys and values that one decoder layer has projected so far, those of the target and those of the memory."""

    key: Float[Tensor, "rows num_heads past d_head"]
    value: Float[Tensor, "rows num_heads past d_head"]
    memory_key: Float[Tensor, "sentences num_heads src_len d_head"]
    memory_value: Float[Tensor, "sentences num_heads src_len d_head"]


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder's memory, feed-forward, each in its residual connection."""

    def __init__(self, config: BlockConfig) -> None:
        super().__init__()
        self.self_attention, self.cross_attention = config.attention(), config.attention()
        self.feed_forward = config.feed_forward()
        self.self_attention_residual, self.cross_attention_residual = config.residual(), config.residual()
        self.feed_forward_residual = config.residual()

    def forward(
        self,
        x: Float[Tensor, "batch tgt_len d_model"],
        memory: Float[Tensor, "batch src_len d_model"],
        memory_mask: Bool[Tensor, "batch 1 1 src_len"],
        causal_mask: Bool[Tensor, "1 1 tgt_len tgt_len"],
    ) -> Float[Tensor, "batch tgt_len d_model"]:
        x = self.self_attention_residual(x, lambda y: self.self_attention(y, y, causal_mask))
        x = self.cross_attention_residual(x, lambda y: self.cross_attention(y, memory, memory_mask))
        return self.feed_forward_residual(x, self.feed_forward)

    def step(
        self,
        x: Float[Tensor, "rows 1 d_model"],
        cache: LayerCache,
        memory_mask: Bool[Tensor, "sentences 1 1 src_len"],
    ) -> tuple[Float[Tensor, "rows 1 d_model"], LayerCache]:
        """`forward` for one new position: its keys and values join the cache, everything before is looked up."""

        def attend_to_past(y: Tensor) -> Tensor:
            nonlocal cache
            key, value = self.self_attention.project_keys_values(y)
            cache = replace(cache, key=torch.cat([cache.key, key], dim=2), value=torch.cat([cache.value, value], dim=2))
            return self.self_attention.attend(y, cache.key, cache.value, None)

        def attend_to_memory(y: Tensor) -> Tensor:
            # Rows of one sentence stand together, so its hypotheses become query positions of one attention over
            # memory keys that are stored once per sentence.
            grouped = y.view(cache.memory_key.size(0), -1, y.size(-1))  # (sentences, rows per sentence, d_model)
            context = self.cross_attention.attend(grouped, cache.memory_key, cache.memory_value, memory_mask)
            return context.view_as(y)

        x = self.self_attention_residual(x, attend_to_past)
        x = self.cross_attention_residual(x, attend_to_memory)
        return self.feed_forward_residual(x, self.feed_forward), cache


def init_linear(model: nn.Module) -> None:
    """Glorot and Bengio's uniform initialisation for every projection, zero for its bias."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
