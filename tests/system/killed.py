"""Not a test itself: the command line, killed without warning at a chosen moment.

    python killed.py MOMENT ARGUMENT ...

MOMENT is JSON: {"in": "save", "count": 2, "operation": 5} kills at that operation of the second save,
{"in": "validate" or "epoch", "count": 1, "delay": 0.05} so many seconds after the first validation or epoch of this
process begins, {"in": "test"} after the tests begin, {"in": "end"} between the last save and the end of the log,
{"in": "step", "count": 7} in its seventh step. {"in": "full", "count": 2} kills nothing: from the
second save on no file may grow beyond `limit` bytes; {"in": "fill", "count": 2, "file": PATH} fills the disk of that
file then. {"fault": NAME} makes the program worse first.
"""

import contextlib
import json
import os
import resource
import signal
import sys
import threading
from typing import Any

if __name__ == "__main__":  # the processes that encode the corpus import this file too, and need none of these
    import torch

    from dragoman.cli import main as cli
    from dragoman.data import encode
    from dragoman.runs import atomic_io, checkpoint
    from dragoman.tasks.translation.job import TranslationJob
    from dragoman.tasks.translation.task import TranslationTask
    from dragoman.training import ema as averaging
    from dragoman.training import loop, optim, step


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_later(delay: float) -> None:
    timer = threading.Timer(delay, kill)
    timer.daemon = True
    timer.start()


def wrap(owner: Any, name: str, before: Any) -> None:
    original = getattr(owner, name)

    def call(*arguments: Any, **keywords: Any) -> Any:
        before(*arguments)
        return original(*arguments, **keywords)

    setattr(owner, name, call)


def fill(path: str) -> None:
    with contextlib.suppress(OSError), open(path, "wb", buffering=0) as file:
        for size in (2**16, 2**10, 1):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)) == size:
                    pass


class Countdown:
    def __init__(self, count: int) -> None:
        self.left = count

    def __call__(self) -> bool:
        self.left -= 1
        return self.left == 0


def arm(moment: dict[str, Any]) -> None:
    """Have this process killed at the moment."""
    reached = Countdown(moment.get("count", 1))
    match moment["in"]:
        case "save":

            def saving(*_: Any) -> None:
                if reached():
                    operation = Countdown(moment["operation"])
                    for name in ("make_directory", "write_text", "write_tensors", "sync", "rename", "remove"):
                        wrap(atomic_io, name, lambda *_: kill() if operation() else None)

            wrap(checkpoint, "save", saving)
        case "validate":
            wrap(TranslationTask, "validate", lambda *_: kill_later(moment["delay"]) if reached() else None)
        case "epoch":

            def micro_batch(task: Any, step: int, number: int) -> None:
                if number == 0 and task.position(step)[1] == 0 and reached():
                    kill_later(moment["delay"])

            wrap(TranslationTask, "micro_batch", micro_batch)
        case "end":
            wrap(loop.Trainer, "end", lambda *_: kill())
        case "test":
            wrap(TranslationJob, "test", lambda *_: kill_later(moment["delay"]))
        case "full":
            limits = moment["limit"], resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            wrap(
                checkpoint, "save", lambda *_: resource.setrlimit(resource.RLIMIT_FSIZE, limits) if reached() else None
            )
        case "fill":
            wrap(checkpoint, "save", lambda *_: fill(moment["file"]) if reached() else None)
        case "step":
            wrap(step, "seed_for", lambda *_: kill() if reached() else None)


def _random_numbers_go_on(seed: int, step: int, micro_batch: int) -> None:
    """The fault of random numbers that are not keyed: they go on from wherever the process is."""


def _optimizer_starts_anew(*_: Any) -> None:
    """The fault of an optimizer whose moments are not restored."""


FAULTS = {
    "random numbers": lambda: setattr(step, "seed_for", _random_numbers_go_on),
    "optimizer": lambda: setattr(optim, "load_state_tensors", _optimizer_starts_anew),
    "average": lambda: setattr(averaging.EmaConfig, "build", _forgetful_average),
}


def _forgetful_average(config: Any, model: Any, run_dir: Any) -> Any:
    averager = averaging.EmaAverager(model, config.decay)
    averager.load = lambda tensors: None  # type: ignore[method-assign]
    return averager


if __name__ == "__main__":
    torch.set_num_threads(1)
    encode.CHUNK_PAIRS, encode.CHUNKS_ALONE = 200, 1  # so that a small corpus is encoded by processes, too
    moment = json.loads(sys.argv[1])
    if "fault" in moment:
        FAULTS[moment["fault"]]()
    if "in" in moment:
        arm(moment)
    sys.argv = ["dragoman", *sys.argv[2:]]
    cli.main()
