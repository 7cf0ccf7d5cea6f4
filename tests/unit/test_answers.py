"""Answers to what no client should send: in the shape of the API, with a status of its own, without a word of ours."""

import asyncio
import json
import re
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from dragoman.errors import Error
from dragoman.serve.app import APIS, create_app
from dragoman.serve.scheduler import BatchScheduler, Overloaded, RequestHandle
from dragoman.serve.service import Service
from dragoman.serve.settings import Limits, Settings
from dragoman.serve.store import Store

FIXTURE = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"
PAIR = {"source": "en", "target": "de"}
DEEPL_PAIR = {"source_lang": "en", "target_lang": "de"}
ENTRIES = {**DEEPL_PAIR, "entries": "a\tb", "entries_format": "tsv"}
BODIES: dict[str, dict[str, Any]] = {
    "/translate": {"q": "hund", **PAIR},
    "/detect": {"q": "hund"},
    "/suggest": {"q": "a", "s": "b", **PAIR},
    "/v1/translate": {"text": "hund", **PAIR},
    "/v1/translate/stream": {"text": "hund", **PAIR},
    "/v1/words": {"text": "hund", "prefix": "d", "count": 2, **PAIR},
    "/v1/detect": {"text": "hund"},
    "/v1/corrections": {"text": "a", "translation": "b", **PAIR},
    "/v2/translate": {"text": ["hund"], **DEEPL_PAIR},
    "/v2/glossaries": {"name": "n", **ENTRIES},
    "/v3/glossaries": {"name": "n", "dictionaries": [ENTRIES]},
}
"""A good body for every route that takes one."""
WRONG = [
    "1e999", "-1e999", "NaN", "1" + "0" * 400, "1" + "0" * 5000, "1.5", "true", '"\\ud800"', '"\\ud83d\\ud800"',
    '"a\\u0000b"', "[]", "{}", '["a", "b"]', '[["a"]]', "[null]", '{"a": {"b": 1}}', '{"a\\ud800": "b"}', '{"": ""}',
    '"{\\"a\\": 1e999}"', '"["', "-1",
]  # fmt: skip
"""Values, as JSON, that hardly any field can have."""


async def asked(ask: Callable[[httpx.AsyncClient], Coroutine[Any, Any, None]], **settings: Any) -> None:
    """Call `ask` with a client of a server; what escapes from the application comes as an answer, as over a socket."""
    limits = Limits(deadline_seconds=60, changes_per_minute=10_000)
    app = create_app(
        Settings(
            runs=[FIXTURE], device="cpu", threads=1, load_first=True, limits=limits, open_corrections=True, **settings
        )
    )
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        client.server = app.state.server  # type: ignore[attr-defined]
        await ask(client)


def check(answer: httpx.Response, sent: object) -> None:
    """No mistake of ours, no path of the server; an error is what the API calls one."""
    assert answer.status_code < 500, (sent, answer.text)
    assert str(FIXTURE.parent) not in answer.text, sent
    if answer.status_code >= 400:
        name = "message" if re.match("/v[23]/", answer.request.url.path) else "error"
        assert isinstance(answer.json()[name], str), sent


def fields_of(path: str) -> Iterator[str]:
    """All fields that a route has, with those that are in no good body."""
    for api in APIS:
        for one in api.operations:
            if one.path == path and "POST" in one.methods and one.model is not None:
                yield from one.model.model_fields
    yield "api_key"


@pytest.mark.system
@pytest.mark.parametrize("path", BODIES)
def test_a_value_that_no_field_can_have_is_refused(path: str) -> None:
    async def ask(client: httpx.AsyncClient) -> None:
        for name in fields_of(path):
            rest = {field: value for field, value in BODIES[path].items() if field != name}
            for value in WRONG:
                raw = ",".join([*(f"{json.dumps(field)}: {json.dumps(one)}" for field, one in rest.items()),
                                f"{json.dumps(name)}: {value}"])  # fmt: skip
                answer = await client.post(path, content=f"{{{raw}}}", headers={"content-type": "application/json"})
                check(answer, (name, value[:40]))
                if "\\ud8" in value:
                    assert answer.status_code == 400, (name, value)

    asyncio.run(asked(ask))


