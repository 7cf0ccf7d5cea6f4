"""The Transformer whose searches run in C (`search.c`): the fast implementation of `models/transformer.py` on a CPU.

Three doors lead to the same numbers. `search` does a whole greedy or beam search in C. `start_search` and
`decode_steps` are steps for a search in Python, which rules, terms, prefixes, sampling and ensembles need.
`forced_log_probs` reads given translations. What has gradients or maps is computed as in the textbook.
"""

import ctypes
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from dragoman.backends.cpu_search import library
from dragoman.backends.cpu_search.weights import PackedTransformer, projection
from dragoman.cancellation import check
from dragoman.decoding.base import DecodingConfig, Hypothesis, divisors
from dragoman.decoding.continuous_batching import Search
from dragoman.decoding.rows import check_finite
from dragoman.decoding.search import default_max_lengths
from dragoman.device import side_by_side
from dragoman.models.base import ROW_MULTIPLE
from dragoman.models.blocks import PositionedEmbedding
from dragoman.models.transformer import Transformer, TransformerMemory, TransformerState
from dragoman.special_tokens import BOS_ID, EOS_ID, PAD_ID, UNK_ID

MIN_ROWS, MAX_ROWS = 48, 256
"""Rows of a step of a search in C."""
STEP = 5 * 10**9
"""Multiplications of a step: a tenth of a second, after which it is seen whether the search is still needed."""
STOPPING = ("exact", "likely", "full", "first")
MAX_FORCED = 1024
"""Tokens of given translations and their sources at once: more are no faster, and need more memory."""
CELLS = 256
"""Cells that a cache begins with."""
NOTHING = torch.empty(0)
"""The logits that a search in C gives to nobody."""


class Weights:
    """The packed weights of a model, made when they are first needed, and again in a copy of it."""

    def __init__(self, precision: str) -> None:
        self.precision, self.lock = precision, threading.Lock()
        self.packed: PackedTransformer | None = None

    def of(self, model: Transformer, positions: int) -> PackedTransformer:
        with self.lock:
            if self.packed is None:
                loaded = library.library()
                assert loaded is not None
                self.packed = PackedTransformer(loaded, model, self.precision)
            if positions > self.packed.model.max_positions:
                self.packed.make_tables(2 * positions)
            return self.packed

    def __deepcopy__(self, memo: dict[int, Any]) -> "Weights":
        return Weights(self.precision)


class Unread:
    """Sentences that a search in C reads, and PyTorch only if it is asked for their vectors (`TransformerMemory`)."""

    def __init__(self, model: "FastTransformer", src: Tensor, src_mask: Tensor) -> None:
        self.model, self.src, self.src_mask = model, src, src_mask
        self._read: TransformerMemory | None = None

    def _by_pytorch(self) -> TransformerMemory:
        if self._read is None:
            self._read = Transformer.encode(self.model, self.src, self.src_mask)
        return self._read

    @property
    def hidden(self) -> Float[Tensor, "batch src_len d_model"]:
        return self._by_pytorch().hidden

    @property
    def mask(self) -> Bool[Tensor, "batch src_len"]:
        return self._by_pytorch().mask


class Read:
    """Sentences that the encoder in C has read."""

    def __init__(self, packed: PackedTransformer, sources: Sequence[Sequence[int]]) -> None:
        ids, offsets = _flat(sources, packed.transformer.src_vocab_size)
        self.packed = packed
        self.handle = packed.library.read_new(
            ctypes.byref(packed.model), len(sources), ids.data_ptr(), offsets.data_ptr()
        )
        weakref.finalize(self, _freed, packed, packed.library.read_free, self.handle)


class Cells:
    """Keys and values of every row of every step so far, of each layer; a cell is written once and never changed."""

    def __init__(self, num_layers: int, width: int, count: int) -> None:
        self.keys, self.values = ([torch.zeros(count, width) for _ in range(num_layers)] for _ in range(2))
        self.used = 0

    def take(self, count: int) -> Int[Tensor, " count"]:
        """New cells."""
        start, self.used = self.used, self.used + count
        room = self.keys[0].size(0)
        if self.used > room:
            for of_layers in (self.keys, self.values):
                of_layers[:] = [torch.cat([old, torch.zeros_like(old)]) for old in of_layers]
            if self.used > 2 * room:
                self.used = start
                return self.take(count)
        return torch.arange(start, self.used, dtype=torch.int32)

    def compacted(self, paths: Int[Tensor, "rows length"]) -> tuple["Cells", Int[Tensor, "rows length"]]:
        """Only the cells that `paths` lead to, in memory of their own, and the paths to them."""
        live, renamed = torch.unique(paths, return_inverse=True)
        cells = Cells(0, 0, 0)
        cells.keys, cells.values = ([old[live.long()] for old in of_layers] for of_layers in (self.keys, self.values))
        cells.used = len(live)
        return cells, renamed.int()


