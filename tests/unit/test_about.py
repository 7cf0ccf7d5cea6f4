"""What a report of a bug needs, and the completion of a shell."""

import os
import subprocess
import sys

import pytest
import torch
from typer.testing import CliRunner

from dragoman.cli import about
from dragoman.cli.main import app


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
    ("words", "completions"), [("dragoman transl", ["translate"]), ("dragoman translate --beam-s", ["--beam-size"])]
)
def test_a_shell_completes_commands_and_options(words: str, completions: list[str]) -> None:
    place = str(len(words.split()) - 1)
    environment = {**os.environ, "_DRAGOMAN_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": place}
    command = [sys.executable, "-c", "from dragoman.cli.main import app; app(prog_name='dragoman')"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == completions
