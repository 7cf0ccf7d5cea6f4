"""The version of Dragoman, and the folders that come with it."""

import subprocess
from functools import cache
from pathlib import Path

__version__ = "0.1.0"
PACKAGE = Path(__file__).resolve().parent


def folder_of(name: str) -> Path:
    """A folder of the repository, `recipes` or `docs`: of the checkout, or its copy in the package (setup.py)."""
    return (_checkout() or PACKAGE) / name


def _checkout() -> Path | None:
    """The repository that this code runs from; None where it was installed from a package.

    A package may be installed in a repository of others, which has a setup.py and a `.git` too.
    """
    root = PACKAGE.parents[1]
    return root if (root / "setup.py").is_file() and not (PACKAGE / "recipes").is_dir() else None


@cache
def commit() -> str | None:
    """The commit of the checkout that this code runs from, `-dirty` where files were changed; None where it was
    installed from a package.
    """
    checkout = _checkout()
    if checkout is None or not (checkout / ".git").exists():
        return None
    try:
        command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--exclude", "*"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
