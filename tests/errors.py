"""What tests ask of an error: its code, and the names in it. Whole wordings stand in golden/messages.json alone."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dragoman.errors import DragomanError, Error


@contextmanager
def raises_error(code: Error, *names: str) -> Iterator[pytest.ExceptionInfo[DragomanError]]:
    """Hold a block to an error of this code, in one line, that has each of the `names`.

    A name is a place (`corpus.de`, `corpus.de:3` with its line), a setting or an option: no words that may change.
    """
    with pytest.raises(DragomanError) as caught:
        yield caught
    error = caught.value
    assert error.code is code, error
    assert "\n" not in str(error)
    place = f"{error.file}:{error.line}"
    for name in names:
        assert re.search(rf"(?<!\w){re.escape(name)}(?!\w)", str(error)), error
        assert not re.search(r":\d+$", name) or place.endswith(name), error
