"""The interface of every translation model.

Search, scoring and training call `encode`, `decode`, `start`, `decode_step`, `decode_steps` and `reorder`, whatever the
model's family; exports and fast implementations know the families. `decode_step` must equal `decode` position by
position: `tests/contracts` holds every family to it.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dragoman.errors import Error
from dragoman.nn.embeddings import OutputProjection, TokenEmbedding

ROW_MULTIPLE = 8
"""The encoder and every step multiply a multiple of this many vectors. With others a CPU's products may round the last
vectors differently (measured in float32), and a translation would depend on what is translated beside it."""


SourceIds = Int[Tensor, "batch src_len"]
SourceMask = Bool[Tensor, "batch src_len"]
TargetIds = Int[Tensor, "batch tgt_len"]
AttentionMaps = dict[str, Float[Tensor, "batch num_heads query_len key_len"]]


@runtime_checkable
class DecoderState(Protocol):
    """A decoder's memory of its past tokens: key/value caches, or h and c. Immutable from outside."""

    @property
    def pads_rows(self) -> bool:
        """True if `decode_steps` makes the rows of all states together up to a multiple of ROW_MULTIPLE; else each
        state has to have such a number of rows by itself."""
        ...

    def reorder(self, rows: Int[Tensor, " new_rows"]) -> "DecoderState":
        """The state whose row i is this state's row `rows[i]`: select beams, expand or drop sentences."""
        ...


