"""A learner's code that loops, grows or ends Python gives one line, in time."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman.errors import DragomanError
from dragoman.learn import limited as limits
from dragoman.learn.exercise import Wrong
from dragoman.learn.limited import allow, limited, reason


def squares(number: int) -> list[int]:
    return [one * one for one in range(number)]


def wrong() -> None:
    raise Wrong("it is too short")


def no_end() -> None:
    while True:
        pass


def slow(seconds: float) -> str:
    allow(10 * seconds)
    time.sleep(3 * seconds)
    return "slow"


def product() -> float:
    return float((torch.ones(500, 500) @ torch.ones(500, 500)).sum())


def hungry() -> None:
    torch.ones(2**32, 4)


def greedy() -> None:
    rows = []
    while True:
        rows.append(bytearray(2**28))


def leaves() -> None:
    os._exit(3)


class Odd(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def odd() -> None:
    raise Odd(1, 2)


def test_a_value_and_an_exception_come_back() -> None:
    assert limited(squares, 4) == [0, 1, 4, 9]
    with pytest.raises(Wrong, match="it is too short"):
        limited(wrong)
    with pytest.raises(DragomanError, match="Odd: 1 and 2"):
        limited(odd)  # another process could not make it anew


def test_products_do_not_hang_where_threads_were_at_work_before() -> None:
    assert product() == limited(product) == 500**3


@pytest.mark.system
def test_a_new_process_does_what_a_copy_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "START", "spawn")
    assert limited(squares, 3, seconds=30) == [0, 1, 4]
    with pytest.raises(Wrong, match="it is too short"):
        limited(wrong, seconds=30)


def test_an_endless_loop_ends_with_its_line() -> None:
    line = no_end.__code__.co_firstlineno + 2
    pattern = (
        rf"did not come back within 0 s \(it is in line ({line - 1}|{line}) of .*test_limited.py\): look for a loop"
    )
    with pytest.raises(DragomanError, match=pattern):
        limited(no_end, seconds=0.2)


def test_slow_code_has_the_time_that_it_is_allowed() -> None:
    assert limited(slow, 0.2, seconds=0.3) == "slow"


@pytest.mark.skipif(sys.platform != "linux", reason="no limit of memory here")
@pytest.mark.parametrize("work", [hungry, greedy])
def test_huge_memory_is_said(work: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MEMORY", 2**29)
    with pytest.raises(DragomanError, match=r"it takes more than 0\.5 GB of memory"):
        limited(work, seconds=30)


def test_code_that_ends_python_is_said() -> None:
    with pytest.raises(DragomanError, match=r"your code has ended Python \(exit code 3\)"):
        limited(leaves)


def test_reasons_are_one_line() -> None:
    assert reason(ValueError("a\n b")) == "ValueError: a b"
    assert reason(RecursionError()) == "it calls itself without end"
    assert reason(KeyError()) == "KeyError"


@pytest.mark.system
@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_ctrl_c_ends_both(tmp_path: Path) -> None:
    script = tmp_path / "loop.py"
    script.write_text(
        "import os\nfrom dragoman.learn.limited import limited\n\n\ndef loop():\n"
        "    print(os.getpid(), flush=True)\n    while True:\n        pass\n\n\n"
        "if __name__ == '__main__':\n    limited(loop)\n",
        encoding="utf-8",
    )
    process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    process.send_signal(2)
    _, errors = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in errors
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
