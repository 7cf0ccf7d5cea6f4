"""A save is ended at each operation, and the power fails at each: an old or a new checkpoint is there, whole."""

import itertools
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.system import crash_points

from dragoman.runs import atomic_io, checkpoint

SCRIPT = Path(__file__).parent / "crash_points.py"


def ended_everywhere(folder: Path, *fault: str) -> list[list[str]]:
    done = subprocess.run(
        [sys.executable, SCRIPT, folder, *fault], stdout=subprocess.PIPE, text=True, check=True, timeout=300
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_program_that_ends_within_a_save_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    found = ended_everywhere(tmp_path)
    assert {name for name, _, _ in found} == set(crash_points.OPERATIONS)
    assert [point for point in found if point[2] not in ("old", "new")] == []
    states = [state for _, _, state in found]
    assert states == sorted(states, reverse=True), "once the new one is there, it stays"
    assert {"old", "new"} == set(states)


def test_that_test_sees_a_manifest_that_is_forgotten(tmp_path: Path) -> None:
    found = ended_everywhere(tmp_path, "forget_the_manifest")
    assert [point for point in found if point[2] not in ("old", "new")]


# -- power loss ----------------------------------------------------------------------------------------------------


@dataclass
class Inode:
    """A file: what was written, and how much of it is certainly on the disk."""

    data: bytes
    synced: bool = False


@dataclass
class Disk:
    """What of a sequence of operations is on the disk after the power failed.

    Bytes are certain once the file was synced. Names (made, renamed, removed) are certain once any directory was
    synced after them, as a journal keeps their order; the others may or may not be there, so both are tried.
    """

    names: dict[Path, Inode] = field(default_factory=dict)
    certain: dict[Path, Inode] = field(default_factory=dict)

    @classmethod
    def holding(cls, folder: Path) -> "Disk":
        names = {path: Inode(path.read_bytes(), synced=True) for path in folder.rglob("*") if path.is_file()}
        return cls(names, dict(names))

    def apply(self, operation: str, path: Path, detail: Any) -> None:
        if operation == "write":
            self.names[path] = Inode(detail)
        elif operation == "sync" and path in self.names:
            self.names[path].synced = True
        elif operation == "sync":
            self.certain = dict(self.names)
        elif operation == "rename":
            moved = {name: inode for name, inode in self.names.items() if name.is_relative_to(path)}
            for name, inode in moved.items():
                del self.names[name]
                self.names[detail / name.relative_to(path) if name != path else detail] = inode
        elif operation == "remove":
            self.names = {name: inode for name, inode in self.names.items() if not name.is_relative_to(path)}

    def states(self) -> Iterator[dict[Path, bytes]]:
        """What may be found after the power comes back: path to content."""
        kept = (lambda data: b"", lambda data: data[: len(data) // 2], lambda data: data)
        for names, keep in itertools.product((self.names, self.certain), kept):
            yield {name: inode.data if inode.synced else keep(inode.data) for name, inode in names.items()}


def recorded(monkeypatch: pytest.MonkeyPatch, log: list[tuple[str, Path, Any]]) -> None:
    """Have the operations noted as they are carried out."""
    writes = {name: getattr(atomic_io, name) for name in ("write_text", "write_tensors")}
    others = {name: getattr(atomic_io, name) for name in ("sync", "rename", "remove")}

    def writing(name: str) -> Any:
        def operation(path: Path, what: Any) -> None:
            writes[name](path, what)
            log.append(("write", path, path.read_bytes()))

        return operation

    def other(name: str) -> Any:
        def operation(path: Path, to: Path | None = None) -> None:
            log.append((name, path, to))
            others[name](*(path, to) if to else (path,))

        return operation

    for name in writes:
        monkeypatch.setattr(atomic_io, name, writing(name))
    for name in others:
        monkeypatch.setattr(atomic_io, name, other(name))


def what_power_losses_leave(folder: Path, log: list[tuple[str, Path, Any]], before: Disk) -> list[str]:
    found = []
    for end in range(len(log) + 1):
        disk = Disk(dict(before.names), dict(before.certain))
        for operation in log[:end]:
            disk.apply(*operation)
        for state in disk.states():
            shutil.rmtree(folder)
            for path, data in state.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            found.append(crash_points.found(folder))
    return found


@pytest.mark.parametrize("fault", [None, "no sync of files", "no sync at all", "renamed before it is written"])
def test_a_power_loss_at_any_time_leaves_a_whole_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str | None
) -> None:
    run = tmp_path / "run"
    crash_points.save(run, 1)
    before, log = Disk.holding(run), list[tuple[str, Path, Any]]()
    with monkeypatch.context() as patch:
        if fault == "renamed before it is written":
            patch.setattr(checkpoint, "save", _renamed_first)
        recorded(patch, log)
        crash_points.save(run, 2)
    if fault == "no sync at all":
        log = [operation for operation in log if operation[0] != "sync"]
    elif fault == "no sync of files":
        log = [operation for operation in log if operation[0] != "sync" or not operation[1].suffix]
    found = what_power_losses_leave(run, log, before)
    bad = [what for what in found if what not in ("old", "new")]
    if fault is None:
        assert len(found) > 100
        assert bad == []
        assert set(found) == {"old", "new"}
    else:
        assert bad, "a fault that this test does not see"


def _renamed_first(run_dir: Path, step: int, groups: Any, state: Any) -> Path:
    """The fault of a program that writes into the place of the old checkpoint."""
    old = checkpoint.newest(run_dir)
    assert old is not None
    new = checkpoint.checkpoints_dir(run_dir) / f"step-{step:08d}"
    atomic_io.rename(old, new)
    for name, tensors in groups.items():
        atomic_io.write_tensors(new / f"{name}.safetensors", tensors)
        atomic_io.sync(new / f"{name}.safetensors")
    atomic_io.write_text(new / "state.json", atomic_io.to_json(state))
    atomic_io.sync(new / "state.json")
    return new
