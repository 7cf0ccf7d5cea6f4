"""The rows of a search: which sentence each row holds, how many rows are looked at together, the best columns of each
row, and the error where a row has none."""

import math

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from dragoman.errors import DragomanError, Error
from dragoman.models.base import ROW_MULTIPLE

ROWS_AT_ONCE = 64
"""Rows whose log probabilities are computed together."""


class Slots:
    """Which sentence sits in which slot of a batch that shrinks as sentences are done.

    Each slot is a group of `rows_per_slot` rows of the model's batch. The slots of done sentences are given up, except
    for as many as it takes to keep a multiple of ROW_MULTIPLE rows, unless the model sees to that
    (`DecoderState.pads_rows`); to that end `padding_slots` slots at the end hold no sentence from the beginning.
    """

    CLOSED = -1

    def __init__(self, num_sentences: int, rows_per_slot: int, padding_slots: int = 0, pads_rows: bool = False) -> None:
        self.pads_rows = pads_rows
        self.sentences = [*range(num_sentences), *[self.CLOSED] * padding_slots]
        self.rows_per_slot = rows_per_slot

    def of_rows(self) -> list[int]:
        """The sentence of each row of the model's batch, -1 where there is none."""
        return [sentence for sentence in self.sentences for _ in range(self.rows_per_slot)]

    def close(self, done: list[bool]) -> list[tuple[int, int]]:
        """Close the slots whose sentence is done: their (slot, sentence), each sentence once."""
        closed = [(slot, s) for slot, s in enumerate(self.sentences) if done[slot] and s != self.CLOSED]
        for slot, _ in closed:
            self.sentences[slot] = self.CLOSED
        return closed

    def shrink(self) -> list[int]:
        """Give up closed slots: the slots that stay, ascending, by their old numbers; empty when all are closed."""
        is_open = [s != self.CLOSED for s in self.sentences]
        if not any(is_open):
            self.sentences = []
            return []
        padding_slots = 0 if self.pads_rows else padded(sum(is_open), self.rows_per_slot) - sum(is_open)
        closed = [slot for slot, value in enumerate(is_open) if not value][:padding_slots]
        kept = sorted([slot for slot, value in enumerate(is_open) if value] + closed)
        self.sentences = [self.sentences[slot] for slot in kept]
        return kept


def padded(num_slots: int, rows_per_slot: int) -> int:
    """`num_slots` or a few more: so many that their rows are a multiple of ROW_MULTIPLE.

    >>> padded(1, rows_per_slot=5), padded(7, rows_per_slot=4), padded(7, rows_per_slot=1)
    (8, 8, 8)
    """
    multiple = ROW_MULTIPLE // math.gcd(ROW_MULTIPLE, rows_per_slot)
    return math.ceil(num_slots / multiple) * multiple


def rows_at_once(logits: Float[Tensor, "rows vocab"]) -> int:
    """Number of rows to look at together; all of them on a GPU."""
    return ROWS_AT_ONCE if logits.device.type == "cpu" else logits.size(0)


def top_columns(
    values: Float[Tensor, "rows columns"], k: int, chunk: int = 64
) -> tuple[Float[Tensor, "rows k"], Int[Tensor, "rows k"]]:
    """The k largest of each row and their columns, in no order: `topk`, by way of the maxima of chunks of columns.

    The k largest stand in the k chunks with the largest maxima, and maxima are found eight times as fast on a CPU as
    `topk` finds anything, which over a whole vocabulary takes as long as the output layer (benchmarks/log/2026-11.md,
    "translation twice as fast").
    """
    rows, columns = values.shape
    if columns < 2 * k * chunk or values.device.type != "cpu":
        top = values.topk(k, dim=1, sorted=False)
        return top.values, top.indices
    extra = -columns % chunk
    chunks = (functional.pad(values, (0, extra), value=-math.inf) if extra else values).view(rows, -1, chunk)
    best = chunks.amax(dim=2).topk(k, dim=1, sorted=False).indices  # (rows, k)
    candidates = chunks.gather(1, best[:, :, None].expand(-1, -1, chunk)).flatten(1)  # (rows, k * chunk)
    top = candidates.topk(k, dim=1, sorted=False)
    # Where a row has fewer than k finite values, what fills up may be a column that is not there.
    return top.values, (best.gather(1, top.indices // chunk) * chunk + top.indices % chunk).clamp_(max=columns - 1)


class FoundNothing(DragomanError):
    """A search has no hypothesis for a sentence, told by its place in the batch."""

    def __init__(self, code: Error, sentence: int, why: str) -> None:
        super().__init__(code, f"sentence {sentence + 1} of the batch: {why}")
        self.sentence, self.why = sentence, why


def check_finite(log_prob: float, sentence: int) -> None:
    """Refuse a hypothesis that has no probability.

    Raises DragomanError: NaN comes of a model whose logits are NaN or infinite, minus infinity of rules that forbid
    every token.
    """
    if log_prob == -math.inf:
        raise FoundNothing(
            Error.SEARCH_FAILED,
            sentence,
            "the rules of the search leave no next token (no_repeat_ngram, min_length, ban_unk, a prefix, or phrases "
            "to avoid): lift one of them",
        )
    if not math.isfinite(log_prob):
        raise FoundNothing(
            Error.DIVERGED,
            sentence,
            "the model gives no token a finite probability (NaN or infinite logits); its training diverged or the "
            "checkpoint is damaged: try an earlier checkpoint",
        )
