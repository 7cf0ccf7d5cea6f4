"""The training loop on a made-up task of a few parameters: resuming, accumulating, stopping, refusing to save NaN."""

import json
import math
import os
import random
import signal
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from tests.errors import raises_error
from torch import Tensor, nn

from dragoman.config import parse
from dragoman.errors import Error
from dragoman.nn.dropout import Dropout
from dragoman.runs import checkpoint
from dragoman.runs.events import best_validation, read_events
from dragoman.runs.log import RunLog
from dragoman.training import loss_scale, optim
from dragoman.training.config import TrainingConfig
from dragoman.training.loop import Trainer
from dragoman.training.nonfinite import NotFinite
from dragoman.training.preflight import preflight
from dragoman.training.recovery import NOT_IN_STATE
from dragoman.training.state import TrainingState
from dragoman.training.step import TrainingStep, seed_for
from dragoman.training.task import Validation
from dragoman.training.time_budget import TIME_BUDGET_FILE, Deadline, TimeBudget


@dataclass
class Rows:
    """A micro-batch: inputs and the numbers that the model shall say for them."""

    x: Tensor
    y: Tensor
    step: int = 0

    def to(self, device: torch.device) -> "Rows":
        return Rows(self.x.to(device), self.y.to(device), self.step)


@dataclass
class Regression:
    """A `Task`: squared error, summed over the rows. `micro_batches` cuts the same 12 rows of a step differently."""

    micro_batches: Sequence[int] = (12,)
    scores: Sequence[float] = (1.0, 2.0, 3.0, 4.0, 5.0)
    losses: Sequence[float] = (1.0, 1.0, 1.0, 1.0, 1.0)
    on_loss: Callable[[Tensor], Tensor] = field(default=lambda loss: loss)
    validations: int = 0

    def position(self, step: int) -> tuple[int, int]:
        return divmod(step - 1, 7)

    def count(self, step: int) -> int:
        return len(self.micro_batches)

    def micro_batch(self, step: int, number: int) -> list[Rows]:
        x = torch.randn(12, 4, generator=torch.Generator().manual_seed(step))
        part = x.split(list(self.micro_batches))[number]
        return [Rows(part, part.sum(dim=1, keepdim=True), step)]

    def loss(self, model: nn.Module, batch: Rows, label_smoothing: float) -> tuple[Tensor, int, int]:
        loss = (model(batch.x) - batch.y).square().sum()
        return self.on_loss(loss), len(batch.x), 2 * len(batch.x)

    def describe(self, batch: Rows) -> str:
        return f"rows of step {batch.step}"

    def worst_case_batch(self, batch_tokens: int) -> Rows:
        x = torch.ones(max(1, batch_tokens), 4)
        return Rows(x, x.sum(dim=1, keepdim=True))

    def dry_run_validation(self, model: nn.Module) -> float:
        return 0.5

    def validate(self, model: nn.Module) -> Validation:
        score, loss = self.scores[self.validations], self.losses[self.validations]
        self.validations += 1
        return Validation(score, {"loss": loss, "bleu": score})


MANY = (1.0,) * 200
Make = Callable[..., Trainer]
DEFAULTS = {
    "max_steps": 20,
    "validate_every": 10,
    "log_every": 10,
    "schedule": {"type": "linear", "lr": 0.01, "warmup_steps": 3},
}


@pytest.fixture
def trainer() -> Iterator[Make]:
    with ExitStack() as logs:

        def make(
            run_dir: Path,
            task: Regression,
            dropout: float = 0.5,
            ahead: bool = False,
            precision: str = "float32",
            **changes: Any,
        ) -> Trainer:
            torch.manual_seed(1)
            config = parse(TrainingConfig, {**DEFAULTS, **changes})
            model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), Dropout(dropout), nn.Linear(16, 1))
            step = TrainingStep(
                config, model, task, device=torch.device("cpu"), precision=precision, seed=3, prefetch=ahead
            )
            log = logs.enter_context(RunLog(run_dir, loggers=()))
            return Trainer(config, step, run_dir=run_dir, log=log, d_model=16)

        yield make


@pytest.mark.parametrize("precision", ["float32", "float16"])
@pytest.mark.parametrize("optimizer", ["adamw", "muon", "lion"])
def test_the_preflight_leaves_no_trace(trainer: Make, tmp_path: Path, optimizer: str, precision: str) -> None:
    straight = trainer(tmp_path / "a", Regression(), precision=precision, optimizer={"type": optimizer})
    straight.train()
    tried = trainer(tmp_path / "b", Regression(), precision=precision, optimizer={"type": optimizer})
    before = everything(tried)
    took = preflight(tried)
    assert differences(before, everything(tried)) == []
    assert not (tmp_path / "b" / "preflight").exists()
    tried.train()
    assert saved(tmp_path / "a") == saved(tmp_path / "b")
    size = sum(file.stat().st_size for file in checkpoint.list_checkpoints(tmp_path / "a")[-1].iterdir())
    assert took.checkpoint_bytes == pytest.approx(size, rel=0.1)
    assert took.disk_bytes == 4 * took.checkpoint_bytes  # two last, one best, one being written
    assert took.seconds_per_validation == 0.5
    assert took.seconds(100, validate_every=30) == pytest.approx(
        100 * took.seconds_per_step + 4 * (0.5 + took.seconds_per_checkpoint)
    )
    assert took.seconds(took.steps_within(600.0, 50), 50) == pytest.approx(600, rel=0.01)


