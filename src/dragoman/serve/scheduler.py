"""The scheduler of a server: continuous batching that never ends, fair to its clients, with deadlines, cancellation and
two priorities.

Requests run in threads of their own and translate as everybody does (`SearchTranslator.n_best`); where the translator
would search, its `RequestHandle` hands the sentences to the scheduler and waits. The scheduler's threads put sentences
of all requests into batches of one width and step those batches together (`decoding/continuous_batching.py`). What a
sentence's translation is does not depend on that, to the last bit.

Clients take turns twice: when their sentences are put into batches (`fairness.FairQueue`), and, where the batches under
way are too large for one step, when these are stepped. What cannot be done in time is not taken in at all.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, InvalidStateError, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from dragoman.backends.cpu_search.fast_transformer import FastTransformer
from dragoman.cancellation import checked_by
from dragoman.data.batch import WIDTH_MULTIPLE
from dragoman.decoding.base import Hypothesis
from dragoman.decoding.continuous_batching import DecodeStepInput, DecodeStepOutput, Search
from dragoman.decoding.rows import FoundNothing
from dragoman.decoding.rules import Step
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Searcher, Segment
from dragoman.progress import say
from dragoman.serve.fairness import FairQueue, Shares
from dragoman.serve.logs import traced
from dragoman.serve.processor import AHEAD_SECONDS, ProcessorTime, Used, User, after_the_event_loop
from dragoman.special_tokens import EOS_ID

Result = TypeVar("Result")

MAX_ROWS_IN_FLIGHT = 256
"""A waiting batch begins when fewer rows than this are under way on a thread."""
MAX_BATCHES = 6
"""Batches under way on a thread, at most."""
BATCH_ROWS = 640
"""Rows of a batch, at most: a single sentence that comes after it should not wait long for a step."""
BATCH_POSITIONS = 16_384
"""Rows times source tokens of a batch, at most: the memory of its search grows with both. Long sentences go in smaller
batches."""
MIN_QUEUE_PER_THREAD = 16
"""Sentences that wait, from which on another thread helps."""
BACKGROUND_EVERY = 8
"""One in so many batches is a document's, however many requests wait (of time: `fairness.BACKGROUND_WEIGHT`)."""
STEP_ROWS = 256
"""Rows of a step beyond which clients take turns at it: a single sentence need not wait for a thousand others."""
ADMITTED_DEADLINE_SHARE = 0.6
"""Share of the deadline in which all that was taken in can be done."""
MIN_FREE_SHARE = 1 / 16
"""The share of the capacity that must be free to take in a single text of any length."""
BYTES_PER_TOKEN = 8
"""Bytes of a request for each of its source tokens, about, before it is read."""
MAX_GUESS_RATIO = 2.0
"""A request may be so many times as large as was guessed before it is admitted anew: what was begun is not given up for
less."""
HOPELESS_SPEED_RATIO = 2.0
"""A request that would be done in time at so many times the measured speed is not given up yet."""
FULL_PER_THREAD = 2
"""Sentences, or turns, that wait for each thread of a scheduler that has enough to do."""
ENOUGH_TOKENS = 500
"""Source tokens, all of them done, after which a speed is believed."""
FIRST_GUESS = 1000.0
"""Source tokens a second, until the speed is measured."""
FRESH_SECONDS = 4.0
"""Seconds for which a measured speed is taken as it is."""
RECOVERY_SECONDS = 1.0
"""After that, the seconds in which the estimate of a low speed doubles, until the speed is measured again."""


class Cancelled(Exception):
    """The request was given up: its client has gone."""


class DeadlineExceeded(Exception):
    """The request was not done in time."""


class TooMuch(Exception):
    """More work than can ever be done within the deadline. `share`: the part of it that could be."""

    def __init__(self, share: float) -> None:
        super().__init__(f"too much work: {share:.0%} of it could be done in time")
        self.share = share


