"""Work counted in steps: what a busy machine does not change, where a clock would."""

import gc
import sys
from collections.abc import Callable
from typing import Any


def steps_of(function: Callable[[], object]) -> int:
    """The lines of Python that a function runs, and the calls that these make, of functions written in C too."""
    count = 0

    def see(_: object, event: str, __: Any) -> Any:
        nonlocal count
        count += event in ("line", "c_call")
        return see

    before = sys.gettrace(), sys.getprofile()
    gc.disable()  # finalizers of what other tests have left would count
    sys.settrace(see)
    sys.setprofile(see)
    try:
        function()
    finally:
        sys.setprofile(before[1])
        sys.settrace(before[0])
        gc.enable()
    return count
