"""The processor of a server: one thread or few compute for clients at a time, and whoever has used least is next.

All of them compute under Python's lock. With sixty threads that want it at once, most of the time is spent on handing
it around, the event loop gets it seldom, and a search, which asks for it after each operation of PyTorch, hardly ever.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from dragoman.serve.fairness import MAX_REMEMBERED_CLIENTS, take_off

User = tuple[str, bool]
"""A client, and whether its work is in the background, that of documents."""

BACKGROUND_WEIGHT = 8
"""Processor time of a document counts so many times."""
CREDIT_SECONDS = 0.5
"""Seconds that a client who comes back has used less than all who are here, at most."""
AHEAD_SECONDS = 0.2
"""Whoever has used so much more than those who search, on average, gives way to their searches."""
SLICE_SECONDS = 0.002
"""Processor time after which work in Python looks whether it is another's turn."""
GIVE_WAY_SECONDS = 0.05
"""Seconds that everybody may give way to searches for: then one slice is computed all the same."""
REQUEST_SECONDS = 0.005
"""Processor time that a request takes on the event loop, where it cannot be measured: what reads and answers it."""
NICENESS = 5
"""Of threads that compute for clients. Were they as urgent as the event loop, it would wait up to 3 ms for a processor
each time that it has let go of Python's lock: ten times in a request."""
LOST_SECONDS = 0.05
"""Seconds after which a thread that does not look is taken to wait for something: another one computes too."""


def after_the_event_loop() -> None:
    """Let the event loop, which all answers go through, go before this thread on the processors."""
    with suppress(AttributeError, OSError):  # of Linux alone: elsewhere all threads of a process are as urgent
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


@dataclass(eq=False)
class Turn:
    """A thread's turn at the processor, wished for or had."""

    user: User
    looked: float = 0.0
    """When it began, or looked last (`time.monotonic`)."""
    computed: float = 0.0
    """Processor time of its thread then (`time.thread_time`)."""
    gate: threading.Lock = field(default_factory=threading.Lock)
    """Locked until it begins."""