class Overloaded(Exception):
    """More work waits than can be done soon. `retry_after`: seconds until it is worth asking again."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"too much work waits: come back in {retry_after:.0f} s")
        self.retry_after = retry_after


class RequestHandle:
    """One request at the scheduler: whose it is, its deadline (of `time.monotonic`), its priority, and the way to give
    it up."""

    def __init__(
        self, scheduler: "BatchScheduler", deadline: float = float("inf"), *, background: bool = False, client: str = ""
    ) -> None:
        self.scheduler, self.deadline, self.background, self.client = scheduler, deadline, background, client
        self.gone = False
        self.sentences: list[QueuedSentence] = []
        self.guess: int | None = None
        """Source tokens that it was admitted with; None: it was not."""
        self.begun = 0
        """Source tokens of everything that it has searched for."""
        self.left = 0
        """Source tokens that are still to be done."""
        self.held = 0
        """The tokens that it holds of its client's share."""
        self.is_small = False
        """True: the request is taken in, however long it may take."""

    @property
    def user(self) -> User:
        return self.client, self.background

    def on(self, translator: SearchTranslator) -> SearchTranslator:
        """The translator with the scheduler for its search."""
        return translator.searched_by(SearcherAdapter(self, translator.engine))

    def cancel(self) -> None:
        """Give the request up: its rows are free after the step that is under way."""
        self.gone = True
        for sentence in list(self.sentences):
            sentence.fail(Cancelled())

    def run(self, work: Callable[["RequestHandle"], Result]) -> Result:
        """The result of `work(self)`; all its stages look at this handle, through `cancellation.check`."""
        processor = self.scheduler.processor
        with checked_by(self.check, processor.idle), processor.computing(self.user):
            self.check()
            return work(self)

    def check(self) -> None:
        """Raises Cancelled or DeadlineExceeded where it is of no use to go on; others' searches may go first."""
        if self.gone or self.scheduler.is_stopped:
            raise Cancelled
        if time.monotonic() > self.deadline:
            raise DeadlineExceeded
        self.scheduler.processor.look()


