"""Fairness among clients: nobody takes all of a queue, of a capacity, of the threads."""

import asyncio
import threading
import time
from collections import Counter

import pytest

from dragoman.serve.fairness import (
    MAX_BEGINNINGS,
    Beginnings,
    FairQueue,
    FairThreads,
    Shares,
)


def test_one_client_gets_half_and_whoever_is_new_has_room() -> None:
    shares = Shares()
    shares.take("heavy", shares.room("heavy", 1000))
    assert (shares.total, shares.room("heavy", 1000)) == (500, 0)
    for number in range(6):
        room = shares.room(f"new {number}", 1000)
        assert room > 0
        shares.take(f"new {number}", room)
    assert shares.total < 1000
    shares.give("heavy", 500)
    assert "heavy" not in shares.held
    assert shares.room("heavy", 1000) > 200


def test_clients_who_take_all_that_they_can_end_up_with_equal_shares() -> None:
    shares = Shares()
    for _ in range(200):
        for client in "abc":
            shares.take(client, shares.room(client, 1200))
            shares.give(client, min(20, shares.held[client]))
    assert all(abs(shares.held[client] - 300) < 30 for client in "abc")


def test_clients_take_turns_by_what_they_cost() -> None:
    queue: FairQueue[str] = FairQueue()
    for number in range(6):
        queue.put("heavy", f"heavy {number}", cost=30, kind=("heavy", number))
    for number in range(6):
        queue.put("light", f"light {number}", cost=10, kind=("light", number))
    order = [item.split()[0] for _ in range(12) for item in queue.take()]
    assert order[:8] in (
        ["heavy", "light", "light", "light", "heavy", "light", "light", "light"],
        ["heavy", "light", "light", "light", "light", "heavy", "light", "light"],
    )
    assert queue.take() == []
    assert len(queue) == 0


def test_whoever_comes_late_neither_waits_for_the_others_nor_catches_up() -> None:
    queue: FairQueue[str] = FairQueue()
    for number in range(100):
        queue.put("heavy", f"heavy {number}", kind=number)
    for _ in range(50):
        queue.take()
    for number in range(100):
        queue.put("late", f"late {number}", kind=1000 + number)
    counted = Counter(item.split()[0] for _ in range(20) for item in queue.take())
    assert counted == {"heavy": 10, "late": 10}


def test_leaving_for_a_moment_does_not_pay() -> None:
    queue: FairQueue[str] = FairQueue()
    for number in range(10):
        queue.put("steady", f"steady {number}", cost=10, kind=number)
    served = Counter[str]()
    for number in range(40):
        queue.put("comes and goes", "comes and goes", cost=40, kind=100 + number)  # one at a time
        served.update(queue.take())
    assert sum(count for name, count in served.items() if name.startswith("steady")) == 10


def test_a_batch_is_of_one_kind_and_each_client_gives_as_many() -> None:
    queue: FairQueue[str] = FairQueue()
    for number in range(20):
        queue.put("heavy", f"heavy {number}", kind="wide")
    queue.put("light", "light 0", kind="wide")
    queue.put("other", "other 0", kind="narrow")
    assert sorted(queue.take(64)) == ["heavy 0", "light 0"]
    assert queue.take(64) == ["other 0"]
    assert queue.take(64) == [f"heavy {number}" for number in range(1, 20)]


def test_what_nobody_wants_any_more_is_dropped() -> None:
    queue: FairQueue[str] = FairQueue()
    for name in ("dead 0", "alive 1", "dead 2", "alive 3", "dead 4"):
        queue.put("a", name)
    dead = lambda item: item.startswith("dead")  # noqa: E731
    assert queue.first(dead) == "alive 1"
    assert queue.take(8, dead) == ["alive 1", "alive 3"]
    assert queue.take(8, dead) == []
    assert (len(queue), queue.first(dead)) == (0, None)
    queue.put("a", "left")
    assert queue.clear() == ["left"]
    assert queue.take() == []


