"""The Transformer (Vaswani et al. 2017), assembled from `blocks`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from dragoman.config import Field, settings
from dragoman.models.base import (
    ROW_MULTIPLE,
    AttentionMaps,
    Seq2SeqModel,
    SourceIds,
    SourceMask,
    TargetIds,
    kept_sentences,
    tied_embeddings,
)
from dragoman.models.blocks import BlockConfig, DecoderLayer, EncoderLayer, join_groups, split_groups
from dragoman.models.stacks import init_linear, shrink_residuals, stack, taken
from dragoman.nn import masks
from dragoman.nn.attention import KVCache, MultiHeadAttention
from dragoman.nn.embeddings import OutputProjection, TokenEmbedding
from dragoman.nn.kv_cache import MAX_SHARING, DecodingCache, SharedKVCache
from dragoman.nn.ssru import SSRU


@settings
class TransformerConfig(BlockConfig):
    """Sizes and variants of the Transformer. The defaults suit tens of thousands of sentence pairs."""

    type: Literal["transformer"] = "transformer"
    num_encoder_layers: int = Field(default=4, ge=1, le=1000)  #: Encoder layers.
    num_decoder_layers: int = Field(default=4, ge=1, le=1000)  #: Decoder layers.
    tie_embeddings: Literal["none", "output", "all"] = "all"
    """`output`: the target embedding is the output matrix; `all`: the source embedding too (one joint vocabulary)."""
    scale_embeddings: bool = True  #: Multiply embeddings by sqrt(d_model).
    src_end: bool = True  #: The encoder sees the `</s>` that each source ends with; OpenNMT-tf's models do not.
    output_bias: bool = False  #: A bias for each entry of the vocabulary, as in Marian.
    zero_start: bool = False  #: A translation begins from a vector of zeros, as in Marian, not from a trained `<s>`.
    alignment_head: tuple[int, int] | None = None  #: The (decoder layer, head), from 0, that links words; null: none.
    shrink_residuals: bool = False
    """Scale what each sublayer adds at the start by N^-0.5, for the N sublayers of a side: deep models learn sooner."""
    decoder_autoreg: Literal["self-attention", "rnn"] = "self-attention"
    """A decoder's reading of what it has written: `rnn` is a Simpler Simple Recurrent Unit (SSRU, Kim et al. 2019),
    whose steps cost the same at every place."""
    tied_encoder_layers: list[int] = Field(default_factory=list)  #: As `tied_layers`, for the encoder.

    def causal_attention(self) -> MultiHeadAttention:
        return SSRU(self.d_model) if self.decoder_autoreg == "rnn" else self.self_attention()  # type: ignore[return-value]

    def build(
        self, *, src_vocab_size: int, tgt_vocab_size: int, shared_vocab: bool, pad_id: int, start_id: int = 2
    ) -> "Transformer":
        """A freshly initialised model. `start_id`: `<s>`, which has that id in every vocabulary of ours.

        Raises DragomanError when sizes do not fit each other, or three-way tying meets two vocabularies.
        """
        self.check_sizes()
        src, tgt, output = tied_embeddings(
            self.tie_embeddings,
            shared_vocab,
            (src_vocab_size, tgt_vocab_size),
            self.d_model,
            pad_id,
            scaled=self.scale_embeddings,
            output_bias=self.output_bias,
        )
        if self.zero_start:
            tgt.zero_id = start_id
        model = Transformer(self, src, tgt, output)
        if self.shrink_residuals:
            shrink_residuals(model.encoder_layers)
            shrink_residuals(model.decoder_layers)
        return model


@dataclass(frozen=True)
class TransformerMemory:
    """The encoder's output for a batch."""

    hidden: Float[Tensor, "batch src_len d_model"]
    mask: Bool[Tensor, "batch src_len"]


@dataclass(frozen=True)
class TransformerState:
    """The decoder's caches, one for each layer. Rows of one sentence are neighbours, equally many for each sentence."""

    past: tuple[DecodingCache, ...]
    memory: tuple[KVCache, ...]
    memory_mask: Bool[Tensor, "sentences 1 1 src_len"]
    pads_rows: ClassVar[bool] = True

    def reorder(self, rows: Int[Tensor, " new_rows"]) -> "TransformerState":
        """Row i of the result is row `rows[i]` of this state.

        Keys and values of the memory are copied only when the set of sentences changes: a beam that reorders its
        hypotheses within sentences leaves them where they are.
        """
        kept = kept_sentences(rows, self.past[0].num_rows, self.memory_mask.size(0))
        past = tuple(layer.reorder(rows, kept) for layer in self.past)
        if kept is None:
            return TransformerState(past, self.memory, self.memory_mask)
        memory = tuple(layer.select(kept) for layer in self.memory)
        return TransformerState(past, memory, self.memory_mask.index_select(0, kept))


