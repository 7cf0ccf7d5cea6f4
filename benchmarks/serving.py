"""A server under load: speed, overload, the same bytes in any mix, hostile input, clients that go away, hours.

    python benchmarks/serving.py RUN LINES [latency] [overload] [invariance] [fuzz] [aborts] [slow] [soak=MINUTES]
                                           [beside=URL] [--engine ctranslate2]

RUN is served by `dragoman serve` on a free port; LINES is a text file in its source language. Each part prints what it
found. Clients are threads of this process with plain HTTP. `beside` asks the same of a LibreTranslate at URL, in turn,
by the API that both have. What begins with `--` goes to `dragoman serve`.
"""

import asyncio
import contextlib
import copy
import http.client
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.inference.search_translator import SearchTranslator

ADDRESSES = [f"127.0.0.{number}" for number in range(10, 74)]
"""Loopback addresses of clients: limits of a client are those of its address."""
ENTITY = b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"


class Answer(NamedTuple):
    status: int
    data: bytes
    headers: Mapping[str, str]


class Server:
    """`dragoman serve RUN` in a process of its own."""

    def __init__(self, run: str, folder: Path, *arguments: str) -> None:
        """`folder`: for its store, its documents and other files, and what it says."""
        self.said, self.store, self.arguments = folder / "said", folder / "s.sqlite", arguments
        self.files = folder / "files"
        self.files.mkdir()
        command = [sys.executable, "-m", "dragoman", "serve", run, "--port", "0", "--store", str(self.store)]
        with self.said.open("w") as said:
            self.process = subprocess.Popen(
                [*command, *arguments], stdout=said, stderr=said, env={**os.environ, "TMPDIR": str(self.files)}
            )
        self.port = 0
        while not self.port:
            if self.process.poll() is not None:
                raise SystemExit(f"the server has not started: {self.said.read_text()}")
            time.sleep(0.1)
            found = re.search(r"localhost:(\d+)/", self.said.read_text())
            self.port = int(found.group(1)) if found else 0
        while self.ask("GET", "/ready")[0] != 200:
            time.sleep(0.1)
        [pair] = [one for one in json.loads(self.ask("GET", "/v1/languages")[1]) if one["targets"]]
        self.src, self.tgt = pair["code"], pair["targets"][0]

    def answer(
        self, method: str, path: str, body: Any = None, kind: str = "application/json", *,
        address: str = "127.0.0.1", headers: Mapping[str, str] | None = None, timeout: float = 60.0,
    ) -> "Answer":  # fmt: skip
        """The answer to a request, sent from an address; status 0 where there is none."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout, source_address=(address, 0))
        try:
            data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            connection.request(method, path, data, {**({"Content-Type": kind} if data else {}), **(headers or {})})
            answer = connection.getresponse()
            return Answer(answer.status, answer.read(), dict(answer.getheaders()))
        except (OSError, http.client.HTTPException):
            return Answer(0, b"", {})
        finally:
            connection.close()

    def ask(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> tuple[int, bytes]:
        return self.answer(method, path, body, kind)[:2]

    def translate(self, text: str | list[str], *, address: str = "127.0.0.1", **more: Any) -> tuple[int, Any]:
        body = {"text": text, "source": self.src, "target": self.tgt, "split": False, **more}
        status, data, _ = self.answer("POST", "/v1/translate", body, address=address)
        return status, json.loads(data or b"{}")

    def as_libretranslate(self, text: str, **more: Any) -> tuple[int, Any]:
        status, data = self.ask("POST", "/translate", {"q": text, "source": self.src, "target": self.tgt, **more})
        return status, data

    def usage(self) -> dict[str, int]:
        """KiB in memory, open descriptors, threads."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        number = {name: int(re.findall(rf"{name}:\s+(\d+)", status)[0]) for name in ("VmRSS", "Threads")}
        return {**number, "descriptors": len(os.listdir(f"/proc/{self.process.pid}/fd"))}

    def idle(self) -> None:
        while b"dragoman_queue_tokens 0.0" not in self.ask("GET", "/metrics")[1]:
            time.sleep(0.1)


