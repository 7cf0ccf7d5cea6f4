"""Several processes train one model: the same bytes as one, whatever dies, freezes or is wrong on the way."""

import contextlib
import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoman.runs.events import read_events

RECIPE: dict[str, Any] = {
    "corpus": {
        "src_lang": "de",
        "tgt_lang": "en",
        "train": {"type": "demo", "pair": "de-en", "split": "train", "size": 1500},
        "valid": {"type": "demo", "pair": "de-en", "split": "valid", "size": 60},
    },
    "tokenizer": {"type": "sentencepiece", "algorithm": "bpe", "vocab_size": 800, "sampling": 0.1},
    "model": {
        "type": "transformer",
        "d_model": 48,
        "num_heads": 4,
        "d_ff": 96,
        "num_encoder_layers": 1,
        "num_decoder_layers": 2,
        "dropout": 0.1,
    },
    "training": {
        "max_steps": 100,
        "batch_tokens": 256,
        "micro_batches": 4,
        "schedule": {"type": "linear", "lr": 5e-3, "warmup_steps": 20},
        "optimizer": {"type": "muon"},
        "validate_every": 25,
        "log_every": 10,
        "averaging": {"type": "ema", "decay": 0.99},
    },
}
"""Dropout, subword sampling, Muon, EMA, and 23 steps an epoch, whose last one has fewer micro-batches."""


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recipe") / "recipe.yaml"
    path.write_text(yaml.safe_dump(RECIPE))
    return path


def command(recipe: Path, run: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "dragoman", "train", str(recipe), f"run_dir={run}", *arguments]


def train(recipe: Path, run: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(recipe, run, *arguments), capture_output=True, text=True, timeout=300)


def bytes_of(run: Path, step: int = 100) -> str:
    """SHA-256 of all that a checkpoint holds."""
    digest = hashlib.sha256()
    files = sorted((run / "checkpoints" / f"step-{step:08d}").iterdir())
    assert len(files) >= 5
    for file in files:
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


