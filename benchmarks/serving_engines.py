"""One run behind a server by each of our ways to search, beside CTranslate2: a line a request, and all in one.

    python benchmarks/serving_engines.py RUN LINES

Each way is a server of its own on loopback; they take turns, line by line. LINES is a file of source sentences.
"""

import argparse
import contextlib
import json
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil

from dragoman.device import machine_name, pick_device
from dragoman.inference.search_translator import SearchTranslator
from dragoman.version import __version__, commit

WAYS = {"our search": [], "int8": ["--precision", "int8"], "CTranslate2": ["--engine", "ctranslate2"]}
PATIENCE_S = 120.0


class Served:
    """A server process of a run."""

    def __init__(self, run: Path, languages: tuple[str, str], options: list[str]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url, self.languages = f"http://127.0.0.1:{port}", languages
        command = [sys.executable, "-m", "dragoman", "serve", str(run), "--port", str(port), *options]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdout=quiet, stderr=quiet)

    def wait(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{self.url}/ready", timeout=1)
                return
            time.sleep(0.1)
        raise SystemExit(f"{self.url}: the server does not start")

    def translate(self, text: Any) -> float:
        """Seconds until the answer is there."""
        body = json.dumps({"q": text, "source": self.languages[0], "target": self.languages[1]}).encode()
        asked_for = urllib.request.Request(f"{self.url}/translate", body, {"Content-Type": "application/json"})
        began = time.perf_counter()
        with urllib.request.urlopen(asked_for, timeout=PATIENCE_S) as answer:
            answer.read()
        return time.perf_counter() - began

    def processor_seconds(self) -> float:
        return sum(psutil.Process(self.process.pid).cpu_times()[:2])

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


@contextlib.contextmanager
def servers(run: Path) -> Iterator[dict[str, Served]]:
    """Servers of a copy of the run, beside which they keep a conversion and a store."""
    languages = SearchTranslator.load(run).languages or ("", "")
    ways = {name: given for name, given in WAYS.items() if name != "CTranslate2" or find_spec("ctranslate2")}
    running = {name: Served(run, languages, given) for name, given in ways.items()}
    try:
        for server in running.values():
            server.wait()
        yield running
    finally:
        for server in running.values():
            server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("lines", type=Path)
    parser.add_argument("--count", type=int, default=60, help="sentences")
    options = parser.parse_args()
    lines = options.lines.read_text(encoding="utf-8").splitlines()[: options.count]
    print(f"Dragoman {__version__}, commit {commit()}, {machine_name(pick_device('cpu'))}\n")
    print("| search | one line, p50 ms | all in one request, lines/s | its processor time, ms a line |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, servers(shutil.copytree(options.run, Path(folder, "run"))) as running:
        alone: dict[str, list[float]] = {name: [] for name in running}
        together: dict[str, list[float]] = {name: [] for name in running}
        for server in running.values():
            server.translate(lines[0])
        for line in lines:
            for name, server in running.items():
                alone[name].append(server.translate(line))
        before = {name: server.processor_seconds() for name, server in running.items()}
        for _ in range(4):
            for name, server in running.items():
                together[name].append(server.translate(lines))
        for name, server in running.items():
            used = (server.processor_seconds() - before[name]) / (4 * len(lines))
            rate = len(lines) / min(together[name])
            print(f"| {name} | {1000 * statistics.median(alone[name]):.1f} | {rate:,.0f} | {1000 * used:.1f} |")


if __name__ == "__main__":
    main()
