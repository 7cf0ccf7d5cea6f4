"""Recurrent models: without attention (Sutskever, Vinyals and Le 2014) and with it (Bahdanau et al. 2015)."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dragoman.config import Field, OneOf, settings
from dragoman.errors import Error
from dragoman.models.base import (
    AttentionMaps,
    Seq2SeqModel,
    SourceIds,
    SourceMask,
    TargetIds,
    kept_sentences,
    tied_embeddings,
)
from dragoman.models.stacks import init_linear
from dragoman.nn.dropout import Dropout
from dragoman.nn.embeddings import OutputProjection, TokenEmbedding
from dragoman.nn.recurrent import CELLS, RecurrentEncoder, RecurrentStack, StackState
from dragoman.nn.recurrent_attention import SCORES, RecurrentAttention


@settings
class RecurrentConfig:
    """Sizes and variants of the recurrent models. The defaults suit tens of thousands of sentence pairs."""

    type: Literal["recurrent"] = "recurrent"
    cell: Annotated[str, OneOf(CELLS)] = "lstm"  #: Recurrent cell.
    d_embedding: int = Field(default=256, ge=1, le=2**16)
    """Size of embeddings and of the decoder's readout, the output matrix's input. [features]"""
    d_model: int = Field(default=256, ge=1, le=2**16)
    """Size of the decoder's state and the encoder's memory (both directions joined). [features]"""
    num_encoder_layers: int = Field(default=1, ge=1, le=1000)  #: Encoder layers.
    num_decoder_layers: int = Field(default=1, ge=1, le=1000)  #: Decoder layers.
    bidirectional: bool = True  #: Read the source in both directions.
    attention: Annotated[str, OneOf(["none"], SCORES)] = "additive"
    """`none`: the decoder knows the source by the encoder's last state alone."""
    input_feeding: bool = False
    """Feed the decoder its last readout with the next token (Luong et al. 2015, section 3.3)."""
    dropout: float = Field(default=0.3, ge=0, lt=1)
    """After embeddings, between layers and before the output projection."""
    tie_embeddings: Literal["none", "output", "all"] = "all"
    """`output`: the target embedding is the output matrix; `all`: the source embedding too (one joint vocabulary)."""

    def build(self, *, src_vocab_size: int, tgt_vocab_size: int, shared_vocab: bool, pad_id: int) -> "Recurrent":
        """A freshly initialised model.

        Raises DragomanError when settings do not fit each other, or three-way tying meets two vocabularies.
        """
        if self.bidirectional and self.d_model % 2:
            raise Error.WRONG_SETTING(
                f"model.d_model ({self.d_model}) must be even with model.bidirectional: each direction has half of it"
            )
        if self.input_feeding and self.attention == "none":
            raise Error.WRONG_SETTING(
                "model.input_feeding feeds the attention's context back", "choose a model.attention, or leave it false"
            )
        # Scaled to components of size 1, as gates like their input: the matrix may be the output's too.
        src, tgt, output = tied_embeddings(
            self.tie_embeddings, shared_vocab, (src_vocab_size, tgt_vocab_size), self.d_embedding, pad_id, scaled=True
        )
        return Recurrent(self, src, tgt, output)

    def encoder(self) -> RecurrentEncoder:
        return RecurrentEncoder(
            self.cell,
            self.d_embedding,
            self.d_model,
            self.num_encoder_layers,
            bidirectional=self.bidirectional,
            dropout=self.dropout,
        )

    def decoder(self) -> "RecurrentDecoder | AttentionalDecoder":
        layers = RecurrentStack(
            self.cell, self.d_embedding, self.d_model, self.num_decoder_layers, dropout=self.dropout
        )
        if self.attention == "none":
            return RecurrentDecoder(layers, self.d_embedding, self.d_model)
        attention = SCORES[self.attention](self.d_model)
        return AttentionalDecoder(layers, attention, self.d_embedding, self.d_model, input_feeding=self.input_feeding)


@dataclass(frozen=True)
class RecurrentMemory:
    """The encoder's output for a batch: the top layer's state at every position, every layer's state at the last."""

    hidden: Float[Tensor, "batch src_len d_model"]
    mask: Bool[Tensor, "batch src_len"]
    last: StackState


@dataclass(frozen=True)
class Attended:
    """Keys and values of a decoder's attention, once for each sentence whatever its number of rows."""

    keys: Float[Tensor, "sentences src_len d_key"]
    hidden: Float[Tensor, "sentences src_len d_model"]
    mask: Bool[Tensor, "sentences src_len"]

    def reorder(self, rows: Int[Tensor, " new_rows"], num_rows: int) -> "Attended":
        """For the rows `rows` of `num_rows`. Nothing is copied as long as the sentences stay the same."""
        kept = kept_sentences(rows, num_rows, self.mask.size(0))
        if kept is None:
            return self
        return Attended(*(tensor.index_select(0, kept) for tensor in (self.keys, self.hidden, self.mask)))