@pytest.fixture(scope="module")
def alone(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of one process."""
    run = tmp_path_factory.mktemp("alone") / "run"
    done = train(recipe, run)
    assert done.returncode == 0, done.stderr
    plan = next(event for event in read_events(run / "metrics.jsonl") if event["event"] == "plan")
    assert plan["steps_per_epoch"] == 23
    return run


def workers_of(run: Path) -> list[int]:
    """The processes that train, less whoever has started them; by their rank."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if not folder.name.isdecimal() or f"run_dir={run}".encode() not in (folder / "cmdline").read_bytes():
                continue
            settings = dict(
                entry.partition(b"=")[::2] for entry in (folder / "environ").read_bytes().split(b"\0") if b"=" in entry
            )
            if b"RANK" in settings:
                found.append((int(settings[b"RANK"]), int(folder.name)))
    return [process for _, process in sorted(found)]


def wait_for_step(run: Path, step: int, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(Exception):
            if any(event.get("step", 0) >= step for event in read_events(run / "metrics.jsonl")):
                return
        time.sleep(0.05)
    raise AssertionError(f"{run}: step {step} did not come")


def signalled(recipe: Path, run: Path, step: int, rank: int, number: int, *arguments: str) -> tuple[int, str]:
    """(exit code, what it said) of a training of which one process gets a signal after a step."""
    with subprocess.Popen(command(recipe, run, *arguments), stderr=subprocess.PIPE, text=True) as started:
        wait_for_step(run, step)
        os.kill(workers_of(run)[rank], number)
        assert started.stderr is not None
        said = started.stderr.read()
    return started.returncode, said


@pytest.mark.parametrize("processes", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_the_bytes_do_not_depend_on_the_number_of_processes(
    recipe: Path, alone: Path, tmp_path: Path, processes: int
) -> None:
    done = train(recipe, tmp_path / "run", "--processes", str(processes))
    assert done.returncode == 0, done.stderr
    assert bytes_of(tmp_path / "run") == bytes_of(alone)
    assert bytes_of(tmp_path / "run", 75) == bytes_of(alone, 75)
    assert done.stderr.count("step 25  epoch 2") == 1  # one of them speaks for all
    kinds = ("train", "valid", "checkpoint")
    steps, logged = (
        [(event["event"], event["step"], event.get("loss"), event.get("score")) for event in events]
        for events in (
            [event for event in read_events(run / "metrics.jsonl") if event["event"] in kinds]
            for run in (alone, tmp_path / "run")
        )
    )
    assert steps == logged


@pytest.mark.slow
def test_another_seed_has_other_bytes(recipe: Path, alone: Path, tmp_path: Path) -> None:
    """The test above can fail."""
    settings = ("seed=2", "training.validate_every=100")
    done = train(recipe, tmp_path / "run", "--processes", "2", *settings)
    assert done.returncode == 0, done.stderr
    assert bytes_of(tmp_path / "run") != bytes_of(alone)


@pytest.mark.slow
def test_fast_is_the_same_up_to_rounding(recipe: Path, tmp_path: Path) -> None:
    settings = ("training.reduce=fast", "training.max_steps=8", "training.log_every=1", "training.validate_every=8")
    logs = []
    for processes in (1, 4):
        done = train(recipe, tmp_path / str(processes), "--processes", str(processes), *settings)
        assert done.returncode == 0, done.stderr
        events = read_events(tmp_path / str(processes) / "metrics.jsonl")
        logs.append([(event["loss"], event["grad_norm"]) for event in events if event["event"] == "train"])
    assert len(logs[0]) == 8
    for one, other in zip(*logs, strict=True):
        assert one == pytest.approx(other, rel=1e-6)


@pytest.mark.slow
def test_sigterm_to_one_saves_once_and_fewer_go_on(recipe: Path, alone: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    code, said = signalled(recipe, run, 30, 2, signal.SIGTERM, "--processes", "4")
    assert code == 0, said
    assert said.count("stopped and saved at step") == 1
    step = int(said.partition("stopped and saved at step ")[2].partition(";")[0])
    assert 30 <= step < 100
    assert (run / "checkpoints" / f"step-{step:08d}").is_dir()
    done = train(recipe, run, "--processes", "2")
    assert done.returncode == 0, done.stderr
    assert f"going on from step {step}" in done.stderr
    assert bytes_of(run) == bytes_of(alone)


@pytest.mark.slow
def test_a_killed_process_ends_all_and_a_restart_ends_in_the_same_bytes(
    recipe: Path, alone: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    code, said = signalled(recipe, run, 30, 1, signal.SIGKILL, "--processes", "2")
    assert code == 1
    assert "process 1 of 2 was ended by SIGKILL; the same command goes on" in said
    assert "Traceback" not in said
    code, said = signalled(recipe, run, 60, 0, signal.SIGKILL, "--processes", "2", "--max-restarts", "1")
    assert code == 0, said
    assert said.count("going on from step") == 2
    assert bytes_of(run) == bytes_of(alone)


@pytest.mark.slow
def test_a_frozen_process_ends_all(recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    settings = ("training.max_steps=1000000", "training.validate_every=1000000", "--processes", "4")
    with subprocess.Popen(command(recipe, run, *settings), stderr=subprocess.PIPE, text=True) as started:
        wait_for_step(run, 10)
        os.kill(workers_of(run)[2], signal.SIGSTOP)
        assert started.stderr is not None
        said = started.stderr.read()
        assert started.wait() == 1
    assert "process 2 shows no sign of life" in said
    assert not workers_of(run)


SPOILT = """
import math, sys
from dragoman.training.step import TrainingStep

backward = TrainingStep.backward


def spoilt(self, step, number, *others):
    loss, *counts = backward(self, step, number, *others)
    return (loss * math.nan if (step, number) == (30, 3) else loss, *counts)


TrainingStep.backward = spoilt
from dragoman.cli.main import main

main()
"""


@pytest.mark.slow
def test_a_loss_that_is_no_number_on_one_rank_is_told_by_all_as_by_one(recipe: Path, tmp_path: Path) -> None:
    script = tmp_path / "spoilt.py"
    script.write_text(SPOILT)
    said = []
    for world in (1, 4):
        runner = (
            [sys.executable] if world == 1 else [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=4"]
        )
        done = subprocess.run(
            [*runner, str(script), "train", str(recipe), f"run_dir={tmp_path / str(world)}"],
            capture_output=True,
            text=True,
        )
        assert done.returncode != 0
        said.append([line for line in done.stderr.splitlines() if line.startswith("dragoman: step 30")])
    assert len(said[0]) == 1
    assert "micro-batch 4 of 4: lines" in said[0][0]
    assert said[0] == said[1]


def agents(recipe: Path, run: Path, folders: list[Path], port: int) -> list[tuple[int, str]]:
    """(exit code, what it said) of two agents of torchrun, as if each were a machine; each in its folder."""
    started = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=2"),
                *("--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{port}", "--rdzv-id=test"),
                *("-m", "dragoman", "train", str(recipe), f"run_dir={run}"),
            ],
            cwd=folder,
            stderr=subprocess.PIPE,
            text=True,
        )
        for folder in folders
    ]
    return [(one.wait(), said) for one, said in [(one, one.communicate(timeout=300)[1]) for one in started]]


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.slow
def test_two_agents(recipe: Path, alone: Path, tmp_path: Path) -> None:
    results = agents(recipe, tmp_path / "run", [tmp_path, tmp_path], free_port())
    assert [code for code, _ in results] == [0, 0], results
    assert bytes_of(tmp_path / "run") == bytes_of(alone)


@pytest.mark.parametrize("what", ["corpus", pytest.param("run directory", marks=pytest.mark.slow)])
def test_what_differs_on_one_machine_is_told_before_the_first_step(recipe: Path, tmp_path: Path, what: str) -> None:
    """Relative paths: each machine has files of its own under them."""
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
        for side in ("de", "en"):
            lines = [f"ein Satz {number}" for number in range(200)]
            if what == "corpus" and folder.name == "other" and side == "en":
                lines[77] = "another"
            (folder / f"train.{side}").write_text("\n".join(lines) + "\n")
    files = {"type": "files", "src": "train.de", "tgt": "train.en"}
    own = tmp_path / "own.yaml"
    settings = {**RECIPE, "corpus": {**RECIPE["corpus"], "train": files}, "tokenizer": {"type": "characters"}}
    own.write_text(yaml.safe_dump(settings))
    run = tmp_path / "run" if what == "corpus" else Path("run")
    results = agents(own, run, folders, free_port())
    said = "\n".join(said for _, said in results)
    assert all(code for code, _ in results)
    expected = "another corpus or program than process 0: corpus.train.tgt" if what == "corpus" else "on a shared disk"
    lines = [line for line in said.splitlines() if line.startswith("dragoman: process") and expected in line]
    assert len(lines) == 1, said
    assert not list(tmp_path.rglob("step-*"))


def test_a_mistake_is_told_once_and_not_tried_again(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    files = {"type": "files", "src": "nowhere.de", "tgt": "nowhere.en"}
    own.write_text(yaml.safe_dump({**RECIPE, "corpus": {**RECIPE["corpus"], "train": files}}))
    done = train(own, tmp_path / "run", "--processes", "2", "--max-restarts", "2")
    assert done.returncode == 2
    assert [line for line in done.stderr.splitlines() if "nowhere" in line] == [done.stderr.strip().splitlines()[-1]]
    done = train(own, tmp_path / "run", "--processes", "2", "training.micro_batches=1")
    assert done.returncode == 2
    assert "training.micro_batches=2 training.batch_tokens=128 takes steps of the same size" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("task", ["lm-demo", "language-id-demo", "masked-demo"])
def test_other_tasks(task: str, tmp_path: Path) -> None:
    recipe = Path(__file__).parents[2] / "recipes" / f"{task}.yaml"
    settings = ("training.max_steps=30", "training.micro_batches=2", "training.validate_every=15", "training.samples=1")
    for processes in (1, 2):
        done = train(recipe, tmp_path / str(processes), "--processes", str(processes), *settings)
        assert done.returncode == 0, done.stderr
    assert bytes_of(tmp_path / "1", 30) == bytes_of(tmp_path / "2", 30)


@pytest.mark.slow
def test_a_time_budget_is_kept_by_all(recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = train(recipe, run, "--processes", "2", "--budget", "40s")
    assert done.returncode == 0, done.stderr
    events = read_events(run / "metrics.jsonl")
    end = next(event for event in events if event["event"] == "end")
    assert end["reason"] == "max_steps"
    assert end["step"] > 30
    assert (run / "pace.json").exists()


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_thirty_kills_of_random_processes(recipe: Path, tmp_path: Path) -> None:
    """Under --max-restarts, with four processes and later with two; as soon as they train, or while they start."""
    settings = (
        "training.validate_every=10",
        "training.keep_last=30",
        "training.samples=0",
        "training.schedule={type: noam, factor: 1.0, warmup_steps: 50}",  # which knows no last step
    )
    done = train(recipe, tmp_path / "straight", *settings, "training.max_steps=400")
    assert done.returncode == 0, done.stderr
    run, chance, kills = tmp_path / "run", random.Random(1), 0
    for processes, steps, wanted in ((4, 200, 15), (2, 400, 30)):
        arguments = ("--processes", str(processes), "--max-restarts", "30", f"training.max_steps={steps}", *settings)
        with (tmp_path / "said").open("w") as said:
            started = subprocess.Popen(command(recipe, run, *arguments), stderr=said)
            while kills < wanted and started.poll() is None:
                time.sleep(chance.uniform(3, 11))
                there = workers_of(run)
                if there and started.poll() is None:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(chance.choice(there), signal.SIGKILL)
                        kills += 1
            assert started.wait() == 0, (tmp_path / "said").read_text()
    assert kills >= 30, f"the training was over after {kills} kills"
    assert bytes_of(run, 400) == bytes_of(tmp_path / "straight", 400)
