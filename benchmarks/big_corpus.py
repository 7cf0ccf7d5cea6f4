"""Does a corpus of millions of pairs fit into a laptop? Seconds and peak memory of `dragoman prepare` and `train`.

    python benchmarks/big_corpus.py --pairs 5000000 --dir /tmp/big          # prints one JSON line
    python benchmarks/big_corpus.py --pairs 20000 --dir /tmp/big --generate-only
    python benchmarks/big_corpus.py --pairs 10000000 --dir /tmp/big --doctor

The pairs are made from the embedded corpus, one to three of its pairs joined to one, so that nothing is downloaded.
Memory is that of the command and all its child processes, sampled from /proc (Linux only): `peak_pss_mib` counts a
page that several processes share once; `peak_anonymous_mib` leaves out mapped files (the ids, the libraries), which
the system may drop at any time.
"""

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml

from dragoman.corpora import embedded
from dragoman.version import __version__, commit

POLL_S = 0.25
BASE_PAIRS = 20_000


def generate(folder: Path, pairs: int) -> None:
    """Write train.{de,en} and valid.{de,en}: always the same ones for the same number of pairs."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, count in (("train", pairs), ("valid", 500)):
        base = list(embedded.sentences("de-en", split, BASE_PAIRS if split == "train" else count, 1))
        rng = random.Random(1)
        with (
            (folder / f"{split}.de").open("w", encoding="utf-8", newline="\n") as src_file,
            (folder / f"{split}.en").open("w", encoding="utf-8", newline="\n") as tgt_file,
        ):
            for _ in range(count):
                chosen = [base[int(rng.random() * len(base))] for _ in range(1 + int(rng.random() * 3))]
                src_file.write(" ".join(src for src, _ in chosen) + "\n")
                tgt_file.write(" ".join(tgt for _, tgt in chosen) + "\n")


def write_recipe(folder: Path) -> Path:
    """A small Transformer: what is measured is the data's share of the memory."""

    def files(split: str) -> dict[str, str]:
        return {"type": "files", "src": str(folder / f"{split}.de"), "tgt": str(folder / f"{split}.en")}

    recipe = {
        "run_dir": str(folder / "run"),
        "corpus": {"src_lang": "de", "tgt_lang": "en", "train": files("train"), "valid": files("valid")},
        "tokenizer": {"type": "sentencepiece", "vocab_size": 2000},
        "model": {"type": "transformer", "d_model": 128, "d_ff": 512, "num_heads": 4}
        | {"num_encoder_layers": 2, "num_decoder_layers": 2},
        "training": {"batch_tokens": 2048},
    }
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(recipe, sort_keys=False), encoding="utf-8")
    return path


def measure(command: list[str], fine: tuple[int, ...] = (0,)) -> dict[str, Any]:
    """Run a command to its end (with a `fine` exit code): seconds, and the peak memory of its tree of processes."""
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak = {"Pss": 0, "Pss_Anon": 0}
    processes = 0
    while process.poll() is None:
        tree = descendants(process.pid)
        usage = [memory_kib(pid) for pid in tree]
        processes = max(processes, len(tree))
        peak = {name: max(peak[name], sum(part.get(name, 0) for part in usage)) for name in peak}
        time.sleep(POLL_S)
    if process.returncode not in fine:
        raise SystemExit(f"{' '.join(command)} ended with code {process.returncode}")
    return {
        "seconds": round(time.monotonic() - started, 1),
        "peak_pss_mib": round(peak["Pss"] / 1024),
        "peak_anonymous_mib": round(peak["Pss_Anon"] / 1024),
        "processes": processes,
    }


def descendants(root: int) -> list[int]:
    """The process and all below it, by the parents that /proc names."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                # "PID (NAME) STATE PARENT ...", where NAME may hold spaces and brackets
                parent = int(Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError):  # ended meanwhile
                continue
            children.setdefault(parent, []).append(int(entry))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def memory_kib(pid: int) -> dict[str, int]:
    """The totals of /proc/PID/smaps_rollup; nothing for a process that has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return {}
    return {name.strip(): int(value.split()[0]) for name, _, value in (line.partition(":") for line in lines)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, required=True)
    parser.add_argument("--dir", type=Path, required=True, help="folder for corpus and run; a few GB for millions")
    parser.add_argument("--max-steps", type=int, default=200)
    parser.add_argument("--generate-only", action="store_true")
    parser.add_argument("--doctor", action="store_true", help="only have `dragoman doctor` examine the corpus")
    parser.add_argument("--dragoman", default=str(Path(sys.executable).with_name("dragoman")), help="the command")
    options = parser.parse_args()

    started = time.monotonic()
    generate(options.dir, options.pairs)
    result: dict[str, Any] = {
        "benchmark": "big_corpus",
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "dragoman": __version__,
        "commit": commit() or "unknown",
        "python": platform.python_version(),
        "pairs": options.pairs,
        "corpus_mib": round(sum(path.stat().st_size for path in options.dir.glob("train.*")) / 2**20, 1),
        "generate_s": round(time.monotonic() - started, 1),
    }
    if options.doctor:
        files = [str(options.dir / name) for name in ("train.de", "train.en")]
        result["doctor"] = measure([options.dragoman, "doctor", *files], fine=(0, 1))
    elif not options.generate_only:
        recipe = str(write_recipe(options.dir))
        result["prepare"] = measure([options.dragoman, "prepare", recipe])
        result["train"] = measure([options.dragoman, "train", recipe, f"training.max_steps={options.max_steps}"])
    print(json.dumps(result))


if __name__ == "__main__":
    main()
