"""The scheduler of a server: the same bytes alone or in any mix, and nobody waits for what nobody wants any more."""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.errors import raises_error

from dragoman.alignment.term_placement import with_glossary
from dragoman.decoding.base import Hypothesis, SampledConfig
from dragoman.errors import Error
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Segment
from dragoman.serve import scheduler as scheduling
from dragoman.serve.processor import AHEAD_SECONDS, Used
from dragoman.serve.scheduler import (
    BATCH_POSITIONS,
    FRESH_SECONDS,
    RECOVERY_SECONDS,
    BatchScheduler,
    Cancelled,
    DeadlineExceeded,
    Overloaded,
    QueuedSentence,
    RequestHandle,
    Speed,
    TooMuch,
    turn_of,
)
from dragoman.text.glossary import Glossary

RUN = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"
WORDS = [
    *("der", "die", "das", "ein", "kleine", "rote", "alte", "hund", "könig", "mann", "frau", "sieht", "hört", "und"),
    *("heute", "will"),
]


@pytest.fixture(scope="module")
def translator() -> SearchTranslator:
    return SearchTranslator.load(RUN, device="cpu")


@pytest.fixture
def scheduler() -> Iterator[BatchScheduler]:
    with BatchScheduler(threads=2) as running:
        yield running


def sentences(count: int, seed: int = 1) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(1, 14))) for _ in range(count)]


@pytest.mark.system
def test_answers_of_mixed_requests_are_those_of_each_sentence_alone(
    translator: SearchTranslator, scheduler: BatchScheduler
) -> None:
    lines = sentences(30)
    greedy = translator.with_decoding(beam_size=1)
    alone = {1: [greedy.n_best([line]) for line in lines], 5: [translator.n_best([line]) for line in lines]}

    def ask(request: int) -> None:
        rng = random.Random(request)
        beam = rng.choice([1, 5])
        rows = [rng.randrange(len(lines)) for _ in range(rng.randint(1, 6))]
        mine = RequestHandle(scheduler, background=rng.random() < 0.3).on({1: greedy, 5: translator}[beam])
        assert mine.n_best([lines[row] for row in rows]) == [alone[beam][row][0] for row in rows]

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(ask, range(30)))


def test_terms_samples_and_beginnings_go_through_the_engine(
    translator: SearchTranslator, scheduler: BatchScheduler
) -> None:
    lines = sentences(6)
    others = [
        with_glossary(translator, Glossary({"hund": "könig"})),
        translator.with_decoding(sampling=SampledConfig(samples=2)),
        translator.with_decoding(no_repeat_ngram=2, beam_size=3, n_best=3),
    ]
    for other in others:
        assert RequestHandle(scheduler).on(other).n_best(lines) == other.n_best(lines)
    beginnings = ["der", "", "ein", "die", "", "das"]
    assert RequestHandle(scheduler).on(translator).n_best(lines, beginnings) == translator.n_best(lines, beginnings)


def test_a_request_that_is_given_up_frees_its_rows_and_harms_no_other(
    translator: SearchTranslator, scheduler: BatchScheduler
) -> None:
    lines = sentences(40)
    expected = translator.n_best(lines)
    slow, quick = RequestHandle(scheduler), RequestHandle(scheduler)
    with ThreadPoolExecutor(2) as threads:
        given_up = threads.submit(slow.on(translator).n_best, lines * 40)
        kept = threads.submit(quick.on(translator).n_best, lines)
        time.sleep(0.05)
        slow.cancel()
        with pytest.raises(Cancelled):
            given_up.result(timeout=300)
        assert kept.result(timeout=300) == expected
    deadline = time.monotonic() + 300
    while (len(scheduler.queues[0]) or len(scheduler.queues[1])) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(scheduler.queues[0]) == 0


