"""Text from standard input or a file, and text to standard output or a file."""

import contextlib
import gzip
import io
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from dragoman.errors import Error, writing
from dragoman.progress import say
from dragoman.runs import atomic_io
from dragoman.text.lines import LiveInput, lines_in, read_lines


class TextInput(NamedTuple):
    """Lines, and a function that says whether the next one has to be waited for."""

    lines: Iterator[str]
    waiting: Callable[[], bool] = lambda: False
    is_typed: bool = False


def text_input(path: Path | None) -> TextInput:
    """The lines of a file or of standard input."""
    if path is not None:
        return TextInput(read_lines(path, may_be_empty=True))
    if sys.stdin is None:
        raise Error.CANNOT_READ("standard input is closed", "name a file with -i")
    if is_typed := sys.stdin.isatty():
        say("type or paste text, a line at a time; Ctrl-D ends")
    live = LiveInput(sys.stdin.fileno())
    return TextInput(lines_in(cast(BinaryIO, live), "standard input"), live.waiting, is_typed)


def check_not_the_same(input: Path | None, output: Path | None) -> None:
    """Raises DragomanError where the output would take the place of the text that is read."""
    if input is not None and output is not None and output.is_file() and input.exists() and input.samefile(output):
        raise Error.SAME_FILE(
            "is the text that is read (-i), and would be lost", "name another file with -o", file=output
        )


@contextlib.contextmanager
def text_output(path: Path | None) -> Iterator[Any]:
    """A function that writes text: to stdout as UTF-8 with LF, or to a file that appears only when it is complete.

    Where it does not get so far, what was written is kept beside it. A file called `.gz` is written as that.
    """
    if path is None or _is_stdout(path):
        if sys.stdout is None:
            raise Error.CANNOT_WRITE("standard output is closed", "name a file with -o")
        out = open(sys.stdout.fileno(), "w", encoding="utf-8", newline="\n", closefd=False)  # noqa: SIM115

        is_file = stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)

        def write(text: str) -> None:
            out.write(text)
            if not is_file:  # whoever reads it may wait for this very line
                out.flush()

        try:
            yield write
            out.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Error.CANNOT_WRITE(f"standard output cannot be written: {error.strerror}") from error
        return
    if path.exists() and not path.is_file():  # a pipe or a device: to be written to, not replaced
        with writing(path), path.open("w", encoding="utf-8", newline="\n") as file:
            yield file.write
        return
    path = path.resolve() if path.is_symlink() else path  # a link stays, and what it leads to is written
    partial = path.with_name(path.name + ".partial")
    written = False
    try:
        with contextlib.ExitStack() as opened:
            raw: Any = opened.enter_context(partial.open("wb"))
            if path.exists():
                shutil.copymode(path, partial)
            if path.suffix == ".gz":  # without name and time: the same text is the same bytes
                raw = opened.enter_context(gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0))
            file = opened.enter_context(io.TextIOWrapper(raw, encoding="utf-8", newline="\n"))

            def write_file(text: str) -> None:
                nonlocal written
                written = True
                file.write(text)

            yield write_file
        atomic_io.publish(partial, path)
    except OSError as error:
        raise Error.CANNOT_WRITE(f"cannot be written: {error.strerror}", file=path) from error
    finally:
        if partial.exists():
            if written:
                say(f"what was written until then is kept in {partial}")
            else:
                partial.unlink()


def _is_stdout(path: Path) -> bool:
    """True if it is another name of what stdout leads to (`/dev/stdout`), which must not be replaced by a new file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError, AttributeError):  # no such file yet; stdout closed, or no file at all
        return False
