"""No text and no key in a log.

BerriAI/litellm#39293, curie-eng/curie#2536: keys of queries stood in uvicorn's access log.
"""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import httpx
import pytest

from dragoman.errors import Error
from dragoman.serve import logs
from dragoman.serve.app import create_app
from dragoman.serve.service import Service
from dragoman.serve.settings import Limits, Settings

FIXTURE = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"
PAIR = {"source": "en", "target": "de"}


def test_a_traceback_says_where_and_never_what() -> None:
    def fails() -> None:
        try:
            json.loads("secret text")
        except ValueError as error:
            raise KeyError("secret text") from error

    with pytest.raises(KeyError) as raised:
        fails()
    found = logs.traced(raised.value)
    assert "secret" not in found.replace('json.loads("secret text")', "").replace('KeyError("secret text")', "")
    assert "json.decoder.JSONDecodeError" in found
    assert found.splitlines()[-1] == "builtins.KeyError"
    assert "in fails" in found
    assert "disk is full" in logs.traced(Error.NO_SPACE("the disk is full"))


def test_lines_of_other_libraries_hold_no_messages_of_exceptions() -> None:
    try:
        raise ValueError("".join(["sec", "ret"]))
    except ValueError as error:
        record = logging.LogRecord(
            "asyncio", logging.ERROR, "x", 1, "Task exception was never retrieved\nfuture: %r", (error,),
            (type(error), error, error.__traceback__),
        )  # fmt: skip
    found = logs.Formatter().format(record)
    assert "secret" not in found
    assert found.startswith("error: Task exception was never retrieved\n")
    assert found.endswith("ValueError")


def test_a_line_for_each_request_and_its_text_in_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = {"q": "secret", "text": "secret", "api_key": "secret", "key": "secret", **PAIR}
    translate = Service.translate

    def fails(self: Service, handle: Any, src: str, tgt: str, texts: list[str], *given: Any) -> Any:
        if texts == ["secret fails"]:
            raise ValueError(texts[0])
        return translate(self, handle, src, tgt, texts, *given)

    monkeypatch.setattr(Service, "translate", fails)

    async def ask() -> None:
        limits = Limits(deadline_seconds=60)
        app = create_app(
            Settings([FIXTURE], "cpu", threads=1, load_first=True, limits=limits, access_log=True, metrics_key="secret")
        )
        transport = httpx.ASGITransport(app=app, client=("2001:db8::7", 1))
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://x") as client,
        ):
            assert (await client.post("/translate", params=secret)).status_code == 200
            assert (await client.get("/v1/translate/stream", params=secret)).status_code == 200
            assert (await client.get("/v1/documents/secret", params=secret)).status_code == 404
            assert (await client.get("/download_file/secret-secret.txt")).status_code == 404
            assert (await client.get("/secret", params=secret)).status_code == 404
            assert (await client.get("/metrics", headers={"authorization": "Bearer secreu"})).status_code == 401
            assert (await client.post("/v1/translate", json={**PAIR, "text": "secret fails"})).status_code == 500

    asyncio.run(ask())
    lines = capsys.readouterr().err
    assert "secret" not in lines
    assert "ValueError" in lines
    for line in ("POST /translate 200", "GET /v1/translate/stream 200", "GET /v1/documents/{id} 404",
                 "GET /download_file/{name} 404", "GET unknown 404", "GET /metrics 401"):  # fmt: skip
        assert line in lines
    assert "address 2001:db8::/64" in lines


def test_counters_are_for_this_machine_or_for_whoever_has_their_key() -> None:
    async def ask(client: tuple[str, int], headers: dict[str, str], key: str) -> int:
        app = create_app(Settings(metrics_key=key, device="cpu"))
        transport = httpx.ASGITransport(app=app, client=client)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as asker:
            status = (await asker.get("/metrics", headers=headers)).status_code
        app.state.server.tasks.close()
        return status

    here, there = ("127.0.0.1", 1), ("192.0.2.1", 1)
    for client, headers, key, status in (
        (here, {}, "", 200), (("::1", 1), {}, "", 200), (there, {}, "", 403), (here, {"x-forwarded-for": "a"}, "", 403),
        (there, {}, "k", 401), (there, {"authorization": "Bearer k"}, "k", 200), (here, {}, "k", 401),
    ):  # fmt: skip
        assert asyncio.run(ask(client, headers, key)) == status, (client, headers, key)
