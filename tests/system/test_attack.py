"""The attacks of `benchmarks/attack.py` in small: they run, and the server bears them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "attack.py"
FIXTURE = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"
NAMES = ("links", "document-markdown", "half-headers", "answers")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What each of some attacks showed."""
    results = tmp_path_factory.mktemp("attacked") / "attack.jsonl"
    command = [sys.executable, str(SCRIPT), "run", str(FIXTURE), *NAMES, "--small", "--results", str(results)]
    subprocess.run(command, check=True, capture_output=True)
    return {row["attack"]: row for row in map(json.loads, results.read_text(encoding="utf-8").splitlines())}


@pytest.mark.parametrize("name", NAMES)
def test_a_bystander_is_answered_and_the_server_ends(rows: dict[str, dict[str, Any]], name: str) -> None:
    row = rows[name]
    assert row["statuses"].get("200", 0) > 0, row
    assert not row["killed"]
    assert row["stopped_s"] is not None, row
    assert row["memory_peak_mb"] >= row["memory_idle_mb"] > 0


def test_answers_have_a_status_of_their_own(rows: dict[str, dict[str, Any]]) -> None:
    shown = rows["answers"]["shown"]
    assert shown['`{"alternatives":1e999}`'] == shown["half a surrogate"] == 400
    assert shown["answers with a path of the server"] == 0


def test_each_attack_has_a_name_and_a_description() -> None:
    listed = subprocess.run([sys.executable, str(SCRIPT), "list"], check=True, capture_output=True, text=True).stdout
    names = [line.split()[0] for line in listed.splitlines()]
    assert set(NAMES) < set(names)
    assert len(names) == len(set(names)) >= 35
