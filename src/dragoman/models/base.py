"""The one interface behind which every translation model stands.

Search, scoring, training and export call `encode`, `decode`, `start`, `step` (of several at once: `step_together`) and
`reorder` and never ask which family a model is of. `step` must equal `decode` position by position; `tests/contracts`
says so for every family.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dragoman.nn.embeddings import TokenEmbedding


@runtime_checkable
class DecoderState(Protocol):
    """What a decoder remembers between steps: key/value caches, or h and c. Immutable from outside."""

    def reorder(self, rows: Int[Tensor, " new_rows"]) -> "DecoderState":
        """The state whose row i is this state's row `rows[i]`: select beams, expand or drop sentences."""
        ...


def kept_sentences(
    rows: Int[Tensor, " new_rows"], num_rows: int, num_sentences: int
) -> Int[Tensor, " new_sentences"] | None:
    """Which sentences' memories a state needs after `reorder(rows)`; None: those that it has, so nothing is copied.

    Rows of one sentence stand together, equally many for each, and share one memory. Where the new groups are unequal,
    each row gets a memory of its own.
    """
    sentence_of = (rows // (num_rows // num_sentences)).tolist()  # the only time that a step waits here for a GPU
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
    """Tokens that a target may have with its `</s>`; None: as many as one likes. A search goes no further."""

    @abstractmethod
    def encode(self, src: Int[Tensor, "batch src_len"], src_mask: Bool[Tensor, "batch src_len"]) -> Any:
        """Read the source: the family's own `Memory`, which `decode` and `start` take."""

    @abstractmethod
    def decode(self, tgt_in: Int[Tensor, "batch tgt_len"], memory: Any) -> Float[Tensor, "batch tgt_len vocab"]:
        """Teacher forcing: logits of the next token after every prefix of `tgt_in` (which begins with `<s>`)."""

    @abstractmethod
    def start(self, memory: Any) -> DecoderState:
        """The state before the first token: one row for each sentence of `memory`."""

    def start_search(self, memory: Any, rows_per_sentence: int) -> DecoderState:
        """The state that a search with so many hypotheses a sentence begins with, as yet one row for each sentence:
        that of `start`, unless a family has one that is cheaper to reorder."""
        return self.start(memory)

    @abstractmethod
    def step(self, prev: Int[Tensor, " rows"], state: Any) -> tuple[Float[Tensor, "rows vocab"], Any]:
        """One token on: logits after `prev`, and the state that has seen it. `state` itself is not changed."""

    def step_together(
        self, prevs: Sequence[Int[Tensor, " _rows"]], states: Sequence[Any]
    ) -> list[tuple[Float[Tensor, "_rows vocab"], Any]]:
        """`step` for several states at once, which may have come to different lengths and read sources of different
        widths: one after the other, unless a family has a cheaper way. The results are the same."""
        return [self.step(prev, state) for prev, state in zip(prevs, states, strict=True)]

    def forward(
        self,
        src: Int[Tensor, "batch src_len"],
        src_mask: Bool[Tensor, "batch src_len"],
        tgt_in: Int[Tensor, "batch tgt_len"],
    ) -> Float[Tensor, "batch tgt_len vocab"]:
        """Logits for training: `decode(tgt_in, encode(src, src_mask))`."""
        return self.decode(tgt_in, self.encode(src, src_mask))

    def embeddings(self) -> dict[str, TokenEmbedding]:
        """The embeddings of `src` and `tgt` by these names (where they are tied, the same one), to begin from vectors
        made elsewhere. A family that embeds no words has none."""
        return {}

    def attention_maps(
        self,
        src: Int[Tensor, "batch src_len"],
        src_mask: Bool[Tensor, "batch src_len"],
        tgt_in: Int[Tensor, "batch tgt_len"],
    ) -> dict[str, Float[Tensor, "batch num_heads query_len key_len"]]:
        """Where each position looked while `forward` ran: the weights of every attention, by its name, in order.

        Rows are queries and sum to 1; a masked key has 0. Names are the family's own, such as "encoder.0.self" and
        "decoder.2.cross". Weights are those before dropout; in training mode the layers below have had theirs, so call
        it in eval mode. A family without attention has no maps.
        """
        return {}


def cross_map(
    maps: Mapping[str, Float[Tensor, "batch num_heads query_len key_len"]],
) -> Float[Tensor, "batch tgt_len src_len"] | None:
    """Of a model's attention maps the one that tells where in the source it is: the mean of the heads of one layer.

    Of several layers the last but one, which knows it best (Garg et al. 2019, "Jointly Learning to Align and Translate
    with Transformer Models", section 5.1). None for a model without attention.
    """
    layers = [weights for name, weights in maps.items() if name.endswith(".cross")]
    return layers[max(len(layers) - 2, 0)].mean(dim=1) if layers else None
