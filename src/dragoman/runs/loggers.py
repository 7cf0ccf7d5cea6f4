"""Programs to watch a run with while it trains: TensorBoard, Weights & Biases, MLflow, all of them behind one `show`.

The record of a run is metrics.jsonl, so a logger may never end a training: its exception becomes a warning, and the
logger is left out from then on. A run that goes on goes on in each logger too: RUN/loggers.json has the ids that the
loggers gave it.
"""

import contextlib
import os
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError, not_installed
from dragoman.progress import say
from dragoman.runs import atomic_io
from dragoman.runs.events import SCALARS, Event

IDS = "loggers.json"
PROJECT = "dragoman"
"""Project of Weights & Biases and experiment of MLflow, where their own variables name no other."""
TIMEOUT_S = 20
"""Seconds that a server is waited for, at the beginning and at the end."""


class Logger:
    """Shows the events of the run in `run_dir` somewhere. Whatever goes wrong is raised by its own library."""

    module = "torch"
    """The package that has to be installed."""

    def __init__(self, run_dir: Path, first_step: int | None) -> None:
        """`first_step`: the first step after a resume."""

    def show(self, kind: str, record: Event) -> None:
        raise NotImplementedError

    def close(self, failed: bool) -> None:
        raise NotImplementedError


class TensorBoard(Logger):
    """Scalars and samples in `RUN/tensorboard`."""

    def __init__(self, run_dir: Path, first_step: int | None) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer: Any = SummaryWriter(str(run_dir / "tensorboard"), purge_step=first_step)

    def show(self, kind: str, record: Event) -> None:
        step = record.get("step")
        for name, value in scalars(kind, record):
            self.writer.add_scalar(name, value, step)
        if kind == "valid" and record.get("samples"):
            self.writer.add_text("valid/samples", _as_text(record["samples"]), step)
        self.writer.flush()

    def close(self, failed: bool) -> None:
        self.writer.close()


class WeightsAndBiases(Logger):
    """Scalars, in the project of WANDB_PROJECT; without a key they stay in `RUN/wandb` (`wandb sync`). No code, no
    output and no text of the corpus is sent."""

    module = "wandb"

    def __init__(self, run_dir: Path, first_step: int | None) -> None:
        import wandb

        mode = os.environ.get("WANDB_MODE")
        if mode is None and not wandb.api.api_key:
            mode = "offline"
            say(f"wandb: no API key, so the run stays in {run_dir / 'wandb'}: send it with `wandb sync`")
        quiet = wandb.Settings(
            console="off", silent=True, disable_git=True, disable_code=True, init_timeout=TIMEOUT_S,
            login_timeout=TIMEOUT_S, finish_timeout=TIMEOUT_S,
        )  # fmt: skip
        project = os.environ.get("WANDB_PROJECT", PROJECT)
        with known_id(run_dir, "wandb") as ids:
            ids.setdefault("wandb", uuid.uuid4().hex[:8])
            self.run: Any = wandb.init(
                project=project, id=ids["wandb"], name=run_dir.name, resume="allow", dir=str(run_dir), mode=mode,
                config=config_of(run_dir), settings=quiet,
            )  # fmt: skip
        # Its own steps only rise; what comes for an earlier one is dropped, and a run that goes on takes some again.
        self.run.define_metric("*", step_metric="step")

    def show(self, kind: str, record: Event) -> None:
        self.run.log({**dict(scalars(kind, record)), "step": record.get("step")})

    def close(self, failed: bool) -> None:
        self.run.finish(exit_code=int(failed))