def json_request(path: str, body: bytes, length: int | None = None) -> bytes:
    """A request as it goes over the wire; `length`: that it claims, of a body that does not come as a whole."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
    return f"{head}Content-Length: {len(body) if length is None else length}\r\n\r\n".encode() + body


def document_form(fields: Mapping[str, str], name: str, data: bytes) -> bytes:
    """The body of a form with a file, of the boundary x."""
    head = "".join(
        f'--x\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n' for field, value in fields.items()
    )
    head += f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    return head.encode() + data + b"\r\n--x--\r\n"


def percentiles(seconds: list[float]) -> str:
    if not seconds:
        return "none"
    ordered = sorted(seconds)
    return (
        f"p50 {1000 * statistics.median(ordered):.0f} ms, p99 {1000 * ordered[int(0.99 * (len(ordered) - 1))]:.0f} ms"
    )


def closed_loop(
    server: Server,
    lines: list[str],
    clients: int,
    seconds: float,
    pause: float = 0.0,
    translate: Callable[[str], tuple[int, Any]] | None = None,
) -> tuple[list[float], float]:
    """Clients that ask again as soon as they are answered, or after a pause: the times, and answers a second. Each has
    an address of its own."""
    times: list[float] = []
    until = time.monotonic() + seconds

    def client(seed: int) -> None:
        rng = random.Random(seed)
        while (began := time.monotonic()) < until:
            text = rng.choice(lines)
            status, _ = translate(text) if translate else server.translate(text, address=ADDRESSES[seed])
            if status == 200:
                times.append(time.monotonic() - began)
            time.sleep(pause * rng.random())

    began = time.monotonic()
    with ThreadPoolExecutor(clients) as threads:
        list(threads.map(client, range(clients)))
    return times, len(times) / (time.monotonic() - began)


def latency(server: Server, run: str, lines: list[str]) -> None:
    engine = [word for word in server.arguments if "ctranslate2" in word]
    for clients in (1, 4, 16):
        times, rate = closed_loop(server, lines, clients, 15)
        print(f"{clients} clients, a sentence each: {percentiles(times)}, {rate:.1f} sentences/s", flush=True)
    texts = (lines * (2000 // len(lines) + 1))[:2000]

    def in_hundreds(start: int) -> None:
        while server.translate(texts[start : start + 100])[0] != 200:
            time.sleep(0.2)

    began = time.monotonic()
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(in_hundreds, range(0, len(texts), 100)))
    ours = len(texts) / (time.monotonic() - began)
    print(f"full load, 100 sentences a request, 4 at a time: {ours:.1f} sentences/s", flush=True)
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write("\n".join(texts) + "\n")
        file.flush()
        command = [sys.executable, "-m", "dragoman", "translate", run, "--split", "never"]
        command += ["--engine", *engine] if engine else []
        seconds = []
        for text in (file.name, "/dev/null"):
            began = time.monotonic()
            subprocess.run([*command, "-i", text], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            seconds.append(time.monotonic() - began)
    theirs = len(texts) / (seconds[0] - seconds[1])
    print(f"dragoman translate, start-up taken off: {theirs:.1f} sentences/s; the server {ours / theirs:.2f} of it")


async def _ask_once(port: int, address: str, body: bytes) -> tuple[int, float]:
    """Status and seconds of a translation, of a connection of its own."""
    began, status = time.monotonic(), 0
    with contextlib.suppress(OSError, IndexError, ValueError):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
        try:
            writer.write(json_request("/v1/translate", body))
            status = int((await reader.readline()).split()[1])
            await reader.read()
        finally:
            writer.close()
    return status, time.monotonic() - began


async def open_loop(
    server: Server, lines: list[str], rate: float, seconds: float
) -> tuple[list[tuple[int, float]], list[float]]:
    """Ask at a rate, whatever is answered: status and seconds of each, and how late each was sent.

    One thread, and bodies that are there beforehand: a client that is late itself would tell its own time.
    """
    rng = random.Random(1)
    pair = {"source": server.src, "target": server.tgt, "split": False}
    bodies = [json.dumps({"text": rng.choice(lines), **pair}).encode() for _ in range(round(rate * seconds))]
    tasks, late, began = [], [], time.monotonic()
    for number, body in enumerate(bodies):
        due = began + number / rate
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        late.append(time.monotonic() - due)
        tasks.append(asyncio.create_task(_ask_once(server.port, ADDRESSES[number % len(ADDRESSES)], body)))
    return await asyncio.gather(*tasks), late


@contextlib.contextmanager
def before_others() -> Iterator[None]:
    """This process gets a core when it needs one, so that it tells the server's time: where the system allows it."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -10)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, 0)


