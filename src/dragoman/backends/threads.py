"""The way in which PyTorch's threads wait for each other, chosen before PyTorch is loaded."""

import os
import time
from pathlib import Path

from dragoman.cores import usable_cores

LOADAVG = Path("/proc/loadavg")
BUSY_CHECKS, INTERVAL_S = 5, 0.002


def wait_passively_if_busy() -> None:
    """Let PyTorch's threads sleep while they wait for each other, if another program needs a core.

    Threads that spin are faster on a free machine. On a busy one they take the core from the thread that they wait for
    (benchmarks/results.md). Sums do not depend on it. A value of `OMP_WAIT_POLICY` that is set already is kept.
    """
    cores = usable_cores()
    if cores > 1 and cores + other_busy_threads() > (os.cpu_count() or 1):
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def other_busy_threads() -> int:
    """Threads of this machine beside the one that asks which run or are ready to, at each of a few looks.

    0 where the system does not say.
    """
    counts = []
    for _ in range(BUSY_CHECKS):
        try:
            running = LOADAVG.read_text(encoding="ascii").split()[3].partition("/")[0]
            counts.append(int(running) - 1)
        except (OSError, IndexError, ValueError):
            return 0
        time.sleep(INTERVAL_S)
    return max(0, min(counts))
