"""A language model through the real command line: each test runs `dragoman` in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

RECIPE = Path(__file__).parents[2] / "recipes" / "lm-demo.yaml"


def dragoman(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dragoman", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, encoding="utf-8", check=False)


def succeed(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    done = dragoman(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the demo's language model trained in runs/lm-demo."""
    folder = tmp_path_factory.mktemp("lm")
    done = succeed("train", RECIPE, "training.max_steps=100", "training.validate_every=50", cwd=folder)
    assert done.stdout == ""
    for heading in ("1 read text", "5 shift, mask", "8 prompt and sample", "nats per token", "dragoman generate"):
        assert heading in done.stderr
    return folder


def test_it_learns_and_evaluation_finds_the_same(folder: Path) -> None:
    log = (folder / "runs/lm-demo/metrics.jsonl").read_text(encoding="utf-8")
    events = [json.loads(line) for line in log.splitlines()]
    [logged] = [event for event in events if event["event"] == "test"]
    assert logged["loss"] < 1.9  # one that knows no more than how frequent each character is has 2.9
    valid = [event for event in events if event["event"] == "valid"]
    assert valid[-1]["loss"] < valid[0]["loss"]
    assert valid[-1]["samples"][0].keys() == {"src", "ref", "hyp"}
    header, row = succeed("evaluate", "runs/lm-demo", cwd=folder).stdout.splitlines()
    assert header.split() == ["tokens", "unknown", "context", "nats/tok", "ppl", "bits/char"]
    assert row.split()[:4] == ["test", f"{logged['tokens']:,}", "0", "1-64"]
    assert float(row.split()[4]) == pytest.approx(logged["loss"], abs=2e-4)


def test_it_writes_what_is_asked_for(folder: Path) -> None:
    ask = ["generate", "runs/lm-demo", "--prompt", "I want", "--max-tokens", 60, "--temperature", 0.5]
    one = succeed(*ask, cwd=folder).stdout
    assert one.startswith("I want")
    assert len(one) == len("I want") + 60 + 1
    several = succeed(*ask, "--count", 3, cwd=folder).stdout.split("\n---\n")
    assert several[0] == one.removesuffix("\n")  # the first of many is the one that comes alone
    assert len(set(several)) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["translate", "runs/lm-demo"], "dragoman generate runs/lm-demo"),
        (["evaluate", "runs/lm-demo", "--src", "a", "--ref", "b"], "without --ref"),
    ],
    ids=["translate", "evaluate"],
)
def test_mistakes_get_one_clear_line(folder: Path, arguments: list[object], message: str) -> None:
    done = dragoman(*arguments, cwd=folder)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    assert message in done.stderr.strip().splitlines()[-1]
