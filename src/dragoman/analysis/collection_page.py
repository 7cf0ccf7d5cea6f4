"""The page about a corpus that was made of many files: what came from where, what was left out, and why."""

import json
from collections import Counter, defaultdict
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from dragoman.doctor.assembly import LEFT_OUT, REASONS, RECORD, SPLITS
from dragoman.runs import atomic_io
from dragoman.text.conflicts import RULE

PAGE = "files.html"
MAX_TABLE_ROWS = 500
"""Rows of the table of files; the record has all of them."""


def write_collection_page(folder: Path) -> Path:
    """Write `files.html` beside the record of an assembled corpus; its path."""
    record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    template = files("dragoman.analysis").joinpath("collection.html.j2").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(template).render(**_view(record))
    atomic_io.replace_text(folder / PAGE, page)
    return folder / PAGE


def _view(record: dict[str, Any]) -> dict[str, Any]:
    read = [file for file in record["files"] if not file["note"]]
    unread: defaultdict[str, list[str]] = defaultdict(list)
    for file in record["files"]:
        if file["note"]:
            unread[file["note"]].append(file["path"])
    largest = sorted(read, key=lambda file: -file["read"])
    reasons = Counter(record["totals"])
    return {
        "record": record,
        "rule": RULE,
        "splits": SPLITS,
        "reasons": [
            (reason, count, REASONS.get(reason, "found by the doctor"), record["left_out"].get(reason, ()))
            for reason, count in reasons.most_common()
            if reason not in SPLITS
        ],
        "table": LEFT_OUT,
        "kinds": _kinds(read),
        "files": [(file, _left_out(file)) for file in largest[:MAX_TABLE_ROWS]],
        "more": len(largest) - MAX_TABLE_ROWS,
        "unread": sorted(unread.items(), key=lambda item: -len(item[1])),
    }


def _kinds(files: list[dict[str, Any]]) -> list[tuple[str, int, int, Counter[str]]]:
    """(kind, files, entries, pairs by split) of each kind of file, the largest first."""
    kinds: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for file in files:
        kinds[file["kind"]].append(file)
    rows = [
        (kind, len(of), sum(file["read"] for file in of), sum((Counter(file["fates"]) for file in of), Counter[str]()))
        for kind, of in kinds.items()
    ]
    return sorted(rows, key=lambda row: -row[2])


def _left_out(file: dict[str, Any]) -> str:
    fates = Counter({fate: count for fate, count in file["fates"].items() if fate not in SPLITS})
    return ", ".join(f"{fate} {count:,}" for fate, count in fates.most_common())
