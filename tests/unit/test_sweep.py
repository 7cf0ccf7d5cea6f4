"""Sweeps: hopeless settings end early, a killed one goes on, and a run in it is the run that it would be alone.

Reproduction: the same bytes again, and plain words where it cannot be.
"""

import hashlib
import json
from pathlib import Path

import pytest
import yaml
from tests.errors import raises_error
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.errors import Error
from dragoman.experiments import sweep as module
from dragoman.experiments.reproduce import reproduce
from dragoman.experiments.sweep import as_text, sweep
from dragoman.runs import checkpoint
from dragoman.tasks import recipes

RECIPE = {
    "seed": 1,
    "device": "cpu",
    "workers": 1,
    "corpus": {
        "src_lang": "toy",
        "tgt_lang": "toy",
        "train": {"type": "toy", "task": "copy", "split": "train", "size": 400},
        "valid": {"type": "toy", "task": "copy", "split": "valid", "size": 20},
        "test": {"test": {"type": "toy", "task": "copy", "split": "test", "size": 10}},
    },
    "tokenizer": {"type": "whitespace"},
    "model": {"type": "transformer", "d_model": 8, "num_heads": 2, "d_ff": 8, "dropout": 0.1}
    | {"num_encoder_layers": 1, "num_decoder_layers": 1},
    "training": {"max_steps": 8, "batch_tokens": 256, "validate_every": 2, "schedule": {"type": "linear", "lr": 0.01}},
    "decoding": {"beam_size": 2, "max_length_ratio": 1.0, "max_length_extra": 2},
}


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "toy.yaml"
    settings = json.loads(json.dumps(RECIPE))
    settings["training"]["schedule"]["warmup_steps"] = 2
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return path


def digests(run):
    return {
        str(path.relative_to(run)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((run / "checkpoints").rglob("*.safetensors"))
    }


@pytest.mark.system
def test_hopeless_settings_end_early_and_the_rest_have_all_seeds(recipe, tmp_path):
    found = sweep(recipe, ["training.schedule.lr=1e-2,1e-7,3e-2,1e-3", "seed=1..2"], tmp_path / "out")
    assert found.is_done
    assert sorted(row.steps for row in found.rows) == [2, 2, 4, 8]
    assert [row.state for row in found.rows] == ["done", "ended early", "ended early", "ended early"]
    assert all(len(row.scores) == 2 for row in found.rows)
    best = found.rows[0]
    assert len(best.tests["test"]) == 2
    text = as_text(found)
    assert "±" in text
    assert "ended early" in text
    assert best.mean == max(row.mean for row in found.rows if row.steps == 8)


@pytest.mark.system
def test_a_run_of_a_sweep_is_the_run_alone(recipe, tmp_path):
    found = sweep(recipe, ["training.schedule.lr=1e-2,1e-7"], tmp_path / "out")
    run = found.rows[0].trial.runs[0]
    alone = recipes.load(recipe, [*run[0], f"run_dir={tmp_path / 'alone'}"])
    recipes.run(alone)
    newest = f"checkpoints/step-{8:08d}/model.safetensors"
    assert digests(run[1])[newest] == digests(tmp_path / "alone")[newest]


@pytest.mark.system
def test_the_same_command_goes_on_and_trains_nothing_twice(recipe, tmp_path, monkeypatch):
    changes = ["training.schedule.lr=1e-2,1e-7", "seed=1,2"]
    stopped = sweep(recipe, changes, tmp_path / "out", seconds=0.0)
    assert not stopped.is_done
    assert stopped.rows[0].state == "not finished"
    done = sweep(recipe, changes, tmp_path / "out")
    assert done.is_done
    monkeypatch.setattr(module.recipes, "run", lambda *_, **__: pytest.fail("trained again"))
    assert as_text(sweep(recipe, changes, tmp_path / "out")) == as_text(done)
    with raises_error(Error.OTHER_CONTENT, "out"):
        sweep(recipe, ["training.schedule.lr=1e-2,1e-5"], tmp_path / "out")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        (["training.lr=1,2"], (Error.UNKNOWN_SETTING, "training.lr")),
        (["seed"], (Error.WRONG_OPTION, "seed")),
        (["seed=1,1"], (Error.CONFLICT, "seed=1,1")),
        (["seed=3..1"], (Error.WRONG_OPTION, "3..1")),
        (["training.max_steps=4,8"], (Error.WRONG_OPTION, "training.max_steps")),
        (["model.d_model=8,9"], (Error.WRONG_SETTING, "model.d_model")),
    ],
)
def test_mistakes_are_told_before_anything_is_trained(recipe, tmp_path, changes, error):
    with raises_error(*error):
        sweep(recipe, changes, tmp_path / "out")
    assert not list(tmp_path.glob("out/*/checkpoints"))


@pytest.mark.system
def test_on_the_command_line(recipe, tmp_path):
    arguments = ["sweep", str(recipe), "training.schedule.lr=1e-2,1e-7", "-o", str(tmp_path / "out")]
    found = CliRunner().invoke(app, [*arguments, "--budget", "0s"])
    assert (found.exit_code, "not finished" in found.stdout) == (3, True)
    found = CliRunner().invoke(app, arguments)
    assert (found.exit_code, "best by validation: training.schedule.lr=" in found.stdout) == (0, True)


@pytest.mark.system
def test_a_run_is_reproduced_to_its_bytes(recipe, tmp_path):
    run = recipes.run(recipes.load(recipe, [f"run_dir={tmp_path / 'run'}"])).run_dir
    found = reproduce(run, tmp_path / "again")
    assert found.verdict == "bytes"
    assert found.environment == []
    assert found.checkpoints
    assert all(found.checkpoints.values())
    assert digests(run) == digests(tmp_path / "again")


@pytest.mark.system
def test_other_bytes_and_another_machine_are_told(recipe, tmp_path):
    run = recipes.run(recipes.load(recipe, [f"run_dir={tmp_path / 'run'}"])).run_dir
    log = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    first = json.loads(log[0]) | {"torch": "1.0", "machine": "another"}
    events = [json.loads(line) for line in log[1:]]
    for event in events:
        if event["event"] == "test":
            event["bleu"] += 5.0
    (run / "metrics.jsonl").write_text("".join(json.dumps(e) + "\n" for e in [first, *events]), encoding="utf-8")
    found = CliRunner().invoke(app, ["reproduce", str(run)])
    assert found.exit_code == 4
    assert "test test: bleu" in found.stdout
    assert "PyTorch: 1.0, now" in found.stdout
    assert "machine: another, now" in found.stdout
    assert "equal bytes" in found.stdout


def test_what_cannot_be_reproduced_is_refused(recipe, tmp_path):
    run = recipes.run(recipes.load(recipe, [f"run_dir={tmp_path / 'run'}"])).run_dir
    identity = json.loads((run / "identity.json").read_text(encoding="utf-8"))
    (run / "identity.json").write_text(json.dumps({**identity, "corpus.train.src": "0"}), encoding="utf-8")
    with raises_error(Error.CHANGED, "run"):
        reproduce(run, tmp_path / "again")
    assert not Path(tmp_path / "again").exists()
    for path in checkpoint.list_checkpoints(run):
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    with raises_error(Error.NO_CHECKPOINT, "run"):
        reproduce(run, tmp_path / "again")
