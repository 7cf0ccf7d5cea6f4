"""The speed run: from raw files to a scored model, with the time that all of it takes.

    DRAGOMAN_DATA=FOLDER python speedrun/run.py                          # three seeds by recipe.yaml, scored
    DRAGOMAN_DATA=FOLDER python speedrun/run.py --trial --seeds 1 training.max_steps=3200   # for choices: no test set

Each seed is one `dragoman train` in a process and a run directory of its own. What it says comes with the seconds since
that process was started; its result goes to `speedrun/results/`. The rules are in README.md.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dragoman.version import commit as checked_out

HERE = Path(__file__).parent
TARGETS = (38.0, 40.0, 41.0, 42.0)
"""BLEU on the test set: a run counts for those that its final score reaches."""
LIBRARIES = ("torch", "sentencepiece", "sacrebleu", "numpy")


def run_seed(recipe: Path, seed: int, run_dir: Path, changes: list[str]) -> dict[str, Any]:
    """Carry out the recipe with this seed; what there is to know of it. Stops the script where the training fails."""
    if run_dir.exists():
        raise SystemExit(f"{run_dir}: is there already, and would be gone on with: choose another --runs")
    command = ["train", str(recipe), *changes, f"seed={seed}", "--run", str(run_dir)]
    commit = checked_out() or "unknown"  # with `-dirty` where a file differs from it: that makes no record
    began, start = datetime.now(UTC), time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", "dragoman", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            print(f"{time.monotonic() - start:8.1f} s  {line}", end="", flush=True)
    seconds = time.monotonic() - start
    if child.returncode:
        raise SystemExit(f"seed {seed}: the training ended with code {child.returncode}")
    about = {
        "date": f"{began:%Y-%m-%d %H:%M} UTC",
        "commit": commit,
        "command": " ".join(["dragoman", *command]).replace(f"{HERE}/", "speedrun/"),
        "seed": seed,
        "versions": {"python": sys.version.split()[0], **{name: version(name) for name in LIBRARIES}},
    }
    return {**about, **read_run(run_dir, began, seconds)}


def read_run(run_dir: Path, began: datetime, seconds: float) -> dict[str, Any]:
    """What a finished run's own log and settings say of it."""
    from dragoman.runs.atomic_io import read_yaml
    from dragoman.runs.log import METRICS, read_events

    events = read_events(run_dir / METRICS)
    start, plan, end = (next(event for event in events if event["event"] == kind) for kind in ("start", "plan", "end"))
    if end["reason"] == "interrupted":
        raise SystemExit(f"{run_dir}: was stopped before its end")
    curve = [
        {
            "seconds": round((datetime.fromisoformat(event["time"]) - began).total_seconds()),
            **{name: event[name] for name in ("step", "loss", "bleu")},
        }
        for event in events
        if event["event"] == "valid"
    ]
    tested = next((event for event in events if event["event"] == "test"), None)
    found = {name: tested[name] for name in ("name", "bleu", "chrf", "ter", "signatures")} if tested else None
    return {
        **{name: start[name] for name in ("machine", "threads", "device", "precision")},
        **{name: plan[name] for name in ("parameters", "max_steps", "steps_per_epoch")},
        "validations": curve,
        "training_seconds": round(end["elapsed_s"], 1),
        "seconds": round(seconds, 1),
        "test": found,
        "seconds_to": seconds_to(seconds, found["bleu"]) if found else {},
        "settings": read_yaml(run_dir / "config.yaml"),
    }


def seconds_to(seconds: float, bleu: float) -> dict[str, float | None]:
    """For each target the seconds of the whole run, if its final score reaches it: no shorter time has been shown."""
    return {f"{target:g}": round(seconds, 1) if bleu >= target else None for target in TARGETS}


def median_seconds(results: list[dict[str, Any]], target: float) -> float | None:
    """Of the seeds; one that stays below the target takes for ever. None where the median does."""
    seconds = statistics.median_high(result["seconds_to"][f"{target:g}"] or math.inf for result in results)
    return seconds if math.isfinite(seconds) else None


def table_row(results: list[dict[str, Any]]) -> str:
    """The record's line for the table in README.md."""
    first, scores = results[0], [result["test"]["bleu"] for result in results]
    times = [median_seconds(results, target) for target in TARGETS]
    columns = [
        first["date"].split()[0],
        first["commit"],
        f"{first['machine']}, {first['threads']} threads",
        *("-" if seconds is None else f"{seconds:,.0f}" for seconds in times),
        f"{statistics.median(scores):.2f} ({min(scores):.2f} to {max(scores):.2f}, {len(scores)} seeds)",
        "what changed",
    ]
    return f"| {' | '.join(columns)} |"


def save(result: dict[str, Any], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    stamp = result["date"].replace(" UTC", "").replace(" ", "-").replace(":", "")
    path = folder / f"{stamp}-{result['commit']}-seed{result['seed']}.json"
    path.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return path


def summary(result: dict[str, Any]) -> str:
    """A seed in a few lines: its validations, and what it scored when."""
    curve = ", ".join(f"{point['bleu']:.2f} after {point['seconds']:,} s" for point in result["validations"])
    scored = f"{result['test']['bleu']:.2f} BLEU on {result['test']['name']}" if result["test"] else "tests not scored"
    return f"seed {result['seed']}: validation BLEU {curve}\nseed {result['seed']}: {scored}, {result['seconds']:,} s"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="changes to the recipe")
    parser.add_argument("--recipe", type=Path, default=HERE / "recipe.yaml")
    parser.add_argument("--seeds", default="1,2,3", help="separated by commas")
    parser.add_argument("--runs", type=Path, help="folder of run directories [default: runs/speedrun-TIME]")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder of the results")
    parser.add_argument("--trial", action="store_true", help="leave the test sets alone and write no result")
    given = parser.parse_intermixed_args(arguments)
    runs = given.runs or Path("runs") / f"speedrun-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    changes = [*given.overrides, *(["corpus.test={}"] if given.trial else [])]
    results = []
    for seed in map(int, given.seeds.split(",")):
        results.append(run_seed(given.recipe, seed, runs / f"seed-{seed}", changes))
        if not given.trial:
            print(f"wrote {save(results[-1], given.results)}", flush=True)
    print("\n".join(map(summary, results)))
    if not given.trial:
        print(table_row(results))


if __name__ == "__main__":
    main()
