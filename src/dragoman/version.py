"""The version of Dragoman, and the folders that come with it."""

import subprocess
from functools import cache
from pathlib import Path

__version__ = "0.1.0"


def folder_of(name: str) -> Path:
    """A folder of the repository, `recipes` or `docs`: of the checkout, or its copy in the package (setup.py)."""
    package = Path(__file__).resolve().parent
    checkout = package.parents[1]
    return (checkout if (checkout / "setup.py").is_file() else package) / name


@cache
def commit() -> str | None:
    """The commit of the checkout that this code runs from, `-dirty` where files were changed; None where it was
    installed from a package.
    """
    here = Path(__file__).resolve().parent
    if not (here.parents[1] / ".git").exists():
        return None
    try:
        command = ["git", "-C", str(here), "describe", "--always", "--dirty", "--exclude", "*"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
