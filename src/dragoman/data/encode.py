"""Pairs of text to token ids, in as many processes as asked for, in order and in bounded memory.

This module never imports torch, as every encoding process would wait and pay for it.
"""

import itertools
import multiprocessing
import os
import signal
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from dragoman.data.row_order import IntArray
from dragoman.errors import Error
from dragoman.text.corpus import Pair
from dragoman.text.normalize import NORMALIZERS
from dragoman.text.tokenizers.base import Tokenizer
from dragoman.text.tokenizers.pair import TokenizerPair, load_tokenizers

CHUNK_PAIRS = 10_000
"""Pairs that are encoded at a time: enough to make sending them to a process cheap."""
CHUNKS_ALONE = 3
"""Up to so many chunks are encoded in this process, as starting others takes longer."""


class Side(NamedTuple):
    """One side of encoded pairs: all ids in one row, and how many belong to each pair."""

    ids: IntArray
    lengths: IntArray


class Chunk(NamedTuple):
    """The pairs kept of a chunk, the corpus line of each, and how many were dropped for which reason."""

    src: Side
    tgt: Side
    lines: IntArray
    dropped: Counter[str]


@dataclass(frozen=True)
class Encoder:
    """Normalises and tokenizes pairs, and drops those with a blank side or more than `max_tokens` on either side (or
    cuts off what is too much: `cut`)."""

    tokenizers: TokenizerPair
    normalize: str
    max_tokens: int
    languages: tuple[str, str]
    """From and to, of pairs that do not say theirs."""
    cut: bool = False

    def __call__(self, pairs: Iterable[Pair]) -> Chunk:
        normalize = NORMALIZERS[self.normalize]
        kept: list[tuple[int, list[int], list[int]]] = []
        dropped: Counter[str] = Counter()
        between: dict[tuple[str, str], TokenizerPair] = {}
        for line, src_text, tgt_text, languages, *_ in pairs:
            spoken = languages or self.languages
            if spoken not in between:
                between[spoken] = self.tokenizers.between(*spoken)
            tokenizers = between[spoken]
            src, tgt = _ids(tokenizers.src, normalize(src_text)), _ids(tokenizers.tgt, normalize(tgt_text))
            if not src or not tgt:
                dropped["blank source" if tgt else "blank target" if src else "blank both"] += 1
            elif max(len(src), len(tgt)) > self.max_tokens and not self.cut:
                dropped[f"longer than {self.max_tokens} tokens"] += 1
            else:
                kept.append((line, self._no_more(src, tokenizers.src), self._no_more(tgt, tokenizers.tgt)))
        return Chunk(
            _pack([src for _, src, _ in kept], self.tokenizers.src.vocab_size),
            _pack([tgt for _, _, tgt in kept], self.tokenizers.tgt.vocab_size),
            np.array([line for line, _, _ in kept], dtype=np.int64),
            dropped,
        )

    def _no_more(self, ids: list[int], tokenizer: Tokenizer) -> list[int]:
        """The first `max_tokens` ids; what stands behind every text (the tag of a language) still does."""
        if len(ids) <= self.max_tokens:
            return ids
        return [*ids[: self.max_tokens - len(tokenizer.after)], *tokenizer.after]


def _ids(tokenizer: Tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text) if text.strip() else []


def _pack(sentences: list[list[int]], vocab_size: int) -> Side:
    lengths = np.array([len(ids) for ids in sentences], dtype=np.int64)
    ids = np.fromiter(itertools.chain.from_iterable(sentences), dtype=np.int64, count=int(lengths.sum()))
    assert not len(ids) or (ids.min() >= 0 and ids.max() < vocab_size), "an id outside of the tokenizer's vocabulary"
    return Side(ids.astype(id_dtype(vocab_size)), lengths)


def id_dtype(vocab_size: int) -> str:
    """The smallest of the types kept on disk that holds every id."""
    return "uint16" if vocab_size <= 2**16 else "uint32"


def encode(pairs: Iterator[Pair], encoder: Encoder, tokenizer_dir: Path, workers: int) -> Generator[Chunk, None, None]:
    """Encoded chunks in the order of the pairs. Close it (`contextlib.closing`) so that its processes end with it.

    A small corpus is encoded here by `encoder`; for a larger one, `workers` processes load the same tokenizers from
    `tokenizer_dir`. Raises DragomanError when one of them is killed, besides what `pairs` raises.
    """
    chunks: Iterator[list[Pair]] = iter(lambda: list(itertools.islice(pairs, CHUNK_PAIRS)), [])
    first = list(itertools.islice(chunks, CHUNKS_ALONE + 1))
    chunks = itertools.chain(first, chunks)
    if workers <= 1 or len(first) <= CHUNKS_ALONE:
        yield from map(encoder, chunks)
        return
    try:
        pool = ProcessPoolExecutor(
            workers,
            mp_context=_Context(),
            initializer=_start_worker,
            initargs=(tokenizer_dir, encoder.normalize, encoder.max_tokens, encoder.languages, encoder.cut),
        )
    except (OSError, NotImplementedError):  # no /dev/shm for its locks, as in AWS Lambda
        yield from map(encoder, chunks)
        return
    try:
        # Columns are sent several times as fast as thousands of pairs.
        yield from in_order(lambda chunk: pool.submit(_encode_chunk, *zip(*chunk, strict=True)), chunks, 2 * workers)
    except BrokenProcessPool as error:
        raise Error.PROCESS_FAILED(
            "a process that encodes the corpus ended abruptly: if memory ran out, use fewer workers"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def in_order(
    submit: Callable[[list[Pair]], "Future[Chunk]"], chunks: Iterable[list[Pair]], ahead: int
) -> Iterator[Chunk]:
    """Results in the order of the chunks, of which at most `ahead` are under way: that bounds the memory."""
    pending: deque[Future[Chunk]] = deque()
    for chunk in chunks:
        pending.append(submit(chunk))
        if len(pending) == ahead:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


class _Process(SpawnProcess):
    """A process that does not run the main module again: a script without `if __name__ == "__main__":` would train
    there once more."""

    def start(self) -> None:
        main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
        try:
            super().start()
        finally:
            sys.modules["__main__"] = main


class _Context(SpawnContext):
    """Starts such processes anew: a forked copy of a process with threads may hang."""

    Process = _Process


_worker: Encoder
"""The encoder of a worker process, made once at its start."""


def _start_worker(tokenizer_dir: Path, normalize: str, max_tokens: int, languages: tuple[str, str], cut: bool) -> None:
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the parent ends this one in order
    threading.Thread(target=end_with_parent, daemon=True).start()
    _worker = Encoder(load_tokenizers(tokenizer_dir), normalize, max_tokens, languages, cut)


def end_with_parent() -> None:
    """A parent that is killed cannot tell its workers to stop: they would wait for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _encode_chunk(*columns: tuple[Any, ...]) -> Chunk:
    return _worker(itertools.starmap(Pair, zip(*columns, strict=True)))