@dataclass(frozen=True)
class SearcherAdapter:
    """A request's handle as a translator sees it (`inference.translation.Searcher`)."""

    handle: RequestHandle
    searcher: Searcher | None

    def hypotheses(self, translator: SearchTranslator, parts: Sequence[Segment]) -> list[list[Hypothesis]]:
        """Raises what the search raises, Cancelled or DeadlineExceeded."""
        handle = self.handle
        sentences = handle.sentences = [QueuedSentence(translator, self.searcher, part, handle) for part in parts]
        handle.check()
        try:
            handle.scheduler.correct(handle, sum(sentence.tokens for sentence in sentences))
            handle.scheduler.put(sentences)
            left = None if handle.deadline == float("inf") else max(0.0, handle.deadline - time.monotonic())
            processor = handle.scheduler.processor
            with processor.searching(handle.user) if self.searcher is None else processor.idle():
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
        self, translator: SearchTranslator, searcher: Searcher | None, part: Segment, handle: RequestHandle
    ) -> None:
        self.translator, self.searcher, self.part, self.handle = translator, searcher, part, handle
        self.result: Future[list[Hypothesis]] = Future()
        width = 0 if searcher else -(-(1 + len(part.ids)) // WIDTH_MULTIPLE)
        tags = tuple(translator.tokenizers.tgt.before)  # an engine is told once for a batch what it begins with
        model = id(translator.model), translator.max_src_tokens, id(searcher)
        own: tuple[Any, ...] = (*model, width, tags, len(part.read))
        if part.terms or translator.decoding.sampling is not None:  # beams as wide as the terms ask for
            own += (id(handle), sum(map(len, part.terms)))
        self.key: tuple[Any, ...] = (*own, repr(translator.decoding))
        """Sentences with the same key may share a batch."""
        self.tokens = 1 + len(part.ids)

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
    """A running batch: its search, and the next request of the search."""

    sentences: list[QueuedSentence]
    search: Search
    inputs: DecodeStepInput
    clients: frozenset[User]
    """The clients whose sentences are in it. True: the sentences are of documents."""

    @property
    def rows(self) -> int:
        return len(self.inputs[0])


@dataclass
class CancelRule:
    """The rule that ends the sentences of cancelled requests at once: only `</s>` may follow."""

    sentences: Sequence[QueuedSentence]

    def __call__(self, step: Step) -> None:
        if not any(sentence.is_dead for sentence in self.sentences):
            return
        gone = [row for row, place in enumerate(step.sentences) if place >= 0 and self.sentences[place].is_dead]
        ending = step.log_probs[gone, EOS_ID]
        step.log_probs[gone] = float("-inf")
        step.log_probs[gone, EOS_ID] = ending


def search_of(translator: SearchTranslator, parts: list[Segment], sentences: Sequence[QueuedSentence]) -> Search:
    """The search of a batch, which gives up the sentences that nobody waits for any more."""
    model = translator.model
    if isinstance(model, FastTransformer) and model.can_search(translator.decoding, parts):
        sources = [[*part.ids, EOS_ID] for part in parts]
        return model.search_steps(sources, translator.search_settings, lambda row: sentences[row].is_dead)
    # Sentences with terms share a batch with their own request's alone: it is closed when that is given up.
    return translator.search_steps(parts, [] if parts[0].terms else [CancelRule(sentences)])


@dataclass
class Speed:
    """Source tokens a second that the scheduler does when it has enough to do."""

    usual: float = FIRST_GUESS
    """The best speed that is known: of the warm-up, or measured."""
    last: float = FIRST_GUESS
    """The speed that was measured last."""
    measured: bool = False
    _measured_at: float = field(default_factory=time.monotonic)
    _tokens: int = 0
    _seconds: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def tokens_per_second(self) -> float:
        """The speed that was measured last; the older it is, the nearer to the usual one.

        A few texts that take very long make it small. What is refused for that is not measured: without a way back the
        server would refuse for ever.
        """
        age = max(0.0, time.monotonic() - self._measured_at - FRESH_SECONDS)
        return min(self.usual, self.last * 2 ** min(age / RECOVERY_SECONDS, 64))

    def guess(self, tokens: int, seconds: float) -> None:
        """Believe the speed of some work until there is enough to measure it at."""
        with self._lock:
            if not self.measured:
                self.usual = self.last = max(1.0, tokens / seconds)

    def add(self, tokens: int, seconds: float) -> None:
        """Count work done in seconds in which there was more to do."""
        with self._lock:
            self._tokens += tokens
            self._seconds += seconds
            if self._seconds < 1.0 or self._tokens < ENOUGH_TOKENS:
                return
            speed = self._tokens / self._seconds
            self.last = (self.tokens_per_second + speed) / 2 if self.measured else speed
            self.usual = max(self.usual, self.last)
            self.measured, self._measured_at = True, time.monotonic()
            self._tokens, self._seconds = 0, 0.0


def turn_of(going: Sequence[RunningBatch], used: Used) -> list[RunningBatch]:
    """The batches that take a step now: that of whoever has used least time for steps, and others that still fit, of
    those who have not used much more: with each row a step takes longer."""
    if not going:
        return []
    seconds = {id(batch): used.least(batch.clients) for batch in going}
    least = min(seconds.values())
    chosen: list[RunningBatch] = []
    for batch in sorted(going, key=lambda batch: seconds[id(batch)]):
        if seconds[id(batch)] > least + AHEAD_SECONDS:
            break
        fits = sum(one.rows for one in chosen) + batch.rows <= STEP_ROWS
        if fits or seconds[id(batch)] <= least:
            chosen.append(batch)
    return chosen


class BatchScheduler:
    """Threads that search for everybody. `with BatchScheduler() as scheduler:` starts and stops them."""

    def __init__(self, threads: int | None = None, deadline_seconds: float = 8.0) -> None:
        """`deadline_seconds`: the seconds within which an accepted request has to be done."""
        self.num_threads = threads or torch.get_num_threads()
        self.deadline_seconds = deadline_seconds
        self.changed = threading.Condition()
        self.queues: tuple[FairQueue[QueuedSentence], FairQueue[QueuedSentence]] = (FairQueue(), FairQueue())
        """Sentences of requests, and sentences of documents."""
        self.speed = Speed()
        self.shares = Shares()
        """Source tokens of the requests that were taken in and are not done yet."""
        self.processor = ProcessorTime(max(1, self.num_threads // 2))
        self.on_batch: Callable[[int], None] = lambda rows: None
        self.on_done: Callable[[SearchTranslator, int, int], None] = lambda translator, src, tgt: None
        self._turns = itertools.count(1)
        self.is_stopped = False
        self._threads: list[threading.Thread] = []
        self._full_since: float | None = None
        """When sentences were done last, and more waited than could be taken."""

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
            left = [sentence for queue in self.queues for sentence in queue.clear()]
            self.changed.notify_all()
        for sentence in left:
            sentence.fail(Cancelled())
        for thread in self._threads:
            thread.join()

    @contextmanager
    def admitted(self, handle: RequestHandle, tokens: int, *, is_small: bool = False) -> Iterator[None]:
        """Count a request of so many source tokens (a guess) as work that waits.

        Raises Overloaded where its client's share of what can be done in time is used up, and TooMuch for more than a
        client that is alone could have done. A small request is never too much.
        """
        handle.guess, handle.is_small = tokens, is_small
        with self.changed:
            self._charge(handle, tokens)
        try:
            yield
        finally:
            with self.changed:
                self.shares.give(handle.client, handle.held)
                handle.held = handle.left = 0
                handle.guess = None  # its thread may still be at work, and holds nothing any more

    def check_room(self, client: str, size: int) -> None:
        """Raises Overloaded where there is no room for a client's next request of so many bytes. Where there is some,
        it is read and judged by its tokens."""
        speed = self.speed.tokens_per_second
        capacity = self._capacity(speed)
        if self.shares.room(client, capacity) < min(1 + size / BYTES_PER_TOKEN, MIN_FREE_SHARE * capacity):
            raise Overloaded(max(1.0, self.shares.held[client] / speed))

    def _capacity(self, speed: float) -> float:
        """Source tokens that can be done within the deadline."""
        return ADMITTED_DEADLINE_SHARE * self.deadline_seconds * speed

    def correct(self, handle: RequestHandle, tokens: int) -> None:
        """Source tokens that a request searches for now: far more than was guessed are admitted anew.

        Raises what `admitted` does.
        """
        with self.changed:
            handle.begun += tokens
            more = tokens - handle.left
            if handle.guess is None or more <= 0:
                return
            if handle.begun > MAX_GUESS_RATIO * handle.guess:
                self._charge(handle, tokens)
            else:
                handle.left, handle.held = tokens, handle.held + more
                self.shares.take(handle.client, more)

    def _charge(self, handle: RequestHandle, tokens: int) -> None:
        """Let a request hold tokens of its client's share, in the place of what it holds. (The lock is held.)"""
        speed, client = self.speed.tokens_per_second, handle.client
        capacity = self._capacity(speed)
        self.shares.give(client, handle.held)
        handle.held, room = 0, self.shares.room(client, capacity)
        if tokens > room:
            is_tried = handle.is_small or not self.speed.measured
            if not (is_tried and not self.shares.held[client] and room >= MIN_FREE_SHARE * capacity):
                if tokens > capacity / 2 and not is_tried:
                    raise TooMuch(capacity / 2 / tokens)
                clients = len({*self.shares.held, client})
                raise Overloaded(max(1.0, (tokens - room) * clients / speed))
        handle.left, handle.held = tokens, min(tokens, room)
        self.shares.take(client, handle.held)

    def put(self, sentences: Sequence[QueuedSentence]) -> None:
        """Queue sentences."""
        with self.changed:
            if self.is_stopped:
                raise Cancelled
            for sentence in sentences:
                handle = sentence.handle
                self.queues[handle.background].put(handle.client, sentence, sentence.tokens, sentence.key)
            self.changed.notify_all()

    def _is_dead(self, sentence: QueuedSentence) -> bool:
        """True if nobody waits for a sentence any more, or nobody will when it is done."""
        handle = sentence.handle
        if not sentence.is_dead and self.speed.measured and handle.deadline != float("inf"):
            seconds = handle.left / self.speed.tokens_per_second
            if seconds > HOPELESS_SPEED_RATIO * (handle.deadline - time.monotonic()):
                sentence.fail(DeadlineExceeded())
        return sentence.is_dead

    def _work(self, number: int) -> None:
        """The life of a thread: take batches while there is room, step them, hand out what is done."""
        torch.set_num_threads(1)
        after_the_event_loop()
        going: list[RunningBatch] = []
        with torch.inference_mode():
            while True:
                taken = self._taken(going, number)
                under_way = list(itertools.chain(*(batch.sentences for batch in going), *taken))
                if self.is_stopped:
                    for sentence in under_way:
                        sentence.fail(Cancelled())
                    return
                try:
                    for sentences in taken:
                        self._begin(sentences, going)
                    self._step(going)
                except Exception as error:  # of no batch: nobody knows whose it is, and others want the thread
                    say(f"a search thread failed: {traced(error)}")
                    for sentence in under_way:
                        sentence.fail(error)
                    going = []

    def _taken(self, going: list[RunningBatch], number: int) -> list[list[QueuedSentence]]:
        """The sentences of batches to begin; waits until there are some where nothing is under way.

        Threads after the first one wait until more sentences do: for a few, that come one by one, two threads are
        slower than one (Python's lock goes to and fro between them at every operation). Another engine's searches do
        not hold that lock.
        """
        taken: list[list[QueuedSentence]] = []
        with self.changed:
            rows = sum(batch.rows for batch in going)
            while not self.is_stopped:
                is_anothers = any((first := queue.first()) and first.searcher is not None for queue in self.queues)
                enough = is_anothers or sum(map(len, self.queues)) >= number * MIN_QUEUE_PER_THREAD
                is_free = len(going) + len(taken) < MAX_BATCHES and rows < MAX_ROWS_IN_FLIGHT
                sentences = self._next() if enough and (is_free or self._is_newcomers_turn(going, taken)) else []
                if sentences:
                    taken.append(sentences)
                    rows += sum(sentence.translator.decoding.num_candidates for sentence in sentences)
                elif going or taken:
                    break
                else:
                    self.changed.wait()
        return taken

    def _is_newcomers_turn(self, going: Sequence[RunningBatch], taken: Sequence[Sequence[QueuedSentence]]) -> bool:
        """True if it is the turn of a client who has nothing under way here: it need not wait for the others to end."""
        client = self.queues[0].next_client()
        here = {name for batch in going for name, _ in batch.clients}
        here.update(sentence.handle.client for sentences in taken for sentence in sentences)
        return client is not None and client not in here and len(going) + len(taken) < 2 * MAX_BATCHES

    def _next(self) -> list[QueuedSentence]:
        """Sentences for a batch, of clients in turn; requests go before documents."""
        requests, documents = self.queues
        is_documents_turn = len(documents) and (not len(requests) or next(self._turns) % BACKGROUND_EVERY == 0)
        queue = documents if is_documents_turn else requests
        first = queue.first(self._is_dead)
        if first is None:
            return []
        rows = min(BATCH_ROWS, BATCH_POSITIONS // (first.tokens + len(first.part.prefix) + len(first.part.read)))
        size = 64 if first.searcher else max(1, rows // first.translator.decoding.num_candidates)
        return queue.take(size, self._is_dead)

    def _begin(self, sentences: list[QueuedSentence], going: list[RunningBatch]) -> None:
        first = sentences[0]
        parts = [sentence.part for sentence in sentences]
        try:
            if first.searcher is not None:
                self._finish(sentences, first.searcher.hypotheses(first.translator, parts))
                return
            search = search_of(first.translator, parts, sentences)
            clients = frozenset(sentence.handle.user for sentence in sentences)
            going.append(RunningBatch(sentences, search, next(search), clients))
        except StopIteration as done:
            self._finish(sentences, done.value)
        except Exception as error:
            self._failed(sentences, error)

    def _step(self, going: list[RunningBatch]) -> None:
        """One step of the batches whose turn it is."""
        for batch in [one for one in going if all(sentence.is_dead for sentence in one.sentences)]:
            batch.search.close()
            going.remove(batch)
        began = time.thread_time()
        stepping = turn_of(going, self.processor.searched)
        rows = [(batch, batch.rows) for batch in stepping]
        models: dict[int, list[RunningBatch]] = {}
        for batch in stepping:
            models.setdefault(id(batch.sentences[0].translator.model), []).append(batch)
            going.remove(batch)
        for together in models.values():
            self.on_batch(sum(batch.rows for batch in together))
            for batch, answer in zip(together, self._answers(together), strict=True):
                if isinstance(answer, Exception):
                    self._failed(batch.sentences, answer)
                    continue
                try:
                    batch.inputs = batch.search.send(answer)
                    going.append(batch)
                except StopIteration as finished:
                    self._finish(batch.sentences, finished.value)
                except Exception as error:
                    self._failed(batch.sentences, error)
        self._charge_step(rows, time.thread_time() - began)

    def _charge_step(self, stepped: Sequence[tuple[RunningBatch, int]], seconds: float) -> None:
        """Count the time of a step of batches with so many rows."""
        rows = sum(number for _, number in stepped)
        for batch, number in stepped:
            for user in batch.clients:
                self.processor.searched.charge(user, seconds * number / rows / len(batch.clients))

    def _answers(self, together: list[RunningBatch]) -> Sequence[DecodeStepOutput | Exception]:
        """The model's answer to each batch; where it fails, the error for those that it fails for."""
        model = together[0].sentences[0].translator.model
        try:
            return model.decode_steps([batch.inputs[0] for batch in together], [batch.inputs[1] for batch in together])
        except Exception as error:
            if len(together) == 1:
                return [error]
        return [answer for batch in together for answer in self._answers([batch])]

    def _measure(self, tokens: int) -> None:
        """Measure the speed at source tokens that are done, where more waited since the last ones: for a search, or for
        a turn at what comes before and behind it. (The lock is held.)"""
        now = time.monotonic()
        if self._full_since is not None:
            self.speed.add(tokens, now - self._full_since)
        waiting = max(sum(map(len, self.queues)), self.processor.waiting)
        self._full_since = now if waiting >= FULL_PER_THREAD * self.num_threads else None

    def _finish(self, sentences: Sequence[QueuedSentence], results: Sequence[list[Hypothesis]]) -> None:
        with self.changed:
            self._measure(sum(sentence.tokens for sentence in sentences))
            for sentence in sentences:
                handle = sentence.handle
                handle.left = max(0, handle.left - sentence.tokens)
                self.shares.give(handle.client, max(0, handle.held - handle.left))
                handle.held = min(handle.held, handle.left)
        for sentence, hypotheses in zip(sentences, results, strict=True):
            with suppress(InvalidStateError):
                sentence.result.set_result(hypotheses)
            self.on_done(sentence.translator, len(sentence.part.ids), len(hypotheses[0].ids) if hypotheses else 0)

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
