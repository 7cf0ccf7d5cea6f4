"""The cores that this process may use: fewer than the machine has in a container, or under `taskset`."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

CGROUP = Path("/sys/fs/cgroup")
"""Where Linux shows the limits of a container."""
MEMBERSHIP = Path("/proc/self/cgroup")


def usable_cores() -> int:
    """Cores that the process may run on, and no more than its containers' share of time has whole cores.

    A share (`docker run --cpus 2`, a limit of Kubernetes) hides no core. Threads on more cores than that use the share
    up early, and then all of them wait for the rest of each tenth of a second.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([cores, *map(int, _shares())]))


def _shares() -> Iterator[float]:
    """The cores' worth of time that each control group around this process has, of those with a limit."""
    try:
        lines = MEMBERSHIP.read_text(encoding="utf-8").splitlines()
    except OSError:  # not on Linux
        return
    for line in lines:
        _, kinds, place = line.split(":", 2)
        if kinds and "cpu" not in kinds.split(","):
            continue
        for group in (PurePosixPath(place), *PurePosixPath(place).parents):
            with contextlib.suppress(OSError, ValueError):  # "max" is no limit; a container does not see all groups
                yield _share(CGROUP / (kinds and "cpu") / group.relative_to("/"), is_first_version=bool(kinds))


def _share(folder: Path, *, is_first_version: bool) -> float:
    """Raises OSError or ValueError where there is no limit."""
    if is_first_version:
        limit, period = (
            int((folder / f"cpu.cfs_{name}_us").read_text(encoding="ascii")) for name in ("quota", "period")
        )
    else:
        limit, period = map(int, (folder / "cpu.max").read_text(encoding="ascii").split())
    if limit <= 0:
        raise ValueError("no limit")
    return limit / period
