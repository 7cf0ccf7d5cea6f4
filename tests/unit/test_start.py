"""What a command loads: no more than it needs, so that it starts soon. Speed itself is in `benchmarks/start.py`."""

import inspect
import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from typer.core import TyperGroup

from dragoman import config
from dragoman.cli.declaration import declared
from dragoman.cli.main import GROUPS, function_of, load
from dragoman.models.families import MODELS
from dragoman.runs import checkpoint

ROOT = Path(__file__).parents[2]
RUN = ROOT / "tests/fixtures/run_4f9e9c2/finished"
COMMANDS = [name for names in GROUPS.values() for name in names]
COMPILER = {"torch._dynamo", "torch._inductor", "sympy"}


def modules_after(code: str, text: str = "") -> set[str]:
    """The modules that a process has loaded when its code has run, or has ended the process."""
    code = f"import atexit, sys; atexit.register(lambda: print('', *sys.modules, sep='\\n'))\n{code}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], input=text, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_the_help_of_no_command_loads_its_libraries() -> None:
    code = "from dragoman.cli.main import app\n" + "".join(
        f"app({[name, '--help']}, standalone_mode=False)\n" for name in COMMANDS
    )
    loaded = modules_after(code)
    assert loaded.isdisjoint({"torch", "numpy", "pydantic", "yaml", "sacrebleu", "matplotlib"})
    ours = {"cli", "serve.settings", "backends.threads", "cores", "errors", "progress", "version"}
    for name in loaded:
        if name.startswith("dragoman."):
            assert any(f"dragoman.{one}".startswith(name) or name.startswith(f"dragoman.{one}") for one in ours), name


def options_of(command: Any) -> list[Any]:
    """What decides how a command's arguments are read and shown, and so for each command of a group."""
    own = [
        [one.name, one.opts, one.secondary_opts, repr(one.default), one.required, one.nargs, one.multiple, one.help,
         one.metavar, one.envvar, one.hidden, one.is_eager, repr(one.type_descriptor.annotation)]
        for one in command.params
    ]  # fmt: skip
    inner = [options_of(one) for one in getattr(command, "commands", {}).values()]
    return [type(command).__name__, command.name, command.help, command.no_args_is_help, own, inner]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_declared_command_is_that_of_its_module(name: str) -> None:
    module = import_module(f"dragoman.cli.{function_of(name)}")
    whole = typer.Typer(add_completion=False, rich_markup_mode="markdown")
    whole.callback()(lambda: None)
    if hasattr(module, "app"):
        whole.add_typer(module.app, name=name)
    else:
        function = getattr(module, function_of(name))
        whole.command(name, cls=getattr(module, "Command", None))(function)
    group = typer.main.get_command(whole)
    assert isinstance(group, TyperGroup)
    assert options_of(load(name)) == options_of(group.commands[name])


def test_a_declared_function_calls_that_of_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("dragoman.cli.settings")
    given: list[dict[str, Any]] = []
    monkeypatch.setattr(module, "settings", lambda **arguments: given.append(arguments))
    declared("settings").settings(*range(len(inspect.signature(declared("settings").settings).parameters)))
    assert list(given[0].values()) == list(range(len(given[0])))


def test_a_wrong_option_is_refused_before_anything_is_loaded() -> None:
    """Whoever mistypes an option need not wait for PyTorch."""
    code = (
        "import dragoman.cli.main as main; sys.argv = ['dragoman', 'translate', 'run', '--beam-siez', '4']\n"
        "try: main.main()\nexcept SystemExit as end: assert end.code == 2"
    )
    assert modules_after(code).isdisjoint({"torch", "numpy"})


UNUSED = COMPILER | {
    "matplotlib",
    "PIL",
    "jinja2",
    "markdown_it",
    "starlette",
    "uvicorn",
    "tensorboard",
    "transformers",
}


@pytest.mark.parametrize(
    "arguments",
    [
        ["translate", str(RUN)],
        ["translate", str(RUN), "--beam-size", "5", "--json"],
        ["score", str(RUN), "--src", str(RUN.parent / "test.en"), "--tgt", str(RUN.parent / "test.de")],
    ],
    ids=["greedy", "beam", "score"],
)
def test_a_line_is_translated_without_what_it_does_not_need(arguments: list[str]) -> None:
    code = f"from dragoman.cli.main import main\nsys.argv = {['dragoman', *arguments]!r}\nmain()"
    loaded = modules_after(code, "a dog runs .\n")
    assert "torch" in loaded
    assert sorted(loaded & UNUSED) == []


def test_a_server_is_loaded_without_the_compiler() -> None:
    code = (
        "from pathlib import Path; from dragoman.pipeline.options import TranslateOptions\n"
        "import dragoman.serve.process; from dragoman.serve.service import ServedRun\n"
        f"ServedRun.load(TranslateOptions(Path({str(RUN)!r})))"
    )
    assert sorted(modules_after(code) & (COMPILER | {"matplotlib"})) == []


SETTINGS: list[dict[str, Any]] = [
    *({"type": "transformer", "position": {"type": name}} for name in
      ("sinusoidal", "learned", "rotary", "alibi", "relative", "none")),
    *({"type": "transformer", "initialization": name} for name in
      ("xavier_normal", "normal", "fairseq", "depth_scaled")),
    {"type": "transformer", "decoder_autoreg": "rnn", "norm": "rms", "activation": "swiglu", "output_bias": True},
    {"type": "transformer", "shrink_residuals": True, "tied_layers": [1, 1, 1, 1], "zero_start": True},
    {"type": "recurrent"},
]  # fmt: skip


def built(settings: dict[str, Any]) -> Any:
    model = config.parse(MODELS[settings["type"]], settings, "model")
    return model.build(src_vocab_size=40, tgt_vocab_size=40, shared_vocab=True, pad_id=0)


@pytest.mark.parametrize("settings", SETTINGS, ids=json.dumps)
def test_a_restored_model_is_the_one_that_was_saved(settings: dict[str, Any], tmp_path: Path) -> None:
    """Nothing of a model is left as it lay in memory: neither its weights nor the tables that are not saved."""
    model = built(settings)
    path = checkpoint.save(tmp_path, 1, {"model": checkpoint.weights(model)}, {"step": 1})
    torch.manual_seed(7)
    state = torch.get_rng_state()
    again = checkpoint.restored(path, lambda: built(settings))
    assert torch.equal(torch.get_rng_state(), state)
    for mine, other in (
        (model.named_parameters(), again.named_parameters()),
        (model.named_buffers(), again.named_buffers()),
    ):
        tensors = dict(other)
        for name, tensor in mine:
            assert torch.equal(tensors.pop(name), tensor), name
        assert not tensors


def test_no_model_is_restored_with_the_compiler() -> None:
    code = (
        f"import tempfile; from pathlib import Path; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from dragoman.runs import checkpoint; from test_start import SETTINGS, built\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        "    for step, settings in enumerate(SETTINGS):\n"
        "        weights = checkpoint.weights(built(settings))\n"
        "        path = checkpoint.save(Path(folder), step, {'model': weights}, {'step': step})\n"
        "        checkpoint.restored(path, lambda: built(settings))"
    )
    assert sorted(modules_after(code) & COMPILER) == []


def test_a_recipe_that_is_read_again_can_be_changed() -> None:
    """What is read once for several parts of a program is given to each anew."""
    config.from_yaml("model: {d_model: 8}", "here")["model"]["d_model"] = 9
    assert config.from_yaml("model: {d_model: 8}", "here") == {"model": {"d_model": 8}}
