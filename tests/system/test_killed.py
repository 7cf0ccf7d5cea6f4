"""Trainings that are killed without warning, again and again, end in the same bytes as one that was left alone."""

import itertools
import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from dragoman.runs import checkpoint
from dragoman.runs.events import read_events
from dragoman.text.corpus import DemoSource

SCRIPT = Path(__file__).parent / "killed.py"
MODELS = {
    "transformer": "{type: transformer, d_model: 32, num_heads: 2, d_ff: 64, num_encoder_layers: 1, "
    "num_decoder_layers: 1, dropout: 0.2}",
    "lstm": "{type: recurrent, cell: lstm, d_embedding: 24, d_model: 32, num_encoder_layers: 1, "
    "num_decoder_layers: 1, attention: general, bidirectional: true, dropout: 0.2}",
}
RECIPE = """
task: translation
corpus:
  src_lang: de
  tgt_lang: en
  train: {type: files, src: train.de, tgt: train.en}
  valid: {type: files, src: valid.de, tgt: valid.en}
  test: {test: {type: files, src: valid.de, tgt: valid.en}}
tokenizer: {type: sentencepiece, algorithm: bpe, vocab_size: 300, sampling: 0.1}
model: MODEL
training:
  max_steps: 45
  batch_tokens: 512
  schedule: {type: plateau, lr: 3.0e-3, warmup_steps: 5, patience: 1}
  averaging: AVERAGING
  validate_every: 9
  log_every: 4
  keep_last: 2
decoding: {max_length_ratio: 1.0, max_length_extra: 5}
device: cpu
workers: 2
"""


class Runs:
    """Runs of one recipe in a folder: one that is left alone, and others."""

    def __init__(self, folder: Path, model: str, averaging: str = "{type: ema, decay: 0.9}", more: str = "") -> None:
        """`more`: further lines of the recipe."""
        self.folder = folder
        recipe = RECIPE.replace("MODEL", MODELS[model]).replace("AVERAGING", averaging) + more
        (folder / "recipe.yaml").write_text(recipe, encoding="utf-8")
        for split, size in (("train", 700), ("valid", 40)):
            pairs = list(itertools.islice(DemoSource(split=split).pairs(), size))
            (folder / f"{split}.de").write_text("".join(f"{pair.src}\n" for pair in pairs), encoding="utf-8")
            (folder / f"{split}.en").write_text("".join(f"{pair.tgt}\n" for pair in pairs), encoding="utf-8")
        assert self.go_on("straight", {}) == 0
        self.expected = fingerprint(folder / "straight")

    def go_on(self, name: str, moment: dict[str, Any]) -> int:
        """The command that begins and resumes a run; its exit code, negative for a signal."""
        done = self.command(name, moment)
        assert done.returncode in (0, -9), done.stderr
        return done.returncode

    def command(self, name: str, moment: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, SCRIPT, json.dumps(moment), "train", "recipe.yaml", f"run_dir={name}"]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=300, check=False)

    def kill_and_resume(self, name: str, rng: random.Random, fault: dict[str, str] | None = None) -> list[str]:
        """Kill a run two to four times, then let it end. Where it was killed."""
        killed = []
        for _ in range(rng.randint(2, 4)):
            moment = some_moment(rng)
            if self.go_on(name, {**moment, **(fault or {})}) == 0:
                break
            killed.append(moment["in"])
        assert self.go_on(name, fault or {}) == 0
        return killed


def some_moment(rng: random.Random) -> dict[str, Any]:
    where = rng.choices(["save", "validate", "epoch", "step", "end", "test"], weights=[8, 3, 3, 3, 1, 1])[0]
    moment: dict[str, Any] = {"in": where, "count": rng.randint(1, 3), "delay": rng.uniform(0, 0.1)}
    if where == "save":
        moment["operation"] = rng.randint(1, 20)  # the later ones are in the dropping of older checkpoints
    elif where == "step":
        moment["count"] = rng.randint(1, 25)
    return moment


def fingerprint(run: Path) -> dict[str, Any]:
    """What must be equal: SHA-256 of every file of every checkpoint, and the log but for what tells the time."""
    files = {
        str(path.relative_to(run)): sha256(path.read_bytes()).hexdigest()
        for path in (run / "checkpoints").rglob("*")
        if path.is_file()
    }
    timing = ("time", "elapsed_s", "tokens_per_s", "decode_s", "peak_bytes")
    log = [
        {key: value for key, value in event.items() if key not in timing}
        for event in read_events(run / "metrics.jsonl")
        if event["event"] not in ("start", "plan")
    ]
    return {**files, "log": log}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Runs]:
    return {model: Runs(tmp_path_factory.mktemp(model), model) for model in MODELS}


