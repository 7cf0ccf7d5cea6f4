"""A server under a path, behind a proxy that takes the path away and behind one that does not.

LibreTranslate#601, #586, #374: styles, scripts, links and the description of the API pointed to the root.
"""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.errors import DragomanError
from dragoman.serve.app import create_app
from dragoman.serve.settings import Settings

FIXTURE = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"
TEXT = {"text": "the dog sees the man", "source": "en", "target": "de"}
_ADDRESS = re.compile(r"""(?:src|href|from|fetch\(|ask\(|askJson\()=?\s*["'`]([^"'`$#]+)["'`]|["'](v1/\w+)["'`]""")


class Proxy:
    """Hands on what is under a path, and knows nothing else."""

    def __init__(self, app: ASGIApp, root: str, *, strips: bool) -> None:
        self.app, self.root, self.strips = app, root, strips

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        assert path == self.root or path.startswith(f"{self.root}/"), f"{path} is another server's"
        if self.strips:
            path = path.removeprefix(self.root) or "/"
        await self.app({**scope, "path": path, "raw_path": path.encode()}, receive, send)


def addresses(page: str, at: str, beside: str) -> Iterator[str]:
    """What a page or a script of it asks for; `beside`: where modules are that it imports."""
    page = re.sub(r"\$\{`\$\{ROOT\}(\w[\w.]*)`\}|`\$\{ROOT\}(\w+)`", r'"\1\2"', page)
    for match in _ADDRESS.finditer(page):
        address = match[1] or match[2]
        yield urljoin(beside if address.startswith("./") else at, address)


@pytest.mark.parametrize("strips", [True, False])
@pytest.mark.parametrize("root", ["/translate", "/tools/dragoman"])
def test_all_is_there_under_a_path(root: str, strips: bool, tmp_path: Path) -> None:
    async def ask() -> None:
        settings = Settings(
            [FIXTURE],
            "cpu",
            threads=1,
            load_first=True,
            root_path=f"{root}/",
            work_folder=tmp_path,
            open_corrections=True,
        )
        app = create_app(settings)
        transport = httpx.ASGITransport(app=Proxy(app, root, strips=strips))
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://host") as client,
        ):
            await look(client, root)

    asyncio.run(ask())


async def look(client: httpx.AsyncClient, root: str) -> None:
    home = f"http://host{root}/"
    first = await client.get(root, follow_redirects=True)
    assert str(first.url).rstrip("/") == home.rstrip("/")
    assert first.text == (await client.get(home)).text
    waiting, seen = [str(first.url), home, f"{home}docs"], set[str]()
    while waiting:
        address = waiting.pop()
        if address in seen or urlsplit(address).path in (f"{root}/v1/translate/stream", f"{root}/v1/words"):
            continue
        seen.add(address)
        answer = await client.get(address, follow_redirects=True)
        without_key = 403 if address.endswith("/v1/key") else 200
        assert answer.status_code in (without_key, 405), f"{address}: {answer.status_code}"
        if "text/html" in answer.headers["content-type"]:
            waiting += addresses(answer.text, address, address)
        elif address.endswith(".js") and "htm-preact" not in address:  # a script asks for what is beside ROOT
            waiting += addresses(answer.text, home, address)
    assert {f"{home}page/style.css", f"{home}page/htm-preact.js", f"{home}favicon.ico", f"{home}spec"} <= seen
    assert {f"{home}v1/limits", f"{home}v1/documents", f"{home}v1/corrections"} <= seen
    assert (await client.get(f"{home}spec")).json()["servers"] == [{"url": home.rstrip("/")}]
    assert (await client.get(f"{home}docs/", follow_redirects=True)).url == f"{home}docs"
    events = await client.post(f"{home}v1/translate/stream", json=TEXT)
    assert events.text.startswith("event: part")
    assert (await client.post(f"{home}translate", json={"q": "a", "source": "en", "target": "de"})).status_code == 200
    wrong = await client.post(f"{home}v2/nothing")
    assert (wrong.status_code, list(wrong.json())) == (404, ["message"])
    assert (await client.get(f"{home}v3/glossaries")).json() == {"glossaries": []}
    form: Any = {"data": {"source": "en", "target": "de"}, "files": {"file": ("a.txt", b"the dog sees the man")}}
    link = (await client.post(f"{home}translate_file", **form)).json()["translatedFileUrl"]
    assert link.startswith(f"{home}download_file/")
    assert (await client.get(link)).status_code == 200
    assert all("set-cookie" not in one.headers for one in (first, events, wrong))


@pytest.mark.parametrize("root", ["/v1", "/docs", "/a b", "/a?b"])
def test_a_path_that_cannot_be(root: str) -> None:
    with pytest.raises(DragomanError, match="root_path"):
        create_app(Settings(root_path=root))