@dataclass(frozen=True)
class RecurrentState:
    """The decoder's state. Rows of one sentence are neighbours, equally many for each sentence."""

    layers: StackState
    readout: Float[Tensor, "rows d_embedding"] | None = None
    """The last readout, with input feeding."""
    attended: Attended | None = None
    """None without attention."""
    pads_rows: ClassVar[bool] = False

    def reorder(self, rows: Int[Tensor, " new_rows"]) -> "RecurrentState":
        """Row i of the result is row `rows[i]` of this state."""
        return RecurrentState(
            tuple(tuple(part.index_select(0, rows) for part in layer) for layer in self.layers),
            None if self.readout is None else self.readout.index_select(0, rows),
            None if self.attended is None else self.attended.reorder(rows, self.layers[0][0].size(0)),
        )


class Bridge(nn.Module):
    """The decoder's first states from the encoder's last: unchanged if both have as many layers.

    Otherwise one linear map takes all layers to all layers, followed by tanh for hidden states.
    """

    def __init__(self, cell: str, d_model: int, num_encoder_layers: int, num_decoder_layers: int) -> None:
        super().__init__()
        sizes = num_encoder_layers * d_model, num_decoder_layers * d_model
        self.num_decoder_layers = num_decoder_layers
        self.maps = nn.ModuleList(nn.Linear(*sizes) for _ in range(CELLS[cell].num_parts) if sizes[0] != sizes[1])

    def forward(self, last: StackState) -> StackState:
        if not self.maps:
            return last
        joined = [torch.cat(part, dim=-1) for part in zip(*last, strict=True)]  # all layers' h, all layers' c
        # Under autocast a product is bfloat16; the state, a sum over many steps, stays in float32.
        hidden, *cells = [linear(part).to(part.dtype) for linear, part in zip(self.maps, joined, strict=True)]
        parts = [part.chunk(self.num_decoder_layers, dim=-1) for part in (hidden.tanh(), *cells)]
        return tuple(zip(*parts, strict=True))


class RecurrentDecoder(nn.Module):
    """A decoder that knows the source by its first state alone.

    The readout of a position, the output projection's input, is tanh(W [h; e]) of its state and its embedding (Pascanu
    et al. 2014).
    """

    def __init__(self, layers: RecurrentStack, d_embedding: int, d_model: int) -> None:
        super().__init__()
        self.layers = layers
        self.readout = nn.Linear(d_model + d_embedding, d_embedding)

    def start(self, layers: StackState, memory: RecurrentMemory) -> RecurrentState:
        return RecurrentState(layers)

    def unroll(
        self, embedded: Float[Tensor, "rows len d_embedding"], state: RecurrentState
    ) -> tuple[Float[Tensor, "rows len d_embedding"], None]:
        """(readouts, no attention weights) of all positions at once."""
        hidden, _ = self.layers(embedded, state.layers)
        return self.readout(torch.cat([hidden, embedded], dim=-1)).tanh(), None

    def decode_step(
        self, embedded: Float[Tensor, "rows d_embedding"], state: RecurrentState
    ) -> tuple[Float[Tensor, "rows d_embedding"], RecurrentState]:
        hidden, layers = self.layers.next_state(self.layers.project_input(embedded), state.layers)
        return self.readout(torch.cat([hidden, embedded], dim=-1)).tanh(), RecurrentState(layers)


