"""Several searches in one batch of the model, and more of them waiting until there is room.

A search does not call the model. It is a generator: it yields the last token of each of its rows and their state, is
sent the logits and the new state, and in the end returns what it has found. So the rows of several searches can take a
step of the model together, each at its own length: when the sentences of one are done, those of a waiting one take
their place, and the batch stays full. What a row's numbers are does not depend on that, to the last bit: every group of
rows looks at keys of its own (`DecoderLayer.step`), and the layers between treat each row alike.
"""

import contextlib
import queue
from collections.abc import Generator, Sequence

import torch
from torch import Tensor

from dragoman.decoding.base import Hypothesis
from dragoman.device import side_by_side
from dragoman.models.base import DecoderState, Seq2SeqModel

Asked = tuple[Tensor, DecoderState]
"""The previous token of each row, (rows), and the state of these rows: what `Seq2SeqModel.step` takes."""
Answer = tuple[Tensor, DecoderState]
"""Logits, (rows, vocab), and the state that has seen the tokens: what it returns."""
Search = Generator[Asked, Answer, list[list[Hypothesis]]]
"""Returns the hypotheses of each of its sentences. What it asks for must not change before it is answered."""

ROOM = 256
"""A waiting search begins when fewer rows than this are left of those that have begun (docs/log.md)."""


def search_together(
    model: Seq2SeqModel, searches: Sequence[Search], device: torch.device
) -> list[list[list[Hypothesis]]]:
    """What each search returns, in their order. They begin in this order too, on a CPU on several threads.

    Dropout is off while they search, whatever mode the model is in, and the mode is put back afterwards.
    """
    results: list[list[list[Hypothesis]]] = [[] for _ in searches]
    waiting: queue.SimpleQueue[tuple[int, Search]] = queue.SimpleQueue()
    for numbered in enumerate(searches):
        waiting.put(numbered)
    was_training = model.training
    model.eval()
    try:
        side_by_side(lambda _: _work_off(model, waiting, results), searches, device, stop=lambda: _emptied(waiting))
    finally:
        model.train(was_training)
    return results


def _emptied(waiting: "queue.SimpleQueue[tuple[int, Search]]") -> None:
    with contextlib.suppress(queue.Empty):
        while True:
            waiting.get_nowait()


@torch.inference_mode()
def _work_off(
    model: Seq2SeqModel,
    waiting: "queue.SimpleQueue[tuple[int, Search]]",
    results: list[list[list[Hypothesis]]],
) -> None:
    """Take searches from `waiting` until it is empty, and put what they return into `results`."""
    going: list[tuple[int, Search, Asked]] = []
    while True:
        while sum(len(prev) for _, _, (prev, _) in going) < ROOM:
            try:
                place, search = waiting.get_nowait()
            except queue.Empty:
                break
            going += _advanced(place, search, None, results)
        if not going:
            return
        asked = [asked for _, _, asked in going]
        answers = model.step_together([prev for prev, _ in asked], [state for _, state in asked])
        going = [
            entry
            for (place, search, _), answer in zip(going, answers, strict=True)
            for entry in _advanced(place, search, answer, results)
        ]


def _advanced(
    place: int, search: Search, answer: Answer | None, results: list[list[list[Hypothesis]]]
) -> list[tuple[int, Search, Asked]]:
    """The search and what it asks for next; nothing when it is done, and then its result is in its place."""
    try:
        return [(place, search, search.send(answer) if answer is not None else next(search))]
    except StopIteration as done:
        results[place] = done.value
        return []
