"""The Transformer (Vaswani et al. 2017), assembled from the blocks of `nn`."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Literal, cast, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dragoman.config import Field, by_type, settings
from dragoman.errors import DragomanError
from dragoman.models.base import Seq2SeqModel
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.dropout import Dropout
from dragoman.nn.embeddings import OutputProjection, TokenEmbedding
from dragoman.nn.feedforward import FeedForward
from dragoman.nn.masks import key_mask, subsequent_mask
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
class TransformerConfig:
    """Sizes and variants of the Transformer. The defaults suit tens of thousands of sentence pairs."""

    type: Literal["transformer"] = "transformer"
    d_model: int = Field(default=128, ge=2)
    num_heads: int = Field(default=4, ge=1)
    d_ff: int = Field(default=512, ge=1)
    num_encoder_layers: int = Field(default=4, ge=1)
    num_decoder_layers: int = Field(default=4, ge=1)
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
    tie_embeddings: Literal["none", "output", "all"] = "all"
    """`output`: the target embedding is the output matrix; `all`: the source embedding too (one joint vocabulary)."""
    scale_embeddings: bool = True

    def build(self, *, src_vocab_size: int, tgt_vocab_size: int, shared_vocab: bool, pad_id: int) -> "Transformer":
        """A freshly initialised model.

        Raises DragomanError when sizes do not fit each other, or three-way tying meets two vocabularies.
        """
        if self.d_model % self.num_heads:
            raise DragomanError(
                f"model.d_model ({self.d_model}) must be a multiple of model.num_heads ({self.num_heads})"
            )
        if self.tie_embeddings == "all" and not shared_vocab:
            raise DragomanError(
                "model.tie_embeddings: all needs one joint vocabulary; with `tokenizer: {type: separate}` use `output`"
            )
        src_embedding = TokenEmbedding(src_vocab_size, self.d_model, pad_id, self.scale_embeddings)
        tgt_embedding = (
            src_embedding
            if self.tie_embeddings == "all"
            else TokenEmbedding(tgt_vocab_size, self.d_model, pad_id, self.scale_embeddings)
        )
        output = OutputProjection(
            tgt_vocab_size, self.d_model, None if self.tie_embeddings == "none" else tgt_embedding
        )
        return Transformer(
            src_embedding=PositionedEmbedding(src_embedding, self.position.build(self.d_model), self.dropout),
            tgt_embedding=PositionedEmbedding(tgt_embedding, self.position.build(self.d_model), self.dropout),
            encoder_layers=[EncoderLayer(self) for _ in range(self.num_encoder_layers)],
            decoder_layers=[DecoderLayer(self) for _ in range(self.num_decoder_layers)],
            encoder_norm=self._final_norm(),
            decoder_norm=self._final_norm(),
            output=output,
            src_vocab_size=src_vocab_size,
            tgt_vocab_size=tgt_vocab_size,
        )

    def attention(self) -> MultiHeadAttention:
        return MultiHeadAttention(self.d_model, self.num_heads, self.attention_dropout)

    def feed_forward(self) -> FeedForward:
        return FeedForward(self.d_model, self.d_ff, self.activation, self.activation_dropout)

    def residual(self) -> nn.Module:
        return NORM_PLACEMENTS[self.norm_placement](NORMS[self.norm](self.d_model), self.dropout)

    def _final_norm(self) -> nn.Module:
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

    def __init__(self, config: TransformerConfig) -> None:
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

    def __init__(self, config: TransformerConfig) -> None:
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


@dataclass(frozen=True)
class TransformerMemory:
    """What the encoder says of a batch."""

    hidden: Float[Tensor, "batch src_len d_model"]
    mask: Bool[Tensor, "batch src_len"]


@dataclass(frozen=True)
class TransformerState:
    """The decoder's caches after `position` tokens. Rows of one sentence stand together, equally many for each."""

    layers: tuple[LayerCache, ...]
    memory_mask: Bool[Tensor, "sentences 1 1 src_len"]
    position: int

    def reorder(self, rows: Int[Tensor, " new_rows"]) -> "TransformerState":
        """Row i of the result is row `rows[i]` of this state.

        Keys and values of the memory are copied only when the set of sentences changes: a beam that reorders its
        hypotheses within sentences leaves them where they are.
        """
        sentences = self.memory_mask.size(0)
        sentence_of = rows // (self.layers[0].key.size(0) // sentences)
        kept, counts = torch.unique_consecutive(sentence_of, return_counts=True)
        if not bool((counts == counts[0]).all()):  # unequal groups: fall back to one memory for each row
            kept = sentence_of
        same = torch.equal(kept, torch.arange(sentences, device=kept.device))
        return TransformerState(
            layers=tuple(
                LayerCache(
                    key=layer.key.index_select(0, rows),
                    value=layer.value.index_select(0, rows),
                    memory_key=layer.memory_key if same else layer.memory_key.index_select(0, kept),
                    memory_value=layer.memory_value if same else layer.memory_value.index_select(0, kept),
                )
                for layer in self.layers
            ),
            memory_mask=self.memory_mask if same else self.memory_mask.index_select(0, kept),
            position=self.position,
        )