class Logits(Tensor):
    """Logits of a step. Their `log_softmax` is computed in C too, and so `FastTransformer.search` has the same bits."""

    def log_softmax(self, dim: int, dtype: torch.dtype | None = None) -> Tensor:
        own = self.as_subclass(Tensor)
        loaded = library.library()
        if loaded is None or dim not in (-1, own.dim() - 1) or own.dtype != torch.float32 or own.stride(-1) != 1:
            return own.log_softmax(dim, dtype=dtype)
        rows = own.reshape(-1, own.size(-1))
        out = torch.empty(rows.shape)
        loaded.log_softmax(rows.data_ptr(), rows.size(0), rows.stride(0), rows.size(1), out.data_ptr())
        return out.view(own.shape)


@dataclass(frozen=True)
class FastState:
    """Rows of a search, each with the sentence that it translates and the cells of its tokens."""

    read: Read
    cells: Cells
    sentences: Int[Tensor, " rows"]
    paths: Int[Tensor, "rows length"]
    pads_rows: ClassVar[bool] = True

    def reorder(self, rows: Int[Tensor, " new_rows"]) -> "FastState":
        """The state whose row i is this state's row `rows[i]`. Cells that nobody needs any more are given up."""
        cells, paths = self.cells, self.paths[rows]
        if cells.used > CELLS and cells.used > 4 * paths.numel():
            cells, paths = cells.compacted(paths)
        return FastState(self.read, cells, self.sentences[rows], paths)


