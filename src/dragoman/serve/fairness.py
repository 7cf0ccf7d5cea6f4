"""Fairness among clients: shares of a capacity, processor time, queues whose clients take turns, threads that work for
them in turn.

A client is its name here: that of a key, or of an address (`clients.py`).
"""

import asyncio
import functools
import itertools
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Turn = tuple[str, Callable[[], None]]
"""A client, and work for it."""

User = tuple[str, bool]
"""A client, and whether its work is in the background, that of documents."""

REMEMBERED = 1000
"""Clients, beside those that wait, that a queue remembers what they were served."""
BACKGROUND_WEIGHT = 8
"""Processor time of a document counts so many times."""
CREDIT_SECONDS = 0.5
"""Seconds that a client who comes back has used less than all who are here, at most."""
AHEAD_SECONDS = 0.2
"""Whoever has used so much more than those who search, on average, gives way to their searches."""
SLICE_SECONDS = 0.002
"""Processor time after which work in Python looks whether it has to give way."""
GIVE_WAY_SECONDS = 0.05
"""Seconds that it gives way for, at most: then it goes on for a slice."""
REQUEST_SECONDS = 0.005
"""Processor time that a request takes on the event loop, where it cannot be measured: what reads and answers it."""


class Shares:
    """A capacity that clients share: each may hold as much as it leaves free. So one client gets half of it, two get a
    third each, and somebody new always has room (Choudhury and Hahne, "Dynamic queue length thresholds", 1998)."""

    def __init__(self) -> None:
        self.held: Counter[str] = Counter()
        """The amount that each client holds."""
        self.total = 0

    def room(self, client: str, capacity: float) -> int:
        """The most that a client may take now."""
        return max(0, int(capacity - self.total - self.held[client]) // 2)

    def take(self, client: str, amount: int) -> None:
        self.held[client] += amount
        self.total += amount

    def give(self, client: str, amount: int) -> None:
        """Give back what was taken."""
        self.take(client, -amount)
        if self.held[client] <= 0:
            del self.held[client]

    @contextmanager
    def lease(self, client: str, capacity: float) -> Iterator[Callable[[int], bool]]:
        """A function that takes more of a capacity for a client, and is False where there is no room for it. What was
        taken is given back at the end of the block."""
        taken = 0

        def take(amount: int) -> bool:
            nonlocal taken
            if amount > self.room(client, capacity):
                return False
            self.take(client, amount)
            taken += amount
            return True

        try:
            yield take
        finally:
            self.give(client, taken)


class ProcessorTime:
    """Processor time that clients have used, and who goes first: whoever used least. As in Linux's scheduler a client
    who comes back begins about where the others are: what was used while nobody else was there does not count. Whoever
    comes for the first time gets no credit, or many new addresses would keep everybody else waiting.

    A search asks for Python's lock after each operation of PyTorch, so each thread that computes in Python beside it
    makes it slower. Therefore requests of clients who have used more give way while searches go on, slice by slice.
    """

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._used: dict[User, float] = {}
        """Seconds of each client."""
        self._here: Counter[User] = Counter()
        """The number of things that each client has under way."""
        self._level = 0.0
        """The least that a client who is here has used; it never falls."""
        self._searching: Counter[User] = Counter()
        """Searches under way."""
        self._giving_way = 0
        """Threads that do so."""
        self._thread = threading.local()
        """Of each thread that computes for a client: when it looked last, and what it had computed then."""

    def used(self, user: User) -> float:
        """The seconds that a client has used; a new one as many as whoever is here and has used least."""
        return max(self._used.get(user, self._level), self._level - CREDIT_SECONDS)

    def least(self, users: Collection[User]) -> float:
        """The seconds of the client that has used least."""
        return min(map(self.used, users))

    def charge(self, user: User, seconds: float) -> None:
        """Count seconds that a client has used."""
        with self._lock:
            self._used[user] = self.used(user) + seconds * (BACKGROUND_WEIGHT if user[1] else 1)

    @contextmanager
    def computing(self, user: User) -> Iterator[None]:
        """Within, a client has something under way, and what this thread computes counts for it."""
        mine = self._thread
        with self._lock:
            self._level = max(self._level, self.least(self._here or {user}))
            self._used[user] = self.used(user)
            self._here[user] += 1
        self._give_way(user)
        mine.looked, mine.computed = time.monotonic(), time.thread_time()
        try:
            yield
        finally:
            self.charge(user, time.thread_time() - mine.computed)
            # A handler computes within its thread's `computing` and its request's: nothing counts twice.
            mine.looked, mine.computed = float("inf"), time.thread_time()
            with self._lock:
                _take_off(self._here, user)
                if len(self._used) > len(self._here) + REMEMBERED:
                    self._used = {one: self._used[one] for one in self._here}

    def look(self, user: User) -> None:
        """Give way, if this thread has computed for a slice. It costs less than a microsecond where it has not."""
        now, mine = time.monotonic(), self._thread
        if now - getattr(mine, "looked", now) < SLICE_SECONDS:
            return
        self.charge(user, time.thread_time() - mine.computed)
        self._give_way(user)
        mine.looked, mine.computed = time.monotonic(), time.thread_time()

    @contextmanager
    def searching(self, user: User) -> Iterator[None]:
        """Within, a search goes on for a client, and this thread waits for it."""
        with self._lock:
            self._searching[user] += 1
        try:
            yield
        finally:
            with self._lock:
                _take_off(self._searching, user)
                if self._giving_way:
                    self._lock.notify_all()

    def _give_way(self, user: User) -> None:
        """Wait while searches go on for clients who have used less on average; for a slice each GIVE_WAY_SECONDS one of
        the threads that do so goes on all the same."""
        with self._lock:
            if self._is_next(user):
                return
            self._giving_way += 1
            try:
                self._lock.wait_for(lambda: self._is_next(user), GIVE_WAY_SECONDS * self._giving_way)
            finally:
                self._giving_way -= 1

    def _is_next(self, user: User) -> bool:
        if not self._searching:
            return True
        return self.used(user) <= sum(map(self.used, self._searching)) / len(self._searching) + AHEAD_SECONDS


def _take_off(counter: Counter[User], user: User) -> None:
    counter[user] -= 1
    if not counter[user]:
        del counter[user]


class FairQueue(Generic[Item]):
    """A queue for each client; whoever was served least is next (start-time fair queueing).

    Each item is of a kind, and items of one kind can be taken together. Those of a client come in their order.
    """

    def __init__(self) -> None:
        self._queues: dict[str, dict[Hashable, deque[tuple[int, int, Item]]]] = {}
        """Of each client that waits, and each kind: number, cost and item."""
        self._served: Counter[str] = Counter()
        """The cost of what each client was served, as if all had been here from the beginning."""
        self._clock = 0
        """The cost that the client whose turn was last had been served before: a new client begins there."""
        self._numbers = itertools.count()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def put(self, client: str, item: Item, cost: int = 1, kind: Hashable = None) -> None:
        if client not in self._queues:
            self._queues[client] = {}
            self._served[client] = max(self._served[client], self._clock)
        self._queues[client].setdefault(kind, deque()).append((next(self._numbers), cost, item))
        self._length += 1

    def next_client(self) -> str | None:
        """The client whose turn it is; None if nobody waits."""
        return min(self._queues, key=self._served.__getitem__, default=None)

    def first(self, is_dead: Callable[[Item], bool] = lambda item: False) -> Item | None:
        """The oldest item of the client whose turn it is; dead ones before it go. None if nobody waits."""
        while (client := self.next_client()) is not None:
            kind = self._oldest_kind(client)
            item = self._queues[client][kind][0][2]
            if not is_dead(item):
                return item
            self._pop(client, kind)
        return None

    def take(self, most: int = 1, is_dead: Callable[[Item], bool] = lambda item: False) -> list[Item]:
        """The first item and others of its kind, `most` at most; dead ones that stand before them go.

        Of several clients each gives equally many: nobody shares a batch with all that another client has.
        """
        if self.first(is_dead) is None:
            return []
        leader = min(self._queues, key=self._served.__getitem__)
        kind = self._oldest_kind(leader)
        self._clock = self._served[leader]
        clients = sorted((one for one, queues in self._queues.items() if kind in queues), key=self._served.__getitem__)
        taken: list[Item] = []
        while clients and len(taken) < most:
            for client in clients[: most - len(taken)]:
                taken += self._next_of(client, kind, is_dead)
            if any(kind not in self._queues.get(client, ()) for client in clients):
                break  # one has no more to give
        self._forget()
        return taken

    def _oldest_kind(self, client: str) -> Hashable:
        queues = self._queues[client]
        return min(queues, key=lambda kind: queues[kind][0][0])

    def _next_of(self, client: str, kind: Hashable, is_dead: Callable[[Item], bool]) -> list[Item]:
        """The client's next item of a kind, in a list; none if there is none alive."""
        while kind in self._queues.get(client, ()):
            cost, item = self._pop(client, kind)
            if not is_dead(item):
                self._served[client] += cost
                return [item]
        return []

    def _pop(self, client: str, kind: Hashable) -> tuple[int, Item]:
        queues = self._queues[client]
        _, cost, item = queues[kind].popleft()
        self._length -= 1
        if not queues[kind]:
            del queues[kind]
        if not queues:
            del self._queues[client]
        return cost, item

    def _forget(self) -> None:
        """Forget clients that nothing is known of that a new one would not begin with."""
        if len(self._served) > 2 * len(self._queues) + REMEMBERED:
            self._served = Counter({
                client: served for client, served in self._served.items()
                if client in self._queues or served > self._clock
            })  # fmt: skip

    def clear(self) -> list[Item]:
        """Empty the queue: everything that waited, in no order."""
        left = [item for queues in self._queues.values() for queue in queues.values() for _, _, item in queue]
        self._queues, self._length = {}, 0
        return left


class FairThreads:
    """Threads that work for clients in turn. No client has all of them at once."""

    def __init__(self, count: int, name: str, processor: ProcessorTime | None = None) -> None:
        """`processor`: counts what clients use it for, REQUEST_SECONDS more for each."""
        self.count = count
        self._processor = processor
        self.per_client = max(1, count - max(1, count // 4))
        """Threads that one client may have at once."""
        self._threads = ThreadPoolExecutor(count, name)
        self._free = count
        self._turns: FairQueue[Turn] = FairQueue()
        self._entered: Counter[str] = Counter()
        """Turns of each client that are waited for or under way: `per_client` at most."""
        self._outside: dict[str, deque[Turn]] = {}
        """Turns of clients who have as many."""
        self._lock = threading.Lock()

    def submit(self, client: str, work: Callable[..., Result], *given: object) -> Future[Result]:
        """The result of `work(*given)`, done in a thread when it is the client's turn; not at all if that is given up
        before."""
        result: Future[Result] = Future()
        turn = client, functools.partial(self._do, client, result, work, *given)
        with self._lock:
            if self._entered[client] < self.per_client:
                self._enter(turn)
            else:
                self._outside.setdefault(client, deque()).append(turn)
        return result

    async def run(self, client: str, work: Callable[..., Result], *given: object) -> Result:
        """The same for an event loop."""
        return await asyncio.wrap_future(self.submit(client, work, *given))

    def _do(self, client: str, result: Future[Result], work: Callable[..., Result], *given: object) -> None:
        if result.set_running_or_notify_cancel():
            try:
                result.set_result(self._work(client, work, *given))
            except BaseException as error:
                result.set_exception(error)
        with self._lock, suppress(RuntimeError):  # the server ends: nobody gets a turn any more
            self._end(client)

    def _work(self, client: str, work: Callable[..., Result], *given: object) -> Result:
        if self._processor is None:
            return work(*given)
        self._processor.charge((client, False), REQUEST_SECONDS)
        with self._processor.computing((client, False)):
            return work(*given)

    def shutdown(self) -> None:
        """Wait for the work that is under way; what waits is given up."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _enter(self, turn: Turn) -> None:
        self._entered[turn[0]] += 1
        self._turns.put(turn[0], turn)
        self._begin()

    def _begin(self) -> None:
        while self._free and (taken := self._turns.take()):
            self._free -= 1
            self._threads.submit(taken[0][1])

    def _end(self, client: str) -> None:
        self._free += 1
        self._entered[client] -= 1
        if not self._entered[client]:
            del self._entered[client]
        if outside := self._outside.get(client):
            self._enter(outside.popleft())
            if not outside:
                del self._outside[client]
        self._begin()
