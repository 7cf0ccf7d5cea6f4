"""A budget chooses the model: the script that compares settings runs in small, and the command says what it took."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.corpora import embedded
from dragoman.tasks.sizes import PIECES_A_WORD, Budget, Speed, size_for, size_within, words_of
from dragoman.text.corpus import DemoSource

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "budget.py"


def script(*arguments: str) -> str:
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
def test_settings_by_hand_are_trained_fitted_and_shown(tmp_path: Path) -> None:
    results = tmp_path / "budget.jsonl"
    script("run", "--corpus", "toy", "--minutes", "0.2", "--only", "d64", "v2000", "--results", str(results))
    rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    assert [row["name"] for row in rows] == ["d64", "v2000"]
    assert all(row["pairs"] == 2_000 and row["loss"] > 0 and row["epochs"] > 0 for row in rows)
    assert rows[0]["parameters"] < rows[1]["parameters"]
    assert re.match(r"CURVE = Curve\(floor=", script("fit", "--results", str(results)))
    table = script("table", "--results", str(results))
    assert "toy, 2,000 pairs, 0.2 minutes, 2 threads" in table
    assert table.count("| 1 |") == 2


def test_the_settings_of_the_rule_are_compared_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import budget

    monkeypatch.setattr("dragoman.experiments.speed.measured_speed", lambda device, seconds: Speed(2e-5, 1.3e-12))
    assert budget.by_rule("toy", 5, budget=False) == size_for(2_000)
    words = words_of(DemoSource(split="train", size=2_000))
    assert budget.by_rule("toy", 5) == size_within(Budget(300, lambda: Speed(2e-5, 1.3e-12)), PIECES_A_WORD * words)


def test_the_command_measures_the_machine_and_takes_a_size_for_the_time(tmp_path: Path) -> None:
    embedded.write(tmp_path, "de-en", 1, {"train": 600, "valid": 20, "test": 20})
    run = tmp_path / "run"
    files = ["--src", str(tmp_path / "train.de"), "--tgt", str(tmp_path / "train.en"), "--run", str(run)]
    result = CliRunner().invoke(app, ["train", *files, "--budget", "60s", "--device", "cpu"])
    assert result.exit_code == 0, result.output
    assert re.search(r"\d\.\dM parameters: 60 seconds allow \d+\.\d epochs", result.stderr)
    begun = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    again = CliRunner().invoke(app, ["train", *files, "--budget", "60s", "--device", "cpu"])
    assert again.exit_code == 0, again.output
    assert "measuring the speed" not in again.stderr  # the run keeps its sizes
    assert yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))["model"] == begun["model"]
