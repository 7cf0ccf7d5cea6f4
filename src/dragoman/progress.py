"""Progress of long work: a bar with an ETA on a terminal or below a notebook's cell, else a plain line now and then.

>>> with Progress("counting", total=3) as bar:  # doctest: +SKIP
...     for _ in range(3):
...         bar.advance(loss="4.20")
"""

import functools
import html
import re
import sys
import threading
import time
from importlib import import_module
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from dragoman.errors import Error

PLAIN_INTERVAL_S = 10.0
CELL_INTERVAL_S = 0.5


_silent = False


def only_errors() -> None:
    """Let this process say nothing but `complain`: another one that does the same work speaks for both."""
    global _silent
    _silent = True


def say(text: str) -> None:
    """Print one line to stderr, where everything that is not a result belongs."""
    if not _silent:
        complain(text)


@functools.cache
def say_once(text: str) -> None:
    """Say what is met again and again, such as each time that a corpus is read."""
    say(text)


def complain(text: str) -> None:
    """Print why this process ends, whether others speak or not."""
    print(text, file=sys.stderr, flush=True)


def in_notebook() -> bool:
    """True in a cell of Jupyter, which shows pages and is no terminal."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return hasattr(shell, "kernel") and threading.current_thread() is threading.main_thread()


def clock(seconds: float) -> str:
    """Seconds as a short clock text.

    >>> clock(71.4), clock(3700)
    ('1:11', '1:01:40')
    """
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02d}:{left:02d}" if hours else f"{minutes}:{left:02d}"


def size_text(size: float) -> str:
    """Bytes in a unit that a person reads at a glance.

    >>> size_text(1_400_000), size_text(3.2e9), size_text(999)
    ('1.3 MiB', '3.0 GiB', '999 bytes')
    """
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{size:,.0f} bytes"


def seconds_of(text: str) -> float:
    """A time as people write it, in seconds. Raises DragomanError for anything else.

    >>> seconds_of("30min"), seconds_of("1.5 h"), seconds_of("90s")
    (1800.0, 5400.0, 90.0)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|sec|m|min|h|hours?|d|days?)\s*", text)
    if not match:
        raise Error.WRONG_OPTION(f"{text!r} is no time", "write it as 90s, 30min, 2h or 1.5h")
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[match[2][0]]


class Progress:
    """A context manager that reports how far a loop of `total` units is (`total=None`: unknown).

    `advance(n, **fields)` counts n units and shows the fields (`loss="3.1"`); `say(text)` prints a line that does
    not tear the bar. `shown=False` counts in silence, for work that talks with a person itself.
    """

    def __init__(
        self, title: str, total: int | None, *, done: int = 0, interval_s: float = PLAIN_INTERVAL_S, shown: bool = True
    ) -> None:
        self.title, self.total, self.done, self.started_at = title, total, done, done
        self.interval_s, self.shown = interval_s, shown and not _silent
        self.fields: dict[str, str] = {}
        self.bar: RichProgress | None = None
        self.cell: Any = None
        """The bar below a notebook's cell, of work that takes longer than a moment."""

    def __enter__(self) -> "Progress":
        self.start_time = self.last_time = time.monotonic()
        self.is_in_notebook = self.shown and in_notebook()
        self.interval_s = CELL_INTERVAL_S if self.is_in_notebook else self.interval_s
        if self.shown and sys.stderr.isatty() and not self.is_in_notebook:
            self.bar = RichProgress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[note]}"),
                TimeElapsedColumn(),
                TextColumn("ETA"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self.task = self.bar.add_task(self.title, total=self.total, completed=self.done, note="")
            self.bar.start()
        return self

    def advance(self, n: int = 1, **fields: str) -> None:
        self.done += n
        self.fields.update(fields)
        if self.bar is not None:
            self.bar.update(self.task, total=self.total, completed=self.done, note="  ".join(self._notes()))
        elif self.shown and time.monotonic() - self.last_time >= self.interval_s:
            self.last_time = time.monotonic()
            if self.cell is not None:
                self.cell.update(self._html(), raw=True)
            elif self.is_in_notebook:
                self.cell = import_module("IPython.display").display(self._html(), raw=True, display_id=True)
            else:
                say(self._line())

    def say(self, text: str) -> None:
        if self.bar is not None:
            self.bar.console.print(text, markup=False, highlight=False)
        else:
            say(text)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()
        if self.cell is not None:
            self.cell.update(self._html(), raw=True)

    def _html(self) -> dict[str, str]:
        """The bar for a notebook, and its line for what shows text alone."""
        line, size = self._line(), f' value="{self.done}" max="{self.total}"' if self.total else ""
        return {"text/plain": line, "text/html": f"<progress{size}></progress> {html.escape(line)}"}

    def _notes(self) -> list[str]:
        return [f"{name} {value}" for name, value in self.fields.items()]

    def _line(self) -> str:
        elapsed = time.monotonic() - self.start_time
        title = f"{self.title}: {self.done:,}" + (f"/{self.total:,}" if self.total else "")
        parts = [title, *self._notes(), f"elapsed {clock(elapsed)}"]
        if self.total and self.done > self.started_at:
            left = elapsed * (self.total - self.done) / (self.done - self.started_at)
            parts.append(f"ETA {clock(left)}")
        return "  ".join(parts)
