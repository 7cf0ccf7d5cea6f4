"""The slots of a batch that shrinks as sentences are done."""

import math

from dragoman.models.base import ROW_MULTIPLE


class Slots:
    """Which sentence sits in which slot of a batch that shrinks as sentences are done.

    Each slot is a group of `rows_per_slot` rows of the model's batch. The slots of done sentences are given up, except
    for as many as it takes to keep a multiple of ROW_MULTIPLE rows, unless the model sees to that
    (`DecoderState.fills_up`); to that end `spare` slots at the end hold no sentence from the beginning.
    """

    CLOSED = -1

    def __init__(self, num_sentences: int, rows_per_slot: int, spare: int = 0, fills_up: bool = False) -> None:
        self.fills_up = fills_up
        self.sentences = [*range(num_sentences), *[self.CLOSED] * spare]
        self.rows_per_slot = rows_per_slot

    def of_rows(self) -> list[int]:
        """The sentence of each row of the model's batch, -1 where there is none."""
        return [sentence for sentence in self.sentences for _ in range(self.rows_per_slot)]

    def close(self, done: list[bool]) -> list[tuple[int, int]]:
        """Close the slots whose sentence is done: their (slot, sentence), each sentence once."""
        found = [(slot, s) for slot, s in enumerate(self.sentences) if done[slot] and s != self.CLOSED]
        for slot, _ in found:
            self.sentences[slot] = self.CLOSED
        return found

    def shrink(self) -> list[int]:
        """Give up closed slots: the slots that stay, ascending, by their old numbers; empty when all are closed."""
        is_open = [s != self.CLOSED for s in self.sentences]
        if not any(is_open):
            self.sentences = []
            return []
        spare = 0 if self.fills_up else padded(sum(is_open), self.rows_per_slot) - sum(is_open)
        closed = [slot for slot, value in enumerate(is_open) if not value][:spare]
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