@pytest.mark.slow
def test_killed_runs_end_in_the_same_bytes(runs: dict[str, Runs]) -> None:
    killed = []
    for number, model in enumerate(["transformer", "lstm", "transformer", "lstm", "transformer"]):
        seed = random.SystemRandom().randrange(10**6)
        print(f"{model}, run {number}, seed {seed}")  # pytest shows it when the test fails
        name = f"killed-{number}"
        killed += runs[model].kill_and_resume(name, random.Random(seed))
        assert fingerprint(runs[model].folder / name) == runs[model].expected
    assert killed


@pytest.mark.slow
def test_a_killed_adapter_ends_in_the_same_bytes(tmp_path: Path) -> None:
    for name in ("base", "adapter"):
        (tmp_path / name).mkdir()
    base = Runs(tmp_path / "base", "transformer").folder / "straight"
    more = f"init_from: {base}\nadapter: {{r: 4, lora_dropout: 0.1}}\n"
    one = Runs(tmp_path / "adapter", "transformer", more=more)
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    one.kill_and_resume("killed", random.Random(seed))
    assert fingerprint(one.folder / "killed") == one.expected
    sizes = [{path.stat().st_size for path in run.rglob("model.safetensors")} for run in (base, one.folder)]
    assert 2 * max(sizes[1]) < min(sizes[0])


@pytest.mark.slow
def test_a_hundred_killed_runs_end_in_the_same_bytes(tmp_path: Path) -> None:
    averaging = ["{type: ema, decay: 0.9}", "{type: last, checkpoints: 3}"]
    folders = [(model, average, tmp_path / f"{model}-{i}") for model in MODELS for i, average in enumerate(averaging)]
    killed: list[str] = []
    for model, average, folder in folders:
        folder.mkdir()
        one = Runs(folder, model, average)
        for number in range(25):
            seed = random.SystemRandom().randrange(10**6)
            print(f"{model}, {average}, seed {seed}")
            killed += one.kill_and_resume(f"killed-{number}", random.Random(seed))
            assert fingerprint(folder / f"killed-{number}") == one.expected
    print(f"{len(killed)} kills: " + ", ".join(f"{killed.count(where)} in {where}" for where in sorted(set(killed))))
    assert killed.count("save") > 0.3 * len(killed)


@pytest.mark.slow
def test_a_file_that_may_not_grow_is_reported_and_the_run_goes_on_later(runs: dict[str, Runs]) -> None:
    """RLIMIT_FSIZE from the second checkpoint on: a full disk as a quota makes it."""
    one = runs["lstm"]
    done = one.command("limited", {"in": "full", "count": 3, "limit": 3000})  # the first is that of the preflight
    assert done.returncode == 2, done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("dragoman: ")]
    assert len(said) == 1
    assert re.search(
        r"limited/checkpoints/step-00000018: .*File too large.*needs [\d,]+ bytes.*the same command", said[0]
    )
    assert "Traceback" not in done.stderr
    assert [path.name for path in checkpoint.list_checkpoints(one.folder / "limited")] == ["step-00000009"]
    assert one.go_on("limited", {}) == 0
    assert fingerprint(one.folder / "limited") == one.expected


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """An empty file system of its own, of 4 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("may not mount a file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_reported_and_the_run_goes_on_once_there_is_room(
    runs: dict[str, Runs], small_disk: Path
) -> None:
    one = runs["transformer"]
    blocker = small_disk / "blocker"
    done = one.command(str(small_disk / "run"), {"in": "fill", "count": 3, "file": str(blocker)})
    assert done.returncode == 2, done.stderr
    (said,) = (line for line in done.stderr.splitlines() if line.startswith("dragoman: "))
    assert re.search(r"step-00000018: .*No space left on device.*needs [\d,]+ bytes", said)
    assert "Traceback" not in done.stderr
    assert [path.name for path in checkpoint.list_checkpoints(small_disk / "run")] == ["step-00000009"]
    again = one.command(str(small_disk / "run"), {})  # the disk is still full, which is seen before the first step
    assert again.returncode == 2
    assert "training: " not in again.stderr
    blocker.unlink()
    assert one.go_on(str(small_disk / "run"), {}) == 0
    assert fingerprint(small_disk / "run") == one.expected


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["random numbers", "optimizer", "average"])
def test_that_test_sees_what_is_not_restored(runs: dict[str, Runs], fault: str) -> None:
    one = runs["transformer"]
    moment = {"in": "validate", "count": 2, "delay": 0.0}  # so that it goes on from the first checkpoint
    assert one.go_on(f"fault-{fault}", {"fault": fault, **moment}) == -9
    assert one.go_on(f"fault-{fault}", {"fault": fault}) == 0
    assert fingerprint(one.folder / f"fault-{fault}") != one.expected