def test_the_preflight_finds_what_would_fail_later(
    trainer: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(Regression):
        def dry_run_validation(self, model: nn.Module) -> float:
            raise Error.NOT_INSTALLED("evaluation.tokenize ja-mecab", "install it")

    with raises_error(Error.NOT_INSTALLED):
        preflight(trainer(tmp_path, Broken()))
    with monkeypatch.context() as patch:
        patch.setattr("dragoman.training.preflight.shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
        with raises_error(Error.NO_SPACE):
            preflight(trainer(tmp_path, Regression()))
    with monkeypatch.context() as patch:
        patch.setattr("dragoman.training.preflight.available_bytes", lambda _: 100 * 2**20)
        with raises_error(Error.OUT_OF_MEMORY) as caught:
            preflight(trainer(tmp_path, Regression(), batch_tokens=4_000_000))
        fits = int(str(caught.value).split("training.batch_tokens=")[2].split()[0])
        assert 100_000 < fits < 4_000_000


def test_what_filled_the_memory_is_gone_before_a_smaller_batch_is_tried(trainer: Make, tmp_path: Path) -> None:
    class Full(Regression):
        """On a device that holds 300 rows."""

        held: ClassVar[list[weakref.ref[Tensor]]] = []
        alive: ClassVar[list[bool]] = []

        def loss(self, model: nn.Module, batch: Rows, label_smoothing: float) -> tuple[Tensor, int, int]:
            hidden = model(batch.x)
            self.alive.append(any(tensor() is not None for tensor in self.held))
            if len(batch.x) > 300:
                self.held.append(weakref.ref(hidden))
                raise torch.OutOfMemoryError("out of memory")
            return super().loss(model, batch, label_smoothing)

    task = Full()
    with raises_error(Error.OUT_OF_MEMORY):
        preflight(trainer(tmp_path, task, batch_tokens=1024))
    assert len(task.held) == 2  # 1,024 and 512
    assert not any(task.alive)
    assert checkpoint.list_checkpoints(tmp_path) == []


def everything(trained: Trainer) -> dict[str, Tensor]:
    """All numbers that training changes: weights, optimizer state, averages."""
    averages = trained.averager.average(trained.model, trained.step) or {}
    state = optim.state_tensors(trained.training_step.optimizer, trained.model)
    found = {**checkpoint.weights(trained.model), **state, **{f"avg {name}": t for name, t in averages.items()}}
    return {name: tensor.clone() for name, tensor in found.items()}


def differences(first: dict[str, Tensor], second: dict[str, Tensor]) -> list[str]:
    assert first.keys() == second.keys()
    return [name for name in first if not torch.equal(first[name], second[name])]


def test_each_attribute_of_a_trainer_is_saved_or_declared_not_to_be(trainer: Make, tmp_path: Path) -> None:
    trained = trainer(tmp_path, Regression(), averaging={"type": "last", "checkpoints": 2}, validate_seconds=1000.0)
    trained.train()
    assert vars(trained).keys() == {"state", *NOT_IN_STATE}
    _, saved = trained.saved({})
    assert saved.keys() >= {attribute.name for attribute in fields(TrainingState)}
    assert TrainingState.from_dict(saved, trained.state.schedule).to_dict() == trained.state.to_dict()
    assert vars(trained.state).keys() == {attribute.name for attribute in fields(TrainingState)}


AVERAGING = [{"type": "ema", "decay": 0.9}, {"type": "last", "checkpoints": 2}, {"type": "none"}]
SCHEDULES = [{"type": "cosine", "lr": 0.01, "warmup_steps": 3}, {"type": "plateau", "lr": 0.01, "patience": 1}]


@pytest.mark.parametrize("averaging", AVERAGING, ids=lambda settings: settings["type"])
@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda settings: settings["type"])
def test_a_resumed_run_equals_one_never_stopped_bit_for_bit(
    trainer: Make, tmp_path: Path, averaging: Any, schedule: Any
) -> None:
    resumed_equals_straight(trainer, tmp_path, {"averaging": averaging, "schedule": schedule, "validate_every": 5})


def test_a_run_with_muon_resumes_bit_for_bit(trainer: Make, tmp_path: Path) -> None:
    muon = {"type": "muon", "weight_decay": 0.1, "lr_ratio": 2.0}
    resumed_equals_straight(trainer, tmp_path, {"optimizer": muon, "schedule": SCHEDULES[0], "validate_every": 5})


def resumed_equals_straight(trainer: Make, tmp_path: Path, settings: dict[str, Any]) -> None:
    scores = [3.0, 2.0, 2.5, 4.0]
    straight = trainer(tmp_path / "straight", Regression(scores=scores), **settings)
    straight.train()
    # Killed after step 13: what was done since the checkpoint of step 10 is lost.
    stopped = trainer(tmp_path / "stopped", Regression(scores=scores, on_loss=_fail_at(14)), **settings)
    with pytest.raises(RuntimeError, match="killed"):
        stopped.train()
    resumed = trainer(tmp_path / "stopped", Regression(scores=scores, validations=2), **settings)
    path = checkpoint.newest(tmp_path / "stopped")
    assert path is not None
    resumed.training_step.set_precision("bfloat16")  # what `auto` is on this machine must not matter
    resumed.resume(path)
    assert (resumed.step, resumed.precision) == (10, "float32")
    torch.manual_seed(999)  # where the process's own generator stands must not matter
    outcome = resumed.train()
    assert differences(everything(straight), everything(resumed)) == []
    assert (outcome.step, outcome.best_step, outcome.best_score) == (20, 20, 4.0)
    assert resumed.state.schedule.state_dict() == straight.state.schedule.state_dict()
    assert saved(tmp_path / "straight") == saved(tmp_path / "stopped")
    assert logged(tmp_path / "straight") == logged(tmp_path / "stopped")


def test_a_run_in_a_budget_that_is_killed_decides_the_same_again(trainer: Make, tmp_path: Path) -> None:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 0.01
        return now

    def in_budget(run_dir: Path, **task: Any) -> Trainer:
        one = trainer(run_dir, Regression(scores=MANY, losses=MANY, **task), validate_seconds=0.3, validate_every=1000)
        one.time_budget = TimeBudget(one.config, run_dir, Deadline(now + 5.0, 0.05, 0.01), clock)
        return one

    with pytest.raises(RuntimeError, match="killed"):
        in_budget(tmp_path / "killed", on_loss=_fail_at(30)).train()
    path = checkpoint.newest(tmp_path / "killed")
    assert path is not None
    before = json.loads((tmp_path / "killed" / TIME_BUDGET_FILE).read_text())
    resumed = in_budget(tmp_path / "killed")
    resumed.resume(path)
    resumed.train()
    decided = json.loads((tmp_path / "killed" / TIME_BUDGET_FILE).read_text())
    assert len(decided["validations"]) > 3
    for kind in ("marks", "validations"):
        assert decided[kind][: len(before[kind])] == before[kind]

    (tmp_path / "straight").mkdir()
    (tmp_path / "straight" / TIME_BUDGET_FILE).write_text(json.dumps(decided))
    straight = trainer(
        tmp_path / "straight", Regression(scores=MANY, losses=MANY), validate_seconds=0.3, validate_every=1000
    )
    straight.train()
    assert straight.step == resumed.step == decided["marks"][-1]["end"] != straight.config.max_steps
    assert differences(everything(straight), everything(resumed)) == []
    assert saved(tmp_path / "straight") == saved(tmp_path / "killed")


def test_a_checkpoint_by_the_clock_is_there_before_the_first_validation(trainer: Make, tmp_path: Path) -> None:
    one = trainer(tmp_path, Regression(on_loss=_fail_at(9)))
    one.time_budget.saved_at -= 3600
    one.time_budget.start = lambda *_: None  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="killed"):
        one.train()
    assert [checkpoint.step_of(path) for path in checkpoint.list_checkpoints(tmp_path)] == [1]
    assert checkpoint.best(tmp_path) == checkpoint.newest(tmp_path)
    assert not [event for event in read_events(tmp_path / "metrics.jsonl") if event["event"] == "checkpoint"]


