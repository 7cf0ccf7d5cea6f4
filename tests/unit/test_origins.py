"""Pages of other sites have texts translated, and nothing else; our own page does everything, behind any proxy.

What befell others: DNS rebinding (quick-lint/quick-lint-js#951, mgedmin/restview#51, stellar/stellar-core#1517), and
checks of origins that shut out the page itself behind a proxy (nesquena/hermes-webui#218, gorilla/csrf#187,
devenjarvis/lathe#76, Tr3kkR/Yuzu#2537, kenn-io/agentsview#78).
"""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from dragoman.serve import origins
from dragoman.serve.app import APIS, FREE, ROUTES, create_app
from dragoman.serve.settings import Settings

FIXTURE = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"
PAIR = {"source": "en", "target": "de"}
CORRECTION = {"text": "a", "translation": "b", **PAIR}
SITE = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}


async def asked(requests: list[tuple[str, str, dict[str, Any]]], **settings: Any) -> list[httpx.Response]:
    """The answers of a server to requests, each a method, an address and the rest."""
    app = create_app(Settings([FIXTURE], "cpu", threads=1, load_first=True, open_corrections=True, **settings))
    transport = httpx.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost:5000") as client,
    ):
        return [await client.request(method, path, **rest) for method, path, rest in requests]


def statuses(requests: list[tuple[str, str, dict[str, Any]]], **settings: Any) -> list[int]:
    return [answer.status_code for answer in asyncio.run(asked(requests, **settings))]


def kept(**headers: str) -> tuple[str, str, dict[str, Any]]:
    """A correction that is sent with headers; `_` stands for `-` in their names."""
    return (
        "POST",
        "/v1/corrections",
        {"json": CORRECTION, "headers": {k.replace("_", "-"): v for k, v in headers.items()}},
    )


def test_every_route_is_open_to_other_sites_or_not() -> None:
    """A new route is closed until somebody opens it here."""
    known = {one.path for api in APIS for one in api.operations}
    opened = origins.CROSS_ORIGIN - {"/spec"}
    assert opened <= known
    for word in ("correct", "suggest", "document", "glossar", "file", "usage", "key", "metrics", "settings_of"):
        assert not [path for path in opened if word in path and path != "/v2/glossary-language-pairs"]
    requests = []
    for route in ROUTES:
        path = route.path.replace("{id}", "7").replace("{name}", "x")
        for method in sorted((route.methods or set()) - {"HEAD"}):
            requests.append((method, path, {"headers": SITE}))
            requests.append(("OPTIONS", path, {"headers": {**SITE, "access-control-request-method": method}}))
    for (method, path, _), answer in zip(requests, asyncio.run(asked(requests)), strict=True):
        is_open = path in origins.CROSS_ORIGIN
        assert ("access-control-allow-origin" in answer.headers) == is_open, (method, path)
        if not is_open and path not in FREE:
            assert answer.status_code == 403 or answer.headers["cross-origin-resource-policy"] == "same-origin", path
            if method not in ("GET", "OPTIONS"):
                assert answer.status_code == 403, (method, path)


