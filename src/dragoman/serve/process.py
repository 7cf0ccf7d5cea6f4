"""The process of a server: it listens, reloads at SIGHUP, and stops politely at SIGTERM."""

import asyncio
import contextlib
import ctypes
import signal
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace

import torch
import uvicorn

from dragoman.errors import Error
from dragoman.progress import say
from dragoman.serve.app import create_app
from dragoman.serve.settings import Settings
from dragoman.serve.state import Server

ARENAS = 4
"""Heaps that threads share: each with one of its own keeps what it freed, and memory grows with every thread."""
OWN_PAGES = 4 * 2**20
"""Bytes from which on a piece of memory has pages of its own, which go back when it is freed. The C library's own limit
grows up to 32 MiB, and then large tensors leave holes between small ones; at 1 MiB new pages would cost a sixth of the
speed (docs/log.md)."""
GRACE_S = 15
"""Seconds that requests under way have to end in."""


class _Uvicorn(uvicorn.Server):
    """A uvicorn that stops at SIGTERM and Ctrl-C, and leaves the exit code to us."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {kind: signal.signal(kind, self.handle_exit) for kind in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for kind, handler in before.items():
                signal.signal(kind, handler)


def run_server(
    settings: Settings, host: str, port: int, *, behind_proxy: bool = False, access_log: bool = False
) -> None:
    """Serve until the process is told to stop. Raises DragomanError where the address is taken."""
    with contextlib.suppress(OSError, AttributeError):  # of glibc alone: M_ARENA_MAX, M_MMAP_THRESHOLD
        ctypes.CDLL(None).mallopt(-8, ARENAS)
        ctypes.CDLL(None).mallopt(-3, OWN_PAGES)
    listening = _listen(host, port)
    app = create_app(replace(settings, threads=settings.threads or torch.get_num_threads()))
    torch.set_num_threads(1)  # the engine's threads are what works side by side
    server: Server = app.state.server
    config = uvicorn.Config(
        app, log_level="info" if access_log else "warning", access_log=access_log, proxy_headers=behind_proxy,
        server_header=False, timeout_graceful_shutdown=GRACE_S, timeout_keep_alive=30, limit_concurrency=1000,
        lifespan="on", h11_max_incomplete_event_size=65536,
    )  # fmt: skip
    with contextlib.suppress(AttributeError, ValueError):  # no SIGHUP there, or not in the main thread
        signal.signal(signal.SIGHUP, lambda *_: threading.Thread(target=server.reload, daemon=True).start())
    bound = listening.getsockname()
    shown = "localhost" if host in ("127.0.0.1", "0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    say(f"the page: http://{shown}:{bound[1]}/  (Ctrl-C stops)")
    process = _Uvicorn(config)

    def give_up() -> None:
        process.should_exit = True

    server.on_problem = give_up
    asyncio.run(process.serve(sockets=[listening]))
    if server.problem and not server.ready:
        raise server.problem


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
