"""Attacks on a server of its own: what they do to a bystander, to memory, to the disk and to the end of the process.

    python benchmarks/attack.py run RUN --label after [--small] [NAME...]    # lines of benchmarks/runs/attack.jsonl
    PYTHONPATH=OTHER/src python benchmarks/attack.py run RUN --label before  # the server of another checkout
    python benchmarks/attack.py list
    python benchmarks/attack.py table                                        # benchmarks/attack.md, from those lines

Each attack gets a `dragoman serve RUN` of its own on loopback, and comes from other addresses (127.0.0.10 and so on)
than the bystander (127.0.0.2), who sends one line after another at a pace that an idle server keeps. Then the attackers
hang up, and it is measured how long the server goes on working; then they come again, and it is told to stop in the
middle. A server that takes more than 6 GB of memory or of disk is killed. The attacks stand in `attacks.py`.
"""

import argparse
import contextlib
import json
import os
import resource
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from attacks import ATTACKS, SENTENCE, Attack, Target
from serving import Server

BYSTANDER = "127.0.0.2"
PACE = 0.2
"""Seconds between two lines of the bystander, at least."""
MOST_BYTES = 6 * 2**30
"""Memory, or disk, at which a server is killed."""
IDLE_S, STOP_S = 8.0, 22.0
"""Seconds that are waited for a server to be idle again, and to stop."""
RESULTS = Path(__file__).parent / "runs" / "attack.jsonl"
TABLE = Path(__file__).parent / "attack.md"


def processes(pid: int) -> list[int]:
    """A process and those that it has started."""
    found = [pid]
    with contextlib.suppress(OSError):
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            found += [one for child in children.read_text().split() for one in processes(int(child))]
    return found


def memory(pid: int) -> int:
    """Bytes of a process, and those that its children do not share."""
    total, own = 0, b""
    for number, one in enumerate(processes(pid)):
        with contextlib.suppress(OSError, ValueError):
            command = Path(f"/proc/{one}/cmdline").read_bytes()
            if number and command == own:  # it is being started, with its parent's memory
                continue
            own = own or command
            _, resident, shared, *_ = map(int, Path(f"/proc/{one}/statm").read_text().split())
            total += (resident - (shared if number else 0)) * resource.getpagesize()
    return total


