"""The process of a server: it listens, reloads at SIGHUP, and stops politely at SIGTERM, but not for ever."""

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import FrameType

import torch
import uvicorn

from dragoman.errors import Error
from dragoman.progress import say
from dragoman.serve.app import create_app
from dragoman.serve.connections import Connections, most_connections
from dragoman.serve.corrector import taken
from dragoman.serve.logs import CONFIGURATION
from dragoman.serve.settings import Settings
from dragoman.serve.state import Server

MALLOC_ARENAS = 4
"""Heaps that threads share: each with one of its own keeps what it freed, and memory grows with every thread."""
OWN_PAGES = 4 * 2**20
"""Bytes from which on a piece of memory has pages of its own, which go back when it is freed. The C library's own limit
grows up to 32 MiB, and then large tensors leave holes between small ones; at 1 MiB new pages would cost a sixth of the
speed (benchmarks/log/2026-11.md, "a server's speed")."""
SWITCH_SECONDS = 2e-5
"""Seconds after which a thread that computes in Python lets another one go on. A search asks for its turn after each
operation of PyTorch: with Python's 5 ms, two clients whose texts need no search made everybody wait
(benchmarks/log/2026-11.md, "a server for the open internet")."""
GRACE_S = 15
"""Seconds that requests under way have to end in; a second before, they are given up."""
END_S = 18.0
"""Seconds after which the process ends, even if a thread works on that nothing stops."""


class _Uvicorn(uvicorn.Server):
    """A uvicorn that stops at SIGTERM and Ctrl-C, at a second one without waiting, and leaves the exit code to us."""

    def __init__(self, config: uvicorn.Config, give_up: Callable[[], None], end: Callable[[], None]) -> None:
        """`give_up`: ends requests under way; `end`: the process."""
        super().__init__(config)
        self.give_up, self.end, self.ending = give_up, end, False

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # `signals` has them, for longer than uvicorn serves

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """Within, signals end the server; after one, while the interpreter ends, further ones change nothing."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {kind: signal.signal(kind, self.handle_exit) for kind in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for kind, handler in before.items():
                signal.signal(kind, signal.SIG_IGN if self.ending else handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.ending:
            self.end()
        self.ending = self.should_exit = True
        for seconds, action in ((GRACE_S - 1, self.give_up), (END_S, self.end)):
            timer = threading.Timer(seconds, action)
            timer.daemon = True
            timer.start()


def run_server(
    settings: Settings, host: str, port: int, *, behind_proxy: bool = False, access_log: bool = False
) -> None:
    """Serve until the process is told to stop. Raises DragomanError where the address is taken."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # of glibc alone: M_ARENA_MAX, M_MMAP_THRESHOLD
        ctypes.CDLL(None).mallopt(-8, MALLOC_ARENAS)
        ctypes.CDLL(None).mallopt(-3, OWN_PAGES)
    listening = _listen(host, port)
    settings = replace(settings, threads=settings.threads or torch.get_num_threads(), access_log=access_log)
    app = create_app(settings)
    torch.set_num_threads(1)  # the engine's threads are what works side by side
    sys.setswitchinterval(SWITCH_SECONDS)
    server: Server = app.state.server
    config = uvicorn.Config(
        app, log_config=CONFIGURATION, access_log=False, proxy_headers=behind_proxy, server_header=False,
        timeout_graceful_shutdown=GRACE_S, timeout_keep_alive=30, lifespan="on", h11_max_incomplete_event_size=65536,
    )  # fmt: skip
    config.load()
    connections = Connections(most_connections(), replace(settings.patience, trusted=behind_proxy))
    config.http_protocol_class = connections.protocol  # type: ignore[assignment]
    with contextlib.suppress(AttributeError, ValueError):  # no SIGHUP there, or not in the main thread
        signal.signal(signal.SIGHUP, lambda *_: threading.Thread(target=server.reload, daemon=True).start())
    bound = listening.getsockname()
    shown = "localhost" if host in ("127.0.0.1", "0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    say(f"the page: http://{shown}:{bound[1]}/  (Ctrl-C stops)")
    say(taken(settings))

    def end() -> None:
        """End the process at once: no thread is waited for, and clients' documents are deleted."""
        server.tasks.delete()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(0)

    process = _Uvicorn(config, server.give_up, end)

    def stop() -> None:
        process.should_exit = True

    server.on_problem = stop
    with process.signals():
        asyncio.run(process.serve(sockets=[listening]))
        if server.problem and not server.ready:
            raise server.problem
        if process.ending and server.is_loading:  # PyTorch's threads do not outlive the interpreter quietly
            end()


def _listen(host: str, port: int) -> socket.socket:
    try:
        kind, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(kind, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(512)
    except OSError as error:
        raise Error.CANNOT_LISTEN(
            f"{host}:{port}: cannot listen there: {error.strerror or error}", "choose another `port`"
        ) from error
    return listening