@pytest.mark.system
@pytest.mark.parametrize("path", BODIES)
def test_doubled_fields_and_bytes_that_are_no_letters_are_refused(path: str) -> None:
    async def ask(client: httpx.AsyncClient) -> None:
        form = {"content-type": "application/x-www-form-urlencoded"}
        for name in fields_of(path):
            rest = {field: value for field, value in BODIES[path].items() if field != name}
            start = urlencode({field: json.dumps(one) if isinstance(one, list) else one for field, one in rest.items()})
            for tail in (f"{name}=a&{name}=b", f"{name}=%ED%A0%80", f"{name}=%ff", f"{name}=%00", f"{name}=1e999"):
                for answer in (await client.post(path, content=f"{start}&{tail}", headers=form),
                               await client.post(f"{path}?{start}&{tail}"),
                               await client.get(f"{path}?{start}&{tail}")):  # fmt: skip
                    check(answer, tail)
                    if "%ED" in tail or "%ff" in tail:
                        assert answer.status_code in (400, 405), tail
            for charset in ("utf-7", "unicode_escape", "utf-16", "zlib", "none"):
                kind = {"content-type": f"multipart/form-data; boundary=b; charset={charset}"}
                parts = [(field, str(one).encode()) for field, one in rest.items()] + [
                    (name, b"+2AA-\\ud800\xed\xa0\x80")
                ]
                body = b"".join(
                    b'--b\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (field.encode(), value)
                    for field, value in parts
                )
                answer = await client.post(path, content=body + b"--b--\r\n", headers=kind)
                check(answer, (name, charset))
                assert answer.status_code == 400

    asyncio.run(asked(ask))


@pytest.mark.system
def test_bodies_of_any_kind_and_encoding_are_answered() -> None:
    async def ask(client: httpx.AsyncClient) -> None:
        for path, good in BODIES.items():
            text = json.dumps(good)
            for body in (b"\xff\xfe{", text.encode(), text.encode("utf-16"), b"[1]", b"\x00", b'{"a":' * 90_000, b'"'):
                for kind in (
                    "application/xml",
                    "application/json; charset=utf-16",
                    "multipart/form-data",
                    "x" * 3000,
                    "",
                ):
                    check(await client.post(path, content=body, headers={"content-type": kind}), (kind[:40], body[:20]))
            for key in (b"\xff", b"Bearer \xff", b"DeepL-Auth-Key \xed\xa0\x80", b"Bearer " + b"a" * 9000):
                check(await client.post(path, json=good, headers={"authorization": key, "x-api-key": key}), key[:20])

    asyncio.run(asked(ask))


@pytest.mark.system
def test_a_files_name_may_be_anything() -> None:
    async def ask(client: httpx.AsyncClient) -> None:
        names = (
            b"\xff\xfe.txt",
            b"\xed\xa0\x80.txt",
            b"a\x00.txt",
            b"../../etc/passwd.txt",
            b"x" * 99_999 + b".txt",
            b".txt",
        )
        for name in names:
            for path, pair in (("/translate_file", PAIR), ("/v1/documents", PAIR), ("/v2/document", DEEPL_PAIR)):
                body = b"".join(
                    b'--b\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (field.encode(), value.encode())
                    for field, value in pair.items()
                )
                body += (
                    b'--b\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n\r\nhund\r\n--b--\r\n' % name
                )
                kind = {"content-type": "multipart/form-data; boundary=b; charset=unicode_escape"}
                answer = await client.post(path, content=body, headers=kind)
                check(answer, name[:20])
                if answer.status_code == 200 and "translatedFileUrl" in answer.json():
                    check(await client.get(answer.json()["translatedFileUrl"]), name[:20])

    asyncio.run(asked(ask))


def test_addresses_and_methods_that_are_not_there_are_answered_in_the_shape_of_the_api() -> None:
    async def ask(client: httpx.AsyncClient) -> None:
        for path in ("/nothing", "/v1/nothing", "/v2/nothing", "/v3/glossaries/%FF", "/v2/document/%00", "//",
                     "/%2e%2e/x", "/download_file/%ED%A0%80", "/v1/documents/" + "a" * 5000, *BODIES):  # fmt: skip
            for method in ("GET", "PUT", "PATCH", "DELETE", "FOO"):
                check(await client.request(method, path), (method, path))
        answer = await client.options("/v2/glossaries")
        assert (answer.status_code, answer.headers["allow"]) == (204, "GET, HEAD, OPTIONS, POST")
        assert (await client.put("/v2/glossaries")).headers["allow"] == "GET, HEAD, OPTIONS, POST"
        assert (await client.options("/v2/nothing")).status_code == 404
        assert (await client.head("/languages")).status_code == 200

    asyncio.run(asked(ask))


