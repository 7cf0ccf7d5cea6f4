"""The scheduler of a server: continuous batching that never ends, with deadlines, cancellation and two priorities.

Requests run in threads of their own and translate as everybody does (`SearchTranslator.n_best`); where the translator
would search, its `RequestHandle` hands the sentences to the scheduler and waits. The scheduler's threads put sentences
of all requests into batches of one width and step those batches together (`decoding/continuous_batching.py`). What a
sentence's translation is does not depend on that, to the last bit.
"""

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, InvalidStateError, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from dragoman.cancellation import checked_by
from dragoman.data.batch import WIDTH_MULTIPLE
from dragoman.decoding.base import FoundNothing, Hypothesis
from dragoman.decoding.continuous_batching import Answer, Asked, Search
from dragoman.decoding.rules import Step
from dragoman.inference.search_translator import Searcher, SearchTranslator
from dragoman.inference.translation import Part
from dragoman.text.tokenizers.base import EOS_ID

Result = TypeVar("Result")

MAX_ROWS_IN_FLIGHT = 256
"""A waiting batch begins when fewer rows than this are under way on a thread."""
MAX_BATCHES = 6
"""Batches under way on a thread, at most."""
BATCH_ROWS = 640
"""Rows of a batch, at most: a single sentence that comes after it should not wait long for a step."""
MIN_QUEUE_PER_THREAD = 16
"""Sentences that wait, from which on another thread helps."""
QUEUE_SCAN = 2048
"""Sentences of the queue that are looked through for those that fit into a batch."""
BACKGROUND_EVERY = 8
"""One in so many batches is a document's, however many requests wait: none waits for ever."""
QUEUE_SECONDS = 4.0
"""Work that may wait: seconds of it at the speed that was measured."""
ENOUGH_TOKENS = 500
"""Source tokens, all of them done, after which a speed is believed."""
FIRST_GUESS = 1000.0
"""Source tokens a second, until the speed is measured."""


class Cancelled(Exception):
    """The request was given up: its client has gone."""


class DeadlineExceeded(Exception):
    """The request was not done in time."""


class Overloaded(Exception):
    """More work waits than can be done soon. `retry_after`: seconds until it is worth asking again."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"too much work waits: come back in {retry_after:.0f} s")
        self.retry_after = retry_after


class RequestHandle:
    """One request at the scheduler: its deadline (of `time.monotonic`), its priority, and the way to give it up."""

    def __init__(
        self, scheduler: "BatchScheduler", deadline: float = float("inf"), *, background: bool = False
    ) -> None:
        self.scheduler, self.deadline, self.background = scheduler, deadline, background
        self.gone = False
        self.waiting: list[QueuedSentence] = []

    def on(self, translator: SearchTranslator) -> SearchTranslator:
        """The translator with the scheduler for its search."""
        return translator.searched_by(SearcherAdapter(self, translator.engine))

    def cancel(self) -> None:
        """Give the request up: its rows are free after the step that is under way."""
        self.gone = True
        for sentence in list(self.waiting):
            sentence.fail(Cancelled())

    def run(self, work: Callable[["RequestHandle"], Result]) -> Result:
        """The result of `work(self)`; all its stages look at this handle, through `cancellation.check`."""
        with checked_by(self.check):
            self.check()
            return work(self)

    def check(self) -> None:
        """Raises Cancelled or DeadlineExceeded where it is of no use to go on."""
        if self.gone or self.scheduler.is_stopped:
            raise Cancelled
        if time.monotonic() > self.deadline:
            raise DeadlineExceeded


@dataclass(frozen=True)
class SearcherAdapter:
    """A request's handle as a translator sees it (`inference.search_translator.Searcher`)."""

    handle: RequestHandle
    searcher: Searcher | None

    def hypotheses(self, translator: SearchTranslator, parts: Sequence[Part]) -> list[list[Hypothesis]]:
        """Raises what the search raises, Cancelled or DeadlineExceeded."""
        handle = self.handle
        sentences = handle.waiting = [QueuedSentence(translator, self.searcher, part, handle) for part in parts]
        handle.check()
        try:
            handle.scheduler.put(sentences)
            left = None if handle.deadline == float("inf") else max(0.0, handle.deadline - time.monotonic())
            done, unfinished = wait([sentence.result for sentence in sentences], left, FIRST_EXCEPTION)
            for result in done:
                result.result()
            if unfinished:
                raise DeadlineExceeded
            return [sentence.result.result() for sentence in sentences]
        finally:
            for sentence in sentences:
                sentence.fail(Cancelled())