class Used:
    """Seconds that clients have used of something. As in Linux's scheduler a client who comes back begins about where
    the others are: what was used while nobody else was there does not count. Whoever comes for the first time gets no
    credit, or many new addresses would keep everybody else waiting.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds: dict[User, float] = {}
        self._here: Counter[User] = Counter()
        """The number of things that each client has under way."""
        self._level = 0.0
        """The least that a client who is here has used; it never falls."""

    def __call__(self, user: User) -> float:
        """The seconds that a client has used; a new one as many as whoever is here and has used least."""
        return max(self._seconds.get(user, self._level), self._level - CREDIT_SECONDS)

    def least(self, users: Collection[User]) -> float:
        """The processor seconds of the client that has used least."""
        return min(map(self, users))

    def charge(self, user: User, seconds: float) -> None:
        """Count seconds that a client has used. (Without the lock: a few milliseconds that are lost where two threads
        come at once do not matter.)"""
        self._seconds[user] = self(user) + seconds * (BACKGROUND_WEIGHT if user[1] else 1)

    @contextmanager
    def here(self, user: User) -> Iterator[None]:
        """Within, a client has something under way."""
        with self._lock:
            self._level = max(self._level, self.least(self._here or {user}))
            self._seconds[user] = self(user)
            self._here[user] += 1
        try:
            yield
        finally:
            with self._lock:
                take_off(self._here, user)
                if len(self._seconds) > len(self._here) + MAX_REMEMBERED_CLIENTS:
                    self._seconds = {one: self._seconds[one] for one in self._here}


class ProcessorTime:
    """Processor time of clients, and turns at it: whoever used least is next.

    A thread has a turn while it computes, slice by slice; not while it waits. Work of clients who have used more than
    those who search gives way to searches: each thread that computes in Python beside a search makes it slower.

    Work in Python and steps of searches are counted apart, as they have places of their own: somebody who is translated
    need not wait for those who are not (Ghodsi et al., "Dominant Resource Fairness", 2011).
    """

    def __init__(self, places: int = 1) -> None:
        """`places`: threads that compute at a time."""
        self.places = places
        self.used, self.searched = Used(), Used()
        """Seconds of work in Python, and seconds of steps."""
        self._lock = threading.Lock()
        self._searching: Counter[User] = Counter()
        """Searches under way."""
        self._waiting: list[Turn] = []
        self._under_way: list[Turn] = []
        self._gave_way = time.monotonic()
        """When a turn began last that gives way to searches."""
        self._is_watched = False
        self._thread = threading.local()
        """For each thread, the turn that it has."""

    @property
    def waiting(self) -> int:
        """The number of threads that wait for their turn."""
        return len(self._waiting)

    @contextmanager
    def computing(self, user: User) -> Iterator[None]:
        """Within, a client has something under way, this thread has a turn, and what it computes counts."""
        with self.used.here(user):
            self._begin(user)
            try:
                yield
            finally:
                self._end()

    def look(self) -> None:
        """Let another thread have this one's turn, if it has computed for a slice and somebody is before it. It costs
        less than a microsecond where it has not."""
        turn: Turn | None = getattr(self._thread, "turn", None)
        if turn is None or time.monotonic() - turn.looked < SLICE_SECONDS:
            return
        self._count(turn)
        others, seconds = tuple(self._waiting), self.used(turn.user)  # at once: other threads change them
        is_anothers = turn not in self._under_way or any(self.used(one.user) < seconds for one in others)
        if is_anothers or not self._goes_before_searches(turn.user):
            self._end()
            self._begin(turn.user)

    @contextmanager
    def idle(self) -> Iterator[None]:
        """Within, this thread computes nothing: others do."""
        turn: Turn | None = getattr(self._thread, "turn", None)
        if turn is None:
            yield
            return
        self._end()
        try:
            yield
        finally:
            self._begin(turn.user)

    @contextmanager
    def searching(self, user: User) -> Iterator[None]:
        """Within, a search by PyTorch goes on for a client, and this thread waits for it."""
        with self._lock:
            self._searching[user] += 1
        try:
            with self.searched.here(user), self.idle():
                try:
                    yield
                finally:
                    with self._lock:
                        take_off(self._searching, user)
        finally:
            self._begin_next()

    def _count(self, turn: Turn) -> None:
        """Charge what a thread has computed since it looked last."""
        computed = time.thread_time()
        self.used.charge(turn.user, computed - turn.computed)
        turn.looked, turn.computed = time.monotonic(), computed

    def _begin(self, user: User) -> None:
        """Wait for a turn of this thread's, and have it."""
        turn = Turn(user)
        turn.gate.acquire()
        with self._lock:
            self._waiting.append(turn)
        self._begin_next()
        with self._lock:
            if self._waiting and not self._is_watched:
                self._is_watched = True
                threading.Thread(target=self._watch, name="turns", daemon=True).start()
        turn.gate.acquire()
        turn.looked, turn.computed = time.monotonic(), time.thread_time()
        self._thread.turn = turn

    def _end(self) -> None:
        """End this thread's turn."""
        turn: Turn = self._thread.turn
        self._thread.turn = None
        self._count(turn)
        with self._lock:
            if turn in self._under_way:
                self._under_way.remove(turn)
        self._begin_next()

    def _watch(self) -> None:
        """Begin turns that no other one's end begins, as long as somebody waits."""
        while True:
            time.sleep(LOST_SECONDS)
            self._begin_next()
            with self._lock:
                self._is_watched = bool(self._waiting)
                if not self._is_watched:
                    return

    def _begin_next(self) -> None:
        """Begin turns of those who have used least, as far as there are places."""
        with self._lock:
            if not self._waiting:
                return
            now = time.monotonic()
            self._under_way = [one for one in self._under_way if now - one.looked < LOST_SECONDS]
            while self._waiting and len(self._under_way) < self.places:
                seconds = [self.used(turn.user) for turn in self._waiting]
                turn = self._waiting[seconds.index(min(seconds))]  # of one client the one that came first
                if not self._goes_before_searches(turn.user):
                    if now - self._gave_way < GIVE_WAY_SECONDS:
                        return
                    self._gave_way = now
                self._waiting.remove(turn)
                turn.looked = now
                self._under_way.append(turn)
                turn.gate.release()

    def _goes_before_searches(self, user: User) -> bool:
        """True if a client has not used much more than those whose searches are under way."""
        searching = tuple(self._searching)  # at once: other threads change it
        return not searching or self.used(user) <= sum(map(self.used, searching)) / len(searching) + AHEAD_SECONDS
