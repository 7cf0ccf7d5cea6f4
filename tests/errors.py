"""What tests ask of an error: its code and its place. Whole wordings stand in golden/messages.json alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.errors import DragomanError, Error


@contextmanager
def raises_error(
    code: Error, file: str | Path | None = None, line: int | None = None
) -> Iterator[pytest.ExceptionInfo[DragomanError]]:
    """Hold a block to an error of this code; in this file (its name, or its path from some folder on) and line.

    A file or line that is not given is not looked at.
    """
    with pytest.raises(DragomanError) as caught:
        yield caught
    error = caught.value
    assert error.code is code, error
    assert "\n" not in str(error)
    if file is not None:
        wanted = Path(file).parts
        assert Path(error.file or "").parts[-len(wanted) :] == wanted, error
    if line is not None:
        assert error.line == line, error
