"""The scheduler of a server: the same bytes alone or in any mix, and nobody waits for what nobody wants any more."""

import random
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.errors import raises_error

from dragoman.alignment.term_placement import bound
from dragoman.decoding.base import Hypothesis, SampledConfig
from dragoman.errors import Error
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Part
from dragoman.serve.scheduler import BatchScheduler, Cancelled, DeadlineExceeded, Overloaded, RequestHandle
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


def test_answers_of_mixed_requests_are_those_of_each_sentence_alone(
    translator: SearchTranslator, scheduler: BatchScheduler
) -> None:
    lines = sentences(120)
    greedy = translator.with_decoding(beam_size=1)
    alone = {1: [greedy.n_best([line]) for line in lines], 5: [translator.n_best([line]) for line in lines]}

    def ask(request: int) -> None:
        rng = random.Random(request)
        beam = rng.choice([1, 5])
        rows = [rng.randrange(len(lines)) for _ in range(rng.randint(1, 9))]
        mine = RequestHandle(scheduler, background=rng.random() < 0.3).on({1: greedy, 5: translator}[beam])
        assert mine.n_best([lines[row] for row in rows]) == [alone[beam][row][0] for row in rows]

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(ask, range(150)))


def test_terms_samples_and_beginnings_go_through_the_engine(
    translator: SearchTranslator, scheduler: BatchScheduler
) -> None:
    lines = sentences(6)
    others = [
        bound(translator, Glossary({"hund": "könig"})),
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
            given_up.result(timeout=5)
        assert kept.result(timeout=30) == expected
    deadline = time.monotonic() + 5
    while (scheduler.waiting[0] or scheduler.waiting[1]) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not scheduler.waiting[0]


@pytest.mark.parametrize("with_terms", [True, False])
def test_a_request_that_is_given_up_takes_no_row_after_the_step_under_way(
    translator: SearchTranslator, monkeypatch: pytest.MonkeyPatch, with_terms: bool
) -> None:
    lines = [f"der {word} hund sieht {other} mann" for word in ("alte", "rote", "kleine") for other in ("ein", "der")]
    termed = bound(translator, Glossary({"hund": "könig"}))
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
            rows.append(sum(len(batch.asked[0]) for batch in going))
            return done

        with monkeypatch.context() as patched, ThreadPoolExecutor(3) as threads:
            patched.setattr(BatchScheduler, "_step", counted)
            results = [threads.submit(live[0].on(termed).n_best, lines)]
            results.append(threads.submit(live[1].on(translator).n_best, lines))
            if give_up:
                first = threads.submit(given_up.on(termed if with_terms else translator).n_best, lines)
            while len(scheduler.waiting[0]) < len(lines) * (2 + give_up):
                time.sleep(0.001)
            with scheduler:
                if give_up:
                    with pytest.raises(Cancelled):
                        first.result(timeout=60)
                assert [one.result(timeout=60) for one in results] == expected
        return rows

    undisturbed, disturbed = rows_of_each_step(False), rows_of_each_step(True)
    assert disturbed[2] > undisturbed[2]
    assert disturbed[4:] == undisturbed[4:]


def test_a_batch_that_fails_while_the_scheduler_stops_holds_nobody(
    translator: SearchTranslator, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = BatchScheduler(threads=1)
    begun, stopping = threading.Event(), threading.Event()

    def fails(self: SearchTranslator, parts: list[Part], rules: Sequence[Any] = ()) -> None:
        begun.set()
        assert stopping.wait(60)
        raise RuntimeError("poison")

    monkeypatch.setattr(SearchTranslator, "begin", fails)
    with ThreadPoolExecutor(2) as threads:
        with scheduler:
            waiting = threads.submit(RequestHandle(scheduler).on(translator).n_best, ["der hund", "der mann"])
            assert begun.wait(60)
            stop = threads.submit(scheduler.__exit__)
            while not scheduler.is_stopped:
                time.sleep(0.001)
            stopping.set()
            stop.result(timeout=60)
        with pytest.raises(Cancelled):
            waiting.result(timeout=60)


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
    begin = SearchTranslator.begin

    def poisoned(self: SearchTranslator, parts: list, rules: list = []):  # type: ignore[no-untyped-def, type-arg]  # noqa: B006
        if any(part.ids == bad for part in parts):
            raise RuntimeError("poison")
        return begin(self, parts, rules)

    monkeypatch.setattr(SearchTranslator, "begin", poisoned)
    with ThreadPoolExecutor(8) as threads:
        waiting = [threads.submit(RequestHandle(scheduler).on(translator).n_best, [line]) for line in lines]
        for row, future in enumerate(waiting):
            if row == 4:
                with pytest.raises(RuntimeError, match="poison"):
                    future.result(timeout=20)
            else:
                assert future.result(timeout=20) == [expected[row]]


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
        assert [future.result(timeout=30) for future in small] == expected
        for future in large:
            with pytest.raises(RuntimeError, match="no memory"):
                future.result(timeout=30)


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
    while not scheduler.waiting[1]:
        time.sleep(0.001)
    with scheduler:
        time.sleep(0.05)
        threads.append(threading.Thread(target=ask, args=(requests, "request", lines[:2])))
        threads[1].start()
        for thread in threads:
            thread.join(timeout=60)
    assert order == ["request", "document"]


def test_more_work_than_can_be_done_soon_is_refused_at_once(scheduler: BatchScheduler) -> None:
    scheduler.speed.tokens_per_second = 100.0
    with scheduler.admitted(10_000):  # alone it is taken, whatever its size
        began = time.monotonic()
        with pytest.raises(Overloaded) as told, scheduler.admitted(1):
            pass
        assert time.monotonic() - began < 0.05
        assert told.value.retry_after == 50.0
    with scheduler.admitted(300), scheduler.admitted(100):
        assert scheduler.admitted_tokens == 400
    assert scheduler.admitted_tokens == 0


def test_a_stopped_engine_answers_nobody_and_holds_nobody(translator: SearchTranslator) -> None:
    scheduler = BatchScheduler(threads=1)
    with scheduler, ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(RequestHandle(scheduler).on(translator).n_best, sentences(500))
        time.sleep(0.02)
        scheduler.__exit__()
        with pytest.raises(Cancelled):
            waiting.result(timeout=5)
    with pytest.raises(Cancelled):
        RequestHandle(scheduler).on(translator).n_best(["der hund"])


def test_what_a_search_cannot_find_is_told_as_always(translator: SearchTranslator, scheduler: BatchScheduler) -> None:
    with raises_error(Error.UNKNOWN_TOKEN):
        RequestHandle(scheduler).on(translator).n_best(["der hund"], ["汉字"])


def test_another_engine_searches_for_several_requests_at_once(translator: SearchTranslator) -> None:
    calls: list[int] = []

    class Other:
        """An engine that is asked through the same door."""

        def hypotheses(self, asked: SearchTranslator, parts: Sequence[Part]) -> list[list[Hypothesis]]:
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
