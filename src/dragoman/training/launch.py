"""`dragoman train --processes N`: the same command in N processes of this machine, by torchrun's own agent."""

import logging
import os
import signal
import sys
import uuid
from collections.abc import Sequence

from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from dragoman.cores import usable_cores
from dragoman.errors import Error
from dragoman.progress import complain

STOPPED_EXIT_CODE = 130


def without_options(arguments: Sequence[str], options: Sequence[str]) -> list[str]:
    """A command line less some options and their values.

    >>> without_options(["train", "r.yaml", "--processes", "2", "--max-restarts=3", "seed=2"],
    ...                 ["--processes", "--max-restarts"])
    ['train', 'r.yaml', 'seed=2']
    """
    kept, skip = [], False
    for argument in arguments:
        if skip:
            skip = False
        elif argument in options:
            skip = True
        elif argument.partition("=")[0] not in options:
            kept.append(argument)
    return kept


def launch(arguments: Sequence[str], processes: int, max_restarts: int = 0) -> int:
    """Run `dragoman ARGUMENTS` in so many processes that train together; the exit code.

    When one of them dies, all are ended, and started again up to `max_restarts` times. Ctrl-C and SIGTERM reach all:
    they finish the step and save. Each computes on its share of the cores, if OMP_NUM_THREADS does not say otherwise.
    """
    logging.getLogger("torch.distributed").setLevel(logging.CRITICAL)  # what there is to say is said below
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # nor need the stacks of lost connections be seen
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, usable_cores() // processes)))
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=max_restarts,
        monitor_interval=0.1,
    )
    try:
        elastic_launch(config, sys.executable)("-m", "dragoman", *arguments)
    except SignalException:
        return STOPPED_EXIT_CODE
    except ChildFailedError as error:
        codes = {rank: failure.exitcode for rank, failure in error.failures.items()}
        if 2 in codes.values():  # one of them has said why
            return 2
        rank, code = next(iter(codes.items()))
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        complain(f"dragoman: process {rank} of {processes} {how}; the same command goes on from the last checkpoint")
        return 1
    return 0


def refuse_processes(processes: int) -> None:
    """Raises DragomanError where processes are asked for inside of some."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise Error.CONFLICT(f"`processes` {processes}: torchrun has started the processes already", "leave it out")
