"""The page about a corpus that was made of many files: what came from where, what was left out, and why."""

import json
from collections import Counter, defaultdict
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from dragoman.doctor.assembly import RECORD, RULE, SPLITS
from dragoman.runs import atomic_io

PAGE = "files.html"
SHOWN = 500
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
    return {
        "record": record,
        "rule": RULE,
        "splits": SPLITS,
        "left_out": [item for item in Counter(record["totals"]).most_common() if item[0] not in SPLITS],
        "files": [(file, _left_out(file)) for file in largest[:SHOWN]],
        "more": len(largest) - SHOWN,
        "unread": sorted(unread.items(), key=lambda item: -len(item[1])),
    }


def _left_out(file: dict[str, Any]) -> str:
    fates = Counter({fate: count for fate, count in file["fates"].items() if fate not in SPLITS})
    return ", ".join(f"{fate} {count:,}" for fate, count in fates.most_common())