class MLflow(Logger):
    """Scalars and settings on the server of MLFLOW_TRACKING_URI, or else in `RUN/mlflow.db`."""

    module = "mlflow"

    def __init__(self, run_dir: Path, first_step: int | None) -> None:
        # A server that does not answer would be waited for, by default, for 14 minutes.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", str(TIMEOUT_S))
        from mlflow.tracking import MlflowClient

        here = f"sqlite:///{(run_dir / 'mlflow.db').resolve()}"
        self.client: Any = MlflowClient(tracking_uri=os.environ.get("MLFLOW_TRACKING_URI", here))
        with known_id(run_dir, "mlflow") as ids:
            if "mlflow" in ids:
                self.client.update_run(ids["mlflow"], status="RUNNING")
            else:
                ids["mlflow"] = self._begun(run_dir)
            self.id = ids["mlflow"]

    def _begun(self, run_dir: Path) -> str:
        """The id of a new run, with the settings as its parameters."""
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        experiment = self.client.get_experiment_by_name(name)
        place = self.client.create_experiment(name) if experiment is None else experiment.experiment_id
        run = self.client.create_run(place, run_name=run_dir.name)
        for key, value in flat(config_of(run_dir)):
            self.client.log_param(run.info.run_id, key, str(value)[:500])
        return str(run.info.run_id)

    def show(self, kind: str, record: Event) -> None:
        from mlflow.entities import Metric

        now, step = int(1000 * time.time()), int(record.get("step") or 0)
        self.client.log_batch(self.id, metrics=[Metric(name, float(v), now, step) for name, v in scalars(kind, record)])

    def close(self, failed: bool) -> None:
        self.client.set_terminated(self.id, "FAILED" if failed else "FINISHED")


LOGGERS: dict[str, type[Logger]] = {"tensorboard": TensorBoard, "wandb": WeightsAndBiases, "mlflow": MLflow}


def check_installed(names: Iterable[str]) -> None:
    """Raises DragomanError for a logger whose library is not there."""
    for name in names:
        if find_spec(LOGGERS[name].module) is None:
            raise not_installed(f"training.loggers: {name} is not installed", name)


class Loggers:
    """Several loggers as one that never fails: each is opened at the first event that it shows."""

    def __init__(self, run_dir: Path, names: Iterable[str]) -> None:
        self.run_dir, self.names = run_dir, list(names)
        self.open: dict[str, Logger] = {}
        self.first_step: int | None = None

    def show(self, kind: str, record: Event) -> None:
        for name in list(self.names) if kind in SCALARS else ():
            with self._going_on_without(name):
                if name not in self.open:
                    self.open[name] = LOGGERS[name](self.run_dir, self.first_step)
                self.open[name].show(kind, record)

    def close(self, failed: bool) -> None:
        for name, logger in self.open.items():
            if name in self.names:
                with self._going_on_without(name):
                    logger.close(failed)
        self.names = []

    @contextlib.contextmanager
    def _going_on_without(self, name: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # of any kind: it is for watching alone
            self.names.remove(name)
            reason = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
            say(f"warning: training.loggers: {name}: {reason[:200]}; going on without it")


@contextlib.contextmanager
def known_id(run_dir: Path, name: str) -> Iterator[dict[str, str]]:
    """The ids in RUN/loggers.json, to which one may be added inside."""
    path = run_dir / IDS
    ids: dict[str, str] = {}
    with contextlib.suppress(DragomanError):
        ids = dict(atomic_io.read_json(path, dict)) if path.exists() else {}
    before = dict(ids)
    yield ids
    if ids != before:
        atomic_io.replace_text(path, atomic_io.to_json(ids))


def scalars(kind: str, record: Event) -> list[tuple[str, float]]:
    """The figures of an event by the names that they are drawn under (`train/loss`)."""
    return [(f"{kind}/{name}", record[name]) for name in SCALARS.get(kind, ()) if record.get(name) is not None]


def config_of(run_dir: Path) -> dict[str, Any]:
    """The recipe of the run; nothing if the run has no recipe."""
    path = run_dir / "config.yaml"
    return atomic_io.read_yaml(path) if path.exists() else {}


def flat(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Settings by their dotted keys.

    >>> list(flat({"training": {"max_steps": 10}, "seed": 1}))
    [('training.max_steps', 10), ('seed', 1)]
    """
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _as_text(samples: Iterable[Mapping[str, Any]]) -> str:
    """Samples for TensorBoard, which reads Markdown: four spaces of indent keep every character as it is."""
    blocks = ("\n".join(f"    {name}  {sample.get(name, '')}" for name in ("src", "ref", "hyp")) for sample in samples)
    return "\n    \n".join(blocks)