class AttentionalDecoder(nn.Module):
    """A decoder that attends to the source before each token (Bahdanau et al. 2015).

    The query is its last state. The cell reads the context with the embedding, and the readout is
    tanh(W [h; context; e]).
    """

    def __init__(
        self,
        layers: RecurrentStack,
        attention: RecurrentAttention,
        d_embedding: int,
        d_model: int,
        *,
        input_feeding: bool,
    ) -> None:
        super().__init__()
        self.layers, self.attention, self.input_feeding = layers, attention, input_feeding
        # W [e; context] = W_e e + W_c context. Two matrices, because only the second depends on the state before.
        d_fed = d_model + (d_embedding if input_feeding else 0)
        self.context_proj = nn.Linear(d_fed, layers.num_gates * d_model, bias=False)
        self.readout = nn.Linear(d_model + d_model + d_embedding, d_embedding)

    def start(self, layers: StackState, memory: RecurrentMemory) -> RecurrentState:
        """Luong et al. feed zeros before the first token."""
        zeros = memory.hidden.new_zeros(memory.hidden.size(0), self.readout.out_features)
        attended = Attended(self.attention.project_keys(memory.hidden), memory.hidden, memory.mask)
        return RecurrentState(layers, zeros if self.input_feeding else None, attended)

    def unroll(
        self, embedded: Float[Tensor, "rows len d_embedding"], state: RecurrentState
    ) -> tuple[Float[Tensor, "rows len d_embedding"], Float[Tensor, "rows len src_len"]]:
        """(readouts, attention weights) of all positions, one after the other."""
        readouts, weights = [], []
        for at_position in zip(embedded.unbind(1), self.layers.project_input(embedded).unbind(1), strict=True):
            readout, row, state = self._advance(*at_position, state)
            readouts.append(readout)
            weights.append(row)
        return torch.stack(readouts, dim=1), torch.stack(weights, dim=1)

    def decode_step(
        self, embedded: Float[Tensor, "rows d_embedding"], state: RecurrentState
    ) -> tuple[Float[Tensor, "rows d_embedding"], RecurrentState]:
        readout, _, state = self._advance(embedded, self.layers.project_input(embedded), state)
        return readout, state

    def _advance(
        self,
        embedded: Float[Tensor, "rows d_embedding"],
        projected: Float[Tensor, "rows gates"],
        state: RecurrentState,
    ) -> tuple[Float[Tensor, "rows d_embedding"], Float[Tensor, "rows src_len"], RecurrentState]:
        attended, query = state.attended, state.layers[-1][0]  # the top layer's h
        assert attended is not None
        # Rows of one sentence are neighbours: they become queries to its one memory.
        grouped = query.view(attended.mask.size(0), -1, query.size(-1))  # (sentences, rows per sentence, d_model)
        contexts, weights = self.attention.attend(grouped, attended.keys, attended.hidden, attended.mask)
        context = contexts.flatten(0, 1)  # (rows, d_model)
        fed = context if state.readout is None else torch.cat([context, state.readout], dim=-1)
        hidden, layers = self.layers.next_state(projected + self.context_proj(fed), state.layers)
        readout = self.readout(torch.cat([hidden, context, embedded], dim=-1)).tanh()
        after = replace(state, layers=layers, readout=readout if self.input_feeding else None)
        return readout, weights.flatten(0, 1), after


@final
class Recurrent(Seq2SeqModel):
    """A recurrent encoder and decoder. `RecurrentConfig.build` assembles one."""

    def __init__(
        self, config: RecurrentConfig, src: TokenEmbedding, tgt: TokenEmbedding, output: OutputProjection
    ) -> None:
        super().__init__()
        self.src_embedding, self.tgt_embedding = src, tgt
        self.encoder = config.encoder()
        self.bridge = Bridge(config.cell, config.d_model, config.num_encoder_layers, config.num_decoder_layers)
        self.decoder = config.decoder()
        self.output = output
        self.dropout = Dropout(config.dropout)
        self.src_vocab_size, self.tgt_vocab_size = src.embedding.num_embeddings, tgt.embedding.num_embeddings
        init_linear(self)

    def encode(self, src: Int[Tensor, "batch src_len"], src_mask: Bool[Tensor, "batch src_len"]) -> RecurrentMemory:
        hidden, last = self.encoder(self.dropout(self.src_embedding(src)), src_mask)
        return RecurrentMemory(hidden, src_mask, last)

    def decode(
        self, tgt_in: Int[Tensor, "batch tgt_len"], memory: RecurrentMemory
    ) -> Float[Tensor, "batch tgt_len vocab"]:
        readouts, _ = self._unroll(tgt_in, memory)
        return self.output(self.dropout(readouts))

    def start(self, memory: RecurrentMemory) -> RecurrentState:
        return self.decoder.start(self.bridge(memory.last), memory)

    def decode_step(
        self, prev: Int[Tensor, " rows"], state: RecurrentState
    ) -> tuple[Float[Tensor, "rows vocab"], RecurrentState]:
        readout, state = self.decoder.decode_step(self.dropout(self.tgt_embedding(prev)), state)
        return self.output(self.dropout(readout)), state

    def embeddings(self) -> dict[str, TokenEmbedding]:
        return {"src": self.src_embedding, "tgt": self.tgt_embedding}

    def attention_maps(self, src: SourceIds, src_mask: SourceMask, tgt_in: TargetIds) -> AttentionMaps:
        """Attention weights of each target position, for the token after it; none without attention."""
        _, weights = self._unroll(tgt_in, self.encode(src, src_mask))
        return {} if weights is None else {"decoder.cross": weights[:, None]}

    def _unroll(
        self, tgt_in: Int[Tensor, "batch tgt_len"], memory: RecurrentMemory
    ) -> tuple[Float[Tensor, "batch tgt_len d_embedding"], Float[Tensor, "batch tgt_len src_len"] | None]:
        """(readouts, attention weights) at all target positions."""
        return self.decoder.unroll(self.dropout(self.tgt_embedding(tgt_in)), self.start(memory))