@pytest.mark.parametrize("with_terms", [True, False])
def test_a_request_that_is_given_up_takes_no_row_after_the_step_under_way(
    translator: SearchTranslator, monkeypatch: pytest.MonkeyPatch, with_terms: bool
) -> None:
    lines = [f"der {word} hund sieht {other} mann" for word in ("alte", "rote", "kleine") for other in ("ein", "der")]
    termed = with_glossary(translator, Glossary({"hund": "könig"}))
    expected = [termed.n_best(lines), translator.n_best(lines)]

    def rows_of_each_step(give_up: bool) -> list[int]:
        """The rows under way after each step: of two live requests, and of one that is given up before step 4."""
        scheduler, rows = BatchScheduler(threads=1), list[int]()
        given_up, live = RequestHandle(scheduler), [RequestHandle(scheduler) for _ in range(2)]
        step = BatchScheduler._step

        def counted(self: BatchScheduler, going: list[Any]) -> int:
            if len(rows) == 3:
                given_up.cancel()
            done = step(self, going)
            rows.append(sum(len(batch.inputs[0]) for batch in going))
            return done

        with monkeypatch.context() as patched, ThreadPoolExecutor(3) as threads:
            patched.setattr(BatchScheduler, "_step", counted)
            results = [threads.submit(live[0].on(termed).n_best, lines)]
            results.append(threads.submit(live[1].on(translator).n_best, lines))
            if give_up:
                first = threads.submit(given_up.on(termed if with_terms else translator).n_best, lines)
            while len(scheduler.queues[0]) < len(lines) * (2 + give_up):
                time.sleep(0.001)
            with scheduler:
                if give_up:
                    with pytest.raises(Cancelled):
                        first.result(timeout=300)
                assert [one.result(timeout=300) for one in results] == expected
        return rows

    undisturbed, disturbed = rows_of_each_step(False), rows_of_each_step(True)
    assert disturbed[2] > undisturbed[2]
    assert disturbed[4:] == undisturbed[4:]