def processor_seconds(pid: int) -> float:
    """Time that a process, its threads and its children have computed for."""
    ticks = 0
    for one in processes(pid):
        with contextlib.suppress(OSError):
            ticks += sum(map(int, Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def disk(folder: Path) -> int:
    """Bytes of the files in a folder."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            total += path.stat().st_size
    return total


class Watch(threading.Thread):
    """The peaks of memory and disk while a server runs; beyond MOST_BYTES the server is killed."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self.server, self.memory, self.disk, self.killed = server, 0, 0, False
        self.over = threading.Event()

    def run(self) -> None:
        turn = 0
        while not self.over.wait(0.05) and self.server.process.poll() is None:
            self.memory = max(self.memory, memory(self.server.process.pid))
            if turn % 10 == 0:
                self.disk = max(self.disk, disk(self.server.files))
            if max(self.memory, self.disk) > MOST_BYTES:
                self.server.process.kill()
                self.killed = True
            turn += 1


def line(server: Server, key: str) -> tuple[int, float]:
    """Status and seconds of a line of the bystander, who has a key where one is needed."""
    began = time.monotonic()
    body = {"text": SENTENCE, "source": server.src, "target": server.tgt}
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    answer = server.answer("POST", "/v1/translate", body, address=BYSTANDER, headers=headers, timeout=10.0)
    return answer.status, time.monotonic() - began


def bystand(server: Server, pace: float, over: threading.Event, key: str) -> list[tuple[int, float]]:
    """Status and seconds of a line at each turn; a turn in which the line before is not answered yet is lost."""
    answers = []
    next_turn = time.monotonic()
    while not over.wait(max(0.0, next_turn - time.monotonic())):
        answers.append(line(server, key))
        next_turn += pace * max(1, -(-(time.monotonic() - next_turn) // pace))
    return answers


def at_idle(server: Server, turns: int, key: str) -> float:
    """The median of a line's seconds while nobody else is there. Before that everything has been used once: tables that
    are read when they are needed are no growth."""
    body = {"text": SENTENCE, "source": server.src, "target": server.tgt, "api_key": key or None}
    server.answer("POST", "/v1/translate", {**body, "alignments": True, "warnings": True}, address=BYSTANDER)
    server.answer("POST", "/v1/detect", {"text": SENTENCE, "api_key": key or None}, address=BYSTANDER)
    return statistics.median([line(server, key)[1] for _ in range(turns + 3)][3:])


def seconds_to_idle(server: Server) -> float | None:
    """Seconds until the process computes nothing any more; None if that takes longer than IDLE_S."""
    began = time.monotonic()
    pid, before = server.process.pid, processor_seconds(server.process.pid)
    while time.monotonic() - began < IDLE_S + 0.5 and server.process.poll() is None:
        time.sleep(0.5)
        after = processor_seconds(pid)
        if 0 <= after - before < 0.05:
            return round(time.monotonic() - began - 0.5, 1)
        before = after
    return None


def seconds_to_stop(server: Server, most: float) -> float | None:
    """Seconds until the process ends after SIGTERM; None if it has to be killed after `most`."""
    began = time.monotonic()
    server.process.terminate()
    with contextlib.suppress(Exception):
        server.process.wait(most)
        return round(time.monotonic() - began, 1)
    server.process.kill()
    server.process.wait()
    return None


def bystander_record(answers: list[tuple[int, float]], idle: float, turns: int, clients: int) -> dict[str, Any]:
    """What the bystander got, beside so many attackers: lost turns count as turns without an answer in time. Its fair
    share is what each gets where all have an equal part of the server: a line takes as many times as long as idle."""
    times = sorted(seconds for status, seconds in answers if status == 200)
    in_time = sum(seconds <= 2 * idle for seconds in times)
    return {
        "turns": turns,
        "in_time": round(min(1.0, in_time / turns), 3) if turns else None,
        "clients": clients,
        "fair": round(sum(one <= (clients + 1) * idle for one in times) / len(answers), 3) if answers else None,
        "statuses": {str(status): count for status, count in sorted(Counter(one for one, _ in answers).items())},
        "p50_ms": round(1000 * statistics.median(times)) if times else None,
        "p99_ms": round(1000 * times[-(-99 * (len(times) - 1) // 100)]) if times else None,
    }


def under(attack: Attack, target: Target, idle: float, key: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """An attack with a bystander beside it: what the bystander got, and what the attack itself shows."""
    pace, over = max(PACE, 2.5 * idle), threading.Event()
    with ThreadPoolExecutor(1) as thread:
        target.begin(attack.seconds)
        began = time.monotonic()
        beside = thread.submit(bystand, target.server, pace, over, key)
        try:
            shown = attack.work(target)
        finally:
            turns = int((time.monotonic() - began) / pace)
            over.set()
        return bystander_record(beside.result(), idle, turns, target.clients), shown


def stopped_in_the_middle(attack: Attack, target: Target, most: float) -> float | None:
    """Seconds to the end of a process that is told to stop while it is attacked."""
    target.begin(most)
    attackers = threading.Thread(target=attack.work, args=(target,), daemon=True)
    attackers.start()
    time.sleep(attack.before_stop)
    seconds = seconds_to_stop(target.server, most)
    target.until = 0.0
    attackers.join(30)
    return seconds


def measure(attack: Attack, run: str, folder: Path, *, small: bool = False) -> dict[str, Any]:
    """All that one attack shows; `load`: of the machine before it, which other work makes more than 0."""
    load = os.getloadavg()[0]
    most = 60.0 if small else STOP_S  # a test may run beside other work
    if attack.prepare is not None:
        attack.prepare(folder / "s.sqlite", small)
    keys = {name: attack.make_key(folder / "s.sqlite", name) for name in attack.keys}
    server = Server(run, folder, *attack.options)
    watch = Watch(server)
    try:
        key = next(iter(keys.values())) if "--key-required" in attack.options else ""
        idle = at_idle(server, 3 if small else 10, key)
        used = memory(server.process.pid)
        watch.start()
        target = Target(server, folder, keys, small)
        seen, shown = under(attack, target, idle, key)
        again = seconds_to_idle(server)
        left = disk(server.files)
        in_the_middle = attack.before_stop > 0 and again is not None and server.process.poll() is None
        stopped = stopped_in_the_middle(attack, target, most) if in_the_middle else seconds_to_stop(server, most)
    finally:
        watch.over.set()
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()
    return {
        "attack": attack.name, "point": attack.point, "load": round(load, 1), "idle_ms": round(1000 * idle), **seen,
        "memory_idle_mb": used >> 20, "memory_peak_mb": watch.memory >> 20, "disk_peak_mb": watch.disk >> 20,
        "disk_left_mb": left >> 20, "idle_again_s": again, "stopped_s": stopped, "killed": watch.killed,
        "tracebacks": server.said.read_text(errors="replace").count("Traceback"), "shown": shown,
    }  # fmt: skip


def run(run: str, names: list[str], label: str, *, small: bool, results: Path) -> None:
    """Do attacks, and write a line about each."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 8192), hard), hard))
    for name in names or list(ATTACKS):
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            row = measure(ATTACKS[name], run, Path(folder), small=small)
        line = json.dumps({"label": label, "date": time.strftime("%F"), **row}, ensure_ascii=False)
        print(line, f"# {time.monotonic() - began:.0f} s", flush=True)
        results.parent.mkdir(parents=True, exist_ok=True)
        with results.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def rows(results: Path) -> Iterator[tuple[Attack, dict[str, Mapping[str, Any]]]]:
    """Each attack with its last line of either label."""
    last: dict[tuple[str, str], Mapping[str, Any]] = {}
    for line in results.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        last[row["attack"], row["label"]] = row
    for name, attack in ATTACKS.items():
        found = {label: last[name, label] for label in ("before", "after") if (name, label) in last}
        if found:
            yield attack, found


def cells(row: Mapping[str, Any]) -> list[str]:
    """The figures of a line, as the table shows them."""
    others = ", ".join(f"{count} x {status}" for status, count in row["statuses"].items() if status != "200")
    end = "not within 22 s" if row["stopped_s"] is None else f"{row['stopped_s']:g} s"
    again = f"more than {IDLE_S:g} s" if row["idle_again_s"] is None else f"{row['idle_again_s']:g} s"
    shown = "; ".join(f"{name}: {value}" for name, value in row["shown"].items() if value not in (None, {}, []))
    return [
        ("-" if row["in_time"] is None else f"{100 * row['in_time']:.0f} %") + (f" ({others})" if others else ""),
        "-" if row.get("fair") is None else f"{100 * row['fair']:.0f} % of {row['clients'] + 1}",
        f"{row['idle_ms']}, {row['p50_ms'] or '-'}, {row['p99_ms'] or '-'}",
        f"{row['memory_idle_mb']}, {row['memory_peak_mb']}" + (" (killed)" if row["killed"] else ""),
        "ended" if row["killed"] else again,
        "ended" if row["killed"] else end,
        f"{row['disk_peak_mb']}, {row['disk_left_mb']}",
        shown + (f"; tracebacks: {row['tracebacks']}" if row["tracebacks"] else ""),
    ]


def table(results: Path, file: Path) -> None:
    """Write the page of the attacks, before beside after."""
    text = file.read_text(encoding="utf-8").split("<!-- figures -->")[0]
    heads = ["attack", "", "in time", "fair share", "idle, p50, p99 ms", "MiB idle, peak", "idle again", "stops in"]
    heads += ["disk MiB peak, left", "shows"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for attack, found in rows(results):
        for number, (label, row) in enumerate(found.items()):
            first = f"{attack.point}. {attack.description}" if number == 0 else ""
            lines.append("| " + " | ".join([first, label, *(cell.replace("|", "\\|") for cell in cells(row))]) + " |")
    file.write_text(text + "<!-- figures -->\n\n" + "\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["run", "list", "table"])
    parser.add_argument("arguments", nargs="*", help="of `run`: the run to serve, and names of attacks (all)")
    parser.add_argument("--label", default="after")
    parser.add_argument("--small", action="store_true", help="small sizes, for tests")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_intermixed_args()
    if given.what == "list":
        for attack in ATTACKS.values():
            print(f"{attack.name:20} {attack.point}. {attack.description}")
    elif given.what == "table":
        table(given.results, TABLE)
    else:
        served, *names = given.arguments
        run(served, names, given.label, small=given.small, results=given.results)


if __name__ == "__main__":
    main()
