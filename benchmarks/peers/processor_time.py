"""The clock of trainings that are compared: processor time, so that other work on the machine makes none of them worse.

It imports nothing but the standard library, so that scripts in any environment can start it first.
"""

import os
import time


def start_clock(threads: int) -> None:
    """Make `time.monotonic` the processor time of this process, by the number of its threads; and set that number.

    To be called before a module is imported that keeps `time.monotonic` or counts threads.
    """
    os.environ.update(OMP_WAIT_POLICY="PASSIVE", OMP_NUM_THREADS=str(threads))
    time.monotonic = lambda: time.process_time() / threads
