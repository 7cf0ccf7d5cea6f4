"""A server as its users have it: a process of its own, on a free port of this machine, that stops by itself."""

import gzip
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from dragoman.corpora import embedded

FIXTURE = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"


class LiveServer:
    """The process, its address, a client for it, and what it said on stderr."""

    def __init__(self, process: "subprocess.Popen[str]", said: list[str]) -> None:
        self.process, self.said = process, said
        self.url = ""
        self.client = httpx.Client(timeout=300, trust_env=False)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.client.get(self.url + path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.client.post(self.url + path, **options)

    def wait_until_ready(self, seconds: float = 300) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert self.process.poll() is None, "".join(self.said)
            try:
                if self.get("/ready").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.1)
        raise AssertionError("not ready: " + "".join(self.said))

    def stop(self, kind: int = signal.SIGTERM, seconds: float = 300) -> int:
        self.process.send_signal(kind)
        return self.process.wait(timeout=seconds)


@pytest.fixture(scope="session")
def live_server() -> Callable[..., AbstractContextManager[LiveServer]]:
    """`live_server(folder, *arguments, runs=...)`: `dragoman serve RUNS --port 0 ARGUMENTS`, ready."""
    return _live_server


@pytest.fixture(scope="session")
def run_of_languages() -> Callable[[Path, str, str], Path]:
    """`run_of_languages(folder, src, tgt)`: the fixture's run between two other languages, on paper."""
    return _run_of_languages


@pytest.fixture(scope="session")
def multi30k(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for DRAGOMAN_DATA: sentences of the demo under the names of Multi30k's files.

    The German sentences also stand for the French and the Czech ones.
    """
    folder = tmp_path_factory.mktemp("data")
    for split, name, size in (("train", "train", 3_000), ("valid", "val", 30), ("test", "test_2016_flickr", 30)):
        pairs = list(embedded.sentences("de-en", split, size, 1))
        for language in ("de", "en", "fr", "cs"):
            content = gzip.compress("".join(f"{pair[language == 'en']}\n" for pair in pairs).encode())
            for file in (f"multi30k-tok/{name}.lc.norm.tok.{language}.gz", f"multi30k/{name}.{language}.gz"):
                (folder / file).parent.mkdir(exist_ok=True)
                (folder / file).write_bytes(content)
    return folder


@contextmanager
def _live_server(folder: Path, *arguments: str, runs: tuple[Path, ...] = (FIXTURE,)) -> Iterator[LiveServer]:
    command = [sys.executable, "-m", "dragoman", "serve", *map(str, runs), "--port", "0", "--device", "cpu"]
    command += ["--store", str(folder / "serve.sqlite"), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment)
    said: list[str] = []

    def listen() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line)

    listening = threading.Thread(target=listen, daemon=True)
    listening.start()
    server = LiveServer(process, said)
    try:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline and not server.url:
            assert process.poll() is None, "".join(said)
            found = re.search(r"http://localhost:(\d+)/", "".join(said))
            server.url = f"http://127.0.0.1:{found.group(1)}" if found else ""
            time.sleep(0.05)
        server.wait_until_ready()
        yield server
    finally:
        server.client.close()
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(timeout=300)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        listening.join(timeout=300)
        if process.stderr is not None:
            process.stderr.close()


def _run_of_languages(folder: Path, src: str, tgt: str) -> Path:
    run = folder / f"{src}-{tgt}"
    shutil.copytree(FIXTURE, run)
    config = (run / "config.yaml").read_text(encoding="utf-8")
    config = config.replace("src_lang: en", f"src_lang: {src}").replace("tgt_lang: de", f"tgt_lang: {tgt}")
    (run / "config.yaml").write_text(config, encoding="utf-8")
    return run
