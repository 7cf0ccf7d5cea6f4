"""The scripts that measure Dragoman beside other toolkits, in small: each toolkit that is installed has its row.

A toolkit that is not beside Dragoman is looked for at `$DRAGOMAN_PEERS/NAME/bin/python`, pymarian also at
`$DRAGOMAN_MARIAN`.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.scripts import script

from dragoman.export import marian

PEERS = Path(__file__).parents[2] / "benchmarks" / "peers"
TASK = script("benchmarks/peers/task.py")


def python_of(name: str) -> str | None:
    """The interpreter that has a toolkit; None where there is none."""
    if importlib.util.find_spec(TASK.PACKAGES.get(name, name)):
        return sys.executable
    if name == "marian" and marian.PYTHON in os.environ:
        return os.environ[marian.PYTHON]
    path = Path(os.environ.get("DRAGOMAN_PEERS", "there is none"), name, "bin", "python")
    return str(path) if path.exists() else None


def run(command: list[str], data: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DRAGOMAN_DATA": str(data)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600, check=False)


@pytest.fixture(scope="module")
def corpus(multi30k: Path) -> Path:
    """The folder that `prepare.py` writes."""
    done = run([sys.executable, str(PEERS / "prepare.py"), str(multi30k / "corpus")], multi30k)
    assert done.returncode == 0, done.stderr
    return multi30k / "corpus"


@pytest.fixture(scope="module")
def measured(corpus: Path, multi30k: Path) -> tuple[str, dict[str, dict[str, Any]]]:
    """What `run.py` prints, and each toolkit's result, of all toolkits that are there."""
    pythons = {name: python for name in TASK.PRECISIONS if (python := python_of(name))}
    command = [sys.executable, str(PEERS / "run.py"), str(corpus), *map("=".join, pythons.items())]
    options = ["--shapes", "small", "--precisions", "float32", "--rounds", "1", "--warm-up", "1", "--steps", "2"]
    kept = multi30k / "kept.jsonl"
    done = run([*command, *options, "--threads", "1", "--keep", str(kept)], multi30k)
    assert done.returncode == 0, done.stderr
    return done.stdout, {row["name"]: row for row in map(json.loads, kept.read_text(encoding="utf-8").splitlines())}


@pytest.mark.parametrize("name", TASK.PRECISIONS)
def test_a_toolkit_that_is_installed_has_its_row(
    name: str, measured: tuple[str, dict[str, dict[str, Any]]], corpus: Path
) -> None:
    if python_of(name) is None:
        package = TASK.PACKAGES.get(name, name)
        pytest.skip(f"no {package}: make its environment (benchmarks/peers/README.md) at $DRAGOMAN_PEERS/{name}")
    table, results = measured
    assert f"| {TASK.TITLES[name]} | {results[name]['version']} | float32 |" in table
    result = results[name]
    assert (result["steps"], result["threads"]) == (2, 1)
    assert result["seconds"] > 0
    # JoeyNMT counts pads to its budget, and does not sort by length.
    assert result["padded_tokens"] >= result["real_tokens"] > 2 * (500 if name == "joeynmt" else 1_500)
    assert 1e6 < result["parameters"] < 4e6


def test_a_plain_loop_has_our_batches(measured: tuple[str, dict[str, dict[str, Any]]]) -> None:
    _, results = measured
    assert results["dragoman"]["real_tokens"] == results["torch"]["real_tokens"]


def test_training_ends_where_its_clock_is_never_called(corpus: Path, multi30k: Path) -> None:
    """Training called another function once than the one that had the clock, and went on for ever."""
    broken = "import clock; clock.StepClock.step = lambda *_: None; import train_dragoman; train_dragoman.main()"
    arguments = [str(corpus), "small", "float32", "--warm-up", "1", "--steps", "1"]
    code = f"import sys; sys.path.insert(0, {str(PEERS)!r}); {broken}"
    done = run([sys.executable, "-c", code, *arguments], multi30k)
    assert done.returncode == 1
    assert "the clock was not told" in done.stderr
    assert "RESULT" not in done.stdout
