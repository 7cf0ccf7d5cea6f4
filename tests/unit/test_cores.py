"""The cores that a process may use: affinity, and the share of time of a container in both versions of cgroups."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman import cores

# (lines of /proc/self/cgroup, {file below /sys/fs/cgroup: content}, cores of eight)
SHARES: dict[str, tuple[str, dict[str, str], int]] = {
    "none": ("0::/\n", {"cpu.max": "max 100000\n"}, 8),
    "no file": ("0::/\n", {}, 8),
    "version 2": ("0::/\n", {"cpu.max": "200000 100000\n"}, 2),
    "a share and a half": ("0::/\n", {"cpu.max": "150000 100000\n"}, 1),
    "less than one": ("0::/\n", {"cpu.max": "50000 100000\n"}, 1),
    "more than there are": ("0::/\n", {"cpu.max": "6400000 100000\n"}, 8),
    "a group around": ("0::/pod/box\n", {"pod/box/cpu.max": "max 100000\n", "pod/cpu.max": "300000 100000\n"}, 3),
    "seen from inside": ("0::/docker/12ab\n", {"cpu.max": "400000 100000\n"}, 4),
    "version 1": (
        "9:name=systemd:/\n4:memory:/x\n1:cpu,cpuacct:/box\n0::/\n",
        {"cpu/box/cpu.cfs_quota_us": "250000\n", "cpu/box/cpu.cfs_period_us": "100000\n"},
        2,
    ),
    "version 1 without a limit": (
        "1:cpu:/\n",
        {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"},
        8,
    ),
    "damaged": ("0::/\n", {"cpu.max": "?\n"}, 8),
}


@pytest.mark.parametrize("name", SHARES)
def test_a_containers_share_of_time(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    membership, files, count = SHARES[name]
    for path, content in files.items():
        (tmp_path / "fs" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "fs" / path).write_text(content, encoding="ascii")
    (tmp_path / "cgroup").write_text(membership, encoding="ascii")
    monkeypatch.setattr(cores, "CGROUP", tmp_path / "fs")
    monkeypatch.setattr(cores, "MEMBERSHIP", tmp_path / "cgroup")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    assert cores.usable_cores() == count


def test_a_system_without_containers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "MEMBERSHIP", tmp_path / "not there")
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert cores.usable_cores() == 3


@pytest.mark.parametrize(("asked", "count"), [(None, 1), ("2", 2)])
def test_pytorch_has_threads_for_the_share(asked: str | None, count: int, tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("100000 100000\n", encoding="ascii")
    (tmp_path / "cgroup").write_text("0::/\n", encoding="ascii")
    code = (
        f"from pathlib import Path; from dragoman import cores; cores.CGROUP = Path({str(tmp_path)!r}); "
        "cores.MEMBERSHIP = cores.CGROUP / 'cgroup'; import torch; "
        + ("" if asked else "torch.set_num_threads(2); ")
        + "import dragoman.device; print(torch.get_num_threads())"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    environment |= {"OMP_NUM_THREADS": asked} if asked else {}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert int(done.stdout) == count
