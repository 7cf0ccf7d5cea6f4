"""A pytest plugin, not a test: makes Dragoman worse in one way, named by the environment variable DRAGOMAN_FAULT.

test_negative_controls.py runs tests with it that must then fail: a test that sees no fault proves nothing.
"""

import math
import os
from collections.abc import Callable
from typing import Any

import yaml
from torch import Tensor

from dragoman import config
from dragoman.decoding import beam, constrained
from dragoman.doctor import shifts
from dragoman.inference import search_translator
from dragoman.runs import atomic_io, checkpoint, lock
from dragoman.runs import log as runlog
from dragoman.text import lines
from dragoman.text.sources import files
from dragoman.training import ema as averaging
from dragoman.training import optim, step


def unkeyed_random_numbers() -> None:
    step.seed_for = lambda *_: None


def optimizer_not_restored() -> None:
    optim.load_state_tensors = lambda *_: None


def average_not_restored() -> None:
    averaging.EmaAverager.load = lambda *_: None  # type: ignore[method-assign]


def schedule_not_restored() -> None:
    from dragoman.training.schedules import PlateauSchedule

    PlateauSchedule.load_state_dict = lambda *_: None  # type: ignore[method-assign]


def log_not_rewound() -> None:
    runlog.RunLog.rewind = lambda self, step: 0.0  # type: ignore[method-assign]


def checkpoints_not_verified() -> None:
    checkpoint.verify = lambda path: None


def files_not_written_aside() -> None:
    atomic_io.replace_text = atomic_io.write_text


def no_lock() -> None:
    lock._own = lambda path: lock.FileLock(path)


def losses_not_looked_at() -> None:
    step.not_finite = lambda *_: None


def zip_hides_a_missing_line() -> None:
    files.itertools.zip_longest = zip  # type: ignore[attr-defined, misc, assignment]


def lines_end_anywhere() -> None:
    read = lines.lines_in
    lines.lines_in = lambda stream, name: (part for line in read(stream, name) for part in line.splitlines() or [""])


def yaml_that_executes() -> None:
    config._Loader.__bases__ = (yaml.UnsafeLoader,)


def shifts_not_looked_for() -> None:
    shifts.Shifts.finish = lambda self: []  # type: ignore[method-assign]


def masks_of_neighbours() -> None:
    honest = search_translator.collate_src

    def collate_src(*arguments: Any) -> tuple[Tensor, Tensor]:
        src, mask = honest(*arguments)
        return src, mask.any(dim=0, keepdim=True).expand_as(mask).clone()

    search_translator.collate_src = collate_src


def search_stops_too_soon() -> None:
    beam.cannot_be_overtaken = lambda scores, beams, longest: scores[:, -1] > -math.inf


def terms_left_out() -> None:
    constrained.ConstraintState.complete = property(lambda self: True)  # type: ignore[method-assign, assignment]


FAULTS: dict[str, Callable[[], None]] = {
    fault.__name__: fault
    for fault in (
        *(unkeyed_random_numbers, optimizer_not_restored, average_not_restored, schedule_not_restored, log_not_rewound),
        *(checkpoints_not_verified, files_not_written_aside, no_lock, losses_not_looked_at),
        *(zip_hides_a_missing_line, lines_end_anywhere, yaml_that_executes, shifts_not_looked_for),
        *(masks_of_neighbours, search_stops_too_soon, terms_left_out),
    )
}


def pytest_configure() -> None:
    if name := os.environ.get("DRAGOMAN_FAULT"):
        FAULTS[name]()
