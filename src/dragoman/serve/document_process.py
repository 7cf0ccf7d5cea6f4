"""A document that a process of its own reads and writes, which can be killed, and has limits of time and memory.

The server (`DocumentProcess`) starts `python -m dragoman.serve.document_process` for each document, in which formats
run and no model is; texts come to the server, translations go back, as lines of JSON. The process is started anew, not
forked: nothing of the server is in it, and no system forbids it. Where a limit is not known (of memory on macOS, all
of them on Windows), the server sees how much memory the process has, and the document's deadline is left.
"""

import contextlib
import ctypes
import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, Any, NamedTuple

import psutil

from dragoman.cancellation import check, idle
from dragoman.errors import DragomanError, Error
from dragoman.formats.base import Code, Item, Limit, Options, Tags, Unit, plain
from dragoman.formats.document import Document, TranslateUnits

with contextlib.suppress(ImportError):  # not on Windows
    import resource

LOOK_SECONDS = 0.1
"""Seconds between two looks at whether a document is still wanted."""
NICENESS = 10
"""Translating goes before reading files."""
MEMORY = "needs more memory than a document may have"
SAMPLE_CHARS = 5000
"""Characters of a document that its language is told from."""


class Bounds(NamedTuple):
    """The most that the process of a document may take."""

    cpu_seconds: int = 120
    memory_bytes: int = 2 * 2**30
    result_bytes: int = 2**30


class DocumentProcess:
    """A document in a process of its own, which ends with the `with` block."""

    def __init__(self, source: Path, result: Path, options: Options, bounds: Bounds) -> None:
        self.source, self.result, self.options, self.bounds = source, result, options, bounds

    def __enter__(self) -> "DocumentProcess":
        """Start the process. Raises DragomanError where the system starts none."""
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-P", "-m", __name__]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **environment}
            )
        except OSError as error:
            raise Error.PROCESS_FAILED("cannot be read now", "try again later") from error
        self._reader = ThreadPoolExecutor(1, "answers")
        self._send([str(self.source), str(self.result), asdict(self.options), self.bounds])
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.shutdown()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # what was not sent
                assert pipe is not None
                pipe.close()

    def sample(self) -> str:
        """The beginning of its text. Raises DragomanError for a file that cannot be read, as all of these do."""
        return str(self._ask("sample")["sample"])

    def sizes(self, languages: tuple[str, str]) -> tuple[int, int]:
        """The number of its texts and of their characters, when it is read as a text of these languages."""
        answer = self._ask("sizes", languages)
        return int(answer["texts"]), int(answer["characters"])

    def translate(self, translate: TranslateUnits) -> None:
        """Write the file with translations in the place of its texts."""
        answer = self._ask("translate")
        while "units" in answer:
            units = [_unit(*values) for values in answer["units"]]
            answer = self._ask("translated", list(translate(units)))

    def _ask(self, *question: Any) -> dict[str, Any]:
        """The answer to a question. Raises what `check` raises, and DragomanError for what keeps it from being read."""
        self._send(question)
        stream = self._process.stdout
        assert stream is not None
        reading = self._reader.submit(stream.readline)
        with idle():
            while not wait([reading], LOOK_SECONDS).done:
                check()
                with contextlib.suppress(psutil.Error):
                    if psutil.Process(self._process.pid).memory_info().rss > self.bounds.memory_bytes:
                        self._process.kill()
        if not (line := reading.result()).endswith(b"\n"):
            raise self._end()
        answer: dict[str, Any] = json.loads(line)
        if "code" in answer:
            raise DragomanError.of_dict(answer)
        return answer

    def _send(self, message: Any) -> None:
        with contextlib.suppress(OSError):  # it has ended: the answer says why
            assert self._process.stdin is not None
            self._process.stdin.write(_line(message))
            self._process.stdin.flush()

    def _end(self) -> DragomanError:
        """The reason why the process has ended by itself."""
        code, bounds, file = self._process.wait(), self.bounds, self.source
        if code == -getattr(signal, "SIGXCPU", 0):
            return Error.TOO_LARGE(
                f"takes more than {bounds.cpu_seconds} s to read and write", "split it, or simplify it", file=file
            )
        return Error.TOO_LARGE(MEMORY, "split it", file=file)


def _unit(items: Sequence[Any], where: str, kept: str, limit: Sequence[Any] | None) -> Unit:
    """A unit as far as it can be translated: its place in the file stays with the process."""
    return Unit(_items(items), 0, 0, plain, where, kept=kept, limit=None if limit is None else Limit(*limit))


def _items(items: Sequence[Any]) -> tuple[Item, ...]:
    return tuple(item if isinstance(item, str) else Code(*item) for item in items)


