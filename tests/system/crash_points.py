"""Not a test itself: writes a checkpoint and drops an older one, and is ended at one operation on the disk.

    python crash_points.py RUN [FAULT]

prints one JSON line for each point at which a child process was ended: [operation, "before" or "after", what a run
finds then: "old", "new" or what is wrong]. With FAULT, the name of a seeded fault, the program is made worse first.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import torch

from dragoman.errors import DragomanError
from dragoman.runs import atomic_io, checkpoint

OPERATIONS = ("make_directory", "write_text", "write_tensors", "sync", "rename", "remove")


def save(run: Path, step: int) -> None:
    groups = {name: {"weight": torch.full((40,), float(step))} for name in ("model", "optimizer", "averaged")}
    checkpoint.save(run, step, groups, {"step": step, "score": float(step), "loss": 1.0})
    checkpoint.prune(run, keep_last=1, keep_best=1)


def end_at(number: int, when: str) -> list[str]:
    """From now on end the process at operation `number`; the names of the operations so far."""
    names: list[str] = []

    def wrap(name: str) -> None:
        original = getattr(atomic_io, name)

        def operation(*arguments: object) -> None:
            names.append(name)
            if len(names) - 1 == number and when == "before":
                os._exit(9)
            original(*arguments)
            if len(names) - 1 == number:
                os._exit(9)

        setattr(atomic_io, name, operation)

    for name in OPERATIONS:
        wrap(name)
    return names


def found(run: Path) -> str:
    """Which checkpoint a run goes on from, once it is known to be whole."""
    try:
        path = checkpoint.newest(run)
        if path is None:
            return "nothing is left"
        state = checkpoint.load_state(path)
        values = {
            float(checkpoint.load_group(path, group)["weight"][7]) for group in ("model", "optimizer", "averaged")
        }
    except (DragomanError, KeyError) as error:
        return str(error)
    if values != {float(state["step"])}:
        return f"a mixture: {values}"
    save(run, 3)  # and it can go on
    return {1: "old", 2: "new"}[state["step"]]


def forget_the_manifest() -> None:
    """A seeded fault: what a manifest says is not looked at, and the directory has its name from the start."""
    checkpoint.verify = lambda path: None
    checkpoint._NAME = __import__("re").compile(r"step-(\d{8,})(?:\.tmp)?")


FAULTS = {"forget_the_manifest": forget_the_manifest}


def main(run: Path, fault: str | None) -> None:
    if fault:
        FAULTS[fault]()
    save(run / "before", 1)
    names = end_at(-1, "after")
    shutil.copytree(run / "before", run / "whole")
    save(run / "whole", 2)
    for number, name in enumerate(list(names)):
        for when in ("before", "after"):
            shutil.copytree(run / "before", copy := run / f"{number}-{when}")
            child = os.fork()
            if child == 0:
                end_at(number, when)
                save(copy, 2)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 9, "the child was to be ended"
            print(json.dumps([name, when, found(copy)]), flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
