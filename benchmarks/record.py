"""Record finished runs: scores, times and curves, without a word of their corpora.

    python benchmarks/record.py runs/multi30k-en-de runs/multi30k-en-de-tok      # from the root of the repository

For each run it writes `benchmarks/runs/NAME.jsonl` (the log without sample sentences) and `NAME.svg` (the curves), and
prints rows for a table, where the run is a translator's.
"""

import argparse
import json
from pathlib import Path

from dragoman.analysis.figure import save
from dragoman.analysis.plots import training_curves
from dragoman.runs.events import METRICS, read_events
from dragoman.version import commit

FOLDER = Path(__file__).parent / "runs"


def record(run_dir: Path, folder: Path) -> list[str]:
    """Write a run's files; returns its rows of the table."""
    events = read_events(run_dir / METRICS)
    folder.mkdir(exist_ok=True)
    bare = [{key: value for key, value in event.items() if key != "samples"} for event in events]
    text = "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in bare)
    (folder / f"{run_dir.name}.jsonl").write_text(text, encoding="utf-8")
    save(training_curves(events), folder / f"{run_dir.name}.svg")
    start = next(event for event in events if event["event"] == "start")
    plan = next(event for event in events if event["event"] == "plan")
    end = next(event for event in reversed(events) if event["event"] == "end")
    trained = (
        f"{end['step']:,} steps, {end['step'] / plan['steps_per_epoch']:.1f} epochs, {end['elapsed_s'] / 60:.1f} min"
    )
    rows = [
        f"| {run_dir.name} | {event['name']} | {event['bleu']:.2f} | {event['chrf']:.2f} | {event['ter']:.2f} "
        f"| {event['decode_s']:.1f} | {plan['parameters']:,} | {trained} | {start['precision']} |"
        for event in events
        if event["event"] == "test" and "bleu" in event
    ]
    signatures = next((event["signatures"] for event in events if "signatures" in event), {})
    return [*rows, *(f"  {name}: `{signature}`" for name, signature in signatures.items())]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to write")
    options = parser.parse_args()
    print(f"commit {commit()}")
    print("| run | test set | BLEU | chrF | TER | decoding, s | parameters | training | precision |")
    print("|---|---|---|---|---|---|---|---|---|")
    for run in options.runs:
        print("\n".join(record(run, options.folder)))
