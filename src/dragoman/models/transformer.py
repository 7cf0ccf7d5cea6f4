"""The Transformer (Vaswani et al. 2017), assembled from `blocks`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dragoman.config import Field, settings
from dragoman.errors import DragomanError
from dragoman.models.base import Seq2SeqModel
from dragoman.models.blocks import (
    BlockConfig,
    DecoderLayer,
    EncoderLayer,
    LayerCache,
    PositionedEmbedding,
    init_linear,
)
from dragoman.nn.embeddings import OutputProjection, TokenEmbedding
from dragoman.nn.masks import key_mask, subsequent_mask


@settings
class TransformerConfig(BlockConfig):
    """Sizes and variants of the Transformer. The defaults suit tens of thousands of sentence pairs."""

    type: Literal["transformer"] = "transformer"
    num_encoder_layers: int = Field(default=4, ge=1)
    num_decoder_layers: int = Field(default=4, ge=1)
    tie_embeddings: Literal["none", "output", "all"] = "all"
    """`output`: the target embedding is the output matrix; `all`: the source embedding too (one joint vocabulary)."""
    scale_embeddings: bool = True

    def build(self, *, src_vocab_size: int, tgt_vocab_size: int, shared_vocab: bool, pad_id: int) -> "Transformer":
        """A freshly initialised model.

        Raises DragomanError when sizes do not fit each other, or three-way tying meets two vocabularies.
        """
        self.check_sizes()
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
            src_embedding=self.positioned(src_embedding),
            tgt_embedding=self.positioned(tgt_embedding),
            encoder_layers=[EncoderLayer(self) for _ in range(self.num_encoder_layers)],
            decoder_layers=[DecoderLayer(self) for _ in range(self.num_decoder_layers)],
            encoder_norm=self.final_norm(),
            decoder_norm=self.final_norm(),
            output=output,
            src_vocab_size=src_vocab_size,
            tgt_vocab_size=tgt_vocab_size,
        )


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
        init_linear(self)

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
