"""The one place that says which version this is."""

import subprocess
from functools import cache
from pathlib import Path

__version__ = "0.1.0"


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
