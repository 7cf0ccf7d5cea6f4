"""Environments of metrics whose libraries do not fit beside ours: a virtual environment of Python for each.

A metric is called there by its own command (`external_metrics.py`); nothing of it is loaded here.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dragoman.errors import Error, show
from dragoman.progress import say


class ExternalMetric(NamedTuple):
    """A metric that is installed in an environment of its own."""

    packages: tuple[str, ...]
    model: str
    """The model that it scores with, by its usual name."""
    fetch: str
    """A program that fetches a model, whose name is its argument, and fails where it cannot be had."""
    command: str
    """Its command on the files {src}, {hyp} and {ref}; {bin}: the programs of its environment, {model}: its model."""


METRICS = {
    "comet": ExternalMetric(
        # pkg_resources, which its libraries import, is no part of setuptools from 81 on.
        ("unbabel-comet>=2.2.7,<3", "setuptools<81"),
        "Unbabel/wmt22-comet-da",
        "import sys; from comet import download_model; download_model(sys.argv[1])",
        "{bin}/comet-score -s {src} -t {hyp} -r {ref} --model {model}",
    ),
}


def install(name: str, environment: Path, model: str | None = None) -> str:
    """Install a metric in an environment of its own, fetch its model, and return what `evaluate --metric` takes.

    Where both are there already, nothing is done twice. Raises DragomanError for a metric that is not known, a folder
    that holds something else, packages that are not had, and a model that is not had.
    """
    if name not in METRICS:
        raise Error.UNKNOWN_NAME(f"there is no metric {name} to install", f"one of {', '.join(METRICS)}")
    metric = METRICS[name]
    model = model or metric.model
    python = environment.absolute() / "bin" / "python"
    if not python.exists():
        if environment.exists() and any(environment.iterdir()):
            raise Error.WRONG_OPTION("holds something else than an environment", "name a new folder", file=environment)
        say(f"an environment of Python in {show(environment)}")
        _run([sys.executable, "-m", "venv", str(environment)], "no environment was made")
    say(f"installing {', '.join(metric.packages)}: some gigabytes, some minutes")
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, *metric.packages], "the packages were not installed")
    say(f"fetching the model {model}")
    _run([str(python), "-c", metric.fetch, model], f"the model {model} cannot be fetched: is the network there?")
    called = metric.command.replace("{bin}", str(python.parent)).replace("{model}", model)
    return f"{name}=!{called}"


def _run(command: Sequence[str], fault: str) -> None:
    """Run a program of the environment. Raises DragomanError with the last line that it printed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "it printed nothing").splitlines()[-1]
        raise Error.EXTERNAL_FAILED(f"{fault} ({last[:200]})")
