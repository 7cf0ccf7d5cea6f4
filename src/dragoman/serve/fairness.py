"""Fairness among clients: shares of a capacity, queues whose clients take turns, threads that work for them in turn.
(Of processor time: `processor.py`.) A client is its name here: that of a key, or of an address (`clients.py`).
"""

import asyncio
import functools
import itertools
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Name = TypeVar("Name")

MAX_REMEMBERED_CLIENTS = 1000
"""Clients, beside those that wait, that a queue remembers what they were served."""
MAX_BEGINNINGS = 4
"""Requests of a client that begin in one round of the event loop, at most: each takes about a millisecond."""
MEAN_OF = 20
"""Pieces of work that the mean of their seconds is of, about."""


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


def take_off(counter: Counter[Name], name: Name) -> None:
    """Count one less; a key with the count 0 is deleted."""
    counter[name] -= 1
    if not counter[name]:
        del counter[name]


class FairQueue(Generic[Item]):
    """A queue for each client; whoever was served least is next (start-time fair queueing).

    Each item has a kind. Items of the same kind can be taken together. The items of a client come in their order.
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

    def next_client(self, may: Callable[[str], bool] = lambda client: True) -> str | None:
        """The client whose turn it is, among eligible clients; None if no eligible client waits."""
        return min(filter(may, self._queues), key=self._served.__getitem__, default=None)

    def ahead(self, client: str) -> int:
        """About the number of items that are taken before an item that the client would put in now."""
        own = sum(map(len, self._queues.get(client, {}).values()))
        return min(self._length, (own + 1) * len(self._queues.keys() | {client}) - 1)

    def first(self, is_dead: Callable[[Item], bool] = lambda item: False) -> Item | None:
        """The oldest item of the client whose turn it is; dead ones before it go. None if nobody waits."""
        while (client := self.next_client()) is not None:
            kind = self._oldest_kind(client)
            item = self._queues[client][kind][0][2]
            if not is_dead(item):
                return item
            self._pop(client, kind)
        return None

    def take_of(self, client: str) -> Item:
        """The oldest item of a client who waits."""
        self._clock = self._served[client]
        cost, item = self._pop(client, self._oldest_kind(client))
        self._served[client] += cost
        self._forget()
        return item

    def take(self, most: int = 1, is_dead: Callable[[Item], bool] = lambda item: False) -> list[Item]:
        """The first item and others of its kind, at most `most`. Dead items before them are dropped. Each of several
        clients gives equally many items: no client shares a batch with all items of another client.
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
        """Forget clients whose account equals a new client's."""
        if len(self._served) > 2 * len(self._queues) + MAX_REMEMBERED_CLIENTS:
            self._served = Counter({
                client: served for client, served in self._served.items()
                if client in self._queues or served > self._clock
            })  # fmt: skip

    def clear(self) -> list[Item]:
        """Empty the queue: everything that waited, in no order."""
        left = [item for queues in self._queues.values() for queue in queues.values() for _, _, item in queue]
        self._queues, self._length = {}, 0
        return left


class Beginnings:
    """Beginnings of requests on an event loop: of each client no more than `MAX_BEGINNINGS` in one round of the loop,
    however many it has sent, and of one who has more than these in half of the loop's time. What the loop itself does
    for each, nobody else gets a turn at meanwhile."""

    def __init__(self) -> None:
        self._gates: dict[str, asyncio.Semaphore] = {}
        self._here: Counter[str] = Counter()
        """For each client, the requests that are about to begin."""

    async def begin(self, client: str) -> None:
        """Wait until a client's next request may begin: a round of the loop, two where more of its own wait."""
        self._here[client] += 1
        try:
            async with self._gates.setdefault(client, asyncio.Semaphore(MAX_BEGINNINGS)):
                began = time.monotonic()
                await asyncio.sleep(0)
                if self._here[client] > MAX_BEGINNINGS:
                    await asyncio.sleep(time.monotonic() - began)
        finally:
            take_off(self._here, client)
            if client not in self._here:
                del self._gates[client]


class FairThreads:
    """Threads that work for clients in turn. A client has as many of them at once as it leaves free (`Shares`)."""

    def __init__(
        self,
        count: int,
        name: str,
        on_turn: Callable[[str], None] = lambda client: None,
        on_start: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_turn` is called for each piece of work, `on_start` in each thread."""
        self.count, self._on_turn = count, on_turn
        self._threads = ThreadPoolExecutor(count, name, on_start)
        self._turns: FairQueue[Callable[[], None]] = FairQueue()
        self._held: Counter[str] = Counter()
        """Threads that each client has."""
        self._free = count
        self._seconds = 0.0
        """Seconds that a piece of work takes, the mean of the last ones."""
        self._lock = threading.Lock()

    def submit(self, client: str, work: Callable[..., Result], *given: object) -> Future[Result]:
        """The result of `work(*given)`, done in a thread when it is the client's turn; not at all if that is given up
        before."""
        result: Future[Result] = Future()
        with self._lock:
            self._turns.put(client, functools.partial(self._do, client, result, work, *given))
            self._begin()
        return result

    async def run(self, client: str, work: Callable[..., Result], *given: object) -> Result:
        """The same for an event loop."""
        return await asyncio.wrap_future(self.submit(client, work, *given))

    def seconds_until(self, client: str) -> float:
        """Seconds until the turn of work that the client would submit now, about."""
        return self._turns.ahead(client) * self._seconds / self.count if self._turns else 0.0

    def _do(self, client: str, result: Future[Result], work: Callable[..., Result], *given: object) -> None:
        began = time.monotonic()
        if result.set_running_or_notify_cancel():
            self._on_turn(client)
            try:
                result.set_result(work(*given))
            except BaseException as error:
                result.set_exception(error)
            self._seconds += (time.monotonic() - began - self._seconds) / MEAN_OF
        with self._lock, suppress(RuntimeError):  # the server ends: nobody gets a turn any more
            self._free += 1
            take_off(self._held, client)
            self._begin()

    def shutdown(self) -> None:
        """Wait for the work that is under way; what waits is given up."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _begin(self) -> None:
        """Begin with the work of clients whose turn it is. (The lock is held.)"""
        while (client := self._turns.next_client(lambda one: self._held[one] < self._free)) is not None:
            self._free -= 1
            self._held[client] += 1
            self._threads.submit(self._turns.take_of(client))
