"""A run carried out once more from its own record, and whether the same came out."""

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from dragoman.analysis.report import write_report
from dragoman.device import pick_device, pick_precision
from dragoman.errors import Error
from dragoman.progress import say
from dragoman.runs import checkpoint
from dragoman.runs.atomic_io import read_json
from dragoman.runs.events import METRICS, Event, last_event, read_events, without_repeats
from dragoman.runs.new_run import IDENTITY
from dragoman.tasks import recipes
from dragoman.tasks.announcement import circumstances
from dragoman.training.time_budget import TIME_BUDGET_FILE

Verdict = Literal["bytes", "scores", "differs", "interrupted"]
WEIGHTS = ("model.safetensors", "averaged.safetensors", "optimizer.safetensors")
FIGURES = ("loss", "bleu", "chrf", "ter", "accuracy", "macro_f1", "perplexity", "bits_per_character")
EQUAL_WITHIN = 0.005
"""Figures that differ by less are equal in the two decimals that are published."""


@dataclass(frozen=True)
class Reproduction:
    """The result of doing a run again."""

    run: Path
    again: Path
    verdict: Verdict
    environment: list[str]
    """Differences of this machine, known before anything was computed."""
    checkpoints: dict[str, bool]
    """For each checkpoint that both runs have, whether all of its bytes are equal."""
    differences: list[str] = field(default_factory=list)
    """Figures that differ: name, old value, new value."""


def reproduce(run: Path, again: Path, device: str | None = None) -> Reproduction:
    """Train a run's recipe once more in the directory `again`, and compare checkpoints by bytes and figures by value.

    Raises DragomanError where it cannot be the same: the corpus is not there or another one, the run is a mean or was
    imported, or another run lies in `again`.
    """
    recipe: Any = recipes.of_run(run)
    events = without_repeats(read_events(run / METRICS))
    start = last_event(events, "start")
    if checkpoint.is_mean(run) or not start:
        raise Error.UNSUPPORTED(
            "was not trained from a recipe (it is a mean, or imported): there is nothing to reproduce", file=run
        )
    if not checkpoint.list_checkpoints(run):
        raise Error.NO_CHECKPOINT("has no checkpoint to compare with", "train it first", file=run)
    _require_same_corpus(run, recipe)
    environment = _environment(start, recipe)
    for line in environment:
        say(f"changed since then: {line}")
    if not environment:
        say("machine, versions and corpus are the same as then")
    training = recipe.training
    chosen = pick_device(device or recipe.device)
    if (
        start.get("precision")
        and pick_precision(training.precision, chosen, recipe.model.d_model) != start["precision"]
    ):
        training = replace(training, precision=start["precision"])
    recipe = replace(recipe, run_dir=str(again), training=training, device=device or recipe.device)
    result = recipes.run(recipe, report=write_report)
    if result.outcome.reason == "interrupted":
        return Reproduction(run, again, "interrupted", environment, {})
    return _compared(run, again, environment)


def _compared(run: Path, again: Path, environment: list[str]) -> Reproduction:
    old, new = ({path.name: path for path in checkpoint.list_checkpoints(place)} for place in (run, again))
    same = {name: _digest(old[name]) == _digest(new[name]) for name in sorted(old) if name in new}
    differences = _differences(
        without_repeats(read_events(run / METRICS)), without_repeats(read_events(again / METRICS))
    )
    verdict: Verdict = "differs" if differences else "scores"
    if same and all(same.values()) and not differences:
        verdict = "bytes"
    return Reproduction(run, again, verdict, environment, same, differences)


def _require_same_corpus(run: Path, recipe: Any) -> None:
    if not (run / IDENTITY).exists():
        raise Error.UNSUPPORTED("has no record of its training text (identity.json): it cannot be reproduced", file=run)
    then, now = read_json(run / IDENTITY, dict), recipes.job(recipe).identity()
    if other := [key for key, digest in then.items() if now.get(key) != digest]:
        raise Error.CHANGED(
            f"{', '.join(other)} {'has' if len(other) == 1 else 'have'} other content than at the time of the training",
            "put back the text that it was trained on",
            file=run,
        )


def _environment(start: Event, recipe: Any) -> list[str]:
    """The differences from then, each a line."""
    device = pick_device(recipe.device)
    now = circumstances(device, pick_precision(recipe.training.precision, device, recipe.model.d_model))
    del now["threads"]  # which follow from the machine
    names = {"dragoman": "Dragoman", "commit": "commit of Dragoman", "torch": "PyTorch", "python": "Python"}
    changes = [
        f"{names.get(key, key)}: {start[key]}, now {value}"
        for key, value in now.items()
        if start.get(key) is not None and start[key] != value
    ]
    if (Path(recipe.run_dir) / TIME_BUDGET_FILE).exists():
        changes.append("the clock decided where it ended (`budget`); the number of steps is kept, its marks are not")
    return changes


def _differences(then: list[Event], now: list[Event]) -> list[str]:
    differences = []
    for kind in ("valid", "test"):
        for event in (event for event in then if event["event"] == kind):
            place = str(event.get("name") or f"step {event.get('step'):,}")
            of_kind = (it for it in now if it["event"] == kind)
            other = next((it for it in of_kind if _place(it) == _place(event)), None)
            if other is None:
                differences.append(f"{kind} {place}: is not there now")
                continue
            for name in FIGURES:
                before, after = event.get(name), other.get(name)
                if (
                    isinstance(before, int | float)
                    and isinstance(after, int | float)
                    and abs(before - after) >= EQUAL_WITHIN
                ):
                    differences.append(f"{kind} {place}: {name} {before:.4f}, now {after:.4f}")
    return differences


def _place(event: Event) -> Any:
    return event.get("name", event.get("step"))


def _digest(path: Path) -> dict[str, str]:
    return {name: hashlib.sha256((path / name).read_bytes()).hexdigest() for name in WEIGHTS if (path / name).exists()}
