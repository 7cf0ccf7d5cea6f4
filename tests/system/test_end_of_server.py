"""A server ends when it is told to, whatever its threads are doing, with exit code 0 and without a word."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

FIXTURE = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"
SERVER = """
import sys, threading, time
from pathlib import Path
from dragoman.serve import process, state
from dragoman.serve.service import Service
from dragoman.serve.settings import Limits, Settings

port, folder, busy, end = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], float(sys.argv[4])
def for_ever(*_):
    print("busy", flush=True)
    threading.Event().wait()
if busy == "links":
    Service.alignment = for_ever
if busy == "loading":
    load = state.ServedRun.load
    def slow(options):
        print("busy", flush=True)
        import torch
        while True:
            torch.randn(500, 500) @ torch.randn(500, 500)
    state.ServedRun.load = slow
process.END_S, process.GRACE_S = end, 3
settings = Settings([Path(sys.argv[5])], "cpu", threads=1, store=folder / "store", work_folder=folder / "work",
                    limits=Limits(deadline_seconds=600))
process.run_server(settings, "127.0.0.1", port)
"""


def started(folder: Path, busy: str, end: float) -> tuple["subprocess.Popen[bytes]", int]:
    """A server that is being started, and its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "work").mkdir()
    arguments = [sys.executable, "-c", SERVER, str(port), str(folder), busy, str(end), str(FIXTURE)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ)), port


def assert_quiet(said: bytes) -> None:
    """Nothing but what a server always says, and that it waits no longer."""
    lines = [
        line for line in said.decode().splitlines() if not line.startswith(("the page:", "serving ", "corrections"))
    ]
    assert all("timeout graceful shutdown" in line for line in lines), lines


@pytest.mark.parametrize(
    ("busy", "end", "signals"),
    [
        ("links", 6.0, [signal.SIGTERM]),  # the watchdog
        ("links", 600.0, [signal.SIGTERM, signal.SIGTERM]),
        ("links", 600.0, [signal.SIGINT, signal.SIGINT]),
        ("loading", 600.0, [signal.SIGTERM]),
        ("loading", 600.0, [signal.SIGINT]),
        ("nothing", 600.0, [signal.SIGTERM]),
    ],
)
def test_a_server_ends_whatever_it_does(tmp_path: Path, busy: str, end: float, signals: list[signal.Signals]) -> None:
    """containers/ramalama#753, ggml-org/llama.cpp#27581: Ctrl-C ended no server that worked or loaded."""
    process, port = started(tmp_path, busy, end)
    asked = {"text": "der hund", "source": "en", "target": "de", "alignments": True}

    def ask() -> None:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=300) as client:
            while process.poll() is None:
                try:
                    if client.get("/ready").status_code == 200:
                        client.post("/v1/translate", json=asked)
                        return
                except httpx.HTTPError:
                    pass
                time.sleep(0.05)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    try:
        assert process.stdout is not None
        if busy == "nothing":
            asking.join(300)
        else:
            assert process.stdout.readline() == b"busy\n"
        for kind in signals:
            process.send_signal(kind)
            time.sleep(0.2)  # two that come at once are one to the system
        _, said = process.communicate(timeout=300)
    finally:
        process.kill()
        process.communicate()
        asking.join(300)
    assert process.returncode == 0, said.decode()
    assert_quiet(said)
    assert list((tmp_path / "work").iterdir()) == []


def test_a_client_whose_body_never_comes_is_answered_at_the_end(tmp_path: Path) -> None:
    process, port = started(tmp_path, "nothing", 600.0)
    head = b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{"
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", transport=httpx.HTTPTransport(retries=8)) as client:
            while client.get("/ready").status_code != 200:
                time.sleep(0.05)
        with socket.create_connection(("127.0.0.1", port), timeout=300) as slow:
            slow.sendall(head)
            time.sleep(0.2)
            process.terminate()
            assert slow.recv(1000).startswith(b"HTTP/1.1 503")
        _, said = process.communicate(timeout=300)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0
    assert_quiet(said)
