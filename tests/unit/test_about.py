"""What a report of a bug needs, and the completion of a shell."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from dragoman.cli import about
from dragoman.cli.main import app

SRC = Path(about.__file__).parents[2]


def test_the_version_tells_the_machine_and_each_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    requires = [
        "torch>=2",
        'pypdf>=5.0; extra == "pdf"',
        'no-such-package>=1; extra == "other"',
        'pytest; extra == "dev"',
    ]
    monkeypatch.setattr(about.metadata, "requires", lambda name: requires)
    done = CliRunner().invoke(app, ["--version", "--verbose"])
    lines = done.output.splitlines()
    assert done.exit_code == 0
    assert lines[0].startswith("dragoman 0.")
    assert f"torch {torch.__version__}" in done.output
    assert "extra other: without no-such-package (pip install 'dragoman[other]')" in lines
    assert any(line.startswith("extra pdf: ") for line in lines)
    assert "dev" not in "".join(line for line in lines if line.startswith("extra"))


def test_verbose_alone_is_a_mistake() -> None:
    assert CliRunner().invoke(app, ["--verbose"]).exit_code == 2


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("dragoman transl", ["translate"]),
        ("dragoman translate --beam-s", ["--beam-size"]),
        ("dragoman translate runs/mine --no-such --beam-s", ["--beam-size"]),
        ("dragoman serve --beh", ["--behind-proxy"]),
        ("dragoman inspect mas", ["masks"]),
        ("dragoman learn che", ["check"]),
        ("dragoman translate runs/mi", []),  # a file, which the shell completes
    ],
)
def test_a_shell_completes_commands_and_options(words: str, completions: list[str]) -> None:
    """janus-core 267, click 1203: whoever presses TAB waits for libraries that the word does not need."""
    place = str(len(words.split()) - 1)
    environment = {**os.environ, "_DRAGOMAN_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": place}
    code = (
        "import atexit, sys; from dragoman.cli.main import main; sys.argv = ['dragoman']\n"
        "atexit.register(lambda: print({'torch', 'numpy', 'yaml'} & sys.modules.keys() or 'nothing'))\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    *lines, has_loaded = done.stdout.split()
    assert (lines, has_loaded, done.stderr) == (completions, "nothing", "")


def test_a_shell_that_completes_gets_no_message() -> None:
    """zsh prints what a completion says on stderr into the line that is typed."""
    environment = {**os.environ, "_DRAGOMAN_COMPLETE": "complete_bash", "COMP_CWORD": "2"}
    environment |= {"COMP_WORDS": "dragoman translate --b", "PYTHONPATH": str(SRC)}
    code = (
        "import sys; from dragoman.cli import main\n"
        "def load(name): raise OSError('libcudart.so.12: cannot open')\n"
        "main.load = load; sys.argv = ['dragoman']; main.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout + done.stderr == ""
