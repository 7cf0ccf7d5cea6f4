"""One owner of a run directory: refused while it lives, taken over once it is dead."""

import errno
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.errors import raises_error

from dragoman.errors import Error
from dragoman.runs.lock import LOCK, held, locked

HOLD = """
import sys, time
from pathlib import Path
from dragoman.runs.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def refused(run_dir: Path) -> str:
    """What another process that wants the directory is told."""
    code = (
        HOLD.replace("time.sleep(60)", "")
        .replace("with locked", "from dragoman.errors import DragomanError\ntry:\n  with locked")
        .replace('    print("held", flush=True)', '    print("held")\nexcept DragomanError as error:\n  print(error)')
    )
    done = subprocess.run([sys.executable, "-c", code, str(run_dir)], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def test_a_lock_says_who_has_it_and_leaves_nothing(tmp_path: Path) -> None:
    run_dir = tmp_path / "runs" / "one"
    with locked(run_dir):
        owner = json.loads((run_dir / LOCK).read_text())
        assert owner["pid"] == os.getpid()
        with locked(tmp_path / "runs" / ".." / "runs" / "one"):  # by its owner, once more
            assert refused(run_dir).startswith(f"{run_dir}: process {os.getpid()} on ")
        assert re.search(r" \(for \d+:\d\d now\) works in it: wait for it, or end it$", refused(run_dir))
    assert list(tmp_path.iterdir()) == []
    with locked(run_dir):
        (run_dir / "config.yaml").touch()
    assert [path.name for path in run_dir.iterdir()] == ["config.yaml"]


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with raises_error(Error.IN_USE), locked(tmp_path):
            pass
        other.send_signal(signal.SIGKILL)
    assert (tmp_path / LOCK).exists()
    with locked(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()
    assert not (tmp_path / LOCK).exists()


def test_a_lock_that_says_nothing_is_respected_all_the_same(tmp_path: Path) -> None:
    with locked(tmp_path):
        (tmp_path / LOCK).write_text("")
        assert refused(tmp_path) == f"{tmp_path}: another process works in it: wait for it, or end it"


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with raises_error(Error.CANNOT_WRITE, "run"), \
            locked(tmp_path / "file" / "run"):  # fmt: skip
        pass


def test_a_file_system_without_locks_is_worked_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """tox-dev/filelock 6 and 77, nipy/nipype 1370: some NFS say "No locks available"."""

    def flock(*arguments: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    with locked(tmp_path / "run"):
        assert (tmp_path / "run" / LOCK).exists()
    path = tmp_path / "blocks.lock"
    with held(path, wait=False) as mine, held(path, wait=False) as another:
        assert (mine, another) == (True, False)
    with held(path) as mine:
        assert mine