def overload(server: Server, run: str, lines: list[str], seconds: float = 20.0) -> None:
    """Requests at 0.7 and 3 times the rate that the server can answer, from 64 addresses."""
    idle, _ = closed_loop(server, lines, 1, 0.4 * seconds)
    _, capacity = closed_loop(server, lines, 32, 0.6 * seconds)
    print(f"idle {percentiles(idle)}; capacity {capacity:.1f} sentences/s", flush=True)
    for share in (0.7, 3.0):
        began = time.monotonic()
        with before_others():
            answers, late = asyncio.run(open_loop(server, lines, share * capacity, seconds))
        spent = time.monotonic() - began
        times, refused = ([one for status, one in answers if status == wanted] for wanted in (200, 429))
        other = Counter(status for status, _ in answers if status not in (200, 429))
        print(f"{share:g} times capacity: sent {len(answers) / seconds:.1f}/s (late: {percentiles(late)}), answered "
              f"{len(times) / spent:.1f}/s ({len(times) / spent / capacity:.2f} of capacity), {percentiles(times)}; "
              f"refused {len(refused)}, {percentiles(refused)}; other {dict(other)}", flush=True)  # fmt: skip
        began = time.monotonic()
        server.idle()
        times_after, _ = closed_loop(server, lines, 1, 2)
        print(f"  idle again after {time.monotonic() - began - 2:.1f} s, then {percentiles(times_after)}", flush=True)


def invariance(server: Server, run: str, lines: list[str]) -> None:
    """20,000 answers of mixed requests, greedy and beam, against each sentence alone."""
    lines = lines[:400]
    translator = SearchTranslator.load(run, device="cpu")
    alone = {beam: [translator.with_decoding(beam_size=beam).n_best([line])[0][0] for line in lines] for beam in (1, 5)}
    checked, wrong = 0, 0
    lock = threading.Lock()

    def ask(request: int) -> None:
        nonlocal checked, wrong
        rng = random.Random(request)
        beam = rng.choice([1, 5])
        rows = [rng.randrange(len(lines)) for _ in range(rng.choice([1, 1, 2, 5, 20, 40]))]
        status, found = server.translate([lines[row] for row in rows], beam_size=beam)
        while status == 429:
            time.sleep(rng.random())
            status, found = server.translate([lines[row] for row in rows], beam_size=beam)
        same = [
            (one["text"], one["score"]) == (alone[beam][row].text, alone[beam][row].score)
            for one, row in zip(found["translations"], rows, strict=True)
        ]
        with lock:
            checked += len(same)
            wrong += same.count(False)

    with ThreadPoolExecutor(16) as threads:
        request = 0
        while checked < 20_000:
            list(threads.map(ask, range(request, request + 100)))
            request += 100
    print(f"{checked:,} answers of {request:,} mixed requests: {wrong} differ from the sentence alone (text and score)")


