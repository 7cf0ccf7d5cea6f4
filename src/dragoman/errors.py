"""The one exception for mistakes that a person can mend."""

from collections.abc import Iterator
from contextlib import contextmanager


class DragomanError(ValueError):
    """Bad input, a bad setting, a damaged file.

    The message is one line: what is wrong, in which file and line where there is one, and what to do about it.
    The command line prints it to stderr and exits with code 2; anything else that is raised is a bug of ours.
    """


class SaidElsewhere(DragomanError):
    """A mistake that another process, which trains with this one, has told already."""


@contextmanager
def writing(path: object, remedy: str = "free space or mend permissions") -> Iterator[None]:
    """Tell a full disk or a missing permission as what could not be written, `path`, and what to do."""
    try:
        yield
    except OSError as error:
        raise DragomanError(f"{path}: cannot be written: {error.strerror or error}; {remedy}") from error