def test_a_page_of_another_site_translates_and_keeps_nothing() -> None:
    """`no-cors` with text/plain, a form that sends itself, and a type that a browser leaves out."""
    body = '{"text": "a", "translation": "b", "source": "en", "target": "de"}'
    form = {"q": "a", "s": "b", **PAIR}
    plain = {"content-type": "text/plain;charset=UTF-8"}
    assert statuses([
        ("POST", "/v1/translate", {"json": {"text": "hund", **PAIR}, "headers": SITE}),
        ("POST", "/v1/translate", {"content": body, "headers": {**SITE, **plain}}),
        ("POST", "/v1/corrections", {"content": body, "headers": {**SITE, **plain}}),
        ("POST", "/v1/corrections", {"content": body, "headers": plain}),  # an old browser, which does not tell
        ("POST", "/v1/corrections", {"content": body}),
        ("POST", "/suggest", {"data": form, "headers": SITE}),
        ("POST", "/suggest", {"data": form, "headers": {"origin": "null"}}),
        ("POST", "/suggest", {"data": form, "headers": {"origin": "http://localhost:3000"}}),
        ("POST", "/suggest", {"data": form, "headers": {"sec-fetch-site": "same-site"}}),
        ("POST", "/suggest", {"data": form, "headers": {"origin": "https://["}}),
        ("POST", "/suggest", {"data": form}),
        ("POST", "/v1/documents", {"data": PAIR, "files": {"file": ("a.txt", b"a")}, "headers": SITE}),
        ("DELETE", "/v1/corrections/1", {"headers": SITE}),
    ], local=True) == [200, 200, 403, 415, 415, 403, 403, 403, 403, 403, 200, 403, 403]  # fmt: skip


@pytest.mark.parametrize("settings", [{"local": True}, {"allowed_hosts": ["Translate.example"]}])
def test_a_name_that_leads_here_and_is_not_ours_opens_nothing(settings: dict[str, Any]) -> None:
    same = {"sec-fetch-site": "same-origin"}
    hosts = {
        "evil.example:5000": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example": 403, "evil.localhost": 200,
        "localhost:5000": 200, "LOCALHOST.": 200, "127.0.0.1:5000": 200, "[::1]:5000": 200, "192.168.7.7": 200,
    }  # fmt: skip
    if "allowed_hosts" in settings:
        hosts["translate.example"] = hosts["translate.EXAMPLE.:443"] = 200
    for method, path, body in (
        ("POST", "/suggest", {"data": {"q": "a", "s": "b", **PAIR}}),
        ("GET", "/v1/corrections", {}),
        ("GET", "/v3/glossaries", {}),
        ("GET", "/metrics", {}),
    ):
        requests = [(method, path, {**body, "headers": {**same, "host": host}}) for host in hosts]
        answers = asyncio.run(asked(requests, corrections="everybody", **settings))
        assert dict(zip(hosts, (answer.status_code for answer in answers), strict=True)) == hosts, path
        assert "`allowed_host`" in answers[0].text
    assert statuses([("GET", "/", {"headers": {"host": "evil.example"}})], **settings) == [200]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "127.0.0.1:5000", "origin": "https://t.example", "sec_fetch_site": "same-origin"}, 200),
        ({"host": "t.example", "origin": "http://t.example"}, 200),
        ({"host": "t.example:8080", "origin": "http://t.example:8080"}, 200),
        ({"host": "t.example:443", "origin": "https://t.example"}, 200),
        ({"host": "127.0.0.1:5000", "origin": "http://t.example", "x_forwarded_host": "t.example"}, 200),
        ({"host": "127.0.0.1:5000", "origin": "http://t.example"}, 403),
        ({"host": "t.example", "origin": "http://u.example", "x_forwarded_host": "t.example"}, 403),
        ({"host": "t.example", "origin": "http://u.example", "sec_fetch_site": "same-site"}, 403),
    ],
)
def test_the_page_itself_goes_on_working_behind_proxies(headers: dict[str, str], status: int) -> None:
    assert statuses([kept(**headers)]) == [status]


def test_a_name_that_we_were_told_is_ours_whatever_the_proxy_makes_of_it() -> None:
    headers = {"host": "127.0.0.1:5000", "origin": "http://t.example"}
    assert statuses([kept(**headers)], allowed_hosts=["t.example"]) == [200]


def test_refusals_have_the_shape_of_their_api() -> None:
    paths = ["/v1/documents", "/suggest", "/v2/glossaries"]
    answers = asyncio.run(asked([("POST", path, {"headers": SITE}) for path in paths]))
    assert [sorted(answer.json()) for answer in answers] == [["code", "error"], ["error"], ["message"]]