def fuzz(server: Server, run: str, lines: list[str]) -> None:
    rng = random.Random(1)
    paths = ["/translate", "/detect", "/languages", "/translate_file", "/suggest", "/v1/translate", "/v1/words",
             "/v1/detect", "/v1/corrections", "/v1/documents", "/v2/translate", "/v2/document", "/v2/glossaries",
             "/v3/glossaries", "/v1/translate/stream", "/nothing", "/download_file/../../etc/passwd",
             "/v1/documents/%2e%2e/result"]  # fmt: skip
    values: list[Any] = [None, "", "x", "de", "en", "auto", 0, -1, 1e308, True, [], ["x"] * 200, {}, {"a": {"b": []}}]
    values += [
        "\ud800",
        "\0",
        "💥" * 50,
        "<b>" * 300,
        "a" * 6000,
        [None],
        [[]],
        "../../etc/passwd",
        "x" * 100 + "\n" * 50,
    ]
    names = ["q", "text", "source", "target", "source_lang", "target_lang", "format", "alternatives", "glossary", "s"]
    names += ["prefix", "beam_size", "split", "api_key", "tag_handling", "glossary_id", "entries", "dictionaries"]
    kinds = [
        "application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain",
        "",
    ]
    before: dict[str, int] | None = None
    statuses: dict[int, int] = {}
    for number in range(14_000):
        given = {rng.choice(names): rng.choice(values) for _ in range(rng.randrange(6))}
        if rng.random() < 0.5:
            given |= {"source": server.src, "target": server.tgt, "source_lang": server.src, "target_lang": server.tgt}
        body = json.dumps(given).encode()
        if rng.random() < 0.3:
            body = bytes(rng.randrange(256) for _ in range(rng.randrange(300)))
        elif rng.random() < 0.3:
            body = body[: rng.randrange(1 + len(body))]
        status, _ = server.ask(
            rng.choice(["POST"] * 7 + ["GET", "PUT", "DELETE"]), rng.choice(paths), body, rng.choice(kinds)
        )
        statuses[status] = statuses.get(status, 0) + 1
        if number == 4_000:  # until then it warms up
            before = server.usage()
    assert before is not None
    after = server.usage()
    grown = (after["VmRSS"] - before["VmRSS"]) / 1024
    print(f"14,000 fuzzed requests: statuses {dict(sorted(statuses.items()))}; over the last 10,000 memory grew "
          f"{grown:.1f} MiB; tracebacks {server.said.read_text().count('Traceback')}")  # fmt: skip
    errors = [
        line for line in server.said.read_text().splitlines() if re.match(r"\w+(\.\w+)*(Error|Exception): ", line)
    ]
    print(f"  {len(errors)} errors: {sorted(set(errors))[:5]}")
    sample = b"".join(bytes(rng.randrange(256) for _ in range(64)) for _ in range(20))
    outcomes: dict[int, int] = {}
    for _ in range(500):
        suffix = rng.choice(
            ["docx", "xlsx", "odt", "epub", "html", "md", "po", "xlf", "tmx", "json", "srt", "pdf", "xml", "txt"]
        )
        data = rng.choice([sample, b"PK\x03\x04" + sample, ENTITY,
                           b"<" * 200_000, b"[" * 100_000, sample[: rng.randrange(1, 900)]])  # fmt: skip
        name = rng.choice([f"a.{suffix}", f"../../x.{suffix}", f"a\0.{suffix}", f"{'n' * 300}.{suffix}"])
        form = document_form({"source": server.src, "target": server.tgt}, name, data)
        status, _ = server.ask("POST", "/translate_file", form, "multipart/form-data; boundary=x")
        outcomes[status] = outcomes.get(status, 0) + 1
    memory = server.usage()["VmRSS"] / 1024
    print(f"500 hostile documents: statuses {dict(sorted(outcomes.items()))}; memory {memory:.0f} MiB, "
          f"tracebacks {server.said.read_text().count('Traceback')}")  # fmt: skip


def aborts(server: Server, run: str, lines: list[str]) -> None:
    """1,000 clients that go away after they have asked."""
    closed_loop(server, lines, 8, 3)
    server.idle()
    before = server.usage()
    body = json.dumps({"text": lines[:40], "source": server.src, "target": server.tgt}).encode()
    for number in range(1000):
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(json_request("/v1/translate", body))
            time.sleep(0.002 * (number % 10))
    began = time.monotonic()
    server.idle()
    print(f"1,000 clients gone: nothing waits any more {time.monotonic() - began:.2f} s after the last; "
          f"before {before}, after {server.usage()}", flush=True)  # fmt: skip


def soak(server: Server, run: str, lines: list[str], minutes: float) -> None:
    """Mixed work of people for minutes: texts, lists, documents, corrections, clients that go. Memory of each minute is
    the median of its seconds: it goes up and down with what is under way."""
    over = threading.Event()
    used: list[dict[str, float]] = []
    with ThreadPoolExecutor(2) as threads:
        working = threads.submit(_work_of_people, server, lines, over)
        began = time.monotonic()
        while time.monotonic() - began < 60 * minutes and not working.done():
            seconds = [server.usage()]  # one at least: the machine may have slept for minutes
            while time.monotonic() - began < 60 * (len(used) + 1):
                time.sleep(1.0)
                seconds.append(server.usage())
            used.append({name: statistics.median(one[name] for one in seconds) for name in seconds[0]})
            used[-1]["peak"] = max(one["VmRSS"] for one in seconds)
            print(f"  minute {len(used)}: {used[-1]}", flush=True)
        over.set()
        asked = working.result()
    warm = 10 if minutes > 12 else len(used) // 4
    memory = [one["VmRSS"] / 1024 for one in used[warm:]]
    slope = statistics.linear_regression(range(len(memory)), memory).slope if len(memory) > 1 else 0.0
    share, peak = 100 * slope * len(memory) / memory[0], max(one["peak"] for one in used) / 1024
    print(f"{minutes:g} minutes, {dict(asked)}: memory at the first minute {used[0]['VmRSS'] / 1024:.0f} MiB; from "
          f"minute {warm + 1} on {memory[0]:.0f} to {memory[-1]:.0f} MiB, least {min(memory):.0f}, most "
          f"{max(memory):.0f}, slope {slope:+.3f} MiB a minute ({share:+.1f} %); peak {peak:.0f} MiB")  # fmt: skip