class QueuedSentence:
    """A sentence in the queue, or in a batch, and its hypotheses to be."""

    def __init__(
        self, translator: SearchTranslator, searcher: Searcher | None, part: Part, handle: RequestHandle
    ) -> None:
        self.translator, self.searcher, self.part, self.handle = translator, searcher, part, handle
        self.result: Future[list[Hypothesis]] = Future()
        width = 0 if searcher else -(-(1 + len(part.ids)) // WIDTH_MULTIPLE)
        tags = tuple(translator.tokenizers.tgt.before)  # an engine is told once for a batch what it begins with
        own: tuple[Any, ...] = (id(translator.model), translator.max_src_tokens, width, id(searcher), tags)
        if part.terms or translator.decoding.sampling is not None:  # beams as wide as the terms ask for
            own += (id(handle), sum(map(len, part.terms)))
        self.key: tuple[Any, ...] = (*own, repr(translator.decoding))
        """Sentences of one key may share a batch."""

    @property
    def is_dead(self) -> bool:
        """True if nobody waits for it any more."""
        return self.result.done()

    def fail(self, error: BaseException) -> None:
        """End it with an error, if it has not ended."""
        if isinstance(error, FoundNothing):
            error = error.code(error.why)
        with suppress(InvalidStateError):
            self.result.set_exception(error)


@dataclass
class RunningBatch:
    """A batch under way: its search, and what that asks for."""

    sentences: list[QueuedSentence]
    search: Search
    asked: Asked


@dataclass
class CancelRule:
    """The rule that lets the sentences of requests that are given up end at once: `</s>` is all that may follow."""

    sentences: Sequence[QueuedSentence]

    def __call__(self, step: Step) -> None:
        if not any(sentence.is_dead for sentence in self.sentences):
            return
        gone = [row for row, place in enumerate(step.sentences) if place >= 0 and self.sentences[place].is_dead]
        ending = step.log_probs[gone, EOS_ID]
        step.log_probs[gone] = float("-inf")
        step.log_probs[gone, EOS_ID] = ending


@dataclass
class Speed:
    """Source tokens a second that the scheduler does when it has enough to do."""

    tokens_per_second: float = FIRST_GUESS
    measured: bool = False
    _tokens: int = 0
    _seconds: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, tokens: int, seconds: float) -> None:
        """Count work done while there was more to do; `seconds` of all threads together over their number."""
        with self._lock:
            self._tokens += tokens
            self._seconds += seconds
            if self._seconds < 1.0 or self._tokens < ENOUGH_TOKENS:
                return
            found = self._tokens / self._seconds
            self.tokens_per_second = (self.tokens_per_second + found) / 2 if self.measured else found
            self.measured = True
            self._tokens, self._seconds = 0, 0.0


