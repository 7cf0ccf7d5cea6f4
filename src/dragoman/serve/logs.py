"""Lines of a server's log. Texts, keys and queries are in none of them: an exception's message may hold a text, and so
only the places and the kinds of exceptions are written."""

import logging
import traceback
from types import TracebackType
from typing import Any

from dragoman.errors import DragomanError
from dragoman.serve.errors import SERVER_FAULTS


def traced(error: BaseException) -> str:
    """An exception, and those that led to it, as places in the source and kinds, without their messages."""
    lines: list[str] = []
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        message = f": {link}" if isinstance(link, DragomanError) and link.code in SERVER_FAULTS else ""
        kind = f"{type(link).__module__}.{type(link).__name__}"
        lines[:0] = [*traceback.format_tb(link.__traceback__), f"{kind}{message}\n"]
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return f"Traceback (messages are left out):\n{''.join(lines)}".rstrip()


class Formatter(logging.Formatter):
    """Lines of other libraries: the first line of a message, and tracebacks without messages."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{record.levelname.lower()}: {record.getMessage().partition(chr(10))[0]}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line

    def formatException(
        self,
        ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None],
    ) -> str:
        return traced(ei[1]) if ei[1] is not None else ""


CONFIGURATION: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"lines": {"()": Formatter}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines", "stream": "ext://sys.stderr"}},
    "loggers": {
        name: {"handlers": ["stderr"], "level": "WARNING", "propagate": False} for name in ("uvicorn", "asyncio")
    },
}
"""Of uvicorn's and asyncio's loggers."""