def _line(message: Any) -> bytes:
    """A message, in which sets are lists."""
    return json.dumps(message, default=lambda one: str(one) if isinstance(one, Path) else sorted(one)).encode() + b"\n"


# -- in the process ------------------------------------------------------------------------------------------------


def main() -> None:
    """Do what the server asks for, until it asks no more."""
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever a library prints is no answer
    source, result, options, bounds = json.loads(questions.readline())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's
    _limit(Bounds(*bounds))
    try:
        _Work(Path(source), Path(result), _options(options), questions, answers).run()
    except DragomanError as error:
        _answer(answers, error.as_dict())
    except MemoryError:
        _answer(answers, Error.TOO_LARGE(MEMORY, "split it", file=source).as_dict())
    except RecursionError:
        _answer(answers, Error.TOO_LARGE("has too many levels", "simplify it", file=source).as_dict())
    except OSError as error:
        _answer(answers, _not_written(error, source).as_dict())


def _not_written(error: OSError, source: str) -> DragomanError:
    """The error of a system that does not write a translation."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Error.NO_SPACE("the server has no room for it now", "try again later", file=source)
    if error.errno == errno.EFBIG:
        return Error.TOO_LARGE("its translation is too large", "split it", file=source)
    return Error.CANNOT_WRITE(error.strerror or "cannot be written", file=source)


def _options(values: dict[str, Any]) -> Options:
    """Options that came as JSON."""
    tags: dict[str, Any] = {
        name: frozenset(value) if isinstance(value, list) else value for name, value in values["tags"].items()
    }
    made = {
        "languages": tuple(values["languages"]), "columns": tuple(values["columns"]),
        "asides": frozenset(values["asides"]), "its": values["its"] and Path(values["its"]), "tags": Tags(**tags),
    }  # fmt: skip
    return Options(**values | made)


def _limit(bounds: Bounds) -> None:
    """Take no more than the bounds from now on, as far as the system has limits, and end with the server."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # of Linux: PR_SET_PDEATHSIG
    with contextlib.suppress(AttributeError):  # not on Windows
        os.nice(NICENESS)
    for kind, most in (
        ("CORE", 0), ("CPU", bounds.cpu_seconds), ("AS", bounds.memory_bytes), ("FSIZE", bounds.result_bytes),
    ):  # fmt: skip
        with contextlib.suppress(NameError, OSError, ValueError):  # lower already, or not known there
            limit = getattr(resource, f"RLIMIT_{kind}")
            resource.setrlimit(limit, (most, resource.getrlimit(limit)[1]))


def _answer(answers: IO[bytes], answer: dict[str, Any]) -> None:
    answers.write(_line(answer))
    answers.flush()


class _Work:
    """The answers to the server's questions about a document."""

    def __init__(self, source: Path, result: Path, options: Options, questions: IO[bytes], answers: IO[bytes]) -> None:
        self.source, self.result, self.options = source, result, options
        self.questions, self.answers = questions, answers
        self.document: Document | None = None

    def run(self) -> None:
        known: dict[str, Callable[..., dict[str, Any]]] = {
            "sample": self.sample,
            "sizes": self.sizes,
            "translate": self.translate,
        }
        for line in self.questions:
            question, *given = json.loads(line)
            _answer(self.answers, known[question](*given))

    def sample(self) -> dict[str, Any]:
        text = ""
        for unit in Document.load(self.source, self.options).texts():
            text += _text(unit)[:SAMPLE_CHARS] + "\n"
            if len(text) > SAMPLE_CHARS:
                break
        return {"sample": text}

    def sizes(self, languages: Sequence[str]) -> dict[str, Any]:
        src, tgt = languages
        self.document = Document.load(self.source, replace(self.options, languages=(src, tgt)))
        texts = characters = 0
        for unit in self.document.texts():
            texts, characters = texts + 1, characters + len(_text(unit))
        return {"texts": texts, "characters": characters}

    def translate(self) -> dict[str, Any]:
        assert self.document is not None
        data = self.document.translated(self._translated)
        self.result.write_bytes(data)
        return {}

    def _translated(self, units: Sequence[Unit]) -> Iterable[tuple[Item, ...] | None]:
        """The server's translation of units."""
        _answer(self.answers, {"units": [(unit.items, unit.where, unit.kept, unit.limit) for unit in units]})
        line = self.questions.readline()
        if not line:
            raise SystemExit  # the server has gone
        _, translations = json.loads(line)
        return [None if items is None else _items(items) for items in translations]


def _text(unit: Unit) -> str:
    return "".join(item for item in unit.items if isinstance(item, str))


if __name__ == "__main__":
    main()
