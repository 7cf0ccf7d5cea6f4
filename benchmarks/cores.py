"""Translation by threads and by processes, what each process adds to memory, and what that means for many cores.

    python benchmarks/cores.py RUN LINES [share] [bulk] [server] [--counts 1 2 4 8] [--sentences 20000] [--passes 3]
                                         [--beam-size 5] [--steps-only TOKENS]

`share`: processor time of a sentence in C, where other threads run too, and in Python, where none does; steps, the
weights that a step reads, and how fast this machine reads; from those, rates for more cores than there are here.
`bulk`: blocks of LINES, repeated up to `--sentences`, by one process of so many threads, by so many processes of one
thread that load the model each, and by so many copies of one that has loaded it (`dragoman translate --bulk
--processes`). Loading is not in the rate. Memory is what `/proc/PID/smaps_rollup` says when it is most, summed over the
processes, with each page that several share counted once (PSS), and of a single process what it alone has (USS).
`server`: `dragoman serve` with so many threads, and so many servers of one thread, whose clients send 50 lines at once
from this machine. `--steps-only`: every translation of so many tokens, for weights that were not trained.
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import psutil
import torch

from dragoman.backends.cpu_search import library
from dragoman.cores import usable_cores
from dragoman.device import machine_name
from dragoman.inference.search_translator import SearchTranslator
from dragoman.pipeline.bulk import Translate, Work, run_worker
from dragoman.pipeline.bulk_processes import run_processes
from dragoman.pipeline.lines import OutputFormat, translating
from dragoman.pipeline.options import TranslateOptions, build_pipeline
from dragoman.pipeline.pipeline import Pipeline
from dragoman.text.lines import read_lines
from dragoman.version import commit

APART, COPIES = "apart", "copies"
REQUEST_LINES, CLIENTS = 50, 4
FORESEEN = (1, 2, 4, 8, 16, 32, 64)
THREADS_EACH = 4
"""Threads of a process, in the foreseen rates of several processes."""


class Measured(NamedTuple):
    """What a way of translating came to."""

    rate: float
    computed: float
    """Seconds of a processor for each sentence."""
    pss: float
    """MiB of all its processes together."""
    uss: float
    """MiB of a process alone, the median."""


def options_of(arguments: argparse.Namespace) -> TranslateOptions:
    changes: dict[str, Any] = {"beam_size": arguments.beam_size}
    if arguments.steps_only:
        changes |= {
            "min_length": arguments.steps_only - 1, "max_length_ratio": 0.0, "max_length_extra": arguments.steps_only
        }  # fmt: skip
    return TranslateOptions(arguments.run, split="never", decoding=changes)


# -- bulk ----------------------------------------------------------------------------------------------------------


def recorded(translate: Translate, log: Path, ready: Callable[[], None]) -> Translate:
    """A function that writes down when each block began and ended; before its first block it waits to be `ready`."""
    waits = [ready]

    def timed(first: int, lines: list[str]) -> list[str]:
        while waits:
            waits.pop()()
        begin, computed = time.time(), time.process_time()
        texts = translate(first, lines)
        with log.open("a") as file:
            file.write(f"{begin} {time.time()} {len(lines)} {time.process_time() - computed}\n")
        return texts

    return timed


def work_in(arguments: argparse.Namespace) -> None:
    """The life of a worker: its part of the work in `arguments.worker`, a folder."""
    folder, count = Path(arguments.worker), arguments.counts[0]
    work = Work(folder / "text", folder / "out", "cores", arguments.block_lines)

    def ready() -> None:
        (folder / f"{os.getpid()}.ready").touch()
        while arguments.how == APART and len(list(folder.glob("*.ready"))) < count:
            time.sleep(0.01)

    translate = translating(options_of(arguments), OutputFormat())
    if arguments.how == COPIES:
        run_processes(work, lambda: recorded(translate, folder / "log", lambda: None), count)
        return
    translate(1, list(read_lines(folder / "text"))[:32])
    run_worker(work, recorded(translate, folder / "log", ready))


def memory(processes: list[psutil.Process]) -> list[tuple[float, float]]:
    """(PSS, USS) of each process and its children that are still there, in MiB."""
    sizes = []
    for process in processes:
        with contextlib.suppress(psutil.Error):
            for one in (process, *process.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    of_one = one.memory_full_info()
                    sizes.append((of_one.pss / 2**20, of_one.uss / 2**20))
    return sizes


def bulk(arguments: argparse.Namespace, how: str, processes: int, threads: int) -> Measured:
    """Translate the text once by so many processes."""
    lines = list(read_lines(arguments.lines))
    with TemporaryDirectory() as name:
        folder = Path(name)
        texts = (lines * (arguments.sentences // len(lines) + 1))[: arguments.sentences]
        (folder / "text").write_text("".join(f"{line}\n" for line in texts), encoding="utf-8")
        command = [sys.executable, __file__, str(arguments.run), str(arguments.lines), "--worker", name, "--how", how]
        command += ["--counts", str(processes), "--beam-size", str(arguments.beam_size)]
        command += ["--steps-only", str(arguments.steps_only)]
        command += ["--block-lines", str(max(32, arguments.sentences // (8 * processes)))]
        started = [
            subprocess.Popen(
                command, env={**os.environ, "OMP_NUM_THREADS": str(threads)}, stderr=subprocess.PIPE, text=True
            )
            for _ in range(1 if how == COPIES else processes)
        ]
        watched, most = [psutil.Process(process.pid) for process in started], [(0.0, 0.0)]
        while any(process.poll() is None for process in started):
            most = max(most, memory(watched), key=lambda sizes: sum(pss for pss, _ in sizes))
            time.sleep(0.3)
        for process in started:
            assert process.stderr is not None
            if process.returncode:
                raise SystemExit(process.stderr.read())
            process.stderr.close()
        blocks = [tuple(map(float, line.split())) for line in (folder / "log").read_text().splitlines()]
    begins, ends, counts, computed = zip(*blocks, strict=True)
    return Measured(
        sum(counts) / (max(ends) - min(begins)),
        sum(computed) / sum(counts),
        sum(pss for pss, _ in most),
        statistics.median(uss for _, uss in most[how == COPIES and len(most) > 1 :]),
    )


def print_bulk(arguments: argparse.Namespace) -> None:
    ways = [(APART, 1, count) for count in arguments.counts]
    ways += [(how, count, 1) for how in (APART, COPIES) for count in arguments.counts if count > 1]
    measured: dict[tuple[str, int, int], list[Measured]] = {way: [] for way in ways}
    for number in range(arguments.passes):
        for way in ways[:: -1 if number % 2 else 1]:
            measured[way].append(bulk(arguments, *way))
            print(f"pass {number + 1} {way}: {measured[way][-1].rate:,.0f}", file=sys.stderr, flush=True)
    first = max(one.rate for one in measured[ways[0]])
    print("| bulk | sentences/s, best (median) | by one thread | processor us a sentence | MiB of all (PSS) ", end="")
    print("| of one alone (USS) |\n|---|---|---|---|---|---|")
    for (how, processes, threads), passes in measured.items():
        rates = [one.rate for one in passes]
        name = "process" if processes == 1 else f"processes, {how},"
        print(
            f"| {processes} {name} of {threads} thread{'s' * (threads > 1)} | {max(rates):,.0f} "
            f"({statistics.median(rates):,.0f}) | {max(rates) / first:.2f} | "
            f"{1e6 * min(one.computed for one in passes):,.0f} | "
            f"{statistics.median(one.pss for one in passes):,.0f} | "
            f"{statistics.median(one.uss for one in passes):,.0f} |"
        )


# -- the share of Python -------------------------------------------------------------------------------------------


class Clock:
    """The processor time of this thread in some functions, and the calls of each."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.calls: Counter[str] = Counter()

    @contextlib.contextmanager
    def watching(self, functions: Sequence[tuple[Any, str]]) -> Iterator[None]:
        """Within, calls of these attributes are timed."""
        before = [(owner, name, getattr(owner, name)) for owner, name in functions]
        for owner, name, function in before:
            setattr(owner, name, self._timed(name, function))
        try:
            yield
        finally:
            for owner, name, function in before:
                setattr(owner, name, function)

    def _timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            began = time.thread_time()
            try:
                return function(*arguments)
            finally:
                self.seconds[name] += time.thread_time() - began
                self.calls[name] += 1

        return timed


