"""The server's explanations: switched off unless asked for, one at a time, in their time, and what they refuse."""

import asyncio
from typing import Any

import httpx
import pytest
from tests.unit.test_server import client_of

from dragoman.serve import explainer
from dragoman.serve.settings import Limits

ASK = {"source": "en", "target": "de", "text": "the dog sees the man"}


def answers(*bodies: tuple[str, Any], **settings: Any) -> list[httpx.Response]:
    """Answers of a server that explains to requests one after another; GET where the body is None."""

    async def scene() -> list[httpx.Response]:
        async with client_of(**{"explain": True, **settings}) as client:
            return [await (client.get(path) if body is None else client.post(path, json=body)) for path, body in bodies]

    return asyncio.run(scene())


def test_nothing_is_explained_unless_it_is_asked_for() -> None:
    page, sentence, way, limits = answers(
        ("/explain", None), ("/v1/explain", ASK), ("/v1/explain/way", {**ASK, "begin": [7]}), ("/v1/limits", None),
        explain=False,
    )  # fmt: skip
    assert [one.status_code for one in (page, sentence, way)] == [403, 403, 403]
    assert "Sentences are not explained by this server" in page.text
    assert limits.json()["explain"] is False


@pytest.mark.parametrize(
    ("path", "more", "complaint"),
    [
        ("", {"text": " "}, "blank"),
        ("", {"text": "dog " * 90}, "a page has room for 80"),
        ("", {"text": "x" * 5001}, "exceeds text limit (5000)"),
        ("", {"source": "auto"}, "source: missing"),
        ("", {"target": "fr"}, "'fr' is not served"),
        ("", {"beam_size": 40}, "beam_size"),
        ("/way", {"begin": []}, "begin"),
        ("/way", {"begin": [0]}, "token 0 at place 1"),
        ("/way", {"begin": [3, 9]}, "token 3 at place 1"),
        ("/way", {"begin": [7, 10**9]}, "token 1000000000 at place 2"),
        ("/way", {"begin": [-1]}, "begin"),
        ("/way", {"begin": [7] * 300}, "begin"),
        ("/way", {"begin": [7], "text": ""}, "blank"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(path: str, more: dict[str, Any], complaint: str) -> None:
    [answer] = answers((f"/v1/explain{path}", {**ASK, **more}))
    assert answer.status_code == 400
    assert complaint in answer.json()["error"]
    assert "\n" not in answer.json()["error"]


def test_the_page_is_in_the_reader_s_language_and_asks_for_a_key_where_one_is_needed() -> None:
    german, other, no_key = answers(
        ("/explain?lang=de", None), ("/explain?lang=ar", None), ("/v1/explain", ASK), key_required=True
    )
    assert "<title>Wie ein Satz übersetzt wird</title>" in german.text
    assert 'value="en de"' in german.text
    assert 'data-required="true"' in german.text
    assert 'dir="rtl"' in other.text
    assert no_key.status_code == 400
    assert "API key" in no_key.json()["error"]


def test_one_is_explained_at_a_time_each_in_its_time_and_others_are_answered() -> None:
    async def scene() -> None:
        async with client_of(explain=True, limits=Limits(deadline_seconds=1.0)) as client:
            turns = client.server.explainer._turns  # type: ignore[attr-defined]
            assert turns.acquire(blocking=False)
            waiting = asyncio.ensure_future(client.post("/v1/explain", json=ASK))
            await asyncio.sleep(0.3)
            assert (await client.get("/health")).status_code == 200
            assert (await waiting).status_code == 504
            turns.release()

    asyncio.run(scene())


def test_the_model_is_loaded_once_and_none_that_is_served_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[Any] = []
    load = explainer.load_parts

    def loaded(*arguments: Any) -> Any:
        loads.append(load(*arguments))
        return loads[-1]

    monkeypatch.setattr(explainer, "load_parts", loaded)

    async def scene() -> None:
        async with client_of(explain=True) as client:
            [run] = client.server.service.runs.values()  # type: ignore[attr-defined]
            both = await asyncio.gather(
                *(client.post("/v1/explain", json=ASK) for _ in range(2)), client.post("/v1/translate", json=ASK)
            )
            assert [one.status_code for one in both] == [200, 200, 200]
            first, second, plain = (one.json() for one in both)
            assert first == second
            assert first["ways"][0]["text"] == plain["text"]
            assert len(loads) == 1
            assert loads[0].model is not run.own.model

    asyncio.run(scene())
