"""Compiled layers train as the layers themselves do, validations never see them, and a missing compiler is one line."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.errors import raises_error
from torch import nn

from dragoman.backends import compile as compilation
from dragoman.backends.compile import compile_layers, pick_compilation
from dragoman.config import parse
from dragoman.errors import Error
from dragoman.models.families import TransformerConfig
from dragoman.tasks import recipes
from dragoman.training.config import TrainingConfig

CPU, GPU = torch.device("cpu"), torch.device("cuda")
ROOT = Path(__file__).parents[2]
needs_a_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler: no g++")


def compared(backend: str, case: str, precision: str = "float32", steps: int = 20) -> dict[str, Any]:
    command = [sys.executable, "tests/system/compiled.py", backend, case, precision, f"{steps}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found["compiled"] == "layers"
    assert found["names"]
    assert found["repeats"], "the same step twice is the same loss, dropout included"
    assert found["validated by eager code"]
    assert not found["breaks"], "a layer is compiled as a whole"
    # One for each kind of layer; one more where sizes of the first batch happened to be equal, or a batch has one row.
    assert found["compilations"] <= (2 if case in ("lm", "vit") else 4)
    return found


@pytest.mark.parametrize(
    "case",
    [
        "pre",
        "lm",
        *(pytest.param(case, marks=pytest.mark.slow) for case in ("post", "vit", "dropout", "relative", "ssru")),
    ],
)
def test_one_compilation_of_each_kind_of_layer_serves_batches_of_twenty_shapes(case: str) -> None:
    """With a backend that reads the layers as any compiler does, and then computes what they say."""
    found = compared("aot_eager", case)
    if case != "dropout":
        assert found["loss"] < 1e-6
        assert found["gradient"] < 1e-6


@pytest.mark.slow
@needs_a_compiler
def test_layers_compiled_to_machine_code_give_the_same_gradients() -> None:
    found = compared("inductor", "lm", steps=5)
    assert found["loss"] < 1e-5
    assert found["gradient"] < 1e-5


@pytest.mark.slow
@needs_a_compiler
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("case", ["pre", "post", "vit", "dropout"])
def test_every_kind_of_layer_compiled_to_machine_code(case: str, precision: str) -> None:
    found = compared("inductor", case, precision)
    if case != "dropout":  # those draw other numbers
        assert found["loss"] < (1e-5 if precision == "float32" else 1e-2)
        assert found["gradient"] < (1e-5 if precision == "float32" else 5e-2)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What was said; and nothing is remembered of what works on this machine."""
    lines: list[str] = []
    monkeypatch.setattr(compilation, "say", lines.append)
    pick_compilation.cache_clear()
    yield lines
    pick_compilation.cache_clear()


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError("Failed to find C compiler.\nPlease specify via CC environment variable")

    monkeypatch.setattr(torch, "compile", refuse)


def transformer() -> nn.Module:
    return TransformerConfig(d_model=8, num_heads=2, d_ff=8).build(
        src_vocab_size=9, tgt_vocab_size=9, shared_vocab=True, pad_id=0
    )


@pytest.mark.usefixtures("no_compiler")
def test_nothing_is_compiled_or_tried_where_it_is_not_wanted(said: list[str]) -> None:
    for name in ("auto", "none"):
        assert compile_layers(transformer(), name, CPU) == "none"  # type: ignore[arg-type]
    assert compile_layers(transformer(), "none", GPU) == "none"
    assert not said


@pytest.mark.usefixtures("no_compiler")
def test_without_a_compiler_auto_trains_without_and_says_so_once(
    said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "ones", lambda *_, **__: torch.zeros(8))  # as there is no GPU here
    for _ in range(2):
        assert compile_layers(transformer(), "auto", GPU) == "none"
    assert said == ["torch.compile does not work on this machine (Failed to find C compiler.): training without it"]


@pytest.mark.usefixtures("said")
def test_without_a_compiler_what_was_asked_for_is_refused_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the real thing: PyTorch's own search for a C++ compiler finds none."""
    code = (
        "import torch; import torch._inductor.config as config; config.cpp.cxx = ('/nowhere/g++',); "
        "from dragoman.cli.main import main; main()"
    )
    command = [sys.executable, "-c", code, "check", "recipes/lm-demo.yaml", "training.compile=layers", "device=cpu"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "training.compile=layers: torch.compile does not work on this machine (" in done.stderr
    assert "install a C++ compiler, or set training.compile=none" in done.stderr
    assert "Traceback" not in done.stderr


def test_graphs_are_refused_where_there_is_no_such_gpu(said: list[str]) -> None:
    with raises_error(Error.NO_DEVICE):
        pick_compilation("graphs", CPU)
    recipe = recipes.load(ROOT / "recipes/lm-demo.yaml", ["training.compile=graphs", "device=cpu"])
    with raises_error(Error.NO_DEVICE):
        recipes.check(recipe)


def test_a_model_without_such_layers_is_left_alone(said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "pick_compilation", lambda name, _: "layers")
    recurrent = nn.LSTM(4, 4)
    assert compile_layers(recurrent, "auto", GPU) == "none"
    assert not said
    assert compile_layers(recurrent, "layers", CPU) == "none"
    assert said == ["training.compile=layers: this model has no layers to compile; it is trained as it is"]


def test_the_setting_has_four_values() -> None:
    assert parse(TrainingConfig, {}).compile == "auto"
    with raises_error(Error.WRONG_SETTING):
        parse(TrainingConfig, {"compile": "yes"})
