"""The time from the start of a command to its end, beside that of `python -c "import torch"`.

    python benchmarks/start.py RUN [--rounds 5] [--only translate ...]

The commands start in turn, round after round, each once before that is not counted: files are in the system's cache
then, and modules are compiled. The server's time ends when `/ready` says so. The table has the best time of each, the
processor's time in the same round or a better one, and both as multiples of PyTorch's import.
"""

import argparse
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import psutil

from dragoman.device import machine_name, pick_device

SENTENCE = "ein hund läuft .\n"
COMPLETION = {"_DRAGOMAN_COMPLETE": "complete_bash", "COMP_WORDS": "dragoman translate --gu", "COMP_CWORD": "2"}
MAIN = "import sys; sys.argv[0] = 'dragoman'; from dragoman.cli.main import main; main()"
IMPORT = 'python -c "import torch"'
PATIENCE_S = 300.0


class Took(NamedTuple):
    """Seconds of a process."""

    wall: float
    cpu: float


def commands(run: Path, folder: Path) -> dict[str, list[str]]:
    """Arguments of Python for what is measured; PyTorch's import comes first."""
    src, tgt = folder / "src", folder / "tgt"
    for file in (src, tgt):
        file.write_text(SENTENCE, encoding="utf-8")
    ours = {
        "help": ["--help"],
        "translate's help": ["translate", "--help"],
        "inspect's help": ["inspect", "--help"],
        "translate": ["translate", str(run)],
        "score": ["score", str(run), "--src", str(src), "--tgt", str(tgt)],
        "evaluate": ["evaluate", str(run), "--src", str(src), "--ref", str(tgt)],
        "explain": ["explain", str(run), SENTENCE, "-o", str(folder / "page.html")],
        "serve": ["serve", str(run), "--port", "0", "--store", str(folder / "store.sqlite")],
    }
    named = {name: ["-c", MAIN, *arguments] for name, arguments in ours.items()}
    return {IMPORT: ["-c", "import torch"], "TAB": ["-c", MAIN], **named}


def measured(name: str, arguments: list[str]) -> Took:
    """Start a command and wait for its end, or until the server is ready."""
    if name == "serve":
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        arguments = [port if one == "0" else one for one in arguments]
    environment = {**os.environ, **(COMPLETION if name == "TAB" else {})}
    with tempfile.TemporaryFile() as complaints:
        begin = time.perf_counter()
        process = psutil.Popen(
            [sys.executable, *arguments],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=complaints,
        )  # fmt: skip
        process.stdin.write(SENTENCE.encode())
        process.stdin.close()
        if name == "serve":
            wait_until_ready(process, port)
            took = Took(time.perf_counter() - begin, sum(process.cpu_times()[:2]))
            process.terminate()
            process.wait(PATIENCE_S)
            return took
        before = psutil.Process().cpu_times()
        code = process.wait(PATIENCE_S)
        wall, after = time.perf_counter() - begin, psutil.Process().cpu_times()
        complaints.seek(0)
        if code != 0:
            sys.exit(f"{name} ended with {code}: {complaints.read().decode()[-500:]}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Took(wall, cpu)


def wait_until_ready(process: psutil.Popen, port: str) -> None:
    """Ask the server until it is ready."""
    end = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.01)
    sys.exit("the server does not get ready")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", help="Commands to measure.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        chosen = commands(options.run, Path(name))
        if options.only:
            chosen = {name: chosen[name] for name in (IMPORT, *options.only)}
        best: dict[str, Took] = {}
        for counted in range(options.rounds + 1):
            for name, arguments in chosen.items():
                took = measured(name, arguments)
                if counted:
                    old = best.get(name, took)
                    best[name] = Took(min(old.wall, took.wall), min(old.cpu, took.cpu))
    machine, versions = (
        machine_name(pick_device("cpu")),
        f"Python {platform.python_version()}; torch {version('torch')}",
    )
    print(f"{machine}; {versions}\n")
    print("| command | s | times torch | processor's s | times torch |")
    print("|---|---|---|---|---|")
    whole = best[IMPORT]
    for name, took in best.items():
        shares = took.wall / whole.wall, took.cpu / whole.cpu
        print(f"| {name} | {took.wall:.2f} | {shares[0]:.2f} | {took.cpu:.2f} | {shares[1]:.2f} |")


if __name__ == "__main__":
    main()
