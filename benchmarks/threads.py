"""Training speed by shape, threads, wait policy of OpenMP, and a busy neighbour.

    python benchmarks/threads.py recipes/toy-beer.yaml [section.key=value ...]

Several processes train the recipe in turn, on random ids where its files are not there. They differ in how long a
thread that waits for another spins before it sleeps: as PyTorch's OpenMP (libgomp) has it, by `GOMP_SPINCOUNT`, or not
at all (`OMP_WAIT_POLICY=PASSIVE`). Each takes steps on all cores, the first on one thread too, alone and beside a
process that does nothing but spin. The table has the medians of the rounds, in source and target tokens a second.
Every other round takes the cells in reverse.

`ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2` before the command makes a processor
compute as one without AVX-512 does.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict

OWN = "PyTorch's own"
WAITING = {
    OWN: {},
    **{f"GOMP_SPINCOUNT={count}": {"GOMP_SPINCOUNT": count} for count in ("30000", "3000", "300")},
    "OMP_WAIT_POLICY=PASSIVE": {"OMP_WAIT_POLICY": "PASSIVE"},
}
CHOSEN = ("OMP_WAIT_POLICY", "OMP_NUM_THREADS", "GOMP_SPINCOUNT")
SPIN = "while True: pass"
WARM_UP_STEPS = 3


def measure(recipe_file: str, overrides: list[str]) -> None:
    """Read `THREADS SECONDS` from stdin and answer with tokens a second, until stdin ends."""
    import torch

    from dragoman.experiments.bench.batches import subject
    from dragoman.tasks import recipes

    with subject(recipes.load(recipe_file, overrides)) as trainer:
        step = 0
        for line in sys.stdin:
            threads, seconds = line.split()
            torch.set_num_threads(int(threads))
            for _ in range(WARM_UP_STEPS):
                step += 1
                trainer.train_step(step)
            tokens, begin = 0, time.perf_counter()
            while (took := time.perf_counter() - begin) < float(seconds):
                step += 1
                tokens += trainer.train_step(step)[2]
            answer = {
                "rate": tokens / took,
                "parameters": sum(weight.numel() for weight in trainer.model.parameters()),
                "precision": trainer.precision,
                "capability": torch.backends.cpu.get_cpu_capability(),
            }
            print(json.dumps(answer), flush=True)


def start(command: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
    inherited = {name: value for name, value in os.environ.items() if name not in CHOSEN}
    return subprocess.Popen(
        command, env=inherited | environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def ask(worker: subprocess.Popen[str], threads: int, seconds: float) -> dict[str, float]:
    assert worker.stdin is not None
    assert worker.stdout is not None
    print(threads, seconds, file=worker.stdin, flush=True)
    answer: dict[str, float] = json.loads(worker.stdout.readline())
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe")
    parser.add_argument("overrides", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--waiting", nargs="+", choices=WAITING, default=list(WAITING), help="how threads wait")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        measure(arguments.recipe, arguments.overrides)
        return
    cores = os.cpu_count() or 1
    command = [sys.executable, __file__, arguments.recipe, *arguments.overrides, "--worker"]
    workers = {waiting: start(command, WAITING[waiting]) for waiting in arguments.waiting}
    rows = [(1, arguments.waiting[0]), *((cores, waiting) for waiting in workers)]
    cells = [(*row, busy) for busy in (False, True) for row in rows]
    rates = defaultdict(list)
    for worker in workers.values():
        about = ask(worker, cores, 0.5)
    for round_number in range(arguments.rounds):
        for threads, waiting, busy in cells[:: -1 if round_number % 2 else 1]:
            neighbour = start([sys.executable, "-c", SPIN], {}) if busy else None
            try:
                answer = ask(workers[waiting], threads, arguments.seconds)
            finally:
                if neighbour is not None:
                    neighbour.kill()
                    neighbour.wait()
            rates[threads, waiting, busy].append(answer["rate"])
    for worker in workers.values():
        worker.communicate()
    print(
        f"{arguments.recipe}: {about['parameters']:,} parameters, {about['precision']}, {about['capability']}, {cores} "
        f"cores, medians of {arguments.rounds} rounds, tokens/s; load before: {os.getloadavg()[0]:.1f}"
    )
    print("| threads | waiting | alone | beside one busy process |\n|---|---|---|---|")
    for threads, waiting in rows:
        alone, beside = (statistics.median(rates[threads, waiting, busy]) for busy in (False, True))
        print(f"| {threads} | {waiting} | {alone:,.0f} | {beside:,.0f} |")


if __name__ == "__main__":
    main()
