"""All runs of a folder in one table: how their recipes differ, on what data, where they ran, and what came out."""

import csv
import hashlib
import io
import json
import operator
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from dragoman.analysis.columns import columns
from dragoman.errors import DragomanError, Error
from dragoman.progress import clock, say
from dragoman.runs.atomic_io import read_yaml
from dragoman.runs.directory import CONFIG
from dragoman.runs.events import METRICS, Event, best_validation, last_event, read_events, without_repeats

MAX_FOLDER_DEPTH = 4
"""Levels of folders below the searched folder, at most."""
LEFT_OUT = ("run_dir", "device", "workers")
"""Settings that do not change the result of an experiment."""
SCORES = ("bleu", "chrf", "ter", "accuracy", "macro_f1", "bits_per_character", "loss")
"""Figures of a test set that have a column."""

Cell = str | float | int | None


@dataclass(frozen=True)
class Entry:
    """A run as a row of the table: facts of every run, settings by dotted name, and figures of its test sets."""

    path: Path
    facts: dict[str, Cell]
    settings: dict[str, Any]
    scores: dict[str, float]
    signatures: dict[str, str] = field(default_factory=dict)


def find_runs(folder: Path) -> list[Path]:
    """The run directories in a folder, or the folder itself, if it is one. Raises DragomanError where there is none."""
    if not folder.is_dir():
        raise Error.MISSING_FILE("no such folder", file=folder)
    runs = []
    for place, folders, names in os.walk(folder):
        path = Path(place)
        if CONFIG in names:
            runs.append(path)
        deepest = CONFIG in names or len(path.relative_to(folder).parts) == MAX_FOLDER_DEPTH
        folders[:] = [] if deepest else [name for name in folders if not name.startswith(".")]
    if not runs:
        raise Error.NOT_A_RUN(f"there are no runs in it; a run directory has a {CONFIG}", file=folder)
    return sorted(runs)


def entries_of(paths: Sequence[Path]) -> list[Entry]:
    """The table's entry of each run. One that cannot be read is told, and left out."""
    entries = []
    for path in paths:
        try:
            entries.append(entry_of(path))
        except DragomanError as error:
            say(f"left out: {error}")
    return entries


def entry_of(path: Path) -> Entry:
    """The table's entry of a run. Raises DragomanError for one that cannot be read."""
    settings = _flat(read_yaml(path / CONFIG))
    events = without_repeats(read_events(path / METRICS)) if (path / METRICS).exists() else []
    start, plan = last_event(events, "start"), last_event(events, "plan")
    end, best = last_event(events, "end"), best_validation(events)
    elapsed = max((float(event.get("elapsed_s") or 0) for event in events), default=0.0)
    step = max((int(event["step"]) for event in events if event.get("step") is not None), default=0)
    facts: dict[str, Cell] = {
        "run": str(path),
        "state": str(end["reason"]) if end else "not finished" if events else "not begun",
        "begun": str(next((event["time"] for event in events), ""))[:16].replace("T", " "),
        "steps": step,
        "minutes": round(elapsed / 60, 1),
        "parameters": plan.get("parameters"),
        "machine": start.get("machine"),
        "precision": start.get("precision"),
        "torch": start.get("torch"),
        "commit": start.get("commit"),
        "data": _fingerprint(path),
        "validation": _validation(best),
    }
    scores: dict[str, float] = {}
    signatures: dict[str, str] = {}
    for test in (event for event in events if event["event"] == "test"):
        for name in SCORES:
            if (value := _number(test.get(name))) is not None:
                scores[f"{test['name']} {name}"] = value
        signatures |= {f"{test['name']} {name}": str(text) for name, text in (test.get("signatures") or {}).items()}
    return Entry(path, facts, settings, scores, signatures)


def _validation(best: Event | None) -> float | None:
    """The score of the best validation; the loss, where the task has no score."""
    if best is None:
        return None
    score = _number(best.get("score"))
    return _number(best.get("loss")) if score is None else score


def _fingerprint(path: Path) -> str | None:
    """Eight digits of what a run was trained on."""
    try:
        return hashlib.sha256((path / "identity.json").read_bytes()).hexdigest()[:8]
    except OSError:
        return None


def differing(entries: Sequence[Entry]) -> list[str]:
    """The settings in which the runs differ from each other, in the order of the recipe."""
    names = dict.fromkeys(name for entry in entries for name in entry.settings)
    return [
        name
        for name in names
        if name not in LEFT_OUT and len({json.dumps(entry.settings.get(name), sort_keys=True) for entry in entries}) > 1
    ]


