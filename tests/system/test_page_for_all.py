"""The page for those without JavaScript, without a network, without English; and the routes, tried in the browser."""

import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.system.browsers import BROWSERS
from tests.system.test_page import FORMS, browser  # noqa: F401 (a fixture)

playwright = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")
pytestmark = pytest.mark.skipif(not BROWSERS, reason="the page's tests need Chromium (apt-get install chromium)")
FIXTURE = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"
TEXT = "the dog sees the man"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, live_server: Any, run_of_languages: Any) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("for_all")
    with live_server(folder, runs=(FIXTURE, run_of_languages(folder, "de", "en"))) as running:
        yield running


@pytest.fixture
def new_page(browser: Any, server: Any) -> Iterator[Callable[..., Any]]:  # noqa: F811
    """`new_page(address, ...)`: a page of a browser of its own, with what its console complains of."""
    contexts: list[Any] = []

    def opened(address: str, **options: Any) -> Any:
        context = browser.new_context(**{**FORMS["light"], **options}, reduced_motion="reduce")
        context.set_default_timeout(10_000)
        contexts.append(context)
        page = context.new_page()
        page.problems = []
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("console", lambda said: page.problems.append(said.text) if said.type == "error" else None)
        page.goto(f"{server.url}{address}")
        return page

    yield opened
    for context in contexts:
        context.close()


def test_without_javascript_a_text_is_translated(new_page: Any, server: Any) -> None:
    page = new_page("/", java_script_enabled=False)
    page.fill("textarea", TEXT)
    page.select_option("[name=source]", "en")
    page.select_option("[name=target]", "de")
    page.click("button")
    expected = server.post("/v1/translate", json={"text": TEXT, "source": "en", "target": "de"}).json()["text"]
    assert page.inner_text(".output") == expected
    assert page.input_value("textarea") == TEXT
    page.click("text=API")
    page.click("summary:has-text('POST /v1/translate:')")
    assert "Ich möchte ein Bier." in page.inner_text("details[open]")
    assert page.problems == []


def test_a_route_is_tried_in_the_docs_and_its_curl_answers_the_same(new_page: Any) -> None:
    page = new_page("/docs")
    page.click("summary:has-text('POST /v1/translate:')")
    form = "details[data-path='/v1/translate'] form"
    page.fill(f"{form} label:has-text('text') input >> nth=0", "the dog's man")
    page.fill(f"{form} label:has-text('source') input", "en")
    page.fill(f"{form} label:has-text('target') input", "de")
    page.fill(f"{form} label:has-text('glossary') input", '{"dog": "könig"}')
    page.select_option(f"{form} label:has-text('warnings') select", "true")
    page.click(f"{form} >> text=Send")
    page.wait_for_selector(f"{form} :text('200 OK')")
    shown = page.inner_text(f"{form} .answer")
    assert '"text": "' in shown
    assert "könig" in shown
    curl = page.inner_text(f"{form} .curl")
    done = subprocess.run(shlex.split(curl.replace("\\\n", "")), capture_output=True, check=True, timeout=60)
    assert page.evaluate("([a, b]) => JSON.stringify(JSON.parse(a)) === JSON.stringify(JSON.parse(b))",
                         [done.stdout.decode(), shown])  # fmt: skip
    page.fill(f"{form} label:has-text('target') input", "zz")
    page.click(f"{form} >> text=Send")
    page.wait_for_selector(f"{form} :text('400')")
    assert "is not served" in page.inner_text(f"{form} .answer")
    assert [one for one in page.problems if "status of 400" not in one] == []


def test_a_file_and_a_stream_are_tried_in_the_docs(new_page: Any) -> None:
    page = new_page("/docs")
    page.click("summary:has-text('POST /v1/documents:')")
    form = "details[data-path='/v1/documents'] form"
    page.set_input_files(f"{form} input[type=file]", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"the dog"})
    page.fill(f"{form} label:has-text('source') input", "en")
    page.fill(f"{form} label:has-text('target') input", "de")
    page.fill(f"{form} label:has-text('glossary') input", "")
    page.click(f"{form} >> text=Send")
    page.wait_for_selector(f"{form} :text('202')")
    page.click("summary:has-text('GET /v1/translate/stream')")
    form = "details[data-path='/v1/translate/stream'][data-method=get] form"
    page.fill(f"{form} label:has-text('text') input >> nth=0", TEXT)
    page.fill(f"{form} label:has-text('source') input", "en")
    page.fill(f"{form} label:has-text('target') input", "de")
    page.click(f"{form} >> text=Send")
    page.wait_for_selector(f"{form} :text('event: done')")
    assert page.problems == []


def test_the_page_opens_without_a_network_and_an_upgrade_is_seen_at_once(new_page: Any, server: Any) -> None:
    page = new_page("/")
    context = page.context
    page.wait_for_selector("#target option", state="attached")
    page.evaluate("navigator.serviceWorker.ready")
    page.wait_for_function("navigator.serviceWorker.controller !== null")
    kept = page.evaluate(
        "(async () => (await Promise.all((await caches.keys()).map(async (name) =>"
        " (await (await caches.open(name)).keys()).map((one) => one.url)))).flat())()"
    )
    assert f"{server.url}/" in kept
    assert [one for one in kept if re.search("/v1/|/v2/|translate", one)] == []
    page.evaluate("caches.open(`dragoman ${location.origin}/ of yesterday`)")
    context.set_offline(True)
    page.reload()
    page.wait_for_selector("h1:has-text('Dragoman')")
    assert page.evaluate("fetch('v1/languages').then(() => 'answered', () => 'refused')") == "refused"
    context.set_offline(False)
    new = "<!doctype html><title>new</title><h1>tomorrow's page</h1>"
    context.route(f"{server.url}/", lambda route: route.fulfill(body=new, content_type="text/html"))
    page.reload()
    assert page.inner_text("h1") == "tomorrow's page"  # though an older one is kept