def copy_speed(threads: int) -> float:
    """GB/s read and written where 256 MB are copied."""
    torch.set_num_threads(threads)
    source = torch.zeros(2**26)
    target, best = torch.empty_like(source), 0.0
    for _ in range(5):
        began = time.perf_counter()
        target.copy_(source)
        best = max(best, 2 * 4 * source.numel() / (time.perf_counter() - began) / 1e9)
    return best


def print_share(arguments: argparse.Namespace) -> None:
    copied = {threads: copy_speed(threads) for threads in (1, usable_cores())}
    torch.set_num_threads(1)
    pipeline = replace(build_pipeline(options_of(arguments)), warn=False)
    lines = list(read_lines(arguments.lines))[: arguments.share_lines]
    pipeline.texts(lines[:64])
    loaded = library.library()
    assert loaded is not None, "no C compiler"
    own = ("parts", "hypotheses", "ranked")
    watched = [*((SearchTranslator, name) for name in own), *((loaded, name) for name in library.FUNCTIONS)]
    clocks = []
    for _ in range(arguments.passes):
        clocks.append(clock := Clock())
        with clock.watching([*watched, (Pipeline, "texts")]):
            pipeline.texts(lines)
    clock = min(clocks, key=lambda one: one.seconds["texts"])
    whole, inside = clock.seconds["texts"], sum(clock.seconds[name] for name in library.FUNCTIONS)
    steps = {
        "tokens of sources": clock.seconds["parts"],
        "search, in C": inside,
        "search, around C": clock.seconds["hypotheses"] - inside,
        "tokens to texts": clock.seconds["ranked"],
    }
    steps["sentences, placeholders, joining"] = whole - sum(steps.values())
    print("| part of a sentence, one thread | us |\n|---|---|")
    for name, seconds in (*steps.items(), ("all", whole)):
        print(f"| {name} | {1e6 * seconds / len(lines):,.1f} |")
    search, count = pipeline.search, clock.calls["search_run"]
    hypotheses = search.hypotheses([part for line in lines for part in search.parts(line)])
    tokens = sum(len(found[0].ids) for found in hypotheses if found)
    model = search.model
    decoder = sum(p.numel() for name, p in model.named_parameters() if name.startswith("decoder"))
    weights = 4 * (decoder + model.output.weight.numel())  # type: ignore[union-attr,operator]
    serial, of_step = 1 - inside / whole, inside / max(1, count)
    print(f"\nPython: {serial:.3f} of the time; {tokens / max(1, count):,.0f} tokens a step, ", end="")
    print(f"{1e3 * of_step:.2f} ms in C")
    need = weights / of_step / 1e9
    print(f"A step reads {weights / 1e6:,.1f} MB of weights: {need:.2f} GB/s for each thread. A copy moves ", end="")
    print(", ".join(f"{speed:.1f} GB/s by {threads}" for threads, speed in copied.items()))
    print_foreseen(whole / len(lines), serial, need)