def _work_of_people(server: Server, lines: list[str], over: threading.Event) -> "Counter[str]":
    """Six people with a line now and then; each ten seconds a document, a list with all details, a correction that is
    forgotten in the next round, and three clients that go away. How often what was answered with which status."""
    answered: Counter[str] = Counter()
    rng = random.Random(1)
    pair = {"source": server.src, "target": server.tgt}
    kinds = {"txt": "\n".join, "html": lambda some: "".join(f"<p>{one} <b>x</b></p>" for one in some),
             "srt": lambda some: "".join(f"{row}\n00:00:01,000 --> 00:00:02,000\n{one}\n\n"
                                         for row, one in enumerate(some, start=1))}  # fmt: skip
    while not over.is_set():
        times, _ = closed_loop(server, lines, 6, 8, pause=2.0)
        answered["lines 200"] += len(times)
        suffix = rng.choice(list(kinds))
        form = document_form(pair, f"a.{suffix}", kinds[suffix](rng.sample(lines, min(60, len(lines)))).encode())
        answered[f"document {server.ask('POST', '/translate_file', form, 'multipart/form-data; boundary=x')[0]}"] += 1
        few = rng.sample(lines, min(20, len(lines)))
        status, _ = server.translate(few, alternatives=2, alignments=True, warnings=True)
        answered[f"list {status}"] += 1
        text = f"{few[0]} {answered.total()}"
        kept = server.ask("POST", "/v1/corrections", {**pair, "text": text, "translation": few[1]})[0]
        answered[f"correction {kept}"] += 1
        if rng.random() < 0.5:
            server.ask("DELETE", "/v1/corrections", {**pair, "text": text})
        body = json.dumps({"text": few, **pair}).encode()
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", server.port)) as client:
                client.sendall(json_request("/v1/translate", body))
                time.sleep(0.3 * rng.random())
    return answered


def slow(server: Server, run: str, lines: list[str]) -> None:
    """What 200 clients that send their request a byte a second do to the others."""
    before, _ = closed_loop(server, lines, 2, 15)
    head = json_request("/v1/translate", b"", 999)
    stopped = threading.Event()

    def drip() -> None:
        clients = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(200)]
        for client in clients:
            client.sendall(head)
        while not stopped.wait(1.0):
            for client in clients:
                with contextlib.suppress(OSError):  # the server has had enough of it
                    client.sendall(b" ")

    thread = threading.Thread(target=drip)
    thread.start()
    time.sleep(1)
    during, _ = closed_loop(server, lines, 2, 15)
    stopped.set()
    thread.join()
    print(f"2 clients: {percentiles(before)}; beside 200 slow ones: {percentiles(during)}", flush=True)


def beside(server: Server, lines: list[str], url: str) -> None:
    """The same clients, lines and API: our server and another, in turn, twice."""
    other = copy.copy(server)
    other.port = int(url.rstrip("/").rpartition(":")[2])
    for name, one in (("other", other), ("dragoman", server)):
        print(f"{name}: {lines[0]!r} -> {one.as_libretranslate(lines[0])}", flush=True)
    for _ in range(2):
        for clients in (1, 4, 16):
            for name, one in (("other", other), ("dragoman", server)):
                times, rate = closed_loop(one, lines, clients, 20, translate=one.as_libretranslate)
                print(f"{name}, {clients} clients: {percentiles(times)}, {rate:.1f} lines/s", flush=True)


PARTS = {
    "latency": latency, "overload": overload, "invariance": invariance, "fuzz": fuzz, "aborts": aborts, "slow": slow,
}  # fmt: skip


def main() -> None:
    run, text, *parts = sys.argv[1:]
    options = next(([*parts[place:]] for place, part in enumerate(parts) if part.startswith("--")), [])
    parts = parts[: len(parts) - len(options)]
    lines = [line for line in Path(text).read_text(encoding="utf-8").splitlines() if line.strip()]
    for part in parts or list(PARTS):
        with tempfile.TemporaryDirectory() as folder:
            # A hundred sentences beside many others may take longer than anybody's single one should.
            server = Server(run, Path(folder), *options, *(["--deadline", "60"] if part == "latency" else []))
            try:
                if part.startswith("soak="):
                    soak(server, run, lines, float(part[5:]))
                elif part.startswith("beside="):
                    beside(server, lines, part[7:])
                else:
                    PARTS[part](server, run, lines)
            finally:
                server.process.terminate()
                print(f"  stopped with exit code {server.process.wait(timeout=30)}", flush=True)


if __name__ == "__main__":
    main()
