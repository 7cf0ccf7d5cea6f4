"""The log of a run: one JSON object a line in metrics.jsonl, the same scalars in TensorBoard and the like.

The JSON lines are the record from which reports and plots are made (the events and their fields stand in
docs/run-directory.md); the others are for watching (`loggers.py`).
"""

import contextlib
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from dragoman.errors import writing
from dragoman.runs import atomic_io
from dragoman.runs.events import METRICS, REPEATED, Event, parsed, place_of, read_events
from dragoman.runs.loggers import Loggers


class RunLog(contextlib.AbstractContextManager["RunLog", None]):
    """Appends events to `run_dir/metrics.jsonl` and shows their scalars by `loggers`.

    Every event is flushed, so a killed run loses at most the line that it was writing. A log that is opened again
    (a resumed run) goes on at the end; a line that was cut off is removed first, so that it stays valid JSON lines.
    """

    def __init__(self, run_dir: str | Path, loggers: Iterable[str] = ("tensorboard",)) -> None:
        run_dir = Path(run_dir)
        run_dir.mkdir(parents=True, exist_ok=True)
        self.path = run_dir / METRICS
        with writing(self.path):
            _mend(self.path)
            # Unbuffered: nothing is held back that a kill could lose, or that a full disk could refuse once more.
            self._file = self.path.open("ab", buffering=0)
        self._loggers = Loggers(run_dir, loggers)
        self.listeners: list[Callable[[str, Event], None]] = []
        """Called with each event; what they raise ends the run."""

    def rewind(self, step: int, rollbacks: int = 0) -> float:
        """Forget what was logged of steps after `step`, and of the stop there, for a run that goes on from there.

        `rollbacks`: the number of rollbacks so far. Their events stay, although they are of later steps.

        Returns the seconds of training until then.
        """

        def is_kept(event: Event) -> bool:
            last = rollbacks if event["event"] == "rollback" else step
            return event["event"] not in REPEATED or bool(place_of(event) <= last)

        kept = list(filter(is_kept, read_events(self.path)))
        seconds = max((float(event.get("elapsed_s") or 0.0) for event in kept if "step" in event), default=0.0)
        self._replace([event for event in kept if event["event"] != "end" and event.get("validated") is not False])
        self._loggers.first_step = step + 1
        return seconds

    def forget(self, kind: str) -> None:
        """Forget the events of a kind, which will be logged again."""
        self._replace([event for event in read_events(self.path) if event["event"] != kind])

    def _replace(self, events: list[Event]) -> None:
        lines = [json.dumps(event, ensure_ascii=False, allow_nan=False) + "\n" for event in events]
        with writing(self.path):
            self._file.close()  # Windows replaces no file that is open
            try:
                atomic_io.replace_text(self.path, "".join(lines))
            finally:
                self._file = self.path.open("ab", buffering=0)

    def event(self, kind: str, **fields: Any) -> None:
        """Log one event. `time` is added here; a number that is not finite becomes null, as JSON has no other word."""
        record = {"event": kind, "time": datetime.now(UTC).isoformat(timespec="seconds")}
        record |= to_jsonable_python(fields, inf_nan_mode="null", fallback=lambda number: number.item())  # of numpy
        line = (json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n").encode()
        with writing(self.path, "free space or mend permissions and run the same command again"):
            while line:
                line = line[self._file.write(line) :]
        self._loggers.show(kind, record)
        for listener in self.listeners:
            listener(kind, record)

    def close(self, failed: bool = False) -> None:
        self._file.close()
        self._loggers.close(failed)

    def __exit__(self, *raised: object) -> None:
        self.close(failed=raised[0] is not None)


class SilentLog(RunLog):
    """The log of a process that has nothing to log, as another one does."""

    def __init__(self) -> None: ...

    def rewind(self, step: int, rollbacks: int = 0) -> float:
        return 0.0

    def forget(self, kind: str) -> None: ...

    def event(self, kind: str, **fields: Any) -> None: ...

    def close(self, failed: bool = False) -> None: ...


def _mend(path: Path) -> None:
    """End a log on a whole line: complete what lacks only its line feed, cut off what is half an event."""
    if not path.exists():
        return
    data = path.read_bytes()
    tail = data[data.rfind(b"\n") + 1 :]
    if not tail:
        return
    with path.open("r+b") as file:
        if parsed(tail) is not None:
            file.seek(0, 2)
            file.write(b"\n")
        else:
            file.truncate(len(data) - len(tail))