class FastTransformer(Transformer):  # type: ignore[misc]  # a layer of the family, not a family of its own
    """A Transformer that `can_be_packed`, with `weights`."""

    weights: Weights

    def encode(self, src: Tensor, src_mask: Tensor, maps: list[Tensor] | None = None) -> Any:
        if maps is not None or torch.is_grad_enabled() or not bool(src_mask[:, self._first_word :].any(dim=1).all()):
            return super().encode(src, src_mask, maps)
        return Unread(self, src, src_mask)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "Transformer":
        """Change type or device, as `Module.to` does: the weights are packed anew, or not where there is no CPU."""
        super()._apply(fn, recurse)
        self.weights = Weights(self.weights.precision)
        if next(self.parameters()).device.type != "cpu":
            self.__class__ = Transformer  # type: ignore[assignment]
        return self

    @property
    def looks_up(self) -> bool:
        """True if a datastore's probabilities are mixed with the model's, so that no search is done in C to the end."""
        return self.output is not projection(self)

    @property
    def _first_word(self) -> int:
        """1 where the `</s>` of a source is not read, so that it must have a token before."""
        return 0 if self.src_end else 1

    def _read_ids(self, sources: Sequence[Sequence[int]]) -> Sequence[Sequence[int]]:
        """Sources (with `</s>`) as the encoder reads them."""
        return sources if self.src_end else [source[:-1] for source in sources]

    def start_search(self, memory: Any, rows_per_sentence: int, read: Tensor | None = None) -> Any:
        if not isinstance(memory, Unread):
            return super().start_search(memory, rows_per_sentence, read)
        sources = [ids[mask].tolist() for ids, mask in zip(memory.src, memory.src_mask, strict=True)]
        packed = self.weights.of(self, max(map(len, sources)))
        _require_positions(self.src_embedding, max(map(len, sources)) - self._first_word)
        model, count = packed.model, len(sources)
        width = packed.library.cell_width(ctypes.byref(model))
        state = FastState(
            Read(packed, self._read_ids(sources)),
            Cells(model.decoder.num_layers, width, max(CELLS, 4 * count)),
            torch.arange(count),
            torch.empty(count, 0, dtype=torch.int32),
        )
        for prev in () if read is None else read.unbind(dim=1):
            [(_, state)] = self._step([prev], [state], has_logits=False)
        return state

    def decode_steps(self, prevs: Sequence[Tensor], states: Sequence[Any]) -> list[tuple[Tensor, Any]]:
        whole = [state for state in states if isinstance(state, RunningSearch)]
        if whole:
            run_together(whole)
        answers: list[tuple[Tensor, Any]] = [(NOTHING, state) for state in states]
        for kind, step in ((FastState, self._step), (TransformerState, super().decode_steps)):
            numbers = [number for number, state in enumerate(states) if isinstance(state, kind)]
            if numbers:
                stepped = step([prevs[number] for number in numbers], [states[number] for number in numbers])
                for number, answer in zip(numbers, stepped, strict=True):
                    answers[number] = answer
        return answers

    def _step(
        self, prevs: Sequence[Tensor], states: Sequence[FastState], *, has_logits: bool = True
    ) -> list[tuple[Tensor, FastState]]:
        longest = 1 + max(state.paths.size(1) for state in states)
        packed = self.weights.of(self, longest)
        _require_positions(self.tgt_embedding, longest)
        counts, model = [len(prev) for prev in prevs], packed.model
        is_own = not self.looks_up
        # The output layer that looks tokens up is PyTorch's: as in the textbook it has a multiple of ROW_MULTIPLE rows.
        hidden = torch.zeros(0 if is_own else sum(counts) + -sum(counts) % ROW_MULTIPLE, model.d_model)
        logits = torch.empty(
            sum(counts) if is_own and has_logits else 0, -(-model.vocab // packed.panel) * packed.panel
        )
        groups, kept, after, row = (library.Group * len(states))(), list[Any](), list[FastState](), 0
        for group, prev, state in zip(groups, prevs, states, strict=True):
            rows, cells = len(prev), state.cells
            paths = torch.cat([state.paths, cells.take(rows)[:, None]], dim=1)
            keys, values = (
                (ctypes.c_void_p * len(part))(*(t.data_ptr() for t in part)) for part in (cells.keys, cells.values)
            )
            last = prev.contiguous()
            group.read, group.keys, group.values = state.read.handle, ctypes.addressof(keys), ctypes.addressof(values)
            group.last, group.sentences, group.paths = last.data_ptr(), state.sentences.data_ptr(), paths.data_ptr()
            group.rows, group.position = rows, state.paths.size(1)
            group.hidden = None if is_own else hidden[row:].data_ptr()
            group.logits = logits[row:].data_ptr() if len(logits) else None
            kept += [keys, values, last]
            after.append(replace(state, paths=paths))
            row += rows
        packed.library.decode_steps(ctypes.byref(model), ctypes.byref(groups), len(groups))
        if not is_own and has_logits:
            logits = self.output(hidden.to(next(self.parameters()).dtype))[:row]
        else:
            logits = logits[:, : model.vocab].as_subclass(Logits)
        return list(zip(logits.split(counts) if has_logits else [logits] * len(after), after, strict=True))

    def can_search(self, config: DecodingConfig, parts: Sequence[Any]) -> bool:
        """True if `search` knows all that `config` and the parts (`inference.translation.Segment`) ask for: no more
        than the likeliest by the model's probabilities."""
        if not parts or self.looks_up or config.rules() or config.no_source_ngram or config.sampling:
            return False
        if config.diversity or config.coverage_penalty:
            return False
        return not any(part.prefix or part.terms or part.banned or part.read for part in parts)

    def search(self, sources: Sequence[Sequence[int]], config: DecodingConfig) -> list[list[Hypothesis]]:
        """The hypotheses of `decoding.search.search` for sources (ids with `</s>`) of any lengths, on all threads.

        Threads take the sentences from one queue, the longest first; where there are fewer sentences than threads, a
        large product is shared by several. Raises DragomanError as `search`.
        """
        threads = torch.get_num_threads()
        workers = min(threads, len(sources))
        queue, stopped = self._queue(sources, config), threading.Event()

        def work(_: int) -> dict[int, list[Hypothesis]]:
            search = RunningSearch(queue, workers, threads // workers)
            try:
                while not search.run():
                    check()
                    if stopped.is_set():
                        return {}  # another thread has failed, and its error is raised
                return search.hypotheses()
            except BaseException:
                stopped.set()
                raise

        cpu = torch.device("cpu")
        parts = [work(0)] if workers == 1 else side_by_side(work, range(workers), cpu, stop=stopped.set)
        by_row = {row: hypotheses for part in parts for row, hypotheses in part.items()}
        return [by_row[row] for row in range(len(sources))]

    def can_force(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> bool:
        """True if `forced_log_probs` knows the probabilities asked for, and each source has a token that is read."""
        return not self.looks_up and all(len(src) > self._first_word for src, _ in pairs)

    @property
    def forced_tokens(self) -> int:
        """Tokens of both sides that `forced_log_probs` takes at once: about a tenth of a second's work."""
        packed = self.weights.of(self, 1)
        return min(MAX_FORCED, max(MIN_ROWS, STEP // (packed.reading + packed.writing)))

    def forced_log_probs(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[list[float]]:
        """The log probability (nats) of each token of given translations, of (source, translation), ids with `</s>`
        both: to the last bit what a search adds up. Raises DragomanError for more tokens than the
        model has positions for."""
        sources = self._read_ids([src for src, _ in pairs])
        longest = max(map(len, sources)), max(len(tgt) for _, tgt in pairs)
        packed = self.weights.of(self, max(longest))
        for embedding, length in zip((self.src_embedding, self.tgt_embedding), longest, strict=True):
            _require_positions(embedding, length)
        (src, src_offsets), (tgt, tgt_offsets) = (
            _flat(sources, self.src_vocab_size),
            _flat([tgt for _, tgt in pairs], self.tgt_vocab_size),
        )
        log_probs = torch.empty(len(tgt))
        packed.library.forced_log_probs(
            ctypes.byref(packed.model),
            len(pairs),
            *(t.data_ptr() for t in (src, src_offsets, tgt, tgt_offsets)),
            BOS_ID,
            log_probs.data_ptr(),
        )
        return [part.tolist() for part in log_probs.split([len(tgt) for _, tgt in pairs])]

    def search_steps(
        self, sources: Sequence[Sequence[int]], config: DecodingConfig, is_over: Callable[[int], bool]
    ) -> Search:
        """`search` as steps, for whoever steps several (`decode_steps`). What `is_over` is given up, with nothing."""
        search = RunningSearch(self._queue(sources, config), workers=1, threads=1)
        while not search.is_done:
            for row in filter(is_over, range(len(sources))):
                search.cancel(row)
            yield torch.empty(search.rows), cast(Any, search)
        by_row = search.hypotheses()
        return [by_row.get(row, []) for row in range(len(sources))]

    def _queue(self, sources: Sequence[Sequence[int]], config: DecodingConfig) -> "SentenceQueue":
        """The sentences, the longest first. Raises DragomanError for more tokens than the model has positions for."""
        src_lengths = torch.tensor([len(source) for source in sources])
        max_lengths = default_max_lengths(torch.arange(int(src_lengths.max())) < src_lengths[:, None], config)
        if self.max_target_length is not None:
            max_lengths.clamp_(max=self.max_target_length)
        packed = self.weights.of(self, max(int(src_lengths.max()), int(max_lengths.max())))
        _require_positions(self.src_embedding, int(src_lengths.max()) - self._first_word)
        return SentenceQueue(packed, self._read_ids(sources), max_lengths, config)


class SentenceQueue:
    """Sentences that searches on several threads take from, each the longest that none has taken."""

    def __init__(
        self,
        packed: PackedTransformer,
        sources: Sequence[Sequence[int]],
        max_lengths: Int[Tensor, " sources"],
        config: DecodingConfig,
    ) -> None:
        self.packed, self.config = packed, config
        self.order = sorted(range(len(sources)), key=lambda row: -len(sources[row]))
        self.ids, self.offsets = _flat([sources[row] for row in self.order], packed.transformer.src_vocab_size)
        self.max_lengths = max_lengths[self.order]
        self.next = ctypes.c_int64(0)

    def __len__(self) -> int:
        return len(self.order)

    def settings(self, workers: int, threads: int) -> library.Settings:
        """The settings of a search in C on each of `workers` threads, with `threads` for a large product."""
        config = self.config
        counted = config.beam_size if config.stopping in ("likely", "full") else 0
        banned = torch.tensor([PAD_ID, BOS_ID, *([UNK_ID] if config.ban_unk else [])], dtype=torch.int32)
        divisor = divisors(config.length_penalty, self.max_lengths, int(self.max_lengths.max()))
        rows = min(MAX_ROWS, max(MIN_ROWS, STEP // self.packed.writing))
        settings = library.Settings(
            beam=config.beam_size,
            n_best=config.n_best,
            counted=max(config.n_best, round(counted * config.patience)),
            stopping=STOPPING.index(config.stopping),
            min_length=config.min_length,
            max_slots=min(max(1, rows // config.beam_size), -(-len(self) // workers)),
            max_tokens=max(MIN_ROWS, STEP // self.packed.reading),
            threads=threads,
            num_banned=len(banned),
            banned=banned.data_ptr(),
            divisors=divisor.data_ptr(),
            bos=BOS_ID,
            eos=EOS_ID,
        )
        settings.tensors = banned, divisor  # kept as long as the pointers to them
        return settings


class RunningSearch:
    """A search in C for sentences of a queue."""

    def __init__(self, queue: SentenceQueue, workers: int, threads: int) -> None:
        self.queue, self.settings, self.is_done = queue, queue.settings(workers, threads), False
        self.c = queue.packed.library
        self.handle = self.c.search_new(
            ctypes.byref(queue.packed.model),
            ctypes.byref(self.settings),
            len(queue),
            *(t.data_ptr() for t in (queue.ids, queue.offsets, queue.max_lengths)),
            ctypes.byref(queue.next),
        )
        weakref.finalize(self, _freed, queue.packed, self.c.search_free, self.handle)

    @property
    def rows(self) -> int:
        """Rows of the next step, about."""
        return int(self.c.search_rows(self.handle))

    def run(self) -> bool:
        """Take a step; True when all sentences are done."""
        self.is_done = bool(self.c.search_run(self.handle, 1))
        return self.is_done

    def cancel(self, row: int) -> None:
        """Give up the sentence of a row."""
        self.c.search_cancel(self.handle, self.queue.order.index(row))

    def hypotheses(self) -> dict[int, list[Hypothesis]]:
        """The hypotheses of the sentences that this search has taken, by row. Raises DragomanError as `search`."""
        order = self.queue.order
        if failed := self.c.search_failed(self.handle):
            check_finite(float("nan") if failed > 0 else float("-inf"), order[abs(failed) - 1])
        best = [_hypotheses(self.c, self.handle, place, self.settings.n_best) for place in range(len(order))]
        return {row: hypotheses for row, hypotheses in zip(order, best, strict=True) if hypotheses}


def run_together(searches: Sequence[RunningSearch]) -> None:
    """Take a step of searches of one model, whose rows share the products."""
    count = len(searches)
    handles, done = (ctypes.c_void_p * count)(*(one.handle for one in searches)), (ctypes.c_int64 * count)()
    searches[0].c.searches_run(ctypes.byref(handles), count, ctypes.byref(done))
    for search, is_done in zip(searches, done, strict=True):
        search.is_done = bool(is_done)


def _freed(_: PackedTransformer, free: Callable[[int], None], handle: int) -> None:
    """Free what C has made, while the model that it looks at is there."""
    free(handle)


def _require_positions(embedding: PositionedEmbedding, length: int) -> None:
    """Raises DragomanError for more tokens than the embedding has positions for."""
    if embedding.max_len is not None and length > embedding.max_len:
        embedding.positions(0, length)  # raises it


def _flat(texts: Sequence[Sequence[int]], vocab: int) -> tuple[Tensor, Tensor]:
    """(all ids, the place of each text's first). Raises IndexError for an id that the model has no vector for."""
    ids = torch.tensor([i for text in texts for i in text], dtype=torch.int32)
    if int(ids.min()) < 0 or int(ids.max()) >= vocab:
        raise IndexError(f"a text has an id that is none of {vocab}")
    return ids, torch.tensor([0, *map(len, texts)]).cumsum(0)


def _hypotheses(run: ctypes.CDLL, handle: int, row: int, n_best: int) -> list[Hypothesis]:
    tokens, numbers, hypotheses = ctypes.c_void_p(), (ctypes.c_float * 3)(), list[Hypothesis]()
    for rank in range(n_best):
        length = run.search_result(handle, row, rank, ctypes.byref(tokens), numbers)
        if length < 0:
            break
        ids = list((ctypes.c_int32 * length).from_address(cast(int, tokens.value))) if length else []
        hypotheses.append(Hypothesis(ids, numbers[1], numbers[0], bool(numbers[2])))
    return hypotheses
