"""Turns at the processor of a server."""

import threading
import time

import pytest

from dragoman.serve.processor import CREDIT_SECONDS, GIVE_WAY_SECONDS, ProcessorTime, Used


def test_a_client_who_comes_back_begins_about_where_the_others_are() -> None:
    a, b, document = ("a", False), ("b", False), ("a", True)
    used = Used()
    with used.here(a):
        used.charge(a, 100.0)  # while nobody else is there
        with used.here(b), used.here(document):
            assert used(a) == used(b) == used(document)  # new ones have no credit
            used.charge(b, 1.0)
            used.charge(document, 0.25)  # it counts more
            assert used.least([a, b, document]) == used(a)
            assert used(b) - used(a) == pytest.approx(1.0)
            assert used(document) - used(b) == pytest.approx(1.0)
        used.charge(a, 100.0)
        with used.here(b):
            assert used(a) - used(b) == pytest.approx(CREDIT_SECONDS)
    for number in range(3000):
        with used.here((str(number), False)):
            pass
    assert len(used._seconds) <= 1001


def test_work_gives_way_to_the_search_of_a_client_who_has_used_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bystander's line beside a client whose glossaries, warnings or links compute in Python."""
    monkeypatch.setattr("dragoman.serve.processor.GIVE_WAY_SECONDS", 60.0)
    monkeypatch.setattr("dragoman.serve.processor.SLICE_SECONDS", 0.0)
    used, events = ProcessorTime(), list[str]()
    heavy, light = ("heavy", False), ("light", False)
    used.used.charge(heavy, 1.0)
    used.used.charge(light, 0.0)

    def work() -> None:
        with used.computing(heavy):
            events.append("heavy works")

    thread = threading.Thread(target=work)
    with used.computing(light), used.searching(light):
        with used.computing(light):
            used.look()  # nobody has used less
            events.append("light works")
        thread.start()
        thread.join(0.05)
        events.append("light has its answer")
    thread.join(300)
    assert events == ["light works", "light has its answer", "heavy works"]


def test_steps_of_searches_do_not_count_as_work_in_python() -> None:
    """Whoever is translated need not wait for those who only have their languages told."""
    used, translated = ProcessorTime(), ("translated", False)
    with used.computing(translated):
        used.searched.charge(translated, 1.0)
        assert used.used(translated) < 0.5


def test_work_that_gives_way_goes_on_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.serve.processor.SLICE_SECONDS", 0.0)
    used = ProcessorTime()
    used.used.charge(("heavy", False), 1.0)
    used.used.charge(("light", False), 0.0)
    with used.searching(("light", False)), used.computing(("heavy", False)):
        used.look()  # which ends, though the search does not
        assert GIVE_WAY_SECONDS < 1.0


def test_one_thread_computes_at_a_time_and_whoever_used_least_is_next() -> None:
    used, begun = ProcessorTime(), list[str]()
    for name, seconds in (("much", 3.0), ("some", 2.0), ("little", 1.0)):
        used.used.charge((name, False), seconds)

    def work(name: str) -> None:
        with used.computing((name, False)):
            begun.append(name)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("much", "some", "little")]
    with used.computing(("first", False)):
        for thread in threads:
            thread.start()
        while len(used._waiting) < 3:
            time.sleep(0.001)
            used.look()
            used._under_way[0].looked = time.monotonic()  # however long that takes on this machine
        assert begun == []
    for thread in threads:
        thread.join(300)
    assert begun == ["little", "some", "much"]


def another(used: ProcessorTime) -> tuple[threading.Thread, threading.Event]:
    """A thread of another client, and whether it has computed."""
    over = threading.Event()

    def work() -> None:
        with used.computing(("other", False)):
            over.set()

    return threading.Thread(target=work), over


def test_whoever_waits_for_something_else_lets_others_compute() -> None:
    """A store that another process holds, a document's process: `cancellation.idle`."""
    used = ProcessorTime()
    thread, over = another(used)
    with used.computing(("patient", False)), used.idle():
        thread.start()
        assert over.wait(300)
    thread.join(300)


def test_a_thread_that_does_not_look_is_not_waited_for() -> None:
    used = ProcessorTime()
    thread, over = another(used)
    with used.computing(("blocked", False)):
        thread.start()
        assert over.wait(300)
    thread.join(300)
