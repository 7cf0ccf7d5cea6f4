"""Training speed of several toolkits in turn on this machine: real tokens a second at the same shapes and settings.

    python benchmarks/peers/run.py CORPUS joeynmt=PYTHON sockeye=PYTHON eole=PYTHON huggingface=PYTHON marian=PYTHON

CORPUS is the folder that prepare.py has written, PYTHON the interpreter of a toolkit's environment. Run it with
Dragoman's own interpreter: `dragoman`, `torch` (a plain loop around `torch.nn.Transformer`) and the toolkits that are
installed beside them take that one where no other is named. Every measurement is a process of its own, in the
environment that this one was started in; a round has one of each toolkit and precision.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from result import RESULT, Result
from task import PACKAGES, PRECISIONS, SHAPES, TITLES
from untouched import ENVIRONMENT

from dragoman.device import machine_name, pick_device
from dragoman.version import commit

HEADER = """\
| toolkit | version | precision | real tokens/s, median | rounds | times | fill | tokens a step | parameters |
|---|---|---|---|---|---|---|---|---|"""
Contestant = tuple[str, str]
"""Name and precision."""


def measure(python: str, name: str, arguments: list[str]) -> Result | None:
    """What a process of that toolkit finds; None, and its last words on stderr, where it finds nothing."""
    script = Path(__file__).with_name(f"train_{name}.py")
    done = subprocess.run(
        [python, str(script), *arguments],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    lines = done.stdout.splitlines()
    for line in lines:
        if line.startswith(RESULT):
            return Result(**json.loads(line.removeprefix(RESULT)))
    print(f"{name} {' '.join(arguments)} failed:", *lines[-15:], sep="\n    ", file=sys.stderr)
    return None


def table(results: dict[Contestant, list[Result]]) -> list[str]:
    """`times` is Dragoman's median in the same precision by this one's."""
    medians = {key: statistics.median(result.rate for result in found) for key, found in results.items()}
    rows = []
    for (name, precision), found in results.items():
        rate, dragomans = medians[name, precision], medians.get(("dragoman", precision))
        fill = sum(result.real_tokens for result in found) / sum(result.padded_tokens for result in found)
        cells = [
            TITLES[name],
            found[0].version,
            precision,
            f"{rate:,.0f}",
            " ".join(f"{result.rate:,.0f}" for result in found),
            "" if dragomans is None else f"{dragomans / rate:.2f}",
            f"{fill:.2f}",
            f"{sum(result.real_tokens for result in found) / sum(result.steps for result in found):,.0f}",
            f"{found[0].parameters:,}",
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return [HEADER, *rows]


def environment(text: str) -> tuple[str, str]:
    name, _, python = text.partition("=")
    if name not in PRECISIONS or not os.access(python, os.X_OK):
        raise argparse.ArgumentTypeError(f"{text!r}: NAME=PYTHON with one of {', '.join(PRECISIONS)} and a program")
    return name, python


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("environments", nargs="*", type=environment, metavar="NAME=PYTHON")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS["dragoman"], default=PRECISIONS["dragoman"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm-up", type=int, default=10, help="steps at the start of a process that do not count")
    parser.add_argument("--steps", type=int, default=40, help="steps of a process that do")
    parser.add_argument("--threads", type=int, help="of each process; all cores where it is left out")
    parser.add_argument("--keep", type=Path, help="a file to which each measurement is added, as a line of JSON")
    options = parser.parse_args()
    if options.threads:
        ENVIRONMENT["OMP_NUM_THREADS"] = str(options.threads)
    installed = [name for name in PRECISIONS if importlib.util.find_spec(PACKAGES.get(name, name))]
    pythons = {**dict.fromkeys(installed, sys.executable), **dict(options.environments)}
    contestants = [
        (name, precision)
        for name, offered in PRECISIONS.items()
        for precision in offered
        if name in pythons and precision in options.precisions
    ]

    failed = 0
    for shape_name in options.shapes:
        results: dict[Contestant, list[Result]] = defaultdict(list)
        for number in range(options.rounds):
            for name, precision in contestants:
                steps = ["--warm-up", str(options.warm_up), "--steps", str(options.steps)]
                result = measure(pythons[name], name, [str(options.corpus), shape_name, precision, *steps])
                if result is None:
                    failed += 1
                    continue
                results[name, precision].append(result)
                print(f"round {number + 1}: {name} {precision}: {result.rate:,.0f}", file=sys.stderr, flush=True)
                if options.keep:
                    with options.keep.open("a", encoding="utf-8") as kept:
                        kept.write(f"{json.dumps(vars(result))}\n")
        shape, measured = SHAPES[shape_name], [result for found in results.values() for result in found]
        threads = sorted({result.threads for result in measured})
        torches = sorted({result.torch for result in measured if result.torch})
        print(
            f"{shape_name}: d_model {shape.d_model}, d_ff {shape.d_ff}, {shape.num_heads} heads, "
            f"{shape.num_encoder_layers}+{shape.num_decoder_layers} layers, {shape.batch_tokens:,}-token batches; "
            f"{machine_name(pick_device('cpu'))}; {', '.join(map(str, threads))} threads; "
            f"torch {', '.join(torches)}; {options.steps} steps a round after {options.warm_up}; commit {commit()}\n"
        )
        print(*table(results), "", sep="\n", flush=True)
    if failed:
        raise SystemExit(f"{failed} measurements failed: stderr has their last words")


if __name__ == "__main__":
    main()
