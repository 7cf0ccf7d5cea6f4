"""Many settings of a recipe tried in turn: hopeless ones end early, the rest are trained to the end over all seeds.

Successive halving (Jamieson and Talwalkar 2016): every setting is trained for a part of its steps, the better half of
the settings goes on for twice as many steps, until the last settings have all steps. The schedule of a run is made for
its whole length from the first step on: a run that goes on becomes what it would have become alone. Where a sweep
stands follows from its run directories: the same command goes on after a kill.
"""

import itertools
import json
import math
import re
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dragoman.analysis.columns import columns
from dragoman.analysis.report import write_report
from dragoman.errors import DragomanError, Error, writing
from dragoman.progress import say
from dragoman.runs import atomic_io, checkpoint
from dragoman.runs.atomic_io import read_yaml
from dragoman.runs.events import METRICS, best_validation, read_events, without_repeats
from dragoman.tasks import recipes
from dragoman.training.loop import Trainer

FILE = "sweep.json"
FIRST_PART = 4
"""The first stage trains for one of so many parts of the steps."""
MAX_RUNS = 1000


@dataclass(frozen=True)
class Trial:
    """One setting of the recipe with all of its seeds."""

    name: str
    runs: tuple[tuple[tuple[str, ...], Path], ...]
    """(changes of the recipe, run directory) for each seed."""


@dataclass(frozen=True)
class Row:
    """The result of one setting: best validations up to the step that it was trained to."""

    trial: Trial
    steps: int
    scores: tuple[float, ...]
    """Higher is better: of a task without a score, the loss with a minus."""
    tests: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    state: str = "done"

    @property
    def mean(self) -> float:
        return statistics.fmean(self.scores) if self.scores else -math.inf


@dataclass(frozen=True)
class Swept:
    """The table of a sweep, the best first, and whether it is at its end."""

    rows: list[Row]
    is_done: bool