@final
class Transformer(Seq2SeqModel):
    """Encoder and decoder stacks over embeddings with positions. `TransformerConfig.build` assembles one."""

    def __init__(
        self,
        *,
        src_embedding: PositionedEmbedding,
        tgt_embedding: PositionedEmbedding,
        encoder_layers: list[EncoderLayer],
        decoder_layers: list[DecoderLayer],
        encoder_norm: nn.Module,
        decoder_norm: nn.Module,
        output: OutputProjection,
        src_vocab_size: int,
        tgt_vocab_size: int,
    ) -> None:
        super().__init__()
        self.src_embedding, self.tgt_embedding = src_embedding, tgt_embedding
        self.encoder_layers = nn.ModuleList(encoder_layers)
        self.decoder_layers = nn.ModuleList(decoder_layers)
        self.encoder_norm, self.decoder_norm = encoder_norm, decoder_norm
        self.output = output
        self.src_vocab_size, self.tgt_vocab_size = src_vocab_size, tgt_vocab_size
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def encode(self, src: Int[Tensor, "batch src_len"], src_mask: Bool[Tensor, "batch src_len"]) -> TransformerMemory:
        x, mask = self.src_embedding(src), key_mask(src_mask)
        for layer in self.encoder_layers:
            x = layer(x, mask)
        return TransformerMemory(self.encoder_norm(x), src_mask)

    def decode(
        self, tgt_in: Int[Tensor, "batch tgt_len"], memory: TransformerMemory
    ) -> Float[Tensor, "batch tgt_len vocab"]:
        x, memory_mask = self.tgt_embedding(tgt_in), key_mask(memory.mask)
        # No padding mask on the target: pads stand at its end, where no real position can see them anyway.
        causal_mask = subsequent_mask(tgt_in.size(1), tgt_in.device)[None, None]
        for layer in self.decoder_layers:
            x = layer(x, memory.hidden, memory_mask, causal_mask)
        return self.output(self.decoder_norm(x))

    def start(self, memory: TransformerMemory) -> TransformerState:
        caches = []
        for layer in self._decoder_layers():
            memory_key, memory_value = layer.cross_attention.project_keys_values(memory.hidden)
            empty = memory_key[:, :, :0]
            caches.append(LayerCache(empty, empty, memory_key, memory_value))
        return TransformerState(tuple(caches), key_mask(memory.mask), position=0)

    def step(
        self, prev: Int[Tensor, " rows"], state: TransformerState
    ) -> tuple[Float[Tensor, "rows vocab"], TransformerState]:
        x = self.tgt_embedding(prev[:, None], start=state.position)
        caches = []
        for layer, cache in zip(self._decoder_layers(), state.layers, strict=True):
            x, grown = layer.step(x, cache, state.memory_mask)
            caches.append(grown)
        logits = self.output(self.decoder_norm(x))[:, 0]
        return logits, TransformerState(tuple(caches), state.memory_mask, state.position + 1)

    def _decoder_layers(self) -> Iterator[DecoderLayer]:
        """`decoder_layers` by their own type, which `nn.ModuleList` forgets."""
        return (cast(DecoderLayer, layer) for layer in self.decoder_layers)