class BatchScheduler:
    """Threads that search for everybody. `with BatchScheduler() as scheduler:` starts and stops them."""

    def __init__(self, threads: int | None = None, queue_seconds: float = QUEUE_SECONDS) -> None:
        self.num_threads = threads or torch.get_num_threads()
        self.queue_seconds = queue_seconds
        self.changed = threading.Condition()
        self.waiting: tuple[deque[QueuedSentence], deque[QueuedSentence]] = (deque(), deque())
        """Sentences of requests, and those of documents."""
        self.speed = Speed()
        self.admitted_tokens = 0
        self.on_batch: Callable[[int], None] = lambda rows: None
        self.on_done: Callable[[SearchTranslator, int, int], None] = lambda translator, src, tgt: None
        self._turns = itertools.count(1)
        self.is_stopped = False
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> "BatchScheduler":
        self.is_stopped = False
        self._threads = [
            threading.Thread(target=self._work, args=(number,), name=f"scheduler-{number}", daemon=True)
            for number in range(self.num_threads)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self.changed:
            self.is_stopped = True
            left = [*self.waiting[0], *self.waiting[1]]
            self.waiting = (deque(), deque())
            self.changed.notify_all()
        for sentence in left:
            sentence.fail(Cancelled())
        for thread in self._threads:
            thread.join()

    @contextmanager
    def admitted(self, tokens: int) -> Iterator[None]:
        """Count a request of so many tokens as work that waits. Raises Overloaded where too much does."""
        with self.changed:
            speed = self.speed.tokens_per_second
            if self.admitted_tokens and self.admitted_tokens + tokens > self.queue_seconds * speed:
                raise Overloaded(max(1.0, self.admitted_tokens / speed / 2))
            self.admitted_tokens += tokens
        try:
            yield
        finally:
            with self.changed:
                self.admitted_tokens -= tokens

    def put(self, sentences: Sequence[QueuedSentence]) -> None:
        """Queue sentences."""
        with self.changed:
            if self.is_stopped:
                raise Cancelled
            for sentence in sentences:
                self.waiting[sentence.handle.background].append(sentence)
            self.changed.notify_all()

    def _work(self, number: int) -> None:
        """The life of a thread: take batches while there is room, step them, hand out what is done."""
        torch.set_num_threads(1)
        going: list[RunningBatch] = []
        with torch.inference_mode():
            while True:
                started = time.monotonic()
                full = sum(map(len, self.waiting)) >= 2 * self.num_threads  # more than fit into a batch
                for sentences in self._taken(going, number):
                    self._begin(sentences, going)
                if self.is_stopped:
                    for batch in going:
                        for sentence in batch.sentences:
                            sentence.fail(Cancelled())
                    return
                done = self._step(going)
                if full:
                    self.speed.add(done, (time.monotonic() - started) / self.num_threads)

    def _taken(self, going: list[RunningBatch], number: int) -> list[list[QueuedSentence]]:
        """The sentences of batches to begin; waits until there are some where nothing is under way.

        Threads after the first one wait until more sentences do: for a few, that come one by one, two threads are
        slower than one (Python's lock goes to and fro between them at every operation). Another engine's searches do
        not hold that lock.
        """
        taken: list[list[QueuedSentence]] = []
        with self.changed:
            rows = sum(len(batch.asked[0]) for batch in going)
            while len(going) + len(taken) < MAX_BATCHES and rows < MAX_ROWS_IN_FLIGHT and not self.is_stopped:
                is_anothers = any(queue and queue[0].searcher is not None for queue in self.waiting)
                enough = is_anothers or sum(map(len, self.waiting)) >= number * MIN_QUEUE_PER_THREAD
                sentences = self._next() if enough else []
                if sentences:
                    taken.append(sentences)
                    rows += sum(sentence.translator.decoding.num_candidates for sentence in sentences)
                elif going or taken:
                    break
                else:
                    self.changed.wait()
        return taken

    def _next(self) -> list[QueuedSentence]:
        """The oldest sentence and others that go with it; those of a request before those of a document."""
        requests, documents = self.waiting
        queue = requests
        if documents and (not requests or next(self._turns) % BACKGROUND_EVERY == 0):
            queue = documents
        while queue and queue[0].is_dead:
            queue.popleft()
        if not queue:
            return []
        first = queue.popleft()
        size = 64 if first.searcher else max(1, BATCH_ROWS // first.translator.decoding.num_candidates)
        chosen: list[QueuedSentence] = [first]
        left: list[QueuedSentence] = []
        for _ in range(min(QUEUE_SCAN, len(queue))):
            if len(chosen) >= size:
                break
            sentence = queue.popleft()
            if not sentence.is_dead:
                (chosen if sentence.key == first.key else left).append(sentence)
        queue.extendleft(reversed(left))
        return chosen

    def _begin(self, sentences: list[QueuedSentence], going: list[RunningBatch]) -> None:
        first = sentences[0]
        parts = [sentence.part for sentence in sentences]
        try:
            if first.searcher is not None:
                self._finish(sentences, first.searcher.hypotheses(first.translator, parts))
                return
            # Sentences with terms share a batch with their own request's alone: it is closed when that is given up.
            search = first.translator.begin(parts, [] if first.part.terms else [CancelRule(sentences)])
            going.append(RunningBatch(sentences, search, next(search)))
        except StopIteration as done:
            self._finish(sentences, done.value)
        except Exception as error:
            self._failed(sentences, error)

    def _step(self, going: list[RunningBatch]) -> int:
        """One step of all batches; source tokens of the sentences that are done with it."""
        for batch in [one for one in going if all(sentence.is_dead for sentence in one.sentences)]:
            batch.search.close()
            going.remove(batch)
        done = 0
        models: dict[int, list[RunningBatch]] = {}
        for batch in going:
            models.setdefault(id(batch.sentences[0].translator.model), []).append(batch)
        going.clear()
        for together in models.values():
            self.on_batch(sum(len(batch.asked[0]) for batch in together))
            for batch, answer in zip(together, self._answers(together), strict=True):
                if isinstance(answer, Exception):
                    self._failed(batch.sentences, answer)
                    continue
                try:
                    batch.asked = batch.search.send(answer)
                    going.append(batch)
                except StopIteration as finished:
                    self._finish(batch.sentences, finished.value)
                    done += sum(len(sentence.part.ids) for sentence in batch.sentences)
                except Exception as error:
                    self._failed(batch.sentences, error)
        return done

    def _answers(self, together: list[RunningBatch]) -> Sequence[Answer | Exception]:
        """The model's answer to each batch; where it fails, the error for those that it fails for."""
        model = together[0].sentences[0].translator.model
        try:
            return model.decode_steps([batch.asked[0] for batch in together], [batch.asked[1] for batch in together])
        except Exception as error:
            if len(together) == 1:
                return [error]
        return [answer for batch in together for answer in self._answers([batch])]

    def _finish(self, sentences: Sequence[QueuedSentence], results: Sequence[list[Hypothesis]]) -> None:
        for sentence, found in zip(sentences, results, strict=True):
            with suppress(InvalidStateError):
                sentence.result.set_result(found)
            self.on_done(sentence.translator, len(sentence.part.ids), len(found[0].ids) if found else 0)

    def _failed(self, sentences: Sequence[QueuedSentence], error: Exception) -> None:
        """A batch failed. One bad sentence shall not take the others with it, so each is tried once more, alone."""
        if len(sentences) == 1:
            sentences[0].fail(error)
            return
        for sentence in sentences:
            sentence.key = (id(sentence),)
        try:
            self.put(sentences)
        except Cancelled as stopped:  # the scheduler stops: nobody will search for them
            for sentence in sentences:
                sentence.fail(stopped)
