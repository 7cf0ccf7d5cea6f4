"""Fairness among clients: shares of a capacity, queues whose clients take turns, threads that work for them in turn.

A client is its name here: that of a key, or of an address (`clients.py`).
"""

import asyncio
import itertools
from collections import Counter, deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Turn = tuple[str, asyncio.Future[None]]
"""The client of some work, and a future that is done when it may begin."""

REMEMBERED = 1000
"""Clients, beside those that wait, that a queue remembers what they were served."""


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
    """Threads that work for clients in turn. No client has all of them at once. (Called on an event loop alone.)"""

    def __init__(self, count: int, name: str) -> None:
        self.count = count
        self.per_client = max(1, count - max(1, count // 4))
        """Threads that one client may have at once."""
        self._threads = ThreadPoolExecutor(count, name)
        self._free = count
        self._turns: FairQueue[Turn] = FairQueue()
        self._entered: Counter[str] = Counter()
        """Turns of each client that are waited for or under way: `per_client` at most."""
        self._outside: dict[str, deque[Turn]] = {}
        """Turns of clients who have as many."""

    async def run(self, client: str, work: Callable[..., Result], *given: object) -> Result:
        """The result of `work(*given)`, done in a thread when it is the client's turn."""
        loop = asyncio.get_running_loop()
        turn = client, loop.create_future()
        if self._entered[client] < self.per_client:
            self._enter(turn)
        else:
            self._outside.setdefault(client, deque()).append(turn)
        await turn[1]
        working = self._threads.submit(work, *given)
        working.add_done_callback(lambda _: loop.is_closed() or loop.call_soon_threadsafe(self._end, client))
        return await asyncio.wrap_future(working)

    def shutdown(self) -> None:
        """Wait for the work that is under way; what waits is given up."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _enter(self, turn: Turn) -> None:
        self._entered[turn[0]] += 1
        self._turns.put(turn[0], turn)
        self._begin()

    def _begin(self) -> None:
        while self._free and (taken := self._turns.take()):
            [(client, future)] = taken
            self._free -= 1
            if future.done():  # whoever waited for it has gone
                self._end(client)
            else:
                future.set_result(None)

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
