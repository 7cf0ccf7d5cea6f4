"""Work counted in steps: what a busy machine does not change, where a clock would."""

import gc
import sys
from collections.abc import Callable
from typing import Any


def calls_of(function: Callable[[], object]) -> int:
    """The calls that a function makes, of Python's and of C's functions."""
    return _events(function, ("call", "c_call"))


def steps_of(function: Callable[[], object]) -> int:
    """The lines of Python that a function runs, and its calls: a loop without a call counts too."""
    return _events(function, ("line", "c_call"))


def _events(function: Callable[[], object], counted: tuple[str, str]) -> int:
    count = 0

    def see(_: object, event: str, __: Any) -> Any:
        nonlocal count
        count += event in counted
        return see

    before = sys.gettrace(), sys.getprofile()
    gc.disable()  # finalizers of what other tests have left would count
    if "line" in counted:
        sys.settrace(see)
    sys.setprofile(see)
    try:
        function()
    finally:
        sys.setprofile(before[1])
        sys.settrace(before[0])
        gc.enable()
    return count
