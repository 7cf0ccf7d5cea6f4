"""The server without a socket: what handlers do is done in threads, and errors have the status that they deserve."""

import asyncio
import contextlib
import gc
import json
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request

from dragoman.errors import Error
from dragoman.inference.search_translator import SearchTranslator
from dragoman.pipeline.memory import TranslationMemory
from dragoman.serve import requests
from dragoman.serve import scheduler as scheduling
from dragoman.serve.app import create_app
from dragoman.serve.clients import Gate
from dragoman.serve.corrections import Corrections
from dragoman.serve.documents import DocumentTasks
from dragoman.serve.errors import SERVER_FAULTS, ApiError
from dragoman.serve.scheduler import BatchScheduler, Cancelled, RequestHandle
from dragoman.serve.service import Service
from dragoman.serve.settings import Limits, Settings
from dragoman.serve.state import MAX_WAITING
from dragoman.serve.store import Store, this_month
from dragoman.serve.usage import Usage
from dragoman.text import glossary

FIXTURE = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"
PAIR = {"source": "en", "target": "de"}
TEXT = {"text": "der hund", **PAIR}
FILE = {"data": PAIR, "files": {"file": ("a.txt", b"der hund")}}


@asynccontextmanager
async def client_of(**settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server that is loaded."""
    limits = settings.pop("limits", Limits(deadline_seconds=60))
    app = create_app(
        Settings(runs=[FIXTURE], device="cpu", threads=1, load_first=True, limits=limits, local=True, **settings)
    )
    transport = httpx.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
    ):
        client.server = app.state.server  # type: ignore[attr-defined]
        app.state.server.app = app
        yield client


WORK: list[tuple[object, str, str, str, dict[str, Any]]] = [
    (requests, "likely_languages", "POST", "/v1/detect", {"json": {"text": "der hund"}}),
    (requests, "source_language", "POST", "/translate", {"json": {"q": "der hund", "source": "auto", "target": "de"}}),
    (Service, "tokens", "POST", "/v2/translate", {"data": {"text": "a", "target_lang": "DE", "source_lang": "EN"}}),
    (Service, "languages", "GET", "/v1/languages", {}),
    (Service, "translate", "POST", "/v1/translate", {"json": {**TEXT, "warnings": True}}),
    (Service, "similar", "POST", "/v1/translate", {"json": {**TEXT, "warnings": True}}),
    (Service, "alignment", "POST", "/v1/translate/stream", {"json": TEXT}),
    (Service, "confidence", "POST", "/v1/translate", {"json": {**TEXT, "confidence": True}}),
    (Service, "words_instead", "POST", "/v1/words", {"json": TEXT}),
    (Store, "glossaries", "GET", "/v2/glossaries", {}),
    (Store, "put_glossary", "POST", "/v2/glossaries", {"json": {
        "name": "a", "source_lang": "en", "target_lang": "de", "entries": "a\tb", "entries_format": "tsv"}}),
    (Corrections, "add", "POST", "/v1/corrections", {"json": {**TEXT, "translation": "ein hund"}}),
    (TranslationMemory, "add", "POST", "/suggest", {"json": {"q": "a", "s": "b", **PAIR}}),
    (DocumentTasks, "add", "POST", "/v1/documents", FILE),
    (DocumentTasks, "find", "GET", "/v1/documents/x", {}),
]  # fmt: skip


def test_what_is_loaded_stays_out_of_garbage_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these would hold up all threads for as long as it takes to look at a million objects."""

    monkeypatch.setattr("dragoman.serve.state.gc", gc)  # which other tests do without

    async def scene() -> None:
        async with client_of():
            assert gc.get_freeze_count() > len(gc.get_objects())

    asyncio.run(scene())
    assert gc.get_freeze_count() == 0
    gc.freeze()  # as it was before: tests/conftest.py


def test_no_work_is_done_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """sgl-project/sglang#30770: preparing a request held up all others."""

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
        assert go_on.wait(300)
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
    """bayang/jelu#327, Cawlumm/lyftr#25: a locked SQLite file was told as the client's mistake."""

    def locked(self: Store, author: str, id: str | None = None) -> None:
        raise Error.CANNOT_READ("database is locked", file="secret/serve.sqlite")

    async def ask() -> None:
        async with client_of() as client:
            monkeypatch.setattr(Store, "glossaries", locked)
            answer = await client.get("/v2/glossaries")
            assert answer.status_code == 500
            assert "secret" not in answer.text

    asyncio.run(ask())
    assert Error.NO_SUCH_LANGUAGE not in SERVER_FAULTS


def test_corrections_change_the_memory_in_place_and_cost_as_much_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dragoman.serve.app.COUNT_SECONDS", 3600.0)  # what a count writes is no cost of a correction
    statements: list[str] = []

    async def ask() -> None:
        async with client_of() as client:
            server = client.server  # type: ignore[attr-defined]
            await client.post("/v1/corrections", json={**TEXT, "translation": "ein hund"})
            memory = server.memories.memory(("en", "de"), "")
            server.store.database._writer.set_trace_callback(statements.append)
            costs = []
            for row in range(20):
                statements.clear()
                await client.post("/v1/corrections", json={**TEXT, "text": f"hund {row}", "translation": "b"})
                costs.append(sum("corrections" in statement for statement in statements))  # others count usage
            assert len(set(costs)) == 1
            assert server.memories.memory(("en", "de"), "") is memory
            assert len(memory) == 21
            await client.request("DELETE", "/v1/corrections", json=TEXT)
            assert len(memory) == 20
            server.store.database._writer.set_trace_callback(None)

    asyncio.run(ask())


def test_a_month_is_used_up_once_whoever_asks_at_once(tmp_path: Path) -> None:
    store = Store(tmp_path / "serve.sqlite")
    store.add_key("a", per_month=95)
    [key] = store.all_keys()
    usage = Usage(store)
    done: list[bool] = []

    def ask() -> None:
        with contextlib.suppress(ApiError), usage.reserved(key, 10):
            done.append(True)

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    usage.write()
    assert (len(done), usage.characters("a"), store.usage(this_month())) == (9, 90, {"a": 90})
    store.close()


def test_what_is_under_way_is_reserved_and_what_fails_is_not_counted(tmp_path: Path) -> None:
    store = Store(tmp_path / "serve.sqlite")
    store.add_key("a", per_month=100)
    [key] = store.all_keys()
    usage = Usage(store)
    with pytest.raises(ApiError), usage.reserved(key, 60), usage.reserved(key, 60):
        pass
    assert usage.characters("a") == 0
    document = usage.reserve(key, 100)
    document.settle(False)
    document.settle(True)
    assert usage.characters("a") == 0
    store.close()


def test_a_store_that_another_process_locks_holds_nobody_up(tmp_path: Path) -> None:
    """The keys are known, and what was used is written down when the lock is gone."""
    path = tmp_path / "serve.sqlite"
    store = Store(path)
    key = store.add_key("a")
    gate = Gate(store, Limits(), True)
    request = Request({"type": "http", "headers": [], "client": ("192.0.2.1", 1), "query_string": b""})
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    client = gate.authenticate(request, key)
    with gate.usage.reserved(client.key, 10):
        pass
    gate.usage.write()
    assert gate.usage.characters("a") == 10
    other.execute("ROLLBACK")
    gate.usage.write()
    assert store.usage(this_month()) == {"a": 10}
    other.execute("DELETE FROM keys")
    with pytest.raises(ApiError):
        gate.authenticate(request, key)
    other.close()
    store.close()


async def leave(app: Any, path: str, body: dict[str, Any], when: threading.Event) -> int:
    """Send a request and close the connection at an event; the status of the answer that nobody reads."""
    messages = iter([{"type": "http.request", "body": json.dumps(body).encode()}])
    sent: list[Any] = []

    async def receive() -> Any:
        if (message := next(messages, None)) is None:
            await asyncio.to_thread(when.wait, 60)
            return {"type": "http.disconnect"}
        return message

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers, "scheme": "http",
             "server": ("x", 80), "client": ("127.0.0.1", 1), "root_path": "", "http_version": "1.1"}  # fmt: skip
    await app(scope, receive, send)
    return int(sent[0]["status"])


