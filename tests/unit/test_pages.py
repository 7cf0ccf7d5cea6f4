"""What the server has for a browser: the page's files, a form and the routes without JavaScript, an app's manifest."""

import asyncio
import json
import re
import tomllib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from fnmatch import fnmatch
from html import escape, unescape
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from dragoman.serve import messages, pages
from dragoman.serve.app import create_app
from dragoman.serve.settings import Limits, Settings
from dragoman.serve.store import Store

ROOT = Path(__file__).parents[2]
FIXTURE = ROOT / "tests" / "fixtures" / "run_4f9e9c2" / "finished"
TEXT = {"text": "the dog sees the man", "source": "en", "target": "de"}
EVIL = """<script>alert(1)</script>"'></textarea><img src=x onerror=alert(1)>"""


@asynccontextmanager
async def _client(**settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(Settings([FIXTURE], "cpu", threads=1, load_first=True, **settings))
    transport = httpx.ASGITransport(app=app)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        yield client


def served(work: Callable[[httpx.AsyncClient], Coroutine[Any, Any, None]], **settings: Any) -> None:
    async def run() -> None:
        async with _client(limits=settings.pop("limits", Limits(deadline_seconds=60)), **settings) as client:
            await work(client)

    asyncio.run(run())


def test_a_form_translates_without_javascript_and_shows_texts_as_texts() -> None:
    async def work(client: httpx.AsyncClient) -> None:
        for address in ("/", "/plain"):
            page = (await client.get(address)).text
            assert 'action="plain?lang=en" method="post"' in page
            assert '<option value="de">German</option>' in page
        expected = (await client.post("/v1/translate", json=TEXT)).json()["text"]
        answer = await client.post("/plain", data=TEXT)
        assert answer.headers["content-type"].startswith("text/html")
        assert f'lang="de" dir="ltr" data-script="Latn">{expected}</div>' in answer.text
        assert "form-action 'self'" in answer.headers["content-security-policy"]
        page = (await client.post("/plain", data={**TEXT, "text": EVIL})).text
        assert "<script>" not in page
        assert "<img src" not in page
        [kept] = re.findall(r"<textarea[^>]*>(.*?)</textarea>", page, re.DOTALL)
        assert unescape(kept) == EVIL

    served(work)


def test_lists_of_languages_are_in_the_language_of_their_reader() -> None:
    async def work(client: httpx.AsyncClient) -> None:
        for address in ("/v1/languages", "/languages"):
            for reader, name in (("", "German"), ("*", "German"), ("de-AT", "Deutsch"), ("ar", "الألمانية")):
                answer = await client.get(address, headers={"Accept-Language": reader})
                assert {one["code"]: one["name"] for one in answer.json()}["de"] == name
                assert "Accept-Language" in answer.headers["vary"]
        [german, _] = (await client.get("/v1/languages")).json()
        assert [german[key] for key in ("tag", "script", "direction")] == ["de", "Latn", "ltr"]
        guess = {"text": "Das ist ein kurzer Satz in deutscher Sprache."}
        answer = await client.post("/v1/detect", json=guess, headers={"Accept-Language": "fr"})
        assert answer.json()[0]["name"] == "allemand"

    served(work)


def test_a_form_counts_a_line_end_as_one_character() -> None:
    async def work(client: httpx.AsyncClient) -> None:
        text = "the dog\r\n" * 10  # as browsers send it: 80 characters in the field
        assert (await client.post("/plain", data={**TEXT, "text": text})).status_code == 200
        assert "maxlength" not in (await client.get("/plain")).text  # it would count otherwise, and cut without a word

    served(work, limits=Limits(text_characters=80, deadline_seconds=60))


def test_a_form_has_the_direction_of_its_languages() -> None:
    assert pages._writing("he") == 'lang="he" dir="rtl" data-script="Hebr"'
    assert pages._writing("zho_Hant") == 'lang="zh-Hant" dir="ltr" data-script="Hant"'
    assert pages._writing("auto") == 'dir="auto"'
    assert messages.Messages("ar").pair("en", "ar") == "الإنجليزية ← العربية"


def test_a_refused_form_is_a_page_too() -> None:
    async def work(client: httpx.AsyncClient) -> None:
        for sent, said in (
            ({**TEXT, "target": EVIL}, "is not served"),
            ({**TEXT, "text": "x" * 101}, "exceeds text limit (100)"),
            ({"source": "en"}, "target: missing"),
        ):
            answer = await client.post("/plain", data=sent)
            assert answer.status_code == 400
            assert said in unescape(answer.text)
            assert "<script>" not in answer.text
            assert "<!--" not in answer.text
        assert (await client.post("/plain", data=TEXT)).status_code == 429

    served(work, limits=Limits(text_characters=100, requests_per_minute=3, deadline_seconds=60))


@pytest.mark.parametrize("locale", ["de", "fr", "es", "zh", "ar"])
def test_pages_without_javascript_are_in_the_language_of_their_reader(locale: str) -> None:
    english = json.loads((pages.FOLDER / "messages" / "en.json").read_text("utf-8"))
    here = json.loads((pages.FOLDER / "messages" / f"{locale}.json").read_text("utf-8"))
    foreign = [escape(text) for text in english if here[text] != text and len(text) > 12]

    def check(answer: httpx.Response) -> str:
        direction = "rtl" if locale == "ar" else "ltr"
        assert f'<html lang="{locale}" dir="{direction}"' in answer.text
        assert answer.headers["content-language"] == locale
        assert answer.headers["vary"] == "Accept-Language"
        assert "{{" not in answer.text
        text = re.sub(r"<pre.*?</pre>", "", answer.text, flags=re.DOTALL)
        assert [one for one in foreign if f">{one}<" in text or f'"{one}"' in text or f": {one}<" in text] == []
        return text

    async def work(client: httpx.AsyncClient) -> None:
        asked = {"headers": {"Accept-Language": f"xx, {locale}-XX;q=0.5"}}
        for address in ("/", "/plain", "/docs"):
            page = check(await client.get(address, **asked))
            for other in ("en", locale):
                assert re.search(rf'href="\w+\?lang={other}" lang="{other}" hreflang="{other}"', page)
        other_way = check(await client.get(f"/docs?lang={locale}", headers={"Accept-Language": "en"}))
        assert here["Translate a text, or a list of them"] in other_way
        made = check(await client.post(f"/plain?lang={locale}", data={**TEXT, "text": "THE DOG sees 17 men"}))
        assert here["The text is in capitals: those are translated less well."] in made or "⚠" not in made
        assert f'action="plain?lang={locale}"' in made
        assert "German" not in made
        refused = check(await client.post("/plain", data={**TEXT, "target": "xx"}, **asked))
        assert '<span lang="en" dir="ltr">' in refused
        for _ in range(5):
            busy = await client.post("/plain", data=TEXT, **asked)
        assert busy.status_code == 429
        assert busy.headers["retry-after"]
        assert here["The server is busy."] in check(busy)

    served(work, limits=Limits(requests_per_minute=4, deadline_seconds=60))


def test_a_form_asks_for_a_key_where_one_is_needed() -> None:
    async def work(client: httpx.AsyncClient) -> None:
        assert 'name="api_key"' in (await client.get("/")).text
        answer = await client.post("/plain", data=TEXT)
        assert answer.headers["content-type"].startswith("text/html")
        assert "API key" in answer.text

    served(work, key_required=True)


def test_all_routes_are_shown_without_javascript() -> None:
    async def work(client: httpx.AsyncClient) -> None:
        page, spec = (await client.get("/docs")).text, (await client.get("/spec")).json()
        for path, item in spec["paths"].items():
            for method in item:
                assert f"{method.upper()} {path}</code>" in page
        assert "Ich möchte ein Bier." in page
        assert "<!--" not in page
        get, post = (spec["paths"]["/v1/translate/stream"][method] for method in ("get", "post"))
        assert "requestBody" not in get
        assert "text" in [one["name"] for one in get["parameters"]]
        assert "requestBody" in post

    served(work)


@pytest.mark.parametrize("root", ["", "/translate"])
def test_the_manifest_of_an_app_names_what_is_there(root: str) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        home = f"http://x{root}/"
        page = (await client.get(home)).text
        [link] = re.findall(r'rel="manifest" href="([^"]+)"', page)
        answer = await client.get(str(httpx.URL(home).join(link)))
        manifest = answer.json()
        assert answer.headers["content-type"] == "application/manifest+json"
        assert str(answer.url.join(manifest["start_url"])) == str(answer.url.join(manifest["scope"])) == home
        purposes = set()
        for icon in manifest["icons"]:
            data = (await client.get(str(answer.url.join(icon["src"])))).content
            assert "{}x{}".format(*Image.open(BytesIO(data)).size) == icon["sizes"]
            purposes.add(icon.get("purpose", "any"))
        assert purposes == {"any", "maskable"}

    served(work, root_path=root)


def test_the_service_worker_is_another_one_with_every_change_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        script = await client.get("/sw.js")
        assert script.headers["content-type"].startswith("text/javascript")
        assert script.headers["cache-control"] == "no-cache"
        assert pages.version() in script.text
        [files] = re.findall(r"\.\.\.(\[.*?\])", script.text)
        for name in json.loads(files):
            answer = await client.get(f"/{name}")
            assert answer.status_code == 200
            assert answer.headers["cache-control"] == "no-cache"
        known = {"If-None-Match": answer.headers["etag"]}  # a browser asks whether the file that it has is the last one
        assert (await client.get(f"/{name}", headers=known)).status_code == 304
        assert {f"page/{path.name}" for path in pages.FOLDER.glob("*.js")} - set(json.loads(files)) == {"page/sw.js"}
        assert (await client.get("/page/sw.js")).status_code == 404  # its scope would be too narrow there

    served(work)
    before = pages.version()
    for path in pages.FOLDER.glob("*.*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(pages, "FOLDER", tmp_path)
    for name in ("style.css", "index.html", "sw.js"):
        (tmp_path / name).write_text((tmp_path / name).read_text("utf-8") + " ", encoding="utf-8")
        pages.version.cache_clear()
        assert pages.version() != before
        before = pages.version()
    pages.version.cache_clear()


def test_every_file_of_the_page_is_in_the_package() -> None:
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["package-data"]
    for path in pages.FOLDER.rglob("*"):
        if path.is_file():
            name = path.relative_to(pages.FOLDER.parent).as_posix()
            alike = [one for one in patterns["dragoman.serve"] if one.count("/") == name.count("/")]
            assert any(fnmatch(name, one) for one in alike), name


TERMS = {"Bier": "ale", "roter Hund": "red hound"}
TBX = b"""<?xml version="1.0"?><martif type="TBX-Basic" xml:lang="de"><text><body>
<termEntry><langSet xml:lang="de"><tig><term>Bier</term></tig></langSet>
<langSet xml:lang="en"><tig><term>ale</term></tig></langSet></termEntry>
<termEntry><langSet xml:lang="de"><tig><term>roter Hund</term></tig></langSet>
<langSet xml:lang="en"><tig><term>red hound</term></tig></langSet></termEntry></body></text></martif>"""


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.txt", b"Bier = ale\nroter Hund = red hound\n"),
        ("a.csv", b'\xef\xbb\xbf"Bier","ale"\r\n"roter Hund","red hound"\r\n'),
        ("a.csv", b"Bier;ale\r\nroter Hund;red hound\r\n"),
        ("a.tsv", b"Bier\tale\nroter Hund\tred hound\n"),
        ("a.tbx", TBX),
    ],
)
def test_a_file_of_terms_is_read(name: str, data: bytes) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        languages = {"source": "de", "target": "en"}
        answer = await client.post("/v1/glossary", data=languages, files={"file": (name, data)})
        assert answer.json() == {"terms": TERMS, "faults": []}

    served(work)


