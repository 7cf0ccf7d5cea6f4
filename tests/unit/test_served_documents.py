"""Documents of a server: a process of their own that has limits, turns of clients, and bounds of the disk."""

import contextlib
import dataclasses
import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.cancellation import checked_by
from dragoman.errors import DragomanError, Error
from dragoman.formats.base import Code, Item, Limit, Options, Tags, Unit
from dragoman.pipeline.document import Report
from dragoman.serve import documents
from dragoman.serve.document_process import Bounds, DocumentProcess, _line, _options
from dragoman.serve.documents import DocumentTask, DocumentTasks, NoRoom, TooMany
from dragoman.serve.metrics import Metrics
from dragoman.serve.processor import ProcessorTime
from dragoman.serve.settings import Limits

WAIT = 60.0


def loud(units: Sequence[Unit]) -> list[tuple[Item, ...] | None]:
    return [
        None if unit.kept else tuple(item.upper() if isinstance(item, str) else item for item in unit.items)
        for unit in units
    ]


def refusal(source: Path, bounds: Bounds, result: Path | None = None) -> DragomanError:
    try:
        with DocumentProcess(source, result or source.with_suffix(".out"), Options(), bounds) as document:
            document.sizes(("de", "en"))
            document.translate(loud)
    except DragomanError as error:
        return error
    raise AssertionError("it is not refused")


def test_a_document_is_read_and_written_by_another_process(tmp_path: Path) -> None:
    source, result = tmp_path / "a.html", tmp_path / "b.html"
    source.write_text('<p>Hallo <b>Welt</b> &amp; <img alt="Bild"></p><pre>x = a</pre>', encoding="utf-8")
    units: list[Unit] = []

    def translate(some: Sequence[Unit]) -> list[tuple[Item, ...] | None]:
        units.extend(some)
        return loud(some)

    with DocumentProcess(source, result, Options(), Bounds()) as document:
        assert "Hallo Welt &" in document.sample()
        texts, characters = document.sizes(("de", "en"))
        document.translate(translate)
    assert (texts, characters) == (len(units), sum(len(i) for unit in units for i in unit.items if isinstance(i, str)))
    assert result.read_text(encoding="utf-8") == ('<p>HALLO <b>WELT</b> &amp; <img alt="BILD"></p><pre>x = a</pre>')
    assert units[-1].kept
    assert any(isinstance(item, Code) and item.raw == "<b>" for item in units[1].items)


@pytest.mark.system
def test_a_process_takes_no_more_than_its_bounds(tmp_path: Path) -> None:
    long, short = tmp_path / "long.txt", tmp_path / "short.txt"
    long.write_text("hallo\n" * 1_000_000)
    short.write_text("hallo\n" * 1000)
    slow = refusal(long, Bounds(cpu_seconds=1))
    assert (slow.code, slow.file, slow.hint) == (Error.TOO_LARGE, str(long), "split it, or simplify it")
    assert "memory" in str(refusal(long, Bounds(memory_bytes=300 * 2**20)))
    assert "translation is too large" in str(refusal(short, Bounds(result_bytes=100)))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a disk that is always full")