# What befell other servers (the reports are named): the same here, in small.


def test_a_request_whose_client_left_is_given_up_and_its_neighbour_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """vllm-project/vllm#10087, ggml-org/llama.cpp#6421: the work went on; ikawrakow/ik_llama.cpp#1929: that of a
    neighbour did not."""
    begun, go_on = threading.Event(), threading.Event()
    step = BatchScheduler._step

    def waits(self: BatchScheduler, going: list[Any]) -> int:
        if going and not go_on.is_set():
            begun.set()
            assert go_on.wait(300)
        return step(self, going)

    async def ask() -> None:
        async with client_of() as client:
            server = client.server  # type: ignore[attr-defined]
            monkeypatch.setattr(BatchScheduler, "_step", waits)
            staying = asyncio.create_task(client.post("/v1/translate", json={**TEXT, "text": "die frau"}))
            assert await leave(server.app, "/v1/translate", TEXT, begun) == 499
            go_on.set()
            assert (await staying).status_code == 200
            assert server.service.scheduler.shares.total == 0

    asyncio.run(ask())


def test_a_request_that_is_given_up_in_the_queue_is_never_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """pegainfer-project/pegainfer#642: what waited was given up only after its first step."""
    translator = SearchTranslator.load(FIXTURE, device="cpu")
    begun: list[int] = []
    begin = scheduling.search_of

    def counted(translator: SearchTranslator, parts: Any, queued: Any) -> Any:
        begun.append(len(parts))
        return begin(translator, parts, queued)

    monkeypatch.setattr(scheduling, "search_of", counted)
    scheduler = BatchScheduler(threads=1)
    given_up, kept = RequestHandle(scheduler), RequestHandle(scheduler)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(given_up.on(translator).translate, ["der hund", "die frau"])
        while len(scheduler.queues[0]) < 2:
            time.sleep(0.001)
        given_up.cancel()
        with pytest.raises(Cancelled):
            first.result(timeout=300)
        second = threads.submit(kept.on(translator).translate, ["der mann"])
        with scheduler:
            assert second.result(timeout=300)
    assert begun == [1]


