"""Loggers are for watching: none ends a training, and a run that goes on goes on in the same place."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.errors import raises_error

from dragoman.config import parse
from dragoman.errors import Error
from dragoman.runs import loggers
from dragoman.runs.events import read_events
from dragoman.runs.log import RunLog
from dragoman.runs.loggers import LOGGERS, Logger, check_installed
from dragoman.training.config import TrainingConfig


class Failing(Logger):
    """Fails in the place that `where` names."""

    where = ""
    shown = 0

    def __init__(self, run_dir: Path, first_step: int | None) -> None:
        self.fail("begin")

    def fail(self, place: str) -> None:
        if place == self.where:
            raise RuntimeError(f"no server\nat {place}")

    def show(self, kind: str, record: dict[str, Any]) -> None:
        self.fail("show")
        type(self).shown += 1

    def close(self, failed: bool) -> None:
        self.fail("close")


def train(run_dir: Path, names: list[str], steps: range) -> None:
    with RunLog(run_dir, names) as log:
        log.rewind(steps.start - 1)
        log.event("start", torch="2")
        for step in steps:
            log.event("train", step=step, loss=1.0 / step, lr=0.1)
        log.event("valid", step=steps[-1], bleu=20.0, loss=2.0, samples=[{"src": "secret", "ref": "b", "hyp": "c"}])


@pytest.mark.parametrize(("where", "shown"), [("begin", 0), ("show", 0), ("close", 4)])
def test_a_logger_that_fails_is_left_out_with_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], where: str, shown: int
) -> None:
    monkeypatch.setitem(LOGGERS, "wandb", type("Fails", (Failing,), {"where": where, "shown": 0}))
    train(tmp_path, ["wandb"], range(1, 4))
    said = capsys.readouterr().err
    assert said.count("warning: training.loggers: wandb: no server; going on without it") == 1
    assert LOGGERS["wandb"].shown == shown  # type: ignore[attr-defined]
    assert [event["event"] for event in read_events(tmp_path / "metrics.jsonl")] == ["start", *["train"] * 3, "valid"]


@pytest.mark.parametrize("names", [["wanbd"], ["tensorboard", "W&B"], "wandb"])
def test_a_name_that_is_none_is_refused(names: Any) -> None:
    with raises_error(Error.WRONG_SETTING, "loggers"):
        parse(TrainingConfig, {"loggers": names})


def test_what_is_not_installed_is_refused_before_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loggers, "find_spec", lambda name: None)
    for name in ("wandb", "mlflow"):
        with raises_error(Error.NOT_INSTALLED, name):
            check_installed([name])


@pytest.mark.system
def test_weights_and_biases_goes_on_with_the_same_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    train(tmp_path, ["wandb"], range(1, 4))
    known = json.loads((tmp_path / "loggers.json").read_text(encoding="utf-8"))["wandb"]
    train(tmp_path, ["wandb"], range(3, 6))
    assert json.loads((tmp_path / "loggers.json").read_text(encoding="utf-8")) == {"wandb": known}
    files = list((tmp_path / "wandb").glob(f"offline-run-*-{known}/*.wandb"))
    assert files
    written = b"".join(path.read_bytes() for path in files)
    assert b"train/loss" in written
    assert b"secret" not in written


@pytest.mark.system
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of SQLAlchemy, which MLflow uses
def test_mlflow_goes_on_with_the_same_run_and_says_how_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    (tmp_path / "config.yaml").write_text("seed: 7\ntraining: {max_steps: 5}\n", encoding="utf-8")
    train(tmp_path, ["mlflow"], range(1, 4))
    train(tmp_path, ["mlflow"], range(3, 6))
    client = mlflow.tracking.MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("dragoman")
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.status == "FINISHED"
    assert run.data.params == {"seed": "7", "training.max_steps": "5"}
    history = client.get_metric_history(run.info.run_id, "train/loss")
    assert {(point.step, point.value) for point in history} == {(step, 1.0 / step) for step in range(1, 6)}
    log = RunLog(tmp_path, ["mlflow"])
    log.event("train", step=6, loss=0.1)
    log.__exit__(RuntimeError, RuntimeError("killed"), None)
    assert client.get_run(run.info.run_id).info.status == "FAILED"


@pytest.mark.system
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_server_that_is_not_there_ends_no_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    train(tmp_path, ["mlflow"], range(1, 4))
    assert capsys.readouterr().err.count("going on without it") == 1
    assert len(read_events(tmp_path / "metrics.jsonl")) == 5