def test_a_full_disk_is_an_error_of_one_document(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hallo\n")
    assert refusal(tmp_path / "a.txt", Bounds(), Path("/dev/full")).code == Error.NO_SPACE


def test_an_error_has_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": "b",\n"c" 1}')
    error = refusal(tmp_path / "a.json", Bounds())
    assert (error.code, error.file, error.line) == (Error.BAD_SYNTAX, str(tmp_path / "a.json"), 2)


def test_a_document_that_nobody_wants_is_read_no_further(tmp_path: Path) -> None:
    """Its process waits for a pipe that nobody writes to: it would read for ever."""
    os.mkfifo(tmp_path / "a.txt")

    class Gone(Exception):
        pass

    looks = iter([None, None, Gone()])

    def check() -> None:
        if (gone := next(looks)) is not None:
            raise gone

    document = DocumentProcess(tmp_path / "a.txt", tmp_path / "b.txt", Options(), Bounds())
    with pytest.raises(Gone), checked_by(check), document:
        document.sample()
    assert document._process.poll() is not None


def test_messages_are_as_before() -> None:
    tags = Tags(ignored=frozenset({"a", "b"}), outline=False)
    options = Options("x", ("de", "en"), columns=("1",), its=Path("/a"), tags=tags, asides=frozenset({"notes"}))
    assert _options(json.loads(_line(dataclasses.asdict(options)))) == options
    assert Limit(*json.loads(_line(Limit(3, "bytes")))) == Limit(3, "bytes")


class Service:
    """A service whose documents are done when they are let go."""

    def __init__(self) -> None:
        self.scheduler: Any = SimpleNamespace(is_stopped=False, processor=ProcessorTime())
        self.begun: list[str] = []
        self.changed = threading.Condition()
        self.free = 0

    def translate_document(self, handle: Any, src: str, tgt: str, document: Any, **_: Any) -> Report:
        with self.changed:
            self.begun.append(document.source.read_text())
            self.changed.notify_all()
            while not (self.free or handle.gone):
                self.changed.wait(0.02)
            self.free -= 1
        handle.check()
        document.result.write_text("x" * len(document.source.read_text()))
        return Report()

    def let_go(self, begun: int, free: int) -> None:
        """Wait until so many documents have begun, and let some go on."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.begun) >= begun, WAIT)
            self.free += free
            self.changed.notify_all()


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., tuple[DocumentTasks, Service]]]:
    monkeypatch.setattr(
        documents,
        "DocumentProcess",
        lambda source, result, *_: contextlib.nullcontext(SimpleNamespace(source=source, result=result)),
    )
    with contextlib.ExitStack() as stack:

        def make(**limits: Any) -> tuple[DocumentTasks, Service]:
            service: Any = Service()
            tasks = DocumentTasks(service, Metrics(), Limits(**limits), tmp_path)
            stack.callback(tasks.close)
            return tasks, service

        yield make


def ended(tasks: Sequence[DocumentTask]) -> None:
    for task in tasks:
        while not task.ended:
            threading.Event().wait(0.01)


def test_clients_take_turns(served: Callable[..., tuple[DocumentTasks, Service]]) -> None:
    tasks, service = served()
    added = [tasks.add("a.txt", f"a{number}".encode(), "de", "en", client="a") for number in range(4)]
    added += [tasks.add("b.txt", b"b", "de", "en", client="b"), tasks.add("c.txt", b"c", "de", "en", client="c")]
    service.let_go(begun=2, free=6)
    ended(added)
    assert [task.state for task in added] == ["done"] * 6
    assert set(service.begun[:2]) == {"a0", "b"}
    assert service.begun.index("c") <= 3


def test_a_client_has_a_share_of_those_that_wait(served: Callable[..., tuple[DocumentTasks, Service]]) -> None:
    tasks, _ = served(documents=5, documents_per_client=3)
    for _ in range(3):
        tasks.add("a.txt", b"a", "de", "en", client="a")
    with pytest.raises(TooMany):
        tasks.add("a.txt", b"a", "de", "en", client="a")
    for _ in range(2):
        tasks.add("b.txt", b"b", "de", "en", client="b")
    with pytest.raises(TooMany):
        tasks.add("c.txt", b"c", "de", "en", client="c")


def test_the_disk_is_bounded(served: Callable[..., tuple[DocumentTasks, Service]]) -> None:
    tasks, service = served(disk_bytes=100, disk_bytes_per_client=60)
    first, second, other = (
        tasks.add(f"{client}.txt", client.encode() * 30, "de", "en", client=client) for client in ("a", "a", "b")
    )
    with pytest.raises(NoRoom):
        tasks.add("a.txt", b"a" * 30, "de", "en", client="a")
    service.let_go(begun=2, free=3)
    ended([first, second, other])
    assert not any(task.source.exists() for task in (first, second, other))
    assert sum(file.stat().st_size for file in tasks.folder.rglob("result*")) == 90
    second.is_fetched = True
    third = tasks.add("a.txt", b"a" * 30, "de", "en", client="a")
    assert second.id not in tasks.tasks
    assert not second.folder.exists()
    assert {first.id, other.id, third.id} <= set(tasks.tasks)
    with pytest.raises(NoRoom):
        tasks.add("c.txt", b"c" * 90, "de", "en", client="c")
    assert first.id in tasks.tasks  # nothing is deleted for what does not fit


def test_a_document_that_takes_too_long_is_given_up(served: Callable[..., tuple[DocumentTasks, Service]]) -> None:
    tasks, service = served(document_seconds=-1.0)
    task = tasks.add("a.txt", b"a", "de", "en", client="a")
    ended([task])
    assert task.state == "error"
    assert "takes more than" in task.error
    assert task.cause is not None
    assert not service.begun


def test_what_a_killed_server_has_left_is_deleted(tmp_path: Path) -> None:
    alive = DocumentTasks(Service(), Metrics(), Limits(), tmp_path)  # type: ignore[arg-type]
    dead = tmp_path / f"{documents.FOLDER}dead"
    dead.mkdir()
    dead.with_suffix(documents.LOCK).touch()
    (dead / "source.txt").write_text("a")
    (tmp_path / "dragoman-other").mkdir()
    again = DocumentTasks(Service(), Metrics(), Limits(), tmp_path)  # type: ignore[arg-type]
    try:
        assert not dead.exists()
        assert alive.folder.exists()
        assert (tmp_path / "dragoman-other").exists()
    finally:
        alive.close()
        again.close()
