"""Dragoman under other versions of Python, of PyTorch and of all its dependencies: `make test-versions`.

    python tests/versions.py [NAME ...] [--tests dependencies] [--workers 4]

    3.11-lowest          the lowest version that pyproject.toml allows of every dependency, and the oldest Python
    3.11-torch           the lowest PyTorch that it allows, and the newest version of everything else
    3.11, 3.12, ...      each Python with the newest version of everything

Each has an environment of its own under .venv-versions/ (or $DRAGOMAN_VERSIONS), made by uv, which is taken from PyPI
where it is not on PATH. A Python that is neither on PATH, nor in pyenv, nor one of uv's is told and left out. The quick
tests run in each, or those named in SELECTIONS. A table is the last that is printed; the exit code is 1 if tests failed
or an environment could not be made. uv's own variables choose where packages come from: UV_TORCH_BACKEND=cpu takes the
small build of PyTorch.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENTS = Path(os.environ.get("DRAGOMAN_VERSIONS", ROOT / ".venv-versions"))
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
NAMES = (f"{PYTHONS[0]}-lowest", f"{PYTHONS[0]}-torch", *PYTHONS)
SELECTIONS = {
    "quick": ["tests"],
    "dependencies": [
        "tests/golden/test_golden.py",
        *(
            f"tests/unit/test_{name}.py"
            for name in (
                "bulk", "charsets", "checkpoint", "cli_output", "config", "connections", "daily", "device",
                "generate", "html_tree", "inspect_attention", "inspect_cli", "inspect_masks", "kernels",
                "language_codes", "language_id", "lock", "logs", "loss", "markup_tables", "metrics",
                "nearest_neighbours", "optim", "overrides", "own_tokenizers", "pages", "plots", "plurals",
                "public_interface", "python", "recipes", "report", "row_order", "run_log", "sacrebleu_command",
                "sentencepiece_model", "server", "settings_reference", "significance", "store", "tables",
                "text_documents", "tokenizers", "transformer", "twins", "words",
            )
        ),
    ],
}  # fmt: skip
"""Tests by a name. Those of `dependencies` use every package that pyproject.toml asks for."""
ABOUT = "import platform, torch, numpy; print(platform.python_version(), torch.__version__, numpy.__version__)"


class Missing(Exception):
    """Something that an environment needs is not here."""


def uv() -> str:
    """The program uv: the one on PATH, or one of our own."""
    if program := shutil.which("uv"):
        return program
    folder = ENVIRONMENTS / "uv"
    if not (folder / "bin" / "uv").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "uv"], check=True)
    return str(folder / "bin" / "uv")


def interpreter(version: str) -> str:
    """A Python X.Y that runs: on PATH, of pyenv, or one that uv has installed before."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    managed = [uv(), "python", "find", "--managed-python", "--no-python-downloads", version]
    for candidate in (
        shutil.which(f"python{version}"),
        *sorted(pyenv.glob(f"versions/{version}.*/bin/python")),
        subprocess.run(managed, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.strip(),
    ):
        code = "import sys, venv; print(*sys.version_info[:2], sep='.')"  # a shim of pyenv may lead to nothing
        if candidate and _output([str(candidate), "-c", code]) == version:
            return str(candidate)
    raise Missing(f"no Python {version} on PATH, in pyenv or of uv (`uv python install {version}`)")


def lowest_torch() -> str:
    """PyTorch at the lowest version that pyproject.toml allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bound = next(line for line in project["dependencies"] if line.startswith("torch>="))
    return bound.replace(">=", "==") + ".*"


def environment(name: str) -> str:
    """The interpreter of an environment, made anew, for packages move on."""
    version, _, kind = name.partition("-")
    folder = ENVIRONMENTS / name
    python = str(folder / "bin" / "python")
    subprocess.run([uv(), "venv", "--quiet", "--clear", "--python", interpreter(version), str(folder)], check=True)
    command = [uv(), "pip", "install", "--quiet", "--python", python, "-e", f"{ROOT}[dev]"]
    command += {"lowest": ["--resolution", "lowest-direct"], "torch": [lowest_torch()], "": []}[kind]
    if subprocess.run(command).returncode:
        raise Missing("its packages cannot be installed")
    return python


def tested(name: str, python: str, tests: list[str], workers: str) -> dict[str, int]:
    """Run tests; the counts of their last line: passed, failed, errors, skipped. All that they print is in a file."""
    log = ENVIRONMENTS / f"{name}.log"
    command = [python, "-m", "pytest", "-n", workers, "--dist", "worksteal", "-m", "not system and not slow", *tests]
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, cwd=ROOT)
    last = log.read_text(encoding="utf-8").rstrip().rpartition("\n")[2]
    counts = {word.rstrip("s"): int(number) for number, word in re.findall(r"(\d+) (\w+)", last)}
    if done.returncode and not counts.get("failed"):  # nothing was collected, or a worker died
        counts["error"] = max(1, counts.get("error", 0))
    return counts


def _output(command: list[str]) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--tests", choices=SELECTIONS, default="quick")
    parser.add_argument("--workers", default="auto", help="processes that test side by side")
    parser.add_argument("--keep", action="store_true", help="take an environment as it is, where there is one")
    arguments = parser.parse_args()
    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    rows, good = ["| environment | Python | PyTorch | NumPy | passed | failed | skipped | installed | tested |"], True
    rows.append("|---" * 9 + "|")
    for name in arguments.names or NAMES:
        started = time.monotonic()
        try:
            python = str(ENVIRONMENTS / name / "bin" / "python")
            if not (arguments.keep and Path(python).exists()):
                python = environment(name)
        except Missing as error:
            rows.append(f"| {name} | left out: {error} " + "|" * 8)
            good &= "no Python" in str(error)
            continue
        installed = time.monotonic()
        counts = tested(name, python, SELECTIONS[arguments.tests], arguments.workers)
        ended = time.monotonic()
        failed = counts.get("failed", 0) + counts.get("error", 0)
        good &= not failed
        cells = [
            name,
            *_output([python, "-c", ABOUT]).split(),
            counts.get("passed", 0),
            failed,
            counts.get("skipped", 0),
        ]
        cells += [f"{installed - started:.0f} s", f"{ended - installed:.0f} s"]
        rows.append("| " + " | ".join(map(str, cells)) + " |")
        print(rows[-1], flush=True)
    print("", *rows, sep="\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
