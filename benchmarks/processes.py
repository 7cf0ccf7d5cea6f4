"""Training in several processes beside one: real tokens a second of `dragoman train`, in turn, on this machine.

    python benchmarks/processes.py recipes/multi30k-en-de.yaml --rounds 3 --steps 60 [section.key=value ...]

Four ways: one process on one thread, one process on two threads, two processes of one thread each with
`training.reduce=exact`, and with `fast`. `--only` chooses those whose names have its text. All take the same steps of
two micro-batches. The figure is that of the run's own log, from the second line on: start, pre-flight and validation
are not in it.
"""

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from dragoman.runs.events import read_events
from dragoman.version import commit

WAYS = {
    "1 process of 1 thread": (1, 1, "exact"),
    "1 process of 2 threads": (1, 2, "exact"),
    "2 processes of 1 thread, exact": (2, 1, "exact"),
    "2 processes of 1 thread, fast": (2, 1, "fast"),
}


def rate(recipe: str, changes: list[str], steps: int, way: tuple[int, int, str], folder: Path) -> float:
    """Tokens a second of one run."""
    processes, threads, reduce = way
    run = folder / "run"
    subprocess.run(
        [
            *(sys.executable, "-m", "dragoman", "train", recipe, f"run_dir={run}", *changes),
            *(f"training.max_steps={steps}", "training.log_every=10", "training.samples=0", "corpus.test={}"),
            *(f"training.reduce={reduce}", "--processes", str(processes)),
        ],
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        stderr=subprocess.DEVNULL,
        check=True,
    )
    lines = [event["tokens_per_s"] for event in read_events(run / "metrics.jsonl") if event["event"] == "train"]
    return statistics.median(lines[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe")
    parser.add_argument("changes", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--only", default="")
    options = parser.parse_intermixed_args()
    found: dict[str, list[float]] = {name: [] for name in WAYS if options.only in name}
    for _ in range(options.rounds):
        for name in found:
            with TemporaryDirectory() as folder:
                changes = ["training.micro_batches=2", "training.validate_every=1000000", *options.changes]
                found[name].append(rate(options.recipe, changes, options.steps, WAYS[name], Path(folder)))
            print(f"{name}: {found[name][-1]:,.0f}", file=sys.stderr, flush=True)
    first = statistics.median(next(iter(found.values())))
    print(f"commit {commit()}, {options.recipe} {' '.join(options.changes)}")
    for name, rates in found.items():
        middle = statistics.median(rates)
        print(
            f"{name:<32} {middle:>8,.0f} tokens/s ({min(rates):,.0f} to {max(rates):,.0f}), {middle / first:.2f} times"
        )


if __name__ == "__main__":
    main()
