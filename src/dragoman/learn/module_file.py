"""A learner's own module, loaded from its file."""

import codecs
import linecache
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from dragoman.errors import Error
from dragoman.learn.language import message
from dragoman.learn.limited import reason


def load(path: Path) -> ModuleType:
    """The module in a file, whose folder it may import from.

    Raises DragomanError, with the line, where the file is not there or does not run.
    """
    if not path.is_file():
        raise Error.MISSING_FILE(message(" is not there"), file=path)
    source = _source(path)
    linecache.checkcache(str(path))
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    before, folder = sys.modules.get(path.stem), str(path.resolve().parent)
    sys.path.insert(0, folder)
    sys.modules[path.stem] = module  # a dataclass looks its module up
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)
    except SystemExit as error:
        hint = message('put what is to be run behind `if __name__ == "__main__":`')
        raise Error.WRONG_ANSWER(message("it ends the program while it is loaded"), hint, file=path) from error
    except Exception as error:
        line, text, hint = line_in(error, path), reason(error), None
        if isinstance(error, SyntaxError):
            line, text = line or error.lineno, f"{type(error).__name__}: {error.msg}"
        if isinstance(error, ModuleNotFoundError):
            hint = message("install it, or do without: no exercise needs more than Python and PyTorch")
        raise Error.WRONG_ANSWER(text, hint, file=path, line=line) from error
    finally:
        sys.path.remove(folder)
        if before is None:
            del sys.modules[path.stem]
        else:
            sys.modules[path.stem] = before
    return module


def _source(path: Path) -> bytes:
    """A file of Python. A mark at its beginning, Windows's ends of lines and `# coding:` are Python's own business."""
    data = path.read_bytes()
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise Error.NOT_UTF8(message("is UTF-16"), message("save it as UTF-8"), file=path)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        if b"coding" not in data[:200]:
            line = data[: error.start].count(b"\n") + 1
            words = message("is not UTF-8: {why}", why=error.reason)
            raise Error.NOT_UTF8(words, message("save it as UTF-8"), file=path, line=line) from error
    return data


def line_in(error: BaseException, path: Path) -> int | None:
    """The line of a file at which an error was raised: the innermost one of that file."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return lines[-1] if lines else None


def names_of(source: str, names: dict[str, Any]) -> dict[str, Any]:
    """`names`, and what a piece of source defines among them."""
    exec(source, names)
    return names
