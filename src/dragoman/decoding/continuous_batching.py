"""Several searches in one batch of the model, and more of them waiting until there is room.

A search does not call the model. It is a generator: it yields the last token of each of its rows and their state, is
sent the logits and the new state, and in the end returns what it has found. So the rows of several searches can take a
step of the model together, each at its own length. When the sentences of a search are done, the sentences of a waiting
search take their place, and the batch stays full. The numbers of a row do not depend on that, on a CPU to the last bit:
every group of rows attends to keys of its own (`DecoderLayer.decode_step`), and the other layers treat each row alike.
"""

import queue
import threading
from collections.abc import Generator, Sequence

import torch
from torch import Tensor

from dragoman.cancellation import check
from dragoman.decoding.base import Hypothesis
from dragoman.device import side_by_side
from dragoman.models.base import DecoderState, Seq2SeqModel

DecodeStepInput = tuple[Tensor, DecoderState]
"""The previous token of each row, (rows), and the state of these rows: what `Seq2SeqModel.decode_step` takes."""
DecodeStepOutput = tuple[Tensor, DecoderState]
"""Logits, (rows, vocab), and the state that has seen the tokens: what `Seq2SeqModel.decode_step` returns."""
Search = Generator[DecodeStepInput, DecodeStepOutput, list[list[Hypothesis]]]
"""Returns the hypotheses of each of its sentences. The tokens and state that it yields must not change before the
answer."""

MAX_ROWS_IN_FLIGHT = 256
"""A waiting search begins when the searches under way have fewer rows than this (benchmarks/log/2026-11.md,
"2026-11-22: waiting sentences take the places of finished ones after all")."""
MAX_SEARCHES_IN_FLIGHT = 8
"""Searches under way on each thread, at most: a few rows of long sentences take much memory."""


def search_together(
    model: Seq2SeqModel, searches: Sequence[Search], device: torch.device
) -> list[list[list[Hypothesis]]]:
    """The results of the searches, in their order. They begin in this order too, on a CPU on several threads.

    Dropout is off while they search, whatever mode the model is in, and the mode is put back afterwards.
    """
    results: list[list[list[Hypothesis]]] = [[] for _ in searches]
    waiting: queue.SimpleQueue[tuple[int, Search]] = queue.SimpleQueue()
    for numbered in enumerate(searches):
        waiting.put(numbered)
    stopped = threading.Event()

    def work_off(_: Search) -> None:
        try:
            _work_off(model, waiting, results, stopped)
        except BaseException:
            stopped.set()  # the other threads need not go on
            raise

    was_training = model.training
    model.eval()
    try:
        side_by_side(work_off, searches, device, stop=stopped.set)
    finally:
        model.train(was_training)
    return results


@torch.inference_mode()
def _work_off(
    model: Seq2SeqModel,
    waiting: "queue.SimpleQueue[tuple[int, Search]]",
    results: list[list[list[Hypothesis]]],
    stopped: threading.Event,
) -> None:
    """Take searches from `waiting` until it is empty, and put what they return into `results`."""
    going: list[tuple[int, Search]] = []
    requests: list[DecodeStepInput] = []

    def go_on(place: int, search: Search, answer: DecodeStepOutput | None) -> None:
        try:
            requests.append(search.send(answer) if answer is not None else next(search))
            going.append((place, search))
        except StopIteration as done:
            results[place] = done.value

    while not stopped.is_set():
        check()
        while len(going) < MAX_SEARCHES_IN_FLIGHT and sum(len(prev) for prev, _ in requests) < MAX_ROWS_IN_FLIGHT:
            try:
                go_on(*waiting.get_nowait(), None)
            except queue.Empty:
                break
        if not going:
            return
        answers = model.decode_steps([prev for prev, _ in requests], [state for _, state in requests])
        # The states of before are not held while the searches reorder the new ones.
        before, going, requests = going, [], []
        for place, search in before:
            go_on(place, search, answers.pop(0))
