"""The server without a socket: what handlers do is done in threads, and errors have the status that they deserve."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from dragoman.errors import Error
from dragoman.pipeline.memory import TranslationMemory
from dragoman.serve import requests
from dragoman.serve.api import SERVER_FAULTS
from dragoman.serve.app import create_app
from dragoman.serve.clients import Gate
from dragoman.serve.documents import Jobs
from dragoman.serve.service import Service
from dragoman.serve.settings import Limits, Settings
from dragoman.serve.store import Correction, Store

FIXTURE = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"
PAIR = {"source": "en", "target": "de"}
TEXT = {"text": "der hund", **PAIR}
FILE = {"data": PAIR, "files": {"file": ("a.txt", b"der hund")}}


@asynccontextmanager
async def client_of(**settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server that is loaded."""
    limits = settings.pop("limits", Limits(deadline_seconds=60))
    app = create_app(Settings(runs=[FIXTURE], device="cpu", threads=1, load_first=True, limits=limits, **settings))
    transport = httpx.ASGITransport(app=app)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        client.server = app.state.server  # type: ignore[attr-defined]
        yield client


WORK: list[tuple[object, str, str, str, dict[str, Any]]] = [
    (requests, "likely_languages", "POST", "/v1/detect", {"json": {"text": "der hund"}}),
    (requests, "likely_languages", "POST", "/translate", {"json": {"q": "der hund", "source": "auto", "target": "de"}}),
    (Service, "tokens", "POST", "/v2/translate", {"data": {"text": "a", "target_lang": "DE", "source_lang": "EN"}}),
    (Service, "languages", "GET", "/v1/languages", {}),
    (Service, "warnings", "POST", "/v1/translate", {"json": {**TEXT, "warnings": True}}),
    (Service, "similar", "POST", "/v1/translate", {"json": {**TEXT, "warnings": True}}),
    (Service, "alignment", "POST", "/v1/translate/stream", {"json": TEXT}),
    (Service, "confidence", "POST", "/v1/translate", {"json": {**TEXT, "confidence": True}}),
    (Service, "words_instead", "POST", "/v1/words", {"json": TEXT}),
    (Gate, "authenticate", "GET", "/v2/usage", {}),
    (Store, "glossaries", "GET", "/v2/glossaries", {}),
    (Store, "put_glossary", "POST", "/v2/glossaries", {"json": {
        "name": "a", "source_lang": "en", "target_lang": "de", "entries": "a\tb", "entries_format": "tsv"}}),
    (Store, "correct", "POST", "/v1/corrections", {"json": {**TEXT, "translation": "ein hund"}}),
    (TranslationMemory, "add", "POST", "/suggest", {"json": {"q": "a", "s": "b", **PAIR}}),
    (Jobs, "add", "POST", "/v1/documents", FILE),
    (Jobs, "find", "GET", "/v1/documents/x", {}),
]  # fmt: skip


def test_no_work_is_done_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask() -> None:
        async with client_of() as client:
            loops = threading.current_thread()
            for owner, name, method, path, options in WORK:
                threads: list[threading.Thread] = []
                work = getattr(owner, name)

                def seen(*given: Any, _work: Callable[..., Any] = work, _threads: Any = threads, **named: Any) -> Any:
                    _threads.append(threading.current_thread())
                    return _work(*given, **named)

                with monkeypatch.context() as patched:
                    patched.setattr(owner, name, seen)
                    await client.request(method, path, **options)
                assert threads, (name, path)
                assert loops not in threads, (name, path)

    asyncio.run(ask())


def test_others_are_answered_while_a_handler_works(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()
    detect = requests.likely_languages

    def slow(text: str, among: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        return detect(text, among)

    async def ask() -> None:
        async with client_of() as client:
            monkeypatch.setattr(requests, "likely_languages", slow)
            waiting = asyncio.create_task(client.post("/v1/detect", json={"text": "der hund"}))
            await asyncio.to_thread(begun.wait, 60)
            assert (await client.get("/health")).json() == {"status": "ok"}
            assert (await client.post("/v1/translate", json=TEXT)).status_code == 200
            assert not waiting.done()
            go_on.set()
            assert (await waiting).status_code == 200

    asyncio.run(ask())


def test_a_store_that_cannot_be_read_is_the_servers_fault_and_no_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(self: Store, author: str) -> None:
        raise Error.CANNOT_READ("database is locked", file="secret/serve.sqlite")

    async def ask() -> None:
        async with client_of() as client:
            monkeypatch.setattr(Store, "glossaries", locked)
            answer = await client.get("/v2/glossaries")
            assert answer.status_code == 500
            assert "secret" not in answer.text

    asyncio.run(ask())
    assert Error.NO_SUCH_LANGUAGE not in SERVER_FAULTS


def test_corrections_change_the_memory_in_place_and_cost_one_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[str] = []

    async def ask() -> None:
        async with client_of() as client:
            server = client.server  # type: ignore[attr-defined]
            await client.post("/v1/corrections", json={**TEXT, "translation": "ein hund"})
            memory = server.service.memories["en", "de"]
            server.store._db.set_trace_callback(statements.append)
            for row in range(20):
                await client.post("/v1/corrections", json={**TEXT, "text": f"hund {row}", "translation": "b"})
            assert len(statements) == 20
            assert server.service.memories["en", "de"] is memory
            assert len(memory) == 21
            await client.request("DELETE", "/v1/corrections", json=TEXT)
            assert len(memory) == 20
            server.store._db.set_trace_callback(None)

    asyncio.run(ask())


def test_a_month_is_used_up_once_whoever_asks_at_once(tmp_path: Path) -> None:
    store = Store(tmp_path / "serve.sqlite")
    counted: list[bool] = []
    threads = [threading.Thread(target=lambda: counted.append(store.count("a", 10, 95))) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (counted.count(True), store.characters("a")) == (9, 90)
    store.close()
    reopened = Store(tmp_path / "serve.sqlite")
    reopened.correct(Correction("en", "de", "a", "b"))
    assert reopened.corrections() == [Correction("en", "de", "a", "b")]
    reopened.close()