def test_a_full_pool_of_waiting_requests_holds_up_neither_handlers_nor_health(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kludex/starlette#1724, fastapi/fastapi#15372: one pool for everything; vllm-project/vllm#38157: and /health."""
    go_on = threading.Event()

    def waits(self: Service, *given: Any) -> Any:
        assert go_on.wait(300)
        return []

    async def ask() -> None:
        async with client_of() as client:
            server = client.server  # type: ignore[attr-defined]
            server.service.scheduler.deadline_seconds = 1e9
            monkeypatch.setattr(Service, "words_instead", waits)
            waiting = [asyncio.create_task(client.post("/v1/words", json=TEXT)) for _ in range(MAX_WAITING + 8)]
            while len(server.request_threads._turns) < MAX_WAITING // 2 + 8:  # one client has half of the threads
                await asyncio.sleep(0.01)
            for path in ("/health", "/ready", "/v1/languages", "/v2/glossaries", "/metrics"):
                assert (await client.get(path)).status_code == 200
            go_on.set()
            assert {(await one).status_code for one in waiting} == {200}

    asyncio.run(ask())


def test_a_stopping_server_answers_what_waits_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """triton-inference-server/server#6349, #8253: a server that stopped left its requests without an answer."""
    begun = threading.Event()

    def waits(self: BatchScheduler, going: list[Any]) -> None:
        begun.set()
        while not self.is_stopped:
            time.sleep(0.001)

    async def ask() -> int:
        async with client_of() as client:
            monkeypatch.setattr(BatchScheduler, "_step", waits)
            waiting = asyncio.create_task(client.post("/v1/translate", json=TEXT))
            await asyncio.to_thread(begun.wait, 60)
        return (await waiting).status_code

    assert asyncio.run(ask()) == 503


def test_a_language_without_a_way_and_odd_values_are_the_clients_mistakes() -> None:
    """LibreTranslate/LibreTranslate#295: 500 for a language that was identified and not served; #978: any number of
    alternatives; huggingface/text-embeddings-inference#145: one bad text of a list and nothing said which."""

    async def ask() -> None:
        async with client_of() as client:
            norwegian = {"q": "Jeg vil gjerne ha en øl", "source": "auto", "target": "en"}
            assert (await client.post("/translate", json=norwegian)).status_code in (200, 400)
            for value in (10000, -1, 2.5, "x", [1], {}, True, 10**30, float("1e308")):
                answer = await client.post("/v1/translate", json={**TEXT, "alternatives": value})
                assert answer.status_code == (200 if value is True else 400), value
                answer = await client.post("/translate", json={"q": "a", **PAIR, "alternatives": value})
                assert answer.status_code in (200, 400), value
            answer = await client.post("/v1/translate", json={**TEXT, "text": ["der hund", 7]})
            assert (answer.status_code, answer.json()["code"]) == (400, "bad-request")
            assert answer.json()["error"].startswith("text[1]: ")

    asyncio.run(ask())


def test_a_glossary_that_many_change_at_once_loses_nothing_and_may_be_empty() -> None:
    languages = {"source_lang": "en", "target_lang": "de"}

    def dictionary(row: int) -> dict[str, str]:
        return {**languages, "entries": f"term {row}\tWort {row}", "entries_format": "tsv"}

    async def ask() -> None:
        async with client_of() as client:
            made = await client.post("/v3/glossaries", json={"name": "a", "dictionaries": [dictionary(0)]})
            address = f"/glossaries/{made.json()['glossary_id']}"
            changes = [client.patch(f"/v3{address}", json={"dictionaries": [dictionary(row)]}) for row in range(1, 20)]
            assert {answer.status_code for answer in await asyncio.gather(*changes)} == {200}
            entries = (await client.get(f"/v2{address}/entries")).text.splitlines()
            assert sorted(entries) == sorted(dictionary(row)["entries"] for row in range(20))
            removed = await client.delete(f"/v3{address}/dictionaries", params=languages)
            assert (removed.status_code, removed.content) == (204, b"")
            assert (await client.get(f"/v2{address}")).json()["entry_count"] == 0
            assert (await client.get(f"/v2{address}/entries")).text == ""

    asyncio.run(ask())


@pytest.mark.parametrize("ways", [("json", ["x", "y"]), ("json", "x, y"), ("data", "x,y")])
def test_deepl_takes_what_tags_mean(ways: tuple[str, Any]) -> None:
    """wikiti/deepl-rb#25: names with a blank after the comma; deepl-node#38: with HTML, too."""
    way, names = ways

    async def ask() -> None:
        async with client_of() as client:
            for kind in ("xml", "html"):
                given = {"text": "der <y>Hund Fips</y> und <x>Settings</x>", "target_lang": "DE", "source_lang": "EN"}
                sent = {**given, "tag_handling": kind, "ignore_tags": names, "outline_detection": "0"}
                answer = await client.post("/v2/translate", **{way: sent})
                assert answer.status_code == 200, answer.text
                text = answer.json()["translations"][0]["text"]
                assert "<y>Hund Fips</y>" in text
                assert "<x>Settings</x>" in text
            strict = {**given, "text": "der <b>hund", "tag_handling": "xml", "tag_handling_version": "v2"}
            answer = await client.post("/v2/translate", json=strict)
            assert answer.status_code == 400
            assert answer.json()["message"].startswith("Tag handling parsing failed, please check input")
            assert (await client.post("/v2/translate", json=strict | {"tag_handling_version": "v1"})).status_code == 200

    asyncio.run(ask())


def test_a_document_comes_back_bilingual() -> None:
    async def ask() -> None:
        async with client_of() as client:
            sent = {"data": {**PAIR, "bilingual": "true"}, "files": {"file": ("a.txt", b"the dog sees the man\n")}}
            job = (await client.post("/v1/documents", **sent)).json()
            address = f"/v1/documents/{job['id']}"
            while (state := (await client.get(address, params={"key": job["key"]})).json())["state"] != "done":
                await asyncio.sleep(0.05)
            assert state["name"] == "a.en-de.txt"
            lines = (await client.get(f"{address}/result", params={"key": job["key"]})).text.splitlines()
            assert lines[0] == "the dog sees the man"
            assert len(lines) == 2
            refused = {**sent, "files": {"file": ("a.po", b'msgid "a"\nmsgstr ""\n')}}
            answer = await client.post("/v1/documents", **refused)
            assert (answer.status_code, answer.json()["code"]) == (400, "unsupported")

    asyncio.run(ask())


def test_terms_of_a_glossary_are_no_longer_than_a_text_wherever_they_are_read() -> None:
    """A target of 100,000 letters took 10 GB."""
    long = "y" * 5001

    async def ask() -> None:
        async with client_of() as client:
            for terms in ({"hund": long}, {long: "dog"}, f"hund\t{long}"):
                answer = await client.post("/v1/translate", json={**TEXT, "glossary": terms})
                assert (answer.status_code, answer.json()["error"].endswith("5001 characters: at most 5000")) == (
                    400,
                    True,
                )
            kept = {"name": "a", "source_lang": "en", "target_lang": "de", "entries_format": "tsv"}
            answer = await client.post("/v2/glossaries", json={**kept, "entries": f"hund\t{long}"})
            assert (answer.status_code, "at most 5000" in answer.json()["message"]) == (400, True)
            assert (
                await client.post("/v1/translate", json={**TEXT, "glossary": {"hund": "y" * 4000}})
            ).status_code == 200

    asyncio.run(ask())


def test_bodies_that_come_at_the_same_time_are_bounded_and_leave_room_for_others() -> None:
    async def ask() -> None:
        async with client_of(limits=Limits(deadline_seconds=60, bodies_bytes=4000)) as client:
            refused = await client.post("/v1/translate", json={**TEXT, "more": "a" * 2500})
            assert refused.status_code == 429
            assert int(refused.headers["retry-after"]) >= 1
            assert (await client.post("/v1/translate", json={**TEXT, "more": "a" * 500})).status_code == 200
            server = client.server  # type: ignore[attr-defined]
            assert server.bodies.total == 0
            with server.bodies.lease("somebody else", 4000) as take:
                assert take(2000)
                assert (await client.post("/v1/translate", json={**TEXT, "more": "a" * 1500})).status_code == 429
                assert (await client.post("/v1/translate", json={**TEXT, "more": "a" * 500})).status_code == 200

    asyncio.run(ask())


def test_terms_are_not_read_longer_than_anybody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler looks whether it is still wanted, as a translation does: at its deadline, and when its client goes."""
    pair = {"source_lang": "en", "target_lang": "de", "entries_format": "tsv"}
    seen: list[str] = []

    def late(term: str, target: str) -> str:
        seen.append(term)
        time.sleep(0.02)
        return ""

    async def ask() -> None:
        async with client_of(limits=Limits(deadline_seconds=0.3)) as client:
            monkeypatch.setattr(glossary, "_fault", late)
            entries = "\n".join(f"a{number}\tb" for number in range(5000))
            for path, body in (
                ("/v2/glossaries", {**pair, "name": "x", "entries": entries}),
                ("/v1/translate", {**TEXT, "glossary": entries}),
            ):
                seen.clear()
                assert (await client.post(path, json=body)).status_code == 504
                assert len(seen) < 1000

    asyncio.run(ask())