def sweep(recipe: Path, changes: Sequence[str], folder: Path, seconds: float | None = None, keep: float = 0.5) -> Swept:
    """Try all combinations of `key=v1,v2` and `key=1..3` over all values of `seed`; after `seconds` no more begins.

    `keep`: the share of the settings that goes on after each stage. Raises DragomanError for a recipe or a setting that
    does not fit, before anything is trained, and where the folder holds another sweep.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    trials = _trials(*_grid(changes), folder)
    plans = {path: recipes.load(recipe, [*own, f"run_dir={path}"]) for trial in trials for own, path in trial.runs}
    for plan in plans.values():  # a mistake in the hundredth is told before the first is trained
        recipes.check(plan)
    _claim(folder, recipe, changes)
    training = next(iter(plans.values())).training
    if len({plan.training.max_steps for plan in plans.values()}) > 1:
        raise Error.WRONG_OPTION("training.max_steps cannot be swept: stages compare runs after as many steps")
    if any(plan.training.max_epochs for plan in plans.values()):
        raise Error.WRONG_OPTION("training.max_epochs: stages end after steps", "give training.max_steps")
    steps = training.max_steps
    alive, rows, failed = list(trials), dict[Trial, Row](), set[Trial]()
    for end in _stages(steps, len(trials), keep, training.validate_every):
        say(f"stage to step {end:,} of {steps:,}: {len(alive)} setting{'s' if len(alive) > 1 else ''}")
        for trial in alive:
            for _, path in trial.runs:
                stopped = _train(plans[path], end, steps, deadline)
                if stopped == "failed":
                    failed.add(trial)
                    break
                if stopped:
                    say(f"stopped at {trial.name}: the same command goes on")
                    return Swept(_table(trials, rows, alive, steps, failed), is_done=False)
            rows[trial] = _row(trial, end)
        alive = [trial for trial in alive if trial not in failed]
        alive.sort(key=lambda trial: -rows[trial].mean)
        if end < steps:
            count = max(1, math.ceil(keep * len(alive)))
            for trial in alive[count:]:
                say(f"ended early: {trial.name}, {rows[trial].mean:.3g} by {rows[alive[count - 1]].mean:.3g}")
            alive = alive[:count]
    return Swept(_table(trials, rows, alive, steps, failed), is_done=True)


def _grid(changes: Sequence[str]) -> tuple[list[str], dict[str, list[str]]]:
    """(settings with one value, the values of each setting with several).

    >>> _grid(["a=1", "b=x,y", "seed=1..3", "c=[1,2]"])
    (['a=1', 'c=[1,2]'], {'b': ['x', 'y'], 'seed': ['1', '2', '3']})
    """
    fixed, grid = [], {}
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals:
            raise Error.WRONG_OPTION(f"{change}", "write KEY=VALUE,VALUE or KEY=FIRST..LAST")
        values = _values(text)
        if len(values) > 1:
            if repeated := [value for value in values if values.count(value) > 1]:
                raise Error.CONFLICT(f"{change}: {repeated[0]} twice")
            grid[key] = values
        else:
            fixed.append(change)
    return fixed, grid


def _values(text: str) -> list[str]:
    if match := re.fullmatch(r"(-?\d+)\.\.(-?\d+)", text):
        first, last = int(match[1]), int(match[2])
        if last < first or last - first >= MAX_RUNS:
            raise Error.WRONG_OPTION(f"{text}: the last number must be the larger one, of at most {MAX_RUNS} values")
        return [str(number) for number in range(first, last + 1)]
    parts, depth, part = [], 0, ""
    for letter in text:  # a comma inside brackets belongs to a value
        depth += (letter in "[{(") - (letter in "]})")
        if letter == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += letter
    return [*parts, part]


def _trials(fixed: Sequence[str], grid: Mapping[str, Sequence[str]], folder: Path) -> list[Trial]:
    """All combinations of values, each with all seeds."""
    grid = dict(grid)
    seeds = [[f"seed={seed}"] for seed in grid.pop("seed", ())] or [[]]
    combinations = list(itertools.product(*grid.values()))
    if len(combinations) * len(seeds) > MAX_RUNS:
        raise Error.TOO_LARGE(f"{len(combinations) * len(seeds):,} runs are more than {MAX_RUNS:,}")
    trials = []
    for values in combinations:
        varied = [f"{key}={value}" for key, value in zip(grid, values, strict=True)]
        runs = []
        for seed in seeds:
            name = re.sub(r"[^\w.=+,-]+", "_", ",".join(map(_short, [*varied, *seed]))) or "run"
            runs.append(((*fixed, *varied, *seed), folder / name))
        trials.append(Trial(" ".join(varied) or "the recipe", tuple(runs)))
    paths = [path for trial in trials for _, path in trial.runs]
    if len(set(paths)) < len(paths):
        raise Error.CONFLICT(
            "two settings would have one directory", "sweep keys with different last names", file=folder
        )
    return trials


def _short(change: str) -> str:
    """`lr=1e-3` of `training.schedule.lr=1e-3`: names of directories stay short."""
    key, _, value = change.partition("=")
    return f"{key.rpartition('.')[2]}={value}"


def _claim(folder: Path, recipe: Path, changes: Sequence[str]) -> None:
    """Note what is swept, or see that the folder holds the same sweep."""
    record = {"recipe": read_yaml(recipe), "changes": sorted(changes)}
    path = folder / FILE
    if path.exists() and atomic_io.read_json(path, dict) != json.loads(json.dumps(record)):
        raise Error.OTHER_CONTENT("holds another sweep, of other settings", "name another folder with -o", file=folder)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        atomic_io.replace_text(path, atomic_io.to_json(record))


def _stages(steps: int, settings: int, keep: float, every: int) -> list[int]:
    """The steps at which settings are compared, each with a validation, the last one being all.

    >>> _stages(1000, 8, 0.5, 100), _stages(1000, 2, 0.5, 100), _stages(1000, 1, 0.5, 100)
    ([300, 500, 1000], [500, 1000], [1000])
    """
    stages, end = [steps], steps
    halvings = math.ceil(math.log(settings) / math.log(1 / keep)) if 0 < keep < 1 else 0
    for _ in range(min(halvings, int(math.log2(FIRST_PART)))):
        end = math.ceil(end / 2)
        if (validated := every * math.ceil(end / every)) < stages[0]:
            stages.insert(0, validated)
    return stages


def _train(recipe: Any, end: int, steps: int, deadline: float | None) -> str:
    """Train a run to a step, unless it is there; why it went no further: "", "stopped" or "failed"."""
    run_dir = Path(recipe.run_dir)
    newest = checkpoint.newest(run_dir)
    if newest is not None and checkpoint.step_of(newest) >= end and (end < steps or _is_tested(run_dir, recipe)):
        return ""
    if deadline is not None and time.monotonic() >= deadline:
        return "stopped"

    def watch(trainer: Trainer) -> None:
        trainer.stop_when = lambda step: step >= end < steps or (deadline is not None and time.monotonic() >= deadline)

    try:
        result = recipes.run(recipe, watch=watch, report=write_report)
    except DragomanError as error:
        say(f"{run_dir.name} failed: {error}")
        return "failed"
    reached = result.outcome.step >= end or result.outcome.reason != "interrupted"
    return "" if reached else "stopped"


def _is_tested(run_dir: Path, recipe: Any) -> bool:
    """True if all test sets of a run have figures in its log."""
    done = {event.get("name") for event in read_events(run_dir / METRICS) if event["event"] == "test"}
    return set(recipe.corpus.test) <= done


def _row(trial: Trial, end: int) -> Row:
    scores, tests = [], dict[str, list[float]]()
    for _, path in trial.runs:
        events = without_repeats(read_events(path / METRICS)) if (path / METRICS).exists() else []
        valid = [event for event in events if event["event"] == "valid" and event["step"] <= end]
        best = best_validation(valid)
        if best is not None and best.get("score") is not None:
            scores.append(float(best["score"]))
        for event in events:
            value = next((event[name] for name in ("bleu", "accuracy", "loss") if event.get(name) is not None), None)
            if event["event"] == "test" and value is not None:
                tests.setdefault(str(event["name"]), []).append(float(value))
    return Row(trial, end, tuple(scores), {name: tuple(values) for name, values in tests.items()})


def _table(
    trials: Sequence[Trial], rows: Mapping[Trial, Row], alive: Sequence[Trial], steps: int, failed: set[Trial]
) -> list[Row]:
    table = []
    for trial in trials:
        row = rows.get(trial) or _row(trial, steps)
        state = "failed" if trial in failed else "ended early"
        if trial in alive:
            state = "done" if row.steps >= steps and len(row.scores) == len(trial.runs) else "not finished"
        table.append(replace(row, state=state))
    return sorted(table, key=lambda row: (row.state != "done", -row.steps, -row.mean))


def as_text(swept: Swept) -> str:
    """The table of a sweep: mean and spread over seeds of the best validations, and of the test sets."""
    tests = list(dict.fromkeys(name for row in swept.rows for name in row.tests))
    head = ["", "seeds", "steps", "validation", *tests, ""]
    lines = [head]
    for row in swept.rows:
        cells = [_figure(row.tests.get(name, ())) for name in tests]
        lines.append([row.trial.name, str(len(row.scores)), f"{row.steps:,}", _figure(row.scores), *cells, row.state])
    return columns(lines) + "\n"


def _figure(values: Sequence[float]) -> str:
    if not values:
        return "-"
    mean = statistics.fmean(values)
    return f"{mean:.2f} ± {statistics.stdev(values):.2f}" if len(values) > 1 else f"{mean:.2f}"
