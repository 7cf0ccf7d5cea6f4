"""Bulk translation in several processes of this machine, which have one model in memory together.

Python runs one thread at a time, and each sentence needs some Python: threads alone do not fill many cores
(docs/many-cores.md). The model is loaded and packed once. Each process is a copy of this one (`fork`): the system keeps
a page of memory once until one of them writes to it, and nobody writes to weights.
"""

import gc
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable
from multiprocessing import connection

import torch

from dragoman.cores import usable_cores
from dragoman.data.encode import end_with_parent
from dragoman.errors import DragomanError, Error
from dragoman.pipeline.bulk import WAIT_S, Blocks, Translate, Work, finish, run_worker
from dragoman.progress import Progress, only_errors, say

WARM_UP_LINES = 32
"""Lines that are translated before the processes part: all that the first sentences make is made once."""


def run_processes(
    work: Work, load: Callable[[], Translate], processes: int, shard: tuple[int, int] | None = None
) -> None:
    """Translate blocks in so many processes until no block is left; `load` gives the function that translates.

    Each has its share of the cores, if OMP_NUM_THREADS does not say otherwise. When one is killed, the others do its
    work. Raises DragomanError where the process cannot be copied, where all are killed, and what one of them raises.
    """
    if "fork" not in multiprocessing.get_all_start_methods():
        raise Error.UNSUPPORTED("`processes`: this system copies no process", "start the command as often")
    threads = torch.get_num_threads()
    each = threads if "OMP_NUM_THREADS" in os.environ else max(1, usable_cores() // processes)
    torch.set_num_threads(1)  # threads of OpenMP do not live on in a copy, which would wait for them for ever
    try:
        translate = load()
        translate(1, Blocks(work.source, WARM_UP_LINES)[0])
        if torch.cuda.is_initialized():
            raise Error.UNSUPPORTED("`processes`: on a GPU one process is enough", "leave it out")
        _translate_in(processes, work, translate, each, shard)
    finally:
        torch.set_num_threads(threads)
    finish(work)


def _translate_in(
    processes: int, work: Work, translate: Translate, threads: int, shard: tuple[int, int] | None
) -> None:
    """Start the processes and wait until all have ended. Raises DragomanError as `run_processes`."""
    context = multiprocessing.get_context("fork")
    failures, failed = context.Pipe(duplex=False)
    workers = [context.Process(target=_work, args=(work, translate, threads, shard, failed)) for _ in range(processes)]
    gc.collect()
    gc.freeze()  # the collector writes to each object that it looks at: it leaves these alone, in one copy of memory
    count, lines = len(work.left(shard or (0, 1))), work.manifest.block_lines
    try:
        with Progress(f"translating {work.source.name}", count * lines) as bar, warnings.catch_warnings():
            # Of any process with threads Python says that its copy may hang. NumPy prepares its own for that.
            warnings.simplefilter("ignore", DeprecationWarning)
            for worker in workers:
                worker.start()
            while alive := [worker.sentinel for worker in workers if worker.is_alive()]:
                connection.wait([*alive, failures], WAIT_S)
                if failures.poll():
                    raise DragomanError.of_dict(failures.recv())
                bar.advance((count - len(work.left(shard or (0, 1)))) * lines - bar.done)
    finally:
        gc.unfreeze()
        for worker in workers:
            worker.terminate()
            worker.join()
    for code in (worker.exitcode for worker in workers if worker.exitcode):
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        say(f"a process {how}; where memory ran out, use fewer `processes`")
    if work.left(shard or (0, 1)):
        raise Error.PROCESS_FAILED("blocks are left", "run the same command again", file=work.folder)


def _work(
    work: Work, translate: Translate, threads: int, shard: tuple[int, int] | None, failed: connection.Connection
) -> None:
    """The life of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the first one ends the others
    threading.Thread(target=end_with_parent, daemon=True).start()
    only_errors()
    torch.set_num_threads(threads)
    try:
        run_worker(work, translate, shard)
    except DragomanError as error:
        failed.send(error.as_dict())
        time.sleep(WAIT_S)  # the first one reads it