def test_no_answer_names_a_file_of_the_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def locked(self: Store, *given: object) -> None:
        raise Error.IN_USE("locked by another process", file=tmp_path / "serve.sqlite")

    async def ask(client: httpx.AsyncClient) -> None:
        monkeypatch.setattr(Store, "glossaries", locked)
        answer = await client.get("/v2/glossaries")
        assert answer.status_code == 503
        assert str(tmp_path) not in answer.text
        server = client.server  # type: ignore[attr-defined]
        server.ready, server.problem = False, Error.DAMAGED("is cut off", file=FIXTURE)
        assert (await client.get("/ready")).json() == {"status": "failed"}
        refused = await client.post("/v2/translate", json=BODIES["/v2/translate"])
        assert (refused.status_code, refused.json()) == (503, {"message": "Not ready: failed"})
        assert int(refused.headers["retry-after"]) > 0

    asyncio.run(asked(ask, store=tmp_path / "serve.sqlite"))


def test_a_mistake_of_ours_outside_of_a_handler_is_answered_in_json(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(client: httpx.AsyncClient) -> None:
        monkeypatch.setattr("dragoman.serve.app._description", lambda: 1 / 0)
        answer = await client.get("/spec")
        assert (answer.status_code, answer.json()) == (500, {"error": "Internal error: the server's log has more"})

    asyncio.run(asked(ask))


def test_a_key_is_ignored_where_none_is_asked_for_and_a_known_one_counts(tmp_path: Path) -> None:
    """deepl and deep-translator insist on a key."""
    store = Store(tmp_path / "serve.sqlite")
    known = store.add_key("known", per_month=1000)
    store.close()

    async def ask(client: httpx.AsyncClient) -> None:
        for key, count in (("unknown", 0), (known, 4)):
            header = {"authorization": f"DeepL-Auth-Key {key}"}
            answer = await client.post("/v2/translate", json=BODIES["/v2/translate"], headers=header)
            assert answer.status_code == 200
            assert (await client.get("/v2/usage", headers=header)).json()["character_count"] == count
            assert (await client.post("/translate", json={**BODIES["/translate"], "api_key": key})).status_code == 200

    asyncio.run(asked(ask, store=tmp_path / "serve.sqlite"))


def test_a_wrong_key_is_refused_where_one_is_needed() -> None:
    async def ask(client: httpx.AsyncClient) -> None:
        answer = await client.post("/translate", json={**BODIES["/translate"], "api_key": "wrong"})
        assert (answer.status_code, answer.json()) == (403, {"error": "Invalid API key"})

    asyncio.run(asked(ask, key_required=True))


SPANISH = "El perro duerme en la casa de mi abuela."


def test_a_language_that_is_not_served_is_said_by_every_api() -> None:
    async def ask(client: httpx.AsyncClient) -> None:
        for path in ("/v1/translate", "/v1/translate/stream"):
            answer = await client.post(path, json={"text": SPANISH, "target": "de"})
            found = answer.json()
            assert (answer.status_code, found["code"]) == (400, "language-not-served")
            assert found["error"].startswith("Spanish, which is not served here; there are German, English")
            assert found["detected"] == {
                "language": "es", "name": "Spanish", "confidence": pytest.approx(0.75, abs=0.25), "served": False,
            }  # fmt: skip
        listed = await client.post("/v1/translate", json={"text": ["der hund", SPANISH], "target": "de"})
        assert (listed.json()["item"], listed.json()["error"][:17]) == (1, "text[1]: Spanish,")
        answer = await client.post("/translate", json={"q": SPANISH, "source": "auto", "target": "de"})
        assert answer.status_code == 400
        assert set(answer.json()) == {"error"}
        assert answer.json()["error"].startswith("Spanish, which is not served here")
        answer = await client.post("/v2/translate", json={"text": SPANISH, "target_lang": "DE"})
        assert answer.status_code == 400
        assert answer.json()["message"].startswith("Spanish, which is not served here")
        [found, *_] = (await client.post("/v1/detect", json={"text": SPANISH})).json()
        assert (found["language"], found["served"]) == ("es", False)
        [found, *_] = (await client.post("/v1/detect", json={"text": "The dog sleeps in the house."})).json()
        assert (found["language"], found["served"]) == ("en", True)
        assert (await client.post("/detect", json={"q": SPANISH})).json()[0]["language"] == "es"

    asyncio.run(asked(ask))


def test_a_short_text_is_translated_from_a_language_that_is_served() -> None:
    async def ask(client: httpx.AsyncClient) -> None:
        for text in ("Auto", "dog", "12"):
            found = (await client.post("/v1/translate", json={"text": text, "target": "de"})).json()
            assert (found["source"], found["detected"]["served"]) == ("en", True), text
        kept = (
            await client.post("/v1/translate", json={"text": "Der Mann schläft auf der Straße.", "target": "de"})
        ).json()
        assert (kept["text"], kept["source"]) == ("Der Mann schläft auf der Straße.", "de")

    asyncio.run(asked(ask))


def test_a_document_in_a_language_that_is_not_served_is_refused() -> None:
    async def ask(client: httpx.AsyncClient) -> None:
        for text, code in ((SPANISH, "language-not-served"), ("Der Mann schläft auf der Straße.", "conflict")):
            sent = {"data": {"target": "de"}, "files": {"file": ("a.txt", text.encode())}}
            job = (await client.post("/v1/documents", **sent)).json()
            address = f"/v1/documents/{job['id']}"
            while not (state := (await client.get(address, params={"key": job["key"]})).json()).get("code"):
                await asyncio.sleep(0.02)
            assert (state["state"], state["code"]) == ("error", code)

    asyncio.run(asked(ask))


def test_each_parameter_of_deepl_is_done_or_refused_by_its_name() -> None:
    async def ask(client: httpx.AsyncClient) -> None:
        good = {"text": "the dog", **DEEPL_PAIR}
        for name, value in (
            ("style_id", "a"), ("custom_instructions", ["be short"]), ("translation_memory_id", "a"),
            ("formality", "more"), ("model_type", "fast"), ("split_sentences", "2"), ("tag_handling", "md"),
            ("glossary_ids", ["a"] * 6), ("formality", "loud"), ("preserve_formatting", "perhaps"),
            ("enable_beta_languages", 7),
        ):  # fmt: skip
            answer = await client.post("/v2/translate", json={**good, name: value})
            assert (answer.status_code, name in answer.json()["message"]) == (400, True), (name, answer.text)
        for name, value in (
            ("style_id", ""), ("formality", "prefer_more"), ("model_type", "latency_optimized"),
            ("split_sentences", "0"), ("enable_beta_languages", True), ("tag_handling_version", "v2"),
            ("translation_memory_threshold", 80),
        ):  # fmt: skip
            answer = await client.post("/v2/translate", json={**good, name: value})
            assert answer.status_code == 200, (name, answer.text)
        hinted = await client.post("/v2/translate", json={**good, "context": "an animal"})
        assert (hinted.status_code, hinted.headers["x-ignored-parameters"]) == (200, "context")
        kept = await client.post("/v2/translate", json={**good, "text": "The dog!", "preserve_formatting": True})
        text = kept.json()["translations"][0]["text"]
        assert (text[0].isupper(), text[-1] in "!.") == (True, True)
        lines = [await client.post("/v2/translate", json={**good, "text": text, "split_sentences": way})
                 for text, way in (("the dog\nsees", "nonewlines"), ("the dog sees", "1"))]  # fmt: skip
        assert lines[0].json() == lines[1].json()
        for wanted, status in (("docx", 400), ("txt", 200), (".TXT", 200)):
            form = {**DEEPL_PAIR, "output_format": wanted}
            answer = await client.post("/v2/document", data=form, files={"file": ("a.txt", b"the dog")})
            assert answer.status_code == status, answer.text

    asyncio.run(asked(ask))


def test_parts_of_fields_are_put_together_as_deepl_node_and_php_send_them() -> None:
    async def ask(client: httpx.AsyncClient) -> None:
        form = {"name": "n"}
        for place, (term, target) in enumerate((("dog", "Rüde"), ("man", "Kerl"))):
            form |= {f"dictionaries[{place}].{name}": value for name, value in ENTRIES.items()}
            form[f"dictionaries[{place}].entries"] = f"{term}\t{target}"
        made = (await client.post("/v3/glossaries", data=form)).json()
        assert [one["entry_count"] for one in made["dictionaries"]] == [1]
        second = (await client.post("/v3/glossaries", data={**form, "dictionaries[1].entries": "dog\tHund"})).json()
        good = {"text": "the dog sleeps", **DEEPL_PAIR}
        ids = [second["glossary_id"], made["glossary_id"]]
        several = await client.post("/v2/translate", json={**good, "glossary_ids": ids})
        assert several.status_code == 200
        for fields in ({"text[]": ["a", "b"]}, {"text[0]": "a", "text[1]": "b"}):
            answer = await client.post("/v2/translate", data={**DEEPL_PAIR, **fields})
            assert len(answer.json()["translations"]) == 2

    asyncio.run(asked(ask))


def test_a_stream_that_was_let_in_is_not_cut_by_a_load_that_comes_later(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = Store(tmp_path / "serve.sqlite")
    key = store.add_key("known", per_month=100_000)
    store.close()
    admitted: list[int] = []
    admit = BatchScheduler.admitted

    def first_alone(self: BatchScheduler, handle: RequestHandle, tokens: int, **kind: Any) -> Any:
        admitted.append(tokens)
        if len(admitted) > 1:
            raise Overloaded(3)
        return admit(self, handle, tokens, **kind)

    async def ask(client: httpx.AsyncClient) -> None:
        monkeypatch.setattr(BatchScheduler, "admitted", first_alone)
        text = "\n".join(["der hund sieht die frau " * 18] * 3)
        sent = {"json": {"text": text, **PAIR}, "headers": {"authorization": f"Bearer {key}"}}
        answer = await client.post("/v1/translate/stream", **sent)
        events = re.findall("^event: (.*)$", answer.text, re.MULTILINE)
        assert events == ["part"] * 3 + ["details", "done"]
        assert not client.server.service.scheduler.shares.held  # type: ignore[attr-defined]
        used = (await client.get("/v2/usage", headers=sent["headers"])).json()["character_count"]
        assert used == len(text)
        refused = await client.post("/v1/translate/stream", **sent)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "3")

    asyncio.run(asked(ask, store=tmp_path / "serve.sqlite"))
    assert len(admitted) == 2


def test_a_stream_that_fails_in_the_middle_says_so_and_does_not_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = Store(tmp_path / "serve.sqlite")
    key = store.add_key("known", per_month=100_000)
    store.close()
    texts: list[str] = []
    translate = Service.translate

    def fails(self: Service, handle: Any, src: str, tgt: str, parts: Any, *given: Any) -> Any:
        texts.extend(parts)
        if len(texts) > 1:
            raise Error.SEARCH_FAILED("no translation keeps to all rules")
        return translate(self, handle, src, tgt, parts, *given)

    async def ask(client: httpx.AsyncClient) -> None:
        monkeypatch.setattr(Service, "translate", fails)
        header = {"authorization": f"Bearer {key}"}
        sent = {"text": "\n".join(["der hund sieht die frau " * 18] * 2), **PAIR}
        answer = await client.post("/v1/translate/stream", json=sent, headers=header)
        assert re.findall("^event: (.*)$", answer.text, re.MULTILINE) == ["part", "error"]
        assert not client.server.service.scheduler.shares.held  # type: ignore[attr-defined]
        assert (await client.get("/v2/usage", headers=header)).json()["character_count"] == 0

    asyncio.run(asked(ask, store=tmp_path / "serve.sqlite"))


def test_every_line_of_deepls_entries_is_a_term() -> None:
    """deepl-python's tests: `Source-$0` and `sourceEntry1` were taken for the heading of a table."""

    async def ask(client: httpx.AsyncClient) -> None:
        for kind, entries in (("tsv", "Source-$0\tTarget-$0\n#tag\t#Wort"), ("csv", "sourceEntry1,targetEntry1\na,b")):
            sent = {"name": "n", **ENTRIES, "entries": entries, "entries_format": kind}
            assert (await client.post("/v2/glossaries", json=sent)).json()["entry_count"] == 2

    asyncio.run(asked(ask))
