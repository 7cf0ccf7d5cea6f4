"""An environment of a metric: what is installed there, and what its scores are called by."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.errors import DragomanError, Error
from dragoman.quality.metric_environments import METRICS, install

PYTHON = """#!/bin/sh
echo "$@" >> {log}
case "$*" in
  *{fails}*) echo "Traceback" >&2; echo "KeyError: not there" >&2; exit 1;;
esac
"""
SCORE = """#!/bin/sh
printf 'hyp.txt\\tSegment 0\\tscore: 0.5\\nhyp.txt\\tSegment 1\\tscore: 0.7\\nhyp.txt\\tscore: 0.6\\n'
"""


def environment(folder: Path, fails: str = "nothing-fails") -> tuple[Path, Path]:
    """An environment whose Python writes down what it is called with."""
    log, programs = folder / "log", folder / "env" / "bin"
    programs.mkdir(parents=True)
    for name, text in (("python", PYTHON.format(log=log, fails=fails)), ("comet-score", SCORE)):
        (programs / name).write_text(text, encoding="utf-8")
        (programs / name).chmod(0o755)
    return programs.parent, log


def test_a_metric_is_installed_and_evaluate_takes_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, log = environment(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("src", "ref", "hyp"):
        Path(name).write_text("a dog\na cat\n", encoding="utf-8")
    installed = CliRunner().invoke(app, ["metric", "install", "comet", "--into", "env"])
    assert installed.exit_code == 0
    called = installed.stdout.strip()
    assert called.startswith(f"comet=!{folder}/bin/comet-score ")
    lines = log.read_text(encoding="utf-8").splitlines()
    assert all(package in lines[0] for package in ("pip install", *METRICS["comet"].packages))
    assert lines[1].endswith(METRICS["comet"].model)
    options = ["--src", "src", "--ref", "ref", "--hypotheses", "hyp", "--src-lang", "en", "--tgt-lang", "en"]
    evaluated = CliRunner().invoke(app, ["evaluate", *options, "--metric", called])
    assert evaluated.exit_code == 0
    assert re.search(r"comet\W.*0\.60", evaluated.stdout)


@pytest.mark.parametrize(
    ("fails", "fault"), [("pip", "packages were not installed"), ("download", "cannot be fetched")]
)
def test_what_cannot_be_had_is_named_in_one_line(tmp_path: Path, fails: str, fault: str) -> None:
    folder, _ = environment(tmp_path, fails)
    with pytest.raises(DragomanError, match=f"{fault}.*KeyError: not there") as raised:
        install("comet", folder)
    assert raised.value.code == Error.EXTERNAL_FAILED


def test_a_folder_of_something_else_and_another_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(DragomanError, match="holds something else"):
        install("comet", tmp_path)
    with pytest.raises(DragomanError, match="no metric comte to install"):
        install("comte", tmp_path / "new")