def print_foreseen(seconds: float, serial: float, need: float) -> None:
    """Rates by Amdahl's law: a thread waits for the others' Python, and processes for nobody."""

    def by_threads(threads: int) -> float:
        return 1 / (serial + (1 - serial) / threads)

    print("\n| cores | one process | processes of one thread | of up to 4 threads | GB/s of weights, at most |")
    print("|---|---|---|---|---|")
    for cores in FORESEEN:
        several = cores / min(cores, THREADS_EACH) * by_threads(min(cores, THREADS_EACH))
        rates = (by_threads(cores) / seconds, cores / seconds, several / seconds)
        print(f"| {cores} | {' | '.join(f'{rate:,.0f}' for rate in rates)} | {cores * need:,.0f} |")


# -- the server ----------------------------------------------------------------------------------------------------


def cpu_seconds(process: int) -> float:
    """Seconds of a processor that a process has had."""
    times = psutil.Process(process).cpu_times()
    return times.user + times.system


def served(arguments: argparse.Namespace, servers: int, threads: int) -> Measured:
    """Sentences a second from so many servers under as many requests as they take."""
    from serving import ADDRESSES, Server

    lines = list(read_lines(arguments.lines))
    texts = [(lines * 2)[start : start + REQUEST_LINES] for start in range(0, len(lines), REQUEST_LINES)]
    with contextlib.ExitStack() as stack:
        started = []
        for _ in range(servers):
            folder = Path(stack.enter_context(TemporaryDirectory()))
            server = Server(str(arguments.run), folder, "--threads", str(threads))
            stack.callback(server.process.wait)
            stack.callback(server.process.terminate)
            started.append(server)
        until, done = time.monotonic() + arguments.seconds, []

        def client(number: int) -> int:
            server, count = started[number % servers], 0
            while time.monotonic() < until:
                body = texts[(number + count) % len(texts)]
                status, _ = server.translate(body, address=ADDRESSES[number], beam_size=arguments.beam_size)
                count += len(body) * (status == 200)
            return count

        began, before = time.monotonic(), sum(cpu_seconds(server.process.pid) for server in started)
        with ThreadPoolExecutor(CLIENTS * servers * threads) as clients:
            done = list(clients.map(client, range(CLIENTS * servers * threads)))
        rate = sum(done) / (time.monotonic() - began)
        computed = sum(cpu_seconds(server.process.pid) for server in started) - before
        sizes = memory([psutil.Process(server.process.pid) for server in started])
    return Measured(
        rate, computed / max(1, sum(done)), sum(pss for pss, _ in sizes), statistics.median(uss for _, uss in sizes)
    )


