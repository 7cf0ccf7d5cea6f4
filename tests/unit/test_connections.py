"""Connections with real sockets: those that neither send nor read are closed, and an address has its share of them."""

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import uvicorn

from dragoman.serve.connections import Connections, most_connections
from dragoman.serve.logs import CONFIGURATION
from dragoman.serve.settings import Patience

QUICK = Patience(head_seconds=0.3, read_seconds=0.3, late_bytes=100_000)
LASTING = Patience(head_seconds=60, read_seconds=60)
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answers at `/` with the body that was sent, at `/early` before it was read, at `/much` with 64 MiB."""
    if scope["path"] == "/slow":
        await asyncio.sleep(60)
    body, more = b"", scope["path"] != "/early"
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body, more = body + message.get("body", b""), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    for _ in range(1024 if scope["path"] == "/much" else 0):
        await send({"type": "http.response.body", "body": bytes(65536), "more_body": True})
    await send({"type": "http.response.body", "body": b"%d" % len(body)})


@contextlib.contextmanager
def served(most: int, patience: Patience) -> Iterator[tuple[int, Connections]]:
    """The port of a server, and its connections."""
    config = uvicorn.Config(application, lifespan="off", log_config=CONFIGURATION, timeout_keep_alive=60)
    config.load()
    connections = Connections(most, patience)
    config.http_protocol_class = connections.protocol  # type: ignore[assignment]
    server = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign, assignment]
    thread.start()
    try:
        yield listening.getsockname()[1], connections
    finally:
        server.should_exit = server.force_exit = True
        thread.join(300)
        listening.close()


def connect(port: int, source: str = "127.0.0.1") -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), timeout=300, source_address=(source, 0))
    client.settimeout(60)
    return client


def answer(client: socket.socket, request: bytes) -> bytes:
    """The answer to a request as far as it comes at once; nothing where the connection is closed."""
    try:
        client.sendall(request)
        return client.recv(65536)
    except OSError:
        return b""


def is_closed(client: socket.socket) -> bool:
    """Wait until the server closes a connection."""
    try:
        while client.recv(65536):
            pass
    except ConnectionError:
        return True
    return True


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET / HTTP/1.1\r\nHost: x\r\nX-A: ", b"POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"],
)
def test_whoever_sends_no_whole_request_is_closed(sent: bytes) -> None:
    """xorbitsai/inference#5213, Kludex/uvicorn#1332: half a head, or nothing, held a connection for ever."""
    with served(100, QUICK) as (port, _), connect(port) as client:
        client.sendall(sent)
        assert is_closed(client)
        with connect(port) as other:
            assert b"200" in answer(other, GET)


def test_drops_of_a_head_do_not_hold_a_connection() -> None:
    with served(100, QUICK) as (port, _), connect(port) as client:
        stopped = threading.Event()

        def drip() -> None:
            with contextlib.suppress(OSError):
                client.sendall(b"GET / HTTP/1.1\r\n")
                while not stopped.wait(0.02):
                    client.sendall(b"X-A: b\r\n")

        thread = threading.Thread(target=drip)
        thread.start()
        assert is_closed(client)
        stopped.set()
        thread.join(300)


def test_an_answer_that_nobody_reads_is_ended() -> None:
    """pgjones/hypercorn#262: a client that did not read held its answer for ever."""
    with served(100, QUICK) as (port, connections), connect(port) as client:
        client.sendall(b"GET /much HTTP/1.1\r\nHost: x\r\n\r\n")
        while connections.total:  # the server gives the connection up though the client holds it
            time.sleep(0.01)


def test_a_body_in_crumbs_is_refused_and_one_in_fair_pieces_is_taken() -> None:
    """twisted/twisted#6149, hyperium/hyper#4008: a chunk of one byte costs as much as a large one."""
    head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    with served(100, LASTING) as (port, _):
        with connect(port) as client:
            assert b"200" in answer(client, head + b"1\r\nx\r\n" * 900 + b"0\r\n\r\n")
        with connect(port) as client:
            assert b"200" not in answer(client, head + b"1\r\nx\r\n" * 5000 + b"0\r\n\r\n")
        with connect(port) as client:
            assert b"200" in answer(client, head + (b"40\r\n" + bytes(64) + b"\r\n") * 2000 + b"0\r\n\r\n")


def test_pipelined_requests_are_answered_in_their_order() -> None:
    with served(100, LASTING) as (port, _), connect(port) as client:
        sizes = [3, 1, 2]
        client.sendall(
            b"".join(
                b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (size, b"a" * size) for size in sizes
            )
        )
        data = b""
        while data.count(b"HTTP/1.1 200") < 3 or not data.endswith(b"0\r\n\r\n"):
            data += client.recv(65536)
        assert [int(part.split(b"\r\n")[1]) for part in data.split(b"\r\n\r\n")[1::2]] == sizes


def test_a_body_that_goes_on_after_its_answer_ends() -> None:
    with served(100, replace(LASTING, late_bytes=100_000)) as (port, _), connect(port) as client:
        assert b"200" in answer(client, b"POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n")
        with contextlib.suppress(OSError):
            client.sendall(bytes(9_000_000))
        assert is_closed(client)


def test_an_address_has_its_share_and_idle_connections_make_room() -> None:
    """Kludex/uvicorn#865, #1811: at its limit of connections, idle ones too, uvicorn answers everybody with 503."""
    with served(40, LASTING) as (port, connections):
        idle = [connect(port, "127.0.0.10") for _ in range(100)]
        for client in idle[:80]:
            assert is_closed(client)
        assert connections.total == 20
        with connect(port, "127.0.0.2") as other:
            assert b"200" in answer(other, GET)
        busy = [connect(port, "127.0.0.10") for _ in range(40)]
        for client in busy[:20]:
            client.sendall(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
        with connect(port, "127.0.0.3") as other:
            assert b"200" in answer(other, GET)
        for client in (*idle, *busy):
            client.close()


def test_the_system_lets_us_have_as_many_as_we_think() -> None:
    assert 16 <= most_connections(100) <= 100
    assert json.dumps(most_connections()).isdigit()
