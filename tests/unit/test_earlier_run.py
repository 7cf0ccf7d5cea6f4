"""Run directories of earlier versions (commits 4f9e9c2 and 35554f0) translate and resume as they did there.

`tests/fixtures/run_4f9e9c2/` holds what that version left: a finished training, one that was stopped in step 13 of 24,
and in `expected.json` what it translated and how its own resumed training ended (`make.py` made all of it). The
half-done training of `run_35554f0/` also has a pace.json: its clock has moved the end to step 20, and validated it
after step 8.

Sums of products differ in their last bits between kinds of processors. On the kind that the fixture was made on
everything must be equal, elsewhere losses and scores must be close.
"""

import json
import os
import shutil
import signal
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman.backends.accelerate import exchange
from dragoman.backends.fused_attention import FusedAttention
from dragoman.device import cpu_capabilities
from dragoman.inference.search_translator import SearchTranslator
from dragoman.nn.attention import MultiHeadAttention
from dragoman.runs import checkpoint
from dragoman.runs.events import read_events
from dragoman.runs.log import RunLog
from dragoman.tasks import recipes

FIXTURES = Path(__file__).parent.parent / "fixtures"
NARROWED_BY = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS")
"""Variables that let a processor compute as another kind does."""


def same_processor(expected: dict[str, Any]) -> bool:
    """Whether this is the kind of processor, and the PyTorch, that a fixture was made with."""
    here = {
        "torch": torch.__version__,
        "cpu": cpu_capabilities(),
        "capability": torch.backends.cpu.get_cpu_capability(),
    }
    return here == {name: expected[name] for name in here} and not any(name in os.environ for name in NARROWED_BY)


@pytest.fixture(params=["run_4f9e9c2", "run_35554f0"])
def runs(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a fixture, which is the working directory: the recipes name their corpus without a folder."""
    shutil.copytree(FIXTURES / request.param, tmp_path / "runs")
    monkeypatch.chdir(tmp_path / "runs")
    return tmp_path / "runs"


@pytest.fixture
def expected(runs: Path) -> dict[str, Any]:
    """What the version that made the runs translated, and how its own resumed training ended."""
    figures: dict[str, Any] = json.loads((runs / "expected.json").read_text(encoding="utf-8"))
    return figures


def resume(run: Path) -> Path:
    """Let the half-done training go on; its newest checkpoint."""
    recipe = recipes.load(run / "config.yaml", [f"run_dir={run}"])
    recipes.run(recipe)
    return checkpoint.list_checkpoints(run)[-1]


def logged(run: Path) -> list[dict[str, Any]]:
    """The events of steps and validations, without what tells the time."""
    names = ("event", "step", "loss", "grad_norm", "lr", "score")
    events = [event for event in read_events(run / "metrics.jsonl") if event["event"] in ("train", "valid")]
    return [{name: event[name] for name in names if name in event} for event in events]


@pytest.mark.parametrize(
    ("search", "decoding"), [("greedy", {"beam_size": 1}), ("beam", {"beam_size": 4, "n_best": 2})]
)
def test_a_finished_run_translates_the_same(
    runs: Path, expected: dict[str, Any], search: str, decoding: dict[str, int]
) -> None:
    lines = (runs / "test.en").read_text(encoding="utf-8").splitlines()
    translator = SearchTranslator.load(runs / "finished", device="cpu").with_decoding(**decoding)
    of_before = expected["translations"][search]
    for ranked, before in zip(translator.n_best(lines), of_before, strict=True):
        assert [best.text for best in ranked] == [text for text, _, _ in before]
        figures = [[best.score, best.log_prob] for best in ranked]
        assert figures == [pytest.approx([score, log_prob], rel=1e-4) for _, score, log_prob in before]
    if same_processor(expected):
        exchange(translator.model, {MultiHeadAttention: FusedAttention})  # what searched then: PyTorch's operations
        for ranked, before in zip(translator.n_best(lines), of_before, strict=True):
            assert [[best.score, best.log_prob] for best in ranked] == [[score, total] for _, score, total in before]


@pytest.mark.system
def test_a_half_done_training_resumes_to_the_same_bytes(
    runs: Path, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one go, and stopped once more on the way."""
    shutil.copytree(runs / "half-done", runs / "stopped")
    state = (checkpoint.list_checkpoints(runs / "stopped")[-1] / "state.json").read_text(encoding="utf-8")
    straight = resume(runs / "half-done")
    known = json.loads(state)
    assert [name for name in checkpoint.load_state(straight) if name in known] == list(known)  # newer ones come between
    for event, before in zip(logged(runs / "half-done"), expected["events"], strict=True):
        assert (event["event"], event["step"]) == (before["event"], before["step"])
        assert event["loss"] == pytest.approx(before["loss"], rel=1e-3)
    digests = {path.name: sha256(path.read_bytes()).hexdigest() for path in straight.glob("*.safetensors")}
    assert digests.keys() == expected["checkpoint"].keys()
    if same_processor(expected):
        assert digests == expected["checkpoint"]
        assert logged(runs / "half-done") == expected["events"]

    event = RunLog.event

    def stopping(log: RunLog, kind: str, **fields: Any) -> None:
        event(log, kind, **fields)
        if kind == "train" and fields["step"] == 15:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(RunLog, "event", stopping)
    assert checkpoint.step_of(resume(runs / "stopped")) == 15
    monkeypatch.undo()
    monkeypatch.chdir(runs)
    again = resume(runs / "stopped")
    for name in digests:
        assert (again / name).read_bytes() == (straight / name).read_bytes()
