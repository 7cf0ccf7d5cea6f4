"""A learner's code in a process of its own, which is ended where it takes too long or too much memory.

The process is a copy of this one (fork) on Linux, which takes milliseconds, and a new one (spawn) elsewhere, where
a copy is not safe.
"""

import contextlib
import multiprocessing
import os
import re
import signal
import sys
import sysconfig
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any, TypeVar

import psutil
import torch

import dragoman
from dragoman.errors import DragomanError, Error
from dragoman.learn.language import translated

with contextlib.suppress(ImportError):  # not on Windows
    import resource

SECONDS = 60.0
"""The time that a piece of a learner's code has, on any machine (`allow` for more)."""
MEMORY = 4 * 2**30
"""Bytes that it may take beside those of Dragoman; Linux alone has such a limit."""
START = "fork" if sys.platform == "linux" else "spawn"
ASK_SECONDS = 3.0
"""The time that a process which is too late has to say where it is."""
Value = TypeVar("Value")


def limited(work: Callable[..., Value], *arguments: Any, seconds: float = SECONDS) -> Value:
    """The value of `work(*arguments)`, computed in another process. Its DragomanError or NotImplementedError is raised
    here too; any other exception comes as a DragomanError with its `reason`.

    `work` is a function of a module, and arguments and value are plain (what can be pickled): the learner's code is
    read in that process, by `work`. Ctrl-C ends both. Raises DragomanError where `seconds` go by without an answer
    (counted from when the process has started), and where the process ends without one.
    """
    context: Any = multiprocessing.get_context(START)
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(ours, theirs, work, arguments))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads; those of libraries sleep
        process.start()
    theirs.close()
    try:
        return _answer(ours, seconds)
    except EOFError as error:
        process.join()
        raise Error.WRONG_ANSWER(
            translated("your code has ended Python (exit code {code})").format(code=process.exitcode),
            translated("look for exit(), for memory that grows, or for a call that never stops calling itself"),
        ) from error
    finally:
        process.kill()
        process.join()
        process.close()
        ours.close()


def allow(seconds: float) -> None:
    """Called by `work`: give it at least so many seconds from now on, as the sound code needed so long here."""
    if _pipe is not None:
        _send(_pipe, "seconds", seconds)


def reason(error: BaseException) -> str:
    """An exception of a learner's code in one line."""
    if _is_of_memory(error):
        words = translated("it takes more than {size} GB of memory: look for a shape, or a list, that grows")
        return words.format(size=f"{MEMORY / 2**30:.2g}")
    if isinstance(error, RecursionError):
        return translated("it calls itself without end")
    return f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")


def _is_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or bool(re.search("can't allocate|not enough memory", str(error)))


def _answer(pipe: Connection, seconds: float) -> Any:
    deadline = None  # the process starts
    while pipe.poll(None if deadline is None else max(0.0, deadline - time.monotonic())):
        kind, value = pipe.recv()
        if kind == "value":
            return value
        if kind == "error":
            raise value
        seconds = max(seconds, value)
        deadline = time.monotonic() + seconds
    place = ""
    with contextlib.suppress(OSError, EOFError):
        pipe.send("where")
        if pipe.poll(ASK_SECONDS):
            _, place = pipe.recv()
    words = translated("your function did not come back within {seconds} s")
    hint = translated("look for a loop that never ends")
    raise Error.WRONG_ANSWER(words.format(seconds=f"{seconds:.0f}") + place, hint)


# -- in the process ------------------------------------------------------------------------------------------------

_pipe: Connection | None = None
_sending = threading.Lock()


def _work(others: Connection, pipe: Connection, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    global _pipe
    others.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the other process's
    torch.set_num_threads(1)  # the threads of a copied pool are not copied
    with contextlib.suppress(NameError, OSError, ValueError):
        if sys.platform == "linux":
            most = psutil.Process().memory_info().vms + MEMORY
            resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))
    _pipe, ident = pipe, threading.get_ident()
    threading.Thread(target=_say_where, args=(pipe, ident), daemon=True).start()
    allow(0.0)
    try:
        _send(pipe, "value", work(*arguments))
    except Exception as error:
        known = isinstance(error, DragomanError | NotImplementedError)  # others may not be told to another process
        _send(pipe, "error", error if known else Error.WRONG_ANSWER(reason(error)))


def _send(pipe: Connection, kind: str, value: Any) -> None:
    with _sending:
        pipe.send((kind, value))


def _say_where(pipe: Connection, ident: int) -> None:
    """Answer the other process with the place of a thread, and end where that process has ended."""
    try:
        pipe.recv()
        frame = next((one for one in _frames(sys._current_frames()[ident]) if _is_learners(one)), None)
        words = translated(" (it is in line {line} of {file})")
        _send(pipe, "place", words.format(line=frame.f_lineno, file=frame.f_code.co_filename) if frame else "")
    except (EOFError, OSError):
        os._exit(1)


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame and those that called it."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_learners(frame: FrameType) -> bool:
    known = (
        *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
        os.path.dirname(dragoman.__file__),
    )
    return not frame.f_code.co_filename.startswith(("<", *known))