@final
class Transformer(Seq2SeqModel):
    """Encoder and decoder stacks over embeddings with positions. `TransformerConfig.build` assembles one."""

    reads_at_once = True

    def __init__(
        self, config: TransformerConfig, src: TokenEmbedding, tgt: TokenEmbedding, output: OutputProjection
    ) -> None:
        super().__init__()
        self.src_end, self.alignment_head = config.src_end, config.alignment_head
        self.src_embedding, self.tgt_embedding = config.positioned(src), config.positioned(tgt)
        encoder = (EncoderLayer(config) for _ in range(config.num_encoder_layers))
        decoder = (DecoderLayer(config) for _ in range(config.num_decoder_layers))
        self.encoder_layers = stack(encoder, config.tied_encoder_layers)
        self.decoder_layers = stack(decoder, config.tied_layers)
        self.encoder_norm, self.decoder_norm = config.final_norm(), config.final_norm()
        self.output = output
        self.src_vocab_size, self.tgt_vocab_size = src.embedding.num_embeddings, tgt.embedding.num_embeddings
        self.max_target_length = self.tgt_embedding.max_len
        init_linear(self, config.initialization)

    def encode(
        self,
        src: Int[Tensor, "batch src_len"],
        src_mask: Bool[Tensor, "batch src_len"],
        maps: list[Tensor] | None = None,
    ) -> TransformerMemory:
        """`maps`, when given, gets every layer's attention map appended, as in `decode`."""
        if not self.src_end:  # the last real token of each row is padding too
            src_mask = torch.cat([src_mask[:, 1:], torch.zeros_like(src_mask[:, :1])], dim=1)
        # Attention gives pads a weight of zero, but zero times NaN is NaN: so the vectors there become zeros first.
        x, padding_mask = self.src_embedding(src).masked_fill(~src_mask[:, :, None], 0.0), masks.padding_mask(src_mask)
        for _, layer in taken(self.encoder_layers):
            x = layer(x, padding_mask, maps)
        return TransformerMemory(self.encoder_norm(x), src_mask)

    def decode(
        self,
        tgt_in: Int[Tensor, "batch tgt_len"],
        memory: TransformerMemory,
        maps: list[Tensor] | None = None,
        layer_mapped: int | None = None,
    ) -> Float[Tensor, "batch tgt_len vocab"]:
        """`maps`, when given, gets the attention maps of every layer appended, or of layer `layer_mapped` alone."""
        x, memory_mask = self.tgt_embedding(tgt_in), masks.padding_mask(memory.mask)
        # No padding mask on the target: pads stand at its end, where no real position can see them anyway.
        causal_mask = masks.causal_mask(tgt_in.size(1), tgt_in.device)
        for number, layer in taken(self.decoder_layers, layer_mapped):
            x = layer(x, causal_mask, memory.hidden, memory_mask, maps if layer_mapped in (None, number) else None)
        return self.output(self.decoder_norm(x))

    def start(self, memory: TransformerMemory) -> TransformerState:
        nothing = memory.hidden[:, :0]
        return TransformerState(
            past=tuple(layer.self_attention.project_kv(nothing) for layer in self.decoder_layers),
            memory=tuple(layer.project_memory(memory.hidden) for layer in self.decoder_layers),
            memory_mask=masks.padding_mask(memory.mask),
        )

    def start_search(
        self, memory: TransformerMemory, rows_per_sentence: int, read: TargetIds | None = None
    ) -> TransformerState:
        state = self.start(memory)
        if read is not None:
            x, past = self.tgt_embedding(read), list[DecodingCache]()
            causal_mask = masks.causal_mask(read.size(1), read.device)
            for layer, cache, keys in zip(self.decoder_layers, state.past, state.memory, strict=True):
                x, caches = layer.decode_step(x, [cache], causal_mask, [(keys, state.memory_mask)])
                past += caches
            state = replace(state, past=tuple(past))
        if rows_per_sentence > MAX_SHARING:
            return state
        return replace(
            state, past=tuple(SharedKVCache.of(cache) if isinstance(cache, KVCache) else cache for cache in state.past)
        )

    def decode_step(
        self, prev: Int[Tensor, " rows"], state: TransformerState
    ) -> tuple[Float[Tensor, "rows vocab"], TransformerState]:
        return self.decode_steps([prev], [state])[0]

    def decode_steps(
        self, prevs: Sequence[Int[Tensor, " _rows"]], states: Sequence[TransformerState]
    ) -> list[tuple[Float[Tensor, "_rows vocab"], TransformerState]]:
        """Each state attends to its own past and memory; all other layers compute the rows of all states at once, and a
        few more that nobody reads, up to a multiple of ROW_MULTIPLE."""
        embedded = [
            self.tgt_embedding(prev[:, None], start=state.past[0].length)
            for prev, state in zip(prevs, states, strict=True)
        ]
        groups = [prev.size(0) for prev in prevs]  # no len() and no ceil(): an export to ONNX traces the arithmetic
        x = join_groups(embedded, sum(groups) + -sum(groups) % ROW_MULTIPLE)
        caches = []
        for i, layer in enumerate(self.decoder_layers):
            memories = [(state.memory[i], state.memory_mask) for state in states]
            x, new_caches = layer.decode_step(x, [state.past[i] for state in states], memories=memories)
            caches.append(new_caches)
        logits = split_groups(self.output(self.decoder_norm(x))[:, 0], groups)
        after = [
            TransformerState(past, state.memory, state.memory_mask)
            for past, state in zip(zip(*caches, strict=True), states, strict=True)
        ]
        return list(zip(logits, after, strict=True))

    def embeddings(self) -> dict[str, TokenEmbedding]:
        return {"src": self.src_embedding.tokens, "tgt": self.tgt_embedding.tokens}

    def attention_maps(self, src: SourceIds, src_mask: SourceMask, tgt_in: TargetIds) -> AttentionMaps:
        maps: list[Tensor] = []
        self.decode(tgt_in, self.encode(src, src_mask, maps), maps)
        names = [f"encoder.{i}.self" for i in range(len(self.encoder_layers))]
        for i, layer in enumerate(self.decoder_layers):
            own = isinstance(layer.self_attention, MultiHeadAttention)
            names += [f"decoder.{i}.{kind}" for kind in (("self", "cross") if own else ("cross",))]
        return dict(zip(names, maps, strict=True))