def print_served(arguments: argparse.Namespace) -> None:
    ways = [(1, count) for count in arguments.counts] + [(count, 1) for count in arguments.counts if count > 1]
    print("| server | sentences/s, best | processor us a sentence | MiB of all (PSS) | of one alone (USS) |")
    print("|---|---|---|---|---|")
    for servers, threads in ways:
        passes = [served(arguments, servers, threads) for _ in range(arguments.passes)]
        best = max(passes)
        print(
            f"| {servers} of {threads} thread{'s' * (threads > 1)} | {best.rate:,.0f} | "
            f"{1e6 * best.computed:,.0f} | {best.pss:,.0f} | "
            f"{best.uss:,.0f} |",
            flush=True,
        )


PARTS = {"share": print_share, "bulk": print_bulk, "server": print_served}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("lines", type=Path)
    parser.add_argument("parts", nargs="*", help=" ".join(PARTS))
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--sentences", type=int, default=20_000, help="of a pass of `bulk`")
    parser.add_argument("--share-lines", type=int, default=1_000, help="lines of `share`")
    parser.add_argument("--seconds", type=float, default=10.0, help="of a pass of `server`")
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--beam-size", type=int, default=5)
    parser.add_argument("--steps-only", type=int, default=0, metavar="TOKENS")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--how", help=argparse.SUPPRESS)
    parser.add_argument("--block-lines", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_intermixed_args()
    if arguments.worker:
        work_in(arguments)
        return
    print(
        f"commit {commit()}, {machine_name(torch.device('cpu'))}, PyTorch {torch.__version__}; {arguments.run}, ",
        end="",
    )
    print(f"beam {arguments.beam_size}, {usable_cores()} usable cores; load before: {os.getloadavg()[0]:.1f}\n")
    for name in arguments.parts or PARTS:
        PARTS[name](arguments)
        print(flush=True)


if __name__ == "__main__":
    main()