def table(entries: Sequence[Entry]) -> list[dict[str, Cell]]:
    """A row for each run: facts, the settings that differ, and figures. A column that is empty in all rows is left
    out."""
    names = differing(entries)
    tests = sorted({name.rpartition(" ")[0] for entry in entries for name in entry.scores})
    scores = [f"{test} {score}" for test in tests for score in SCORES]  # those of no run are left out below
    rows: list[dict[str, Cell]] = []
    for entry in entries:
        settings = {name: _cell(entry.settings.get(name)) for name in names}
        head = {name: entry.facts[name] for name in ("run", "state", "begun", "steps", "minutes")}
        rest = {name: value for name, value in entry.facts.items() if name not in head and name != "validation"}
        figures: dict[str, Cell] = {name: entry.scores.get(name) for name in scores}
        rows.append({**head, **settings, "validation": entry.facts["validation"], **figures, **rest})
    if not rows:
        return rows
    kept = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    return [{name: row[name] for name in kept} for row in rows]


_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}


def only(entries: Iterable[Entry], conditions: Sequence[str]) -> list[Entry]:
    """The runs that meet every condition: `training.optimizer.type=muon`, `validation>40`, `run=base` (a part of it).

    Raises DragomanError for a condition that is none, or whose name no run has.
    """
    entries = list(entries)
    for condition in conditions:
        match = re.fullmatch(r"([^<>=!]+)(<=|>=|!=|=|<|>)(.*)", condition)
        if match is None:
            raise Error.WRONG_OPTION(f"`filter` {condition}", "write NAME=VALUE, NAME>NUMBER, or with <, <=, >=, !=")
        name, sign, expected = match[1].strip(), match[2], match[3].strip()
        if entries and not any(name in _all(entry) for entry in entries):
            known = ", ".join(sorted({key for entry in entries for key in (*entry.facts, *entry.scores)}))
            raise Error.UNKNOWN_NAME(f"`filter` {condition}: no run has {name}; there are settings, and {known}")
        entries = [entry for entry in entries if _holds(_all(entry).get(name), sign, expected)]
    return entries


def _holds(value: Any, sign: str, expected: str) -> bool:
    try:
        numbers = float(value), float(expected)
    except (TypeError, ValueError):
        if sign in ("<", ">", "<=", ">="):
            return False
        same = expected.lower() in str(value).lower() if value is not None else expected in ("", "null")
        return same if sign == "=" else not same
    return _COMPARED[sign](*numbers)


def ordered(entries: Sequence[Entry], by: str) -> list[Entry]:
    """The runs in the order of a fact, a setting or a figure, ascending; with a minus before its name, descending.

    Runs without it come last. Raises DragomanError where no run has it.
    """
    name = by.removeprefix("-")
    have = [entry for entry in entries if _all(entry).get(name) is not None]
    if entries and not have:
        raise Error.UNKNOWN_NAME(f"`sort` {by}: no run has {name}")
    text = any(isinstance(_all(entry)[name], str) for entry in have)
    have.sort(key=lambda entry: str(_all(entry)[name]) if text else _all(entry)[name], reverse=by.startswith("-"))
    return have + [entry for entry in entries if _all(entry).get(name) is None]


def as_text(rows: Sequence[Mapping[str, Cell]]) -> str:
    """A table for a terminal. Columns that are alike in all rows stand once, below it."""
    if not rows:
        return "no runs\n"
    alike = {name for name in rows[0] if len(rows) > 1 and len({row[name] for row in rows}) == 1}
    names = [name for name in rows[0] if name not in alike]
    cells = [names, *([_shown(row[name]) for name in names] for row in rows)]
    text = [at for at, name in enumerate(names) if any(isinstance(row[name], str) for row in rows)]
    lines = [columns(cells, left=text)]
    lines += [f"all: {name} {_shown(rows[0][name])}" for name in rows[0] if name in alike]
    return "\n".join(lines) + "\n"


def as_csv(rows: Sequence[Mapping[str, Cell]]) -> str:
    """A table for a spreadsheet."""
    out = io.StringIO()
    if rows:
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return out.getvalue()


def as_html(rows: Sequence[Mapping[str, Cell]], entries: Sequence[Entry], title: str) -> str:
    """A page whose table is sorted by a click on a heading and filtered by what is typed."""
    template = (files("dragoman.analysis") / "run_table.html.j2").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    signatures = {name: signature for entry in entries for name, signature in entry.signatures.items()}
    minutes = sum(float(entry.facts["minutes"] or 0) for entry in entries)
    return environment.from_string(template).render(
        title=title,
        names=list(rows[0]) if rows else [],
        rows=[[(value, _shown(value)) for value in row.values()] for row in rows],
        signatures=signatures,
        took=clock(60 * minutes),
    )


def _all(entry: Entry) -> dict[str, Any]:
    return {**entry.settings, **entry.scores, **entry.facts}


def _shown(value: Cell) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.2f}" if abs(value) >= 0.1 or not value else f"{value:.2g}"
    return f"{value:,}" if isinstance(value, int) and abs(value) >= 10_000 else str(value)


def _cell(value: Any) -> Cell:
    if isinstance(value, bool | list | dict):
        return json.dumps(value)
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _flat(settings: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            flat |= _flat(value, f"{path}{key}.")
        else:
            flat[f"{path}{key}"] = value
    return flat
