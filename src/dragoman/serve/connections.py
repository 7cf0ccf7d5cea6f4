"""Connections of clients, bounded in number and in time.

uvicorn closes connections that are kept alive, and nothing else: half a head, a body behind an answer, an answer that
nobody reads hold a connection for ever, and at its limit uvicorn answers 503 to everybody. Here each address has its
share of the connections, the oldest idle connection makes room for a new one, and whoever neither sends nor reads is
closed.
"""

import asyncio
import contextlib
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from dragoman.serve.hosts import network_of
from dragoman.serve.settings import Patience

with contextlib.suppress(ImportError):  # not on Windows
    import resource

OTHER_FILES = 256
"""The number of open files beside the connections."""
SMALL_CHUNKS = 1000
"""Chunks of a body that may be as small as they like."""
CHUNK_BYTES = 16
"""Bytes of a chunk on average, at least, where there are more of them: each takes as long to read as a large one."""


class Connections:
    """The connections of a server, by address, the oldest first."""

    def __init__(self, most: int, patience: Patience) -> None:
        self.most, self.patience = most, patience
        self.total = 0
        self._open: dict[str, dict[BoundedProtocol, None]] = {}

    def protocol(self, **given: Any) -> "BoundedProtocol":
        """A connection as uvicorn makes it."""
        return BoundedProtocol(self, **given)

    def enter(self, one: "BoundedProtocol") -> bool:
        """Take in a connection, in the place of the oldest idle one if need be; False where there is no room for it.

        Of one address there are no more than leave as many free for others.
        """
        own = self._open.setdefault(one.address, {})
        if not self.patience.trusted and len(own) >= self.most - self.total and not self._close_idle(own):
            self._forget(one.address)
            return False
        if self.total >= self.most and not self._close_idle(max(self._open.values(), key=len)):
            self._forget(one.address)
            return False
        self._open.setdefault(one.address, {})[one] = None
        self.total += 1
        return True

    def leave(self, one: "BoundedProtocol") -> None:
        own = self._open.get(one.address, {})
        if one in own:
            del own[one]
            self.total -= 1
            self._forget(one.address)

    def _forget(self, address: str) -> None:
        if not self._open.get(address, True):
            del self._open[address]

    def _close_idle(self, connections: "dict[BoundedProtocol, None]") -> bool:
        """Close the connection that came first of those that nothing is asked on; False where there is none."""
        idle = next((one for one in connections if one.is_idle), None)
        if idle is not None:
            self.leave(idle)
            idle.transport.close()
        return idle is not None


def most_connections(wished: int = 1000) -> int:
    """As many connections as the system lets this process have, `wished` at most."""
    with contextlib.suppress(NameError, ValueError, OSError):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        enough = wished + OTHER_FILES
        if soft < enough:
            soft = enough if hard == resource.RLIM_INFINITY else min(hard, enough)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return max(16, min(wished, soft - OTHER_FILES))
    return wished


class BoundedReader(h11.Connection):
    """A reader of requests that does not take bodies in crumbs."""

    chunks = 0
    chunk_bytes = 0

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            self.chunks = self.chunk_bytes = 0
        elif isinstance(event, h11.Data):
            self.chunks += 1
            self.chunk_bytes += len(event.data)
            if self.chunks > SMALL_CHUNKS and self.chunk_bytes < CHUNK_BYTES * self.chunks:
                raise h11.RemoteProtocolError("a body in crumbs")
        return event


class BoundedProtocol(H11Protocol):
    """A connection that is closed if its client is too slow."""

    def __init__(self, connections: Connections, **given: Any) -> None:
        super().__init__(**given)
        self.conn = BoundedReader(h11.SERVER, self.config.h11_max_incomplete_event_size or 65536)
        self.connections_of_all, self.patience = connections, connections.patience
        self.address = ""
        self._late_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        """True if no request is under way: no request has arrived completely, or the last request is answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = network_of(self.client[0] if self.client else "")
        if self.connections_of_all.enter(self):
            self._head_timer = self._close_after(self.patience.head_seconds)
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.connections_of_all.leave(self)
        self._stop_head_timer()
        self._stop_read_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        try:
            super().data_received(data)
        except h11.LocalProtocolError:  # a wrong request behind an answer that has begun
            self.transport.abort()
            return
        if not self.is_idle:
            self._stop_head_timer()
            self._late_bytes = 0
            return
        self._late_bytes += len(data)
        if self._late_bytes > self.patience.late_bytes:
            self.transport.abort()
        elif self._head_timer is None:
            self._head_timer = self._close_after(self.patience.head_seconds)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.is_idle and self.conn.their_state is h11.SEND_BODY and self._head_timer is None:
            self._head_timer = self._close_after(self.patience.head_seconds)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._read_timer is None:
            self._read_timer = self.loop.call_later(self.patience.read_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_read_timer()
        super().resume_writing()

    def _close_after(self, seconds: float) -> asyncio.TimerHandle:
        def close() -> None:
            self._head_timer = None
            if self.is_idle:
                self.transport.close()

        return self.loop.call_later(seconds, close)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None
