"""A learner's own module, loaded from its file."""

import linecache
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from dragoman.errors import Error


def load(path: Path) -> ModuleType:
    """The module in a file, whose folder it may import from.

    Raises DragomanError, with the line, where the file is not there or does not run.
    """
    if not path.is_file():
        raise Error.MISSING_FILE(" is not there", file=path)
    linecache.checkcache(str(path))
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    before, folder = sys.modules.get(path.stem), str(path.resolve().parent)
    sys.path.insert(0, folder)
    sys.modules[path.stem] = module  # a dataclass looks its module up
    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    except SyntaxError as error:
        raise Error.WRONG_ANSWER(f"{type(error).__name__}: {error.msg}", file=path, line=error.lineno) from error
    except SystemExit as error:
        hint = 'put what is to be run behind `if __name__ == "__main__":`'
        raise Error.WRONG_ANSWER("it ends the program while it is loaded", hint, file=path) from error
    except Exception as error:
        line = line_in(error, path)
        raise Error.WRONG_ANSWER(f"{type(error).__name__}: {error}", file=path, line=line) from error
    finally:
        sys.path.remove(folder)
        if before is None:
            del sys.modules[path.stem]
        else:
            sys.modules[path.stem] = before
    return module


def line_in(error: BaseException, path: Path) -> int | None:
    """The line of a file at which an error was raised: the innermost one of that file."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return lines[-1] if lines else None


def names_of(source: str, names: dict[str, Any]) -> dict[str, Any]:
    """`names`, and what a piece of source defines among them."""
    exec(source, names)
    return names