def test_what_is_no_term_is_told_with_its_line() -> None:
    text = "Bier = ale\nWein\t\n# a remark\n = rum\nBier = beer\nroter Hund = red hound\n"

    async def work(client: httpx.AsyncClient) -> None:
        answer = (await client.post("/v1/glossary", files={"file": ("terms.txt", text.encode())})).json()
        assert answer["terms"] == TERMS
        assert [(one["line"], one["code"]) for one in answer["faults"]] == [
            (2, "wrong-shape"), (4, "wrong-shape"), (5, "conflict"),
        ]  # fmt: skip
        assert answer["faults"][2]["text"].startswith("'Bier' is 'ale' further up")
        nothing = (await client.post("/v1/glossary", files={"file": ("terms.txt", b"# a remark\n")})).json()
        assert nothing == {"terms": {}, "faults": []}
        broken = await client.post("/v1/glossary", files={"file": ("../../x.tbx", b"<martif><text>")})
        assert broken.status_code == 400
        assert "/" not in broken.json()["error"]
        large = await client.post("/v1/glossary", files={"file": ("a.txt", b"a = b\n" * 200_000)})
        assert large.status_code == 413

    served(work)


def test_a_key_says_what_is_left_of_its_limits(tmp_path: Path) -> None:
    store = Store(tmp_path / "serve.sqlite")
    limited, free = (
        {"Authorization": f"Bearer {key}"} for key in (store.add_key("pub", 60, 1000), store.add_key("inn"))
    )
    store.close()

    async def work(client: httpx.AsyncClient) -> None:
        await client.post("/v1/translate", json=TEXT, headers=limited)
        known = (await client.get("/v1/key", headers=limited)).json()
        assert (known["name"], known["per_minute"], known["per_month"]) == ("pub", 60, 1000)
        assert (known["used"], known["left"]) == (len(TEXT["text"]), 1000 - len(TEXT["text"]))
        known = (await client.get("/v1/key", headers=free)).json()
        assert known["name"] == "inn"
        assert [known[limit] for limit in ("per_minute", "per_month", "left")] == [None] * 3
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            assert (await client.get("/v1/key", headers=headers)).status_code == 403

    served(work, store=tmp_path / "serve.sqlite")