def saved(run_dir: Path) -> dict[str, str]:
    """SHA-256 of every file of every checkpoint."""
    files = checkpoint.checkpoints_dir(run_dir).rglob("*.*")
    return {str(path.relative_to(run_dir)): sha256(path.read_bytes()).hexdigest() for path in files if path.is_file()}


def logged(run_dir: Path) -> list[dict[str, Any]]:
    """The log, but for what tells the time."""
    events = read_events(run_dir / "metrics.jsonl")
    timing = ("time", "elapsed_s", "tokens_per_s", "peak_bytes")
    return [{key: value for key, value in event.items() if key not in timing} for event in events]


def _fail_at(step: int) -> Callable[[Tensor], Tensor]:
    calls = 0

    def fail(loss: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        if calls == step:
            raise RuntimeError("killed")
        return loss

    return fail


def test_dropout_is_keyed_by_seed_step_and_micro_batch() -> None:
    draws = {}
    for key in [(1, 1, 0), (1, 1, 1), (1, 2, 0), (2, 1, 0), (1, 11, 0), (11, 1, 0)]:
        seed_for(*key)
        draws[key] = torch.rand(4)
        seed_for(*key)
        assert torch.equal(torch.rand(4), draws[key])
    assert len({tuple(draw.tolist()) for draw in draws.values()}) == len(draws)


@pytest.mark.parametrize("parts", [(6, 6), (4, 4, 4), (1, 11)])
def test_micro_batches_give_the_gradient_of_the_whole_batch(
    trainer: Make, tmp_path: Path, parts: Sequence[int]
) -> None:
    results = []
    for name, micro_batches in (("whole", (12,)), ("parts", parts)):
        one = trainer(tmp_path / name, Regression(micro_batches), dropout=0.0, clip_norm=0)
        loss, norm, processed = one.train_step(1)
        gradients = torch.cat([parameter.grad.flatten() for parameter in one.model.parameters()])  # type: ignore[union-attr]
        results.append((loss, norm, gradients))
        assert processed == 24
    for whole, summed in zip(*results, strict=True):
        torch.testing.assert_close(whole, summed, rtol=1e-5, atol=1e-6)


def test_the_gradient_is_that_of_the_mean_over_all_tokens_of_the_step(trainer: Make, tmp_path: Path) -> None:
    one = trainer(tmp_path, Regression((1, 11)), dropout=0.0, clip_norm=0)
    (rows,) = Regression().micro_batch(1, 0)
    expected = (one.model(rows.x) - rows.y).square().mean()
    gradients = torch.autograd.grad(expected, list(one.model.parameters()))
    loss, norm, _ = one.train_step(1)
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(norm, torch.cat([gradient.flatten() for gradient in gradients]).norm())
    for parameter, gradient in zip(one.model.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("compiled", ["none", "graphs"])
def test_frozen_weights_stay_as_they_are(
    trainer: Make, tmp_path: Path, compiled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.compiler, "cudagraph_mark_step_begin", lambda: None)
    one = trainer(tmp_path, Regression(), optimizer={"type": "adamw", "weight_decay": 0.1})
    one.training_step.compiled = compiled  # what is compiled is another matter
    frozen, trained = one.model.get_parameter("0.weight"), one.model.get_parameter("3.weight")
    frozen.requires_grad_(False)
    before = frozen.clone(), trained.clone()
    one.train_step(1)
    assert torch.equal(frozen, before[0])
    assert not torch.equal(trained, before[1])


@pytest.mark.parametrize("clip_norm", [0.0, 0.1, 1e6])
def test_the_gradient_is_cut_to_clip_norm_and_0_means_no_limit(trainer: Make, tmp_path: Path, clip_norm: float) -> None:
    one = trainer(tmp_path, Regression(), clip_norm=clip_norm)
    _, norm, _ = one.train_step(1)
    used = torch.cat([parameter.grad.flatten() for parameter in one.model.parameters()]).norm()  # type: ignore[union-attr]
    assert norm > 0.2  # what is reported is the norm before the cut
    torch.testing.assert_close(used, torch.tensor(0.1) if clip_norm == 0.1 else norm, rtol=1e-4, atol=0)


def test_training_brings_the_loss_down_and_logs_it(trainer: Make, tmp_path: Path) -> None:
    one = trainer(tmp_path, Regression(), dropout=0.0, max_steps=60, validate_every=30)
    outcome = one.train()
    assert (outcome.reason, outcome.step) == ("max_steps", 60)
    events = read_events(tmp_path / "metrics.jsonl")
    assert [(event["event"], event["step"]) for event in events if event["event"] != "train"] == [
        ("valid", 30),
        ("checkpoint", 30),
        ("valid", 60),
        ("checkpoint", 60),
        ("end", 60),
    ]
    logged = [event for event in events if event["event"] == "train"]
    assert [event["step"] for event in logged] == [10, 20, 30, 40, 50, 60]
    assert logged[-1]["loss"] < 0.3 * logged[0]["loss"]
    assert [event["lr"] for event in logged] == [one.state.schedule.rate(event["step"]) for event in logged]


@pytest.mark.parametrize(
    ("losses", "best_step"), [([0.4, 0.3, 0.3, 0.1], 10), ([0.4, 0.3, 0.2, 0.1], 15), ([0.4, 0.2, 0.3, 0.1], 10)]
)
def test_the_best_validation_is_recorded_and_a_tie_goes_to_the_lower_loss(
    trainer: Make, tmp_path: Path, losses: list[float], best_step: int
) -> None:
    task = Regression(scores=[1.0, 7.0, 7.0, 3.0], losses=losses)
    outcome = trainer(tmp_path, task, validate_every=5, keep_last=1).train()
    assert (outcome.best_step, outcome.best_score) == (best_step, 7.0)
    logged = best_validation(read_events(tmp_path / "metrics.jsonl"))
    assert logged is not None
    assert logged["step"] == best_step
    newest, best = checkpoint.newest(tmp_path), checkpoint.best(tmp_path)
    assert newest is not None
    assert best is not None
    state = checkpoint.load_state(newest)
    assert (state["step"], state["score"], state["loss"]) == (20, 3.0, 0.1)
    loss = losses[best_step // 5 - 1]
    assert (state["best_step"], state["best"]) == (best_step, {"score": 7.0, "loss": loss, "rank": [7.0, -loss]})
    assert (checkpoint.load_state(best)["step"], checkpoint.load_state(best)["score"]) == (best_step, 7.0)


def test_the_rate_falls_with_a_plateau_of_score_and_loss(trainer: Make, tmp_path: Path) -> None:
    """Not of the score alone: the one notion of a better validation that the best checkpoint goes by."""
    settings = {"validate_every": 5, "schedule": {"type": "plateau", "patience": 1, "factor": 0.5, "warmup_steps": 0}}
    for losses, reductions in (([0.4, 0.3, 0.2, 0.1], 0), ([0.4, 0.3, 0.3, 0.2], 1)):
        one = trainer(tmp_path / f"{reductions}", Regression(scores=[7.0] * 4, losses=losses), **settings)
        one.train()
        assert one.state.schedule.state_dict() == {"bad": 0, "reductions": reductions}


def test_patience_stops_after_so_many_validations_without_a_better_score(trainer: Make, tmp_path: Path) -> None:
    task = Regression(scores=[1.0, 3.0, 3.0, 2.9, 9.0])
    outcome = trainer(tmp_path, task, validate_every=2, patience=2).train()
    assert (outcome.reason, outcome.step, outcome.best_step) == ("patience", 8, 4)
    assert task.validations == 4


@pytest.mark.parametrize("not_finite", ["abort", "skip", "rollback"])
@pytest.mark.parametrize("killed_at", [None, 9, 16])
def test_float16_leaves_out_what_overflows_and_a_killed_run_does_the_same(
    trainer: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, not_finite: str, killed_at: int | None
) -> None:
    """Whatever is done about numbers that are not finite: these are, at another scale."""
    monkeypatch.setattr(loss_scale, "GROWTH_INTERVAL", 4)
    settings = {"validate_every": 5, "max_steps": 20, "log_every": 5, "not_finite": {"type": not_finite}}

    class Steep(Regression):
        def loss(self, model: nn.Module, batch: Rows, label_smoothing: float) -> tuple[Tensor, int, int]:
            if batch.step == killed_at and not batch_was[0]:
                batch_was[0] = True
                raise RuntimeError("killed")
            loss, count, processed = super().loss(model, batch, label_smoothing)
            return loss * (1e5 if batch.step in (7, 12, 13) else 1.0), count, processed

    batch_was = [killed_at is None]
    one = trainer(tmp_path / "a", Steep(scores=MANY, losses=MANY), precision="float16", **settings)
    if killed_at is not None:
        with pytest.raises(RuntimeError, match="killed"):
            one.train()
        path = checkpoint.newest(tmp_path / "a")
        assert path is not None
        one = trainer(tmp_path / "a", Steep(scores=MANY, losses=MANY), precision="float32", **settings)
        one.resume(path)
    one.train()
    straight = trainer(tmp_path / "b", Steep(scores=MANY, losses=MANY), precision="float16", **settings)
    straight.train()
    assert saved(tmp_path / "a") == saved(tmp_path / "b")
    assert logged(tmp_path / "a") == logged(tmp_path / "b")
    left_out = [
        event["step"] for event in read_events(tmp_path / "a" / "metrics.jsonl") if event["event"] == "overflow"
    ]
    assert left_out == [7, 12, 13]
    assert (one.state.loss_scale.overflows, one.state.skipped, one.state.rollbacks) == (3, 0, 0)
    assert one.state.loss_scale.value == 128 * 2 / 2 * 2 / 2 / 2 * 2
    assert one.state.window.losses == []


def test_a_loss_that_is_no_number_is_none_at_any_scale(trainer: Make, tmp_path: Path) -> None:
    one = trainer(tmp_path / "a", Regression(on_loss=lambda loss: loss * torch.nan), precision="float16")
    with raises_error(Error.DIVERGED):
        one.train()
    assert one.state.loss_scale.overflows == 0
    one = trainer(tmp_path / "b", Regression(on_loss=lambda loss: loss * 1e30), precision="float16", max_steps=60)
    with raises_error(Error.DIVERGED):
        one.train()
    assert one.state.loss_scale.value == loss_scale.MIN_SCALE
    assert one.state.loss_scale.overflows == 17


def test_the_scale_moves_as_that_of_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_scale, "GROWTH_INTERVAL", 3)
    theirs = torch.amp.GradScaler("cpu", init_scale=loss_scale.INITIAL_SCALE, growth_interval=3)
    ours, weight = loss_scale.LossScale.of("float16"), nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=0.0)
    for number in random.Random(1).choices([1.0, math.inf, math.nan], [8, 1, 1], k=200):
        weight.grad = theirs.scale(torch.tensor([number]))
        theirs.step(optimizer)
        theirs.update()
        if math.isfinite(number):
            ours.passed()
        else:
            assert ours.overflowed()
        assert ours.value == theirs.get_scale()
        ours.value = max(ours.value, 4 * loss_scale.MIN_SCALE)
        theirs.update(ours.value)


BLEU, LOSSES = [9.0, 8.0, 7.0, 8.5, 8.4, 8.3], [1.0, 0.9, 0.8, 0.9, 0.9, 0.9]
"""BLEU stalls after the first validation, the loss after the third."""


@pytest.mark.parametrize(
    ("scores", "losses", "changes", "stops", "best"),
    [
        (BLEU, LOSSES, {}, 6, 2),
        (BLEU, LOSSES, {"best_by": ["loss"]}, 10, 6),
        (BLEU, LOSSES, {"best_by": ["bleu", "loss"], "patience_on": "any"}, 6, 2),
        (BLEU, LOSSES, {"best_by": ["bleu", "loss"], "patience_on": "all"}, 10, 2),
        (BLEU, LOSSES, {"best_by": ["loss", "bleu"], "patience_on": "all"}, 10, 6),
        ([0.9, 0.2, 0.1, 0.3, 0.1, 0.2], LOSSES, {}, 10, 6),
        ([0.9, 0.2, 0.1, 0.3, 0.1, 0.2], LOSSES, {"best_by": ["bleu"], "patience_on": "any"}, 10, 6),
        ([0.9, 0.2, 0.1, 0.3, 0.1, 0.2], LOSSES, {"best_by": ["bleu", "loss"], "patience_on": "any"}, 10, 6),
        ([0.9, 0.2, 0.1, 0.3, 0.1, 0.2], LOSSES, {"best_by": ["bleu", "loss"], "patience_on": "all"}, 10, 6),
        ([0.0, 0.0, 1.5, 1.4, 1.4, 1.3], [1.0, 2.0, 2.0, 2.0, 2.0, 2.0], {}, 10, 6),
    ],
)  # fmt: skip
@pytest.mark.parametrize("killed_at", [None, 4, 6])
def test_patience_and_the_best_go_by_the_figures_that_are_named(
    trainer: Make,
    tmp_path: Path,
    scores: list[float],
    losses: list[float],
    changes: dict[str, Any],
    stops: int,
    best: int,
    killed_at: int | None,
) -> None:
    """BLEU alone means nothing below 1; a run that was killed decides the same."""
    settings = {"validate_every": 2, "patience": 2, **changes}
    if killed_at is not None:
        one = trainer(tmp_path, Regression(scores=scores, losses=losses, on_loss=_fail_at(killed_at)), **settings)
        with pytest.raises(RuntimeError, match="killed"):
            one.train()
    path = checkpoint.newest(tmp_path)
    done = 0 if path is None else checkpoint.step_of(path)
    one = trainer(tmp_path, Regression(scores=scores, losses=losses, validations=done // 2), **settings)
    if path is not None:
        one.resume(path)
    outcome = one.train()
    assert (outcome.reason, outcome.step, outcome.best_step) == ("patience", stops, best)
    found = checkpoint.best(tmp_path)
    assert found is not None
    assert checkpoint.step_of(found) == best
    logged = best_validation(read_events(tmp_path / "metrics.jsonl"))
    assert logged is not None
    assert logged["step"] == best


def test_validation_sees_the_average_and_training_goes_on_with_the_weights(trainer: Make, tmp_path: Path) -> None:
    seen = []

    class Watching(Regression):
        def validate(self, model: nn.Module) -> Validation:
            seen.append({name: tensor.clone() for name, tensor in checkpoint.weights(model).items()})
            return super().validate(model)

    one = trainer(tmp_path, Watching(), max_steps=10)
    one.train()
    average = one.averager.average(one.model, one.step)
    assert average is not None
    assert differences(seen[0], average) == []
    assert differences(seen[0], dict(checkpoint.weights(one.model))) == list(seen[0])


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_the_step_saves_and_can_be_resumed_exactly(
    trainer: Make, tmp_path: Path, which: signal.Signals
) -> None:
    calls = 0

    def interrupt(loss: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        if calls == 7:
            os.kill(os.getpid(), which)
        return loss

    before = signal.getsignal(which)
    outcome = trainer(tmp_path / "a", Regression(on_loss=interrupt)).train()
    assert (outcome.reason, outcome.step, outcome.best_score) == ("interrupted", 7, None)
    assert signal.getsignal(which) is before
    path = checkpoint.newest(tmp_path / "a")
    assert path is not None
    assert (checkpoint.load_state(path)["step"], checkpoint.load_state(path)["score"]) == (7, None)
    resumed = trainer(tmp_path / "a", Regression())
    resumed.resume(path)
    straight = trainer(tmp_path / "b", Regression())
    assert [one.train().reason for one in (resumed, straight)] == ["max_steps"] * 2
    assert differences(everything(resumed), everything(straight)) == []
    assert saved(tmp_path / "a") == saved(tmp_path / "b")
    assert logged(tmp_path / "a") == logged(tmp_path / "b")


def test_a_second_signal_stops_at_once(trainer: Make, tmp_path: Path) -> None:
    def interrupt_twice(loss: Tensor) -> Tensor:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        return loss

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        trainer(tmp_path, Regression(on_loss=interrupt_twice)).train()
    assert signal.getsignal(signal.SIGINT) is before
    assert checkpoint.list_checkpoints(tmp_path) == []


class Spoilt(Regression):
    """The loss of some steps is multiplied with what is no number; `times` so often at most."""

    def __init__(self, steps: dict[int, float], times: int = 1000) -> None:
        super().__init__((6, 6))
        self.spoils, self.times = dict(steps), times

    def micro_batch(self, step: int, number: int) -> list[Rows]:
        batches = super().micro_batch(step, number)
        if number == 1 and step in self.spoils and self.times:
            self.times -= 1
            batches[0].y.mul_(self.spoils[step])
        return batches


def test_a_spoilt_step_names_the_micro_batch_before_anything_is_changed(trainer: Make, tmp_path: Path) -> None:
    one = trainer(tmp_path, Spoilt({1: math.inf}))
    before = everything(one)
    with pytest.raises(NotFinite, match=r"step 1: the loss is inf \(micro-batch 2 of 2: rows of step 1\)"):
        one.train_step(1)
    assert differences(before, everything(one)) == []
    assert all(parameter.grad is None for parameter in one.model.parameters())


def test_a_gradient_that_overflows_only_in_sum_blames_no_micro_batch(trainer: Make, tmp_path: Path) -> None:
    one = trainer(tmp_path, Regression((6, 6), on_loss=lambda loss: 0 * loss + 3e38))
    with pytest.raises(NotFinite, match=r"is inf \(the sum of its 2 micro-batches; none by itself\)"):
        one.train_step(1)


def test_spoilt_steps_are_left_out_up_to_the_limit(trainer: Make, tmp_path: Path) -> None:
    settings = {"not_finite": {"type": "skip", "limit": 2}, "log_every": 1}
    outcome = trainer(tmp_path / "a", Spoilt({3: math.nan, 10: math.inf}), **settings).train()
    assert outcome.step == 20
    events = logged(tmp_path / "a")
    assert [(event["step"], event["skipped"]) for event in events if event["event"] == "skip"] == [(3, 1), (10, 2)]
    assert [event["step"] for event in events if event["event"] == "train" and event["loss"] is None] == [3, 10]
    with raises_error(Error.DIVERGED):
        trainer(tmp_path / "b", Spoilt(dict.fromkeys((3, 10, 12), math.nan)), **settings).train()
    resumed = trainer(tmp_path / "b", goes_on := Spoilt({3: math.nan, 10: math.inf}), **settings)
    goes_on.validations = 1
    path = checkpoint.newest(tmp_path / "b")
    assert path is not None
    resumed.resume(path)
    resumed.train()
    assert saved(tmp_path / "a") == saved(tmp_path / "b")


def test_a_spoilt_step_is_taken_back_with_a_lower_rate(trainer: Make, tmp_path: Path) -> None:
    settings = {"not_finite": {"type": "rollback", "limit": 1, "factor": 0.25}, "validate_every": 5, "log_every": 1}
    spoilt = Spoilt({13: math.nan}, times=2)  # once in the step, once as it is looked at again
    one = trainer(tmp_path, spoilt, **settings)
    assert one.train().step == 20
    events = logged(tmp_path)
    assert [(event["step"], event["to"]) for event in events if event["event"] == "rollback"] == [(13, 10)]
    rates = {event["step"]: event["lr"] for event in events if event["event"] == "train"}
    assert sorted(rates) == list(range(1, 21))
    for step, rate in rates.items():
        assert rate == pytest.approx(one.state.schedule.rate(step) * (0.25 if step > 10 else 1))
    path = checkpoint.newest(tmp_path)
    assert path is not None
    assert checkpoint.load_state(path)["rollbacks"] == 1


def test_a_run_goes_on_from_where_it_was_stopped_after_rolling_back(trainer: Make, tmp_path: Path) -> None:
    """Not from the later step that an earlier stop had left and the rollback took back."""
    settings = {"not_finite": {"type": "rollback"}}
    spoilt = Spoilt({18: math.nan}, times=2)
    first = trainer(tmp_path, spoilt, **settings)
    stop_at(first, 15)
    path = checkpoint.newest(tmp_path)
    assert path is not None
    second = trainer(tmp_path, spoilt, **settings)
    second.resume(path)
    stop_at(second, 12)
    assert [event["to"] for event in logged(tmp_path) if event["event"] == "rollback"] == [10]
    third = trainer(tmp_path, spoilt, **settings)
    third.resume(tmp_path / "checkpoints/step-00000012")
    assert [event["step"] for event in logged(tmp_path) if event["event"] == "rollback"] == [18], "it went back, still"
    assert list(map(checkpoint.step_of, checkpoint.list_checkpoints(tmp_path))) == [10, 12]


def stop_at(one: Trainer, step: int) -> None:
    """Train until this step is taken, as Ctrl-C stops it."""
    update = one.training_step.update

    def stopping(number: int, *numbers: Any) -> tuple[Tensor, Tensor]:
        one.stop_agreed = number == step
        return update(number, *numbers)

    one.training_step.update = stopping  # type: ignore[method-assign]
    assert one.train().reason == "interrupted"
    assert one.step == step


def test_rolling_back_ends_where_it_does_not_help(trainer: Make, tmp_path: Path) -> None:
    settings = {"not_finite": {"type": "rollback", "limit": 2}, "validate_every": 5}
    with raises_error(Error.DIVERGED):
        trainer(tmp_path / "a", Spoilt({13: math.nan}), **settings).train()
    with raises_error(Error.DIVERGED):
        trainer(tmp_path / "b", Spoilt({3: math.nan}), **settings).train()


@pytest.mark.parametrize("settings", [{}, {"not_finite": {"type": "rollback"}}, {"not_finite": {"type": "skip"}}])
def test_batches_made_ahead_change_nothing(trainer: Make, tmp_path: Path, settings: dict[str, Any]) -> None:
    runs = {}
    for ahead in (False, True):
        run_dir = tmp_path / f"{ahead}"
        spoilt = Spoilt({13: math.nan} if settings else {})
        one = trainer(run_dir, spoilt, ahead=ahead, validate_every=5, log_every=1, **settings)
        preflight(one)
        if settings.get("not_finite", {}).get("type") == "rollback":
            with raises_error(Error.DIVERGED):
                one.train()
        else:
            one.train()
        runs[ahead] = saved(run_dir), logged(run_dir)
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("batches")]
    assert runs[True] == runs[False]


def test_an_error_in_a_batch_made_ahead_ends_the_training_at_its_step(trainer: Make, tmp_path: Path) -> None:
    class Damaged(Regression):
        def micro_batch(self, step: int, number: int) -> list[Rows]:
            if step == 14:
                raise Error.DAMAGED("damaged", file="prepared/src.bin")
            return super().micro_batch(step, number)

    one = trainer(tmp_path, Damaged(), ahead=True)
    with raises_error(Error.DAMAGED):
        one.train()
    assert one.step == 13
    resumed = trainer(tmp_path, Regression(validations=1), ahead=True)
    path = checkpoint.newest(tmp_path)
    assert path is not None
    resumed.resume(path)
    assert resumed.train().step == 20
    straight = trainer(tmp_path / "straight", Regression())
    straight.train()
    assert differences(everything(straight), everything(resumed)) == []


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize(("log_every", "at"), [(10, 13), (1, 13), (100, 13), (100, 15), (10, 20)])
def test_a_loss_that_is_no_number_stops_the_run_and_no_checkpoint_holds_it(
    trainer: Make, tmp_path: Path, bad: float, log_every: int, at: int
) -> None:
    one = trainer(tmp_path, Spoilt({at: bad}), validate_every=5, log_every=log_every)
    with raises_error(Error.DIVERGED) as caught:
        one.train()
    assert "\n" not in str(caught.value)
    paths = checkpoint.list_checkpoints(tmp_path)
    assert paths[-1].name == f"step-{(at - 1) // 5 * 5:08d}"
    for path in paths:
        for group in ("model", "averaged", "optimizer"):
            assert all(tensor.isfinite().all() for tensor in checkpoint.load_group(path, group).values())


def test_an_interrupted_step_whose_loss_is_no_number_is_not_saved(trainer: Make, tmp_path: Path) -> None:
    def spoil(loss: Tensor) -> Tensor:
        if not asked:
            asked.append(True)
            os.kill(os.getpid(), signal.SIGINT)
        return loss * math.nan

    asked: list[bool] = []

    with raises_error(Error.DIVERGED):
        trainer(tmp_path, Regression(on_loss=spoil)).train()
    assert checkpoint.list_checkpoints(tmp_path) == []