def kept_sentences(
    rows: Int[Tensor, " new_rows"], num_rows: int, num_sentences: int
) -> Int[Tensor, " new_sentences"] | None:
    """The sentences whose memories a state needs after `reorder(rows)`; None if they stay the same (nothing to copy).

    Rows of one sentence are neighbours, equally many for each sentence, and share one memory. If the new groups are
    unequal, each row gets a memory of its own.
    """
    sentence_of = (rows // (num_rows // num_sentences)).tolist()  # the one place where a decode step waits for the GPU
    groups = [(sentence, len(list(group))) for sentence, group in itertools.groupby(sentence_of)]
    equal = len({size for _, size in groups}) == 1
    kept = [sentence for sentence, _ in groups] if equal else sentence_of
    return None if kept == list(range(num_sentences)) else torch.tensor(kept, device=rows.device)


class Seq2SeqModel(nn.Module, ABC):
    """An encoder-decoder. Abstract; each family is final.

    `src_mask` is True where there is a real token (`nn/masks.py`). All methods return logits, never probabilities,
    and never a loss. Dropout follows `train()`/`eval()` and nothing else depends on them.
    """

    src_vocab_size: int
    tgt_vocab_size: int
    max_target_length: int | None = None
    """Limit of target tokens, `</s>` included, that every search keeps; None: no limit. [tokens]"""
    reads_at_once: bool = False  #: True if `encode` and `start_search` multiply all positions at once, not row by row.
    alignment_head: tuple[int, int] | None = None  #: The (decoder layer, head) that was trained to align, if any was.

    @abstractmethod
    def encode(self, src: Int[Tensor, "batch src_len"], src_mask: Bool[Tensor, "batch src_len"]) -> Any:
        """Read the source. Returns the family's own `Memory`, which `decode` and `start` take."""

    @abstractmethod
    def decode(self, tgt_in: Int[Tensor, "batch tgt_len"], memory: Any) -> Float[Tensor, "batch tgt_len vocab"]:
        """Teacher forcing: logits of the next token after every prefix of `tgt_in` (which begins with `<s>`)."""

    @abstractmethod
    def start(self, memory: Any) -> DecoderState:
        """The state before the first token: one row for each sentence of `memory`."""

    def start_search(self, memory: Any, rows_per_sentence: int, read: TargetIds | None = None) -> DecoderState:
        """Initial state of a search with `rows_per_sentence` hypotheses, one row for each sentence so far.

        A family may return a state that is cheaper to reorder than the state of `start`. `read`: tokens that stand
        before every hypothesis, equally many of each sentence, `<s>` first; a family may read them all at once.
        """
        state = self.start(memory)
        for prev in () if read is None else read.unbind(dim=1):
            _, state = self.decode_step(prev, state)
        return state

    @abstractmethod
    def decode_step(self, prev: Int[Tensor, " rows"], state: Any) -> tuple[Float[Tensor, "rows vocab"], Any]:
        """Logits of the token after `prev`, and the state that includes `prev`. `state` itself is not changed."""

    def decode_steps(
        self, prevs: Sequence[Int[Tensor, " _rows"]], states: Sequence[Any]
    ) -> list[tuple[Float[Tensor, "_rows vocab"], Any]]:
        """`decode_step` for several states with targets of different lengths and sources of different widths.

        One after the other, unless a family has a cheaper way. The results are the same.
        """
        return [self.decode_step(prev, state) for prev, state in zip(prevs, states, strict=True)]

    def forward(
        self, src: SourceIds, src_mask: SourceMask, tgt_in: TargetIds, maps: list[Tensor] | None = None
    ) -> Float[Tensor, "batch tgt_len vocab"]:
        """Logits for training: `decode(tgt_in, encode(src, src_mask))`. `maps`, if given, gets the attention maps of
        the layer of `alignment_head` appended, self before cross."""
        memory, head = self.encode(src, src_mask), self.alignment_head
        return self.decode(tgt_in, memory, *(() if maps is None or head is None else (maps, head[0])))

    def embeddings(self) -> dict[str, TokenEmbedding]:
        """Token embeddings by `src` and `tgt` (the same one if tied), to be initialised with pretrained vectors."""
        return {}

    def attention_maps(self, src: SourceIds, src_mask: SourceMask, tgt_in: TargetIds) -> AttentionMaps:
        """Attention weights of every attention during `forward`, by name and in order, such as "decoder.2.cross".

        Rows are queries and sum to 1; a masked key has 0. These are the weights before attention dropout; call in eval
        mode, because all other dropout acts in training mode. A family without attention has no maps.
        """
        return {}

    def alignment(self, src: SourceIds, src_mask: SourceMask, tgt_in: TargetIds) -> Tensor | None:
        """The map that aligns target with source best, (batch, tgt_len, src_len): the map of `alignment_head` at the
        position that reads the token, or else the mean over the heads of the last layer but one (Garg et al. 2019,
        section 5.1). None for a model without attention to the source."""
        maps = self.attention_maps(src, src_mask, tgt_in)
        layers = [weights for name, weights in maps.items() if name.endswith(".cross")]
        if self.alignment_head is None or not layers:
            return layers[max(len(layers) - 2, 0)].mean(dim=1) if layers else None
        weights = layers[self.alignment_head[0]][:, self.alignment_head[1]]
        return torch.cat([weights[:, 1:], weights[:, -1:]], dim=1)


def tied_embeddings(
    tie: str,
    shared_vocab: bool,
    vocab_sizes: tuple[int, int],
    d_model: int,
    pad_id: int,
    *,
    scaled: bool = True,
    output_bias: bool = False,
) -> tuple[TokenEmbedding, TokenEmbedding, OutputProjection]:
    """The embeddings of source and target and the output matrix, which `tie` makes one: "none", "output" or "all".

    Raises DragomanError when three-way tying meets two vocabularies.
    """
    if tie == "all" and not shared_vocab:
        raise Error.WRONG_SETTING(
            "model.tie_embeddings: all needs one joint vocabulary; with `tokenizer: {type: separate}` use `output`"
        )
    src = TokenEmbedding(vocab_sizes[0], d_model, pad_id, scaled)
    tgt = src if tie == "all" else TokenEmbedding(vocab_sizes[1], d_model, pad_id, scaled)
    return src, tgt, OutputProjection(vocab_sizes[1], d_model, None if tie == "none" else tgt, output_bias)


def count_parameters(model: nn.Module) -> int:
    """Trained numbers; a matrix that several modules share counts once."""
    return sum(parameter.numel() for parameter in model.parameters())