def test_a_batch_that_fails_while_the_scheduler_stops_holds_nobody(
    translator: SearchTranslator, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = BatchScheduler(threads=1)
    begun, stopping = threading.Event(), threading.Event()

    def fails(*_: Any) -> None:
        begun.set()
        assert stopping.wait(300)
        raise RuntimeError("poison")

    monkeypatch.setattr(scheduling, "search_of", fails)
    with ThreadPoolExecutor(2) as threads:
        with scheduler:
            waiting = threads.submit(RequestHandle(scheduler).on(translator).n_best, ["der hund", "der mann"])
            assert begun.wait(300)
            stop = threads.submit(scheduler.__exit__)
            while not scheduler.is_stopped:
                time.sleep(0.001)
            stopping.set()
            stop.result(timeout=300)
        with pytest.raises(Cancelled):
            waiting.result(timeout=300)


def test_a_request_past_its_deadline_is_told(translator: SearchTranslator, scheduler: BatchScheduler) -> None:
    with pytest.raises(DeadlineExceeded):
        RequestHandle(scheduler, time.monotonic() + 0.02).on(translator).n_best(sentences(2000))
    with pytest.raises(DeadlineExceeded):
        RequestHandle(scheduler, time.monotonic() - 1).on(translator).n_best(["der hund"])
    assert RequestHandle(scheduler).on(translator).translate(["der hund"]) == translator.translate(["der hund"])


def test_one_poisoned_sentence_among_eight_fails_alone(
    translator: SearchTranslator, scheduler: BatchScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = sentences(8, seed=3)
    expected = translator.n_best(lines)
    bad = translator.tokenizers.src.encode(lines[4])
    begin = scheduling.search_of

    def poisoned(translator: SearchTranslator, parts: list[Segment], queued: Sequence[QueuedSentence]) -> Any:
        if any(part.ids == bad for part in parts):
            raise RuntimeError("poison")
        return begin(translator, parts, queued)

    monkeypatch.setattr(scheduling, "search_of", poisoned)
    with ThreadPoolExecutor(8) as threads:
        waiting = [threads.submit(RequestHandle(scheduler).on(translator).n_best, [line]) for line in lines]
        for row, future in enumerate(waiting):
            if row == 4:
                with pytest.raises(RuntimeError, match="poison"):
                    future.result(timeout=300)
            else:
                assert future.result(timeout=300) == [expected[row]]


def test_a_step_that_fails_fails_for_those_it_fails_for(
    translator: SearchTranslator, scheduler: BatchScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    greedy = translator.with_decoding(beam_size=1)  # at most 12 rows a step here, and 13 at least with a beam of 13
    wide = translator.with_decoding(beam_size=13)
    lines = sentences(12)
    expected = [greedy.n_best([line]) for line in lines]
    together = translator.model.decode_steps

    def fails(prevs: list[Any], states: list[Any]) -> Any:
        if any(len(prev) >= 13 for prev in prevs):
            raise RuntimeError("no memory")
        return together(prevs, states)

    monkeypatch.setattr(translator.model, "decode_steps", fails)
    with ThreadPoolExecutor(24) as threads:
        small = [threads.submit(RequestHandle(scheduler).on(greedy).n_best, [line]) for line in lines]
        large = [threads.submit(RequestHandle(scheduler).on(wide).n_best, [line]) for line in lines]
        assert [future.result(timeout=300) for future in small] == expected
        for future in large:
            with pytest.raises(RuntimeError, match="no memory"):
                future.result(timeout=300)


@pytest.mark.parametrize("callback", ["on_batch", "on_done"])
def test_a_fault_outside_of_a_batch_ends_what_is_under_way_and_not_the_thread(
    translator: SearchTranslator, callback: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    faults = iter([RuntimeError("secret"), RuntimeError("secret")])

    def fails(*_: object) -> None:
        if (fault := next(faults, None)) is not None:
            raise fault

    with BatchScheduler(threads=1) as scheduler:
        monkeypatch.setattr(scheduler, callback, fails)
        handles = [RequestHandle(scheduler).on(translator) for _ in range(3)]
        for handle in handles[:2]:
            with pytest.raises(RuntimeError, match="secret"):
                handle.n_best(["hund", "mann"])
        assert handles[2].n_best(["hund", "mann"]) == translator.n_best(["hund", "mann"])
    log = capsys.readouterr().err
    assert log.count("RuntimeError") == 2
    assert "secret" not in log


def test_requests_come_before_documents_and_documents_come_all_the_same(
    translator: SearchTranslator,
) -> None:
    scheduler = BatchScheduler(threads=1)
    lines = sentences(30)
    order: list[str] = []
    documents, requests = RequestHandle(scheduler, background=True), RequestHandle(scheduler)

    def ask(handle: RequestHandle, name: str, texts: list[str]) -> None:
        handle.on(translator).n_best(texts)
        order.append(name)

    threads = [threading.Thread(target=ask, args=(documents, "document", lines * 20))]
    threads[0].start()
    while not len(scheduler.queues[1]):
        time.sleep(0.001)
    with scheduler:
        time.sleep(0.05)
        threads.append(threading.Thread(target=ask, args=(requests, "request", lines[:2])))
        threads[1].start()
        for thread in threads:
            thread.join(timeout=300)
    assert order == ["request", "document"]


@pytest.fixture
def measured() -> BatchScheduler:
    """A scheduler of 125 tokens a second, which takes in 600 tokens for a deadline of 8 s. It does not run."""
    scheduler = BatchScheduler(threads=1)
    scheduler.speed = Speed(125.0, 125.0, measured=True)
    return scheduler


def test_more_than_can_be_done_in_time_is_refused_with_what_could_be(measured: BatchScheduler) -> None:
    """huggingface/text-embeddings-inference#662: lists passed the check that single texts did not."""
    with pytest.raises(TooMuch) as refused, measured.admitted(RequestHandle(measured, client="a"), 1200):
        pass
    assert refused.value.share == 0.25
    with measured.admitted(RequestHandle(measured, client="a"), 300):
        assert measured.shares.total == 300
    assert measured.shares.total == 0
    with measured.admitted(RequestHandle(measured, client="a"), 1200, is_small=True):  # a single text is tried
        assert measured.shares.room("b", 600) > 0


def test_a_client_waits_for_its_own_work_and_leaves_room_for_others(measured: BatchScheduler) -> None:
    with measured.admitted(RequestHandle(measured, client="heavy"), 300):
        with (
            pytest.raises(Overloaded) as refused,
            measured.admitted(RequestHandle(measured, client="heavy"), 300, is_small=True),
        ):
            pass
        assert refused.value.retry_after == 2.4
        with measured.admitted(RequestHandle(measured, client="bystander"), 100):
            with measured.admitted(RequestHandle(measured, client="bystander"), 20):
                pass
            with pytest.raises(Overloaded) as refused, measured.admitted(RequestHandle(measured, client="new"), 250):
                pass
            assert refused.value.retry_after == 3.6  # (250 - 100) tokens, of which a third of the speed is its own


def test_what_there_is_no_room_for_is_refused_by_its_size(measured: BatchScheduler) -> None:
    """Before it is read: to read it takes as long as a part of a search. What is large is judged by its tokens."""
    with measured.admitted(RequestHandle(measured, client="heavy"), 300):
        measured.check_room("new", 1_000_000)
        with measured.admitted(RequestHandle(measured, client="other"), 150):
            measured.check_room("new", 100)
            with (
                measured.admitted(RequestHandle(measured, client="another"), 75),
                measured.admitted(RequestHandle(measured, client="one more"), 37),
            ):
                measured.check_room("new", 10)
                with pytest.raises(Overloaded):
                    measured.check_room("new", 300)


def test_a_request_that_is_given_up_holds_nothing_whatever_its_thread_does(measured: BatchScheduler) -> None:
    handle = RequestHandle(measured, client="a")
    with measured.admitted(handle, 100):
        pass
    measured.correct(handle, 150)
    measured.correct(handle, 1000)
    assert measured.shares.total == 0


def test_a_slow_text_does_not_keep_others_out_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is refused is not measured: the speed that a few slow texts had is believed less and less."""
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    speed = Speed()
    speed.guess(1000, 1.0)
    speed.add(1000, 100.0)
    assert speed.tokens_per_second == 10.0
    now += FRESH_SECONDS + 3 * RECOVERY_SECONDS
    assert speed.tokens_per_second == 80.0
    now += 10_000
    assert speed.tokens_per_second == 1000.0  # as when it was warm, and no more


def test_before_the_speed_is_measured_nothing_is_too_much() -> None:
    scheduler = BatchScheduler(threads=1)
    with scheduler.admitted(RequestHandle(scheduler, client="a"), 10**6):
        with scheduler.admitted(RequestHandle(scheduler, client="b"), 1000):
            pass
        with pytest.raises(Overloaded), scheduler.admitted(RequestHandle(scheduler, client="a"), 1):
            pass


def test_a_request_with_many_more_tokens_than_was_guessed_is_admitted_anew(measured: BatchScheduler) -> None:
    handle = RequestHandle(measured, client="a")
    with measured.admitted(handle, 100):
        measured.correct(handle, 150)
        assert measured.shares.held == {"a": 150}
        with pytest.raises(TooMuch):
            measured.correct(handle, 2000)
        with measured.admitted(RequestHandle(measured, client="b"), 300):
            pass
    assert measured.shares.total == 0


def test_what_is_done_is_no_longer_held(translator: SearchTranslator, measured: BatchScheduler) -> None:
    handle = RequestHandle(measured, client="a")
    parts = [QueuedSentence(translator, None, Segment(list(range(4, 13)), []), handle) for _ in range(20)]
    with measured.admitted(handle, 220):
        measured.correct(handle, sum(part.tokens for part in parts))
        measured._finish(parts[:15], [[] for _ in range(15)])
        assert (measured.shares.total, handle.left) == (220 - 150, 220 - 150)
        measured._finish(parts[15:], [[] for _ in range(5)])
    assert measured.shares.total == 0


def test_what_can_no_longer_be_done_in_time_is_not_begun(
    translator: SearchTranslator, measured: BatchScheduler
) -> None:
    late = RequestHandle(measured, time.monotonic() + 60, client="late")
    lines = sentences(30)
    with ThreadPoolExecutor(1) as threads, measured.admitted(late, 300):
        late.left = 100_000
        waiting = threads.submit(late.on(translator).n_best, lines)
        while len(measured.queues[0]) < len(lines):
            time.sleep(0.001)
        assert measured._next() == []
        with pytest.raises(DeadlineExceeded):
            waiting.result(timeout=300)


def test_a_single_sentence_does_not_wait_for_a_client_with_many(translator: SearchTranslator) -> None:
    """The list of one client is under way on every row; another client's sentence is done long before it."""
    scheduler = BatchScheduler(threads=1)
    heavy, light = RequestHandle(scheduler, client="heavy"), RequestHandle(scheduler, client="light")
    order: list[str] = []

    def ask(handle: RequestHandle, texts: list[str]) -> None:
        handle.on(translator).n_best(texts)
        order.append(handle.client)

    threads = [threading.Thread(target=ask, args=(heavy, sentences(900)))]
    threads[0].start()
    while len(scheduler.queues[0]) < 900:
        time.sleep(0.001)
    threads.append(threading.Thread(target=ask, args=(light, ["der hund"])))
    step, seen = BatchScheduler._step, list[set[str]]()

    def watched(self: BatchScheduler, going: list[Any]) -> int:
        if len(seen) == 1:
            threads[1].start()
            while "light" not in self.queues[0]._queues:
                time.sleep(0.001)
        seen.append({client for batch in going for client, _ in batch.clients})
        return step(self, going)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(BatchScheduler, "_step", watched)
        with scheduler:
            for thread in threads:
                thread.join(timeout=300)
    assert order == ["light", "heavy"]
    assert "light" in seen[2]  # though more rows than ever begin were under way


def test_steps_are_shared_by_time_where_they_are_large() -> None:
    def batch(rows: int, *clients: str, background: bool = False) -> Any:
        return SimpleNamespace(rows=rows, clients=frozenset((client, background) for client in clients))

    used, had, heavy, light = Used(), Counter[str](), batch(640, "heavy"), batch(5, "light")
    used.charge(("heavy", False), 0.01)
    assert turn_of([batch(100, "heavy"), light], used) == [light, batch(100, "heavy")]  # small enough for all
    assert turn_of([heavy, light], used) == [light]
    used.charge(("heavy", False), AHEAD_SECONDS)
    assert turn_of([batch(100, "heavy"), light], used) == [light]  # who used much more waits all the same
    used.charge(("light", False), AHEAD_SECONDS)

    def step(going: list[Any]) -> None:
        users = [user for one in turn_of(going, used) for user in one.clients]
        had.update(name for name, _ in users)
        for user in users:
            used.charge(user, 0.005 if user[0] == "light" else 0.05)

    for _ in range(400):
        step([heavy, light])
    assert had["light"] / had["heavy"] == pytest.approx(10, rel=0.2)
    document = batch(640, "document", background=True)
    used, had = Used(), Counter()
    for _ in range(400):
        step([heavy, document])
    assert had["heavy"] / had["document"] == pytest.approx(8, rel=0.3)


def test_a_stopped_engine_answers_nobody_and_holds_nobody(translator: SearchTranslator) -> None:
    scheduler = BatchScheduler(threads=1)
    with scheduler, ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(RequestHandle(scheduler).on(translator).n_best, sentences(500))
        time.sleep(0.02)
        scheduler.__exit__()
        with pytest.raises(Cancelled):
            waiting.result(timeout=300)
    with pytest.raises(Cancelled):
        RequestHandle(scheduler).on(translator).n_best(["der hund"])


def test_what_a_search_cannot_find_is_told_as_always(translator: SearchTranslator, scheduler: BatchScheduler) -> None:
    with raises_error(Error.UNKNOWN_TOKEN):
        RequestHandle(scheduler).on(translator).n_best(["der hund"], ["汉字"])


def test_another_engine_searches_for_several_requests_at_once(translator: SearchTranslator) -> None:
    calls: list[int] = []

    class Other:
        """An engine that is asked through the same door."""

        def hypotheses(self, asked: SearchTranslator, parts: Sequence[Segment]) -> list[list[Hypothesis]]:
            calls.append(len(parts))
            time.sleep(0.05)
            return asked.searched_by(None).hypotheses(parts)

    lines = sentences(12)
    expected = translator.n_best(lines)
    other = translator.searched_by(Other())
    with BatchScheduler(threads=1) as scheduler, ThreadPoolExecutor(12) as threads:
        found = list(threads.map(lambda line: RequestHandle(scheduler).on(other).n_best([line])[0], lines))
    assert found == expected
    assert sum(calls) == 12
    assert len(calls) < 12


def test_long_sentences_go_in_smaller_batches(
    translator: SearchTranslator, scheduler: BatchScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text of 5,000 brackets took 217 MiB: a hundred rows of 532 tokens, whose caches all grew together."""
    begun: list[tuple[int, int]] = []
    begin = scheduling.search_of

    def counted(translator: SearchTranslator, parts: list[Segment], queued: Sequence[QueuedSentence]) -> Any:
        begun.append((len(parts), len(parts[0].ids)))
        return begin(translator, parts, queued)

    monkeypatch.setattr(scheduling, "search_of", counted)
    long = " ".join(WORDS * 8)
    lines = [f"{long} {word}" for word in WORDS]
    found = RequestHandle(scheduler).on(translator.with_decoding(beam_size=40, max_length_ratio=0.1)).translate(lines)
    assert len(found) == len(lines)
    assert all(count * 40 * tokens <= BATCH_POSITIONS for count, tokens in begun)
    assert len(begun) > 1