def test_no_client_has_all_threads() -> None:
    """starlette#1724: forty slow requests of one client, and everybody waits."""

    async def ask() -> None:
        threads, go_on, begun = FairThreads(4, "test"), threading.Event(), Counter[str]()

        def work(client: str) -> str:
            begun[client] += 1
            assert client == "quick" or go_on.wait(300)
            return client

        slow = [asyncio.ensure_future(threads.run("slow", work, "slow")) for _ in range(20)]
        assert await asyncio.wait_for(threads.run("quick", work, "quick"), 60) == "quick"
        while begun["slow"] < 2:
            await asyncio.sleep(0.001)
        assert begun == {"slow": 2, "quick": 1}
        go_on.set()
        assert await asyncio.gather(*slow) == ["slow"] * 20
        threads.shutdown()

    asyncio.run(ask())


def test_a_turn_is_guessed_from_the_work_before_it() -> None:
    threads, go_on = FairThreads(1, "test"), threading.Event()
    assert threads.seconds_until("a") == 0.0
    first = threads.submit("a", time.sleep, 0.05)
    first.result(300)
    assert threads.seconds_until("a") == 0.0  # nobody waits
    under_way = [threads.submit(client, go_on.wait, 60) for client in "abbb"]
    # A second turn of b's comes after the one of its own, a first one of c's after each other's first.
    assert threads.seconds_until("b") == pytest.approx(3 * threads._seconds)
    assert threads.seconds_until("c") == pytest.approx(threads._seconds)
    assert threads._seconds > 0
    go_on.set()
    assert all(one.result(300) for one in under_way)
    threads.shutdown()


def test_work_that_is_given_up_before_its_turn_is_not_begun() -> None:
    async def ask() -> None:
        threads, go_on, begun = FairThreads(2, "test"), threading.Event(), list[int]()

        def work(number: int) -> None:
            begun.append(number)
            assert go_on.wait(300)

        all_work = [asyncio.ensure_future(threads.run("a", work, number)) for number in range(4)]
        await asyncio.sleep(0)
        all_work[2].cancel()
        await asyncio.wait([all_work[2]])  # it is given up before a thread is free
        go_on.set()
        await asyncio.gather(*all_work, return_exceptions=True)
        assert begun == [0, 1, 3]
        assert await threads.run("b", lambda: 7) == 7  # its place is free again
        threads.shutdown()

    asyncio.run(ask())


def test_a_lease_takes_as_much_as_there_is_room_for_and_gives_all_of_it_back() -> None:
    shares = Shares()
    with shares.lease("a", 100) as take, shares.lease("b", 100) as take_too:
        assert take(30)
        assert take(20)
        assert not take(1)  # half of it is left to others
        assert take_too(25)
        assert not take_too(1)
    assert shares.total == 0
    assert not shares.held


def test_threads_work_for_threads_too() -> None:
    threads, go_on, begun = FairThreads(2, "test"), threading.Event(), list[str]()

    def work(name: str) -> str:
        begun.append(name)
        assert go_on.wait(300)
        return name

    results = [threads.submit(client, work, client + number) for client in "ab" for number in "12"]
    assert results[1].cancel()
    go_on.set()
    assert [one.result(300) for one in results if not one.cancelled()] == ["a1", "b1", "b2"]
    assert set(begun) == {"a1", "b1", "b2"}
    failed = threads.submit("a", lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        failed.result(300)
    assert threads.submit("a", lambda: 7).result(300) == 7
    threads.shutdown()


def test_of_each_client_only_some_requests_begin_in_a_round_of_the_event_loop() -> None:
    """A client that sends thousands of requests at once, each a matter of a millisecond: others come in between."""

    async def scene() -> list[str]:
        beginnings, begun = Beginnings(), list[str]()

        async def one(client: str) -> None:
            await beginnings.begin(client)
            begun.append(client)

        await asyncio.gather(*(one("many") for _ in range(100)), one("single"))
        assert not beginnings._gates
        return begun

    begun = asyncio.run(scene())
    assert len(begun) == 101
    assert begun.index("single") <= MAX_BEGINNINGS
