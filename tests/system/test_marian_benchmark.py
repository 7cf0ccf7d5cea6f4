"""`benchmarks/marian.py` in small: CTranslate2 and PyTorch always, Marian where it is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.system.test_export_argos import LINES, run  # noqa: F401

from dragoman.export import marian

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "marian.py"
pytestmark = pytest.mark.system


def script(*arguments: str | Path) -> str:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, arguments)], check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "sources"
    path.write_text("".join(f"{line}\n" for line in LINES[:12]), encoding="utf-8")
    return path


def test_translations_are_counted_where_a_target_holds_the_model(run: Path, lines: Path) -> None:  # noqa: F811
    rows = script("equal", run, lines, "--ref", lines).splitlines()
    assert rows[2].startswith("| ctranslate2 | 1 | float32 | 12 of 12 | ")
    marians = [row for row in rows if row.startswith("| marian |")]
    assert len(marians) == 2
    assert all("of 12" in row if os.environ.get(marian.PYTHON) else "pymarian" in row for row in marians)
    assert [row for row in rows if row.startswith("| bergamot |") and "cannot be exported" in row]


def test_speeds_are_measured_in_turn_and_told_as_ratios(run: Path, lines: Path, tmp_path: Path) -> None:  # noqa: F811
    results = tmp_path / "results.jsonl"
    engines = ["dragoman", "direct:int8", *["marian"] * bool(os.environ.get(marian.PYTHON))]
    script("speed", run, lines, "--results", results, "--beam-size", "2", "--rounds", "2", "--engines", *engines)
    rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    assert [(row["beam"], row["engine"]) for row in rows] == [(2, name) for name in engines]
    assert all(len(row["seconds"]) == 2 and row["lines"] == 12 for row in rows)
    shown = script("table", results).splitlines()
    assert shown[2] == "| engine | weights | beam 2, threads 1 |"
    assert shown[4].startswith("| Dragoman (PyTorch) | float32 | ")
    assert shown[4].endswith("(1.00) |")
    assert shown[5].startswith("| CTranslate2 | int8 | ")
